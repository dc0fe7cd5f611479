"""The largest value of a program's option that fits a GPU, by runs of the program without one."""

import dataclasses
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from blockyard import _native
from blockyard._answers import Answer, size
from blockyard._dry_run import _cause, _run


def fit(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    vary: Mapping[str, Sequence[int]],
    gpu: str | Sequence[str] = "h200",
    limit: "int | str | None" = None,
    steps: int = 3,
    conf: str | None = None,
    devices: int = 1,
    try_settings: bool = False,
    keep: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "Fit":
    """Finds the largest value of an option with which a PyTorch program fits a GPU, by running it without one: a `Fit`.

    `vary` is one name with its lowest and its highest value, `{"batch-size": (1, 512)}` for the program's own option `--batch-size`,
    `{"env:BATCH": (1, 64)}` for a variable of its environment; a third number is what the values are multiples of. `args` are the program's other
    arguments. `gpu` is the GPU, or several, each with an answer of its own, or "all". `limit` is the most that may be reserved on each
    device, in bytes or with a unit ("16 GiB"); without it, the GPU's memory. Each run ends after `steps` steps of the program's first optimizer.
    `conf` is PYTORCH_CUDA_ALLOC_CONF; with `try_settings` the search is made with expandable segments, too. Runs are kept, in `keep` or
    in the cache directory, so that a second call goes on; `fresh` forgets them. The report is printed, unless `echo` is false.

    BlockyardError is raised where the program cannot be started at all. A run that fails ends the search: the answer has `failed_at` and
    `error`. Ctrl-C raises KeyboardInterrupt; the runs that were made are kept.
    """
    if len(vary) != 1:
        raise ValueError(f"vary names one option with its values, not {len(vary)}")
    [(name, values)] = vary.items()
    if len(values) not in (2, 3):
        raise ValueError(f"the values of {name} are (low, high) or (low, high, multiple), not {values!r}")
    low, high, *multiple = values
    named = f"{name}={low}..{high}" + "".join(f":{part}" for part in multiple)
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        report = pathlib.Path(folder, "report.json")
        names = gpu if isinstance(gpu, str) else ",".join(gpu)
        options: list[object] = ["--vary", named, "--gpu", names, "--json", report, "--steps", steps, "--devices", devices]
        options += ["--python", sys.executable if python is None else os.fspath(python)]
        given = {"--limit": limit, "--conf": conf, "--keep": None if keep is None else os.fspath(keep)}
        for option, value in given.items():
            if value is not None:
                options += [option, value]
        options += ["--try-settings"] if try_settings else []
        options += ["--fresh"] if fresh else []
        command = [sys.executable, "-m", "blockyard", "fit", *map(str, options), os.fspath(program), "--", *map(str, args)]
        errors = _run(command, echo)
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        return Fit.of(json.loads(report.read_text()))


@dataclasses.dataclass(frozen=True, repr=False)
class FitRun(Answer):
    """A run of the program with one value. Where it does not fit, the peaks are those until it ran out."""

    value: int
    fits: bool
    peak_allocated: int
    peak_reserved: int
    exact: bool

    @classmethod
    def of(cls, raw: Any) -> "FitRun":
        return cls(raw, raw["value"], raw["fits"], raw["peak_allocated"], raw["peak_reserved"], raw["exact"])

    def __str__(self) -> str:
        return f"{self.value}: {'fits' if self.fits else 'runs out'}, peak reserved {size(self.peak_reserved)}"


@dataclasses.dataclass(frozen=True, repr=False)
class FitSite(Answer):
    """A line of the program: what it holds at the peak of the largest value, and how that grows ("constant", "linear", "quadratic"; None
    where no rule was found)."""

    what: str
    bytes: int
    growth: str | None

    @classmethod
    def of(cls, raw: Any) -> "FitSite":
        return cls(raw, raw["what"], raw["bytes"], raw["growth"] and raw["growth"]["kind"])

    def __str__(self) -> str:
        return f"{size(self.bytes)}: {self.what}" + (f" ({self.growth})" if self.growth else "")


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(Answer):
    """The answer for one GPU, whose id is `gpu`. `raw` has all fields of `blockyard fit --json`, in docs/fit.md.

    `largest` fits and `next` does not; `largest` is None where no value fits or the search ended before. `needs` is the run of the next
    value on a GPU without an end. `others` are the answers for further GPUs.
    """

    gpu: str
    limit: int
    largest: int | None
    next: FitRun | None
    needs: FitRun | None
    exact: bool
    probes: list[FitRun]
    sites: list[FitSite]
    failed_at: int | None
    error: str | None
    others: "list[Fit]"

    @classmethod
    def of(cls, raw: Any) -> "Fit":
        def run(found: Any) -> FitRun | None:
            return None if found is None else FitRun.of(found)

        return cls(
            raw,
            raw["gpu"]["id"],
            raw["limit"],
            raw["largest"],
            run(raw["next"]),
            run(raw["needs"]),
            raw["exact"],
            [FitRun.of(row) for row in raw["probes"]],
            [FitSite.of(row) for row in raw["sites"]],
            raw["failed_at"],
            raw["error"],
            [cls.of(row) for row in raw.get("others", [])],
        )

    def __str__(self) -> str:
        if self.error is not None:
            return f"the run of {self.failed_at} failed: {self.error}"
        return f"the largest that fits {size(self.limit)} of {self.gpu} is {self.largest}"
