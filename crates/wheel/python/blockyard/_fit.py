"""The largest value of a program's option that fits a GPU, by runs of the program without one."""

import dataclasses
import itertools
import json
import math
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from blockyard import _native, _schedulers
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
    at_once: int = 1,
    report: "str | os.PathLike[str] | None" = None,
    keep: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "Fit":
    """Finds the largest value of an option with which a PyTorch program fits a GPU, by running it without one: a `Fit`.

    `vary` is one name with its lowest and its highest value, `{"batch-size": (1, 512)}` for the program's own option `--batch-size`,
    `{"env:BATCH": (1, 64)}` for a variable of its environment; a third number means that the values are its multiples. `args` are the program's other
    arguments. `gpu` is the GPU, or several, each with its own answer, or "all". `limit` is the most that may be reserved on each
    device, in bytes or with a unit ("16 GiB"); without it, the GPU's memory. Each run ends after `steps` steps of the program's first optimizer.
    `conf` is PYTORCH_CUDA_ALLOC_CONF; with `try_settings` the search is made with expandable segments, too. Searches for several GPUs run
    `at_once` side by side, as far as the host's memory allows. `report` is where a page of HTML with the curves goes. Runs are kept, in `keep` or
    in the cache directory, so that a second call goes on; `fresh` forgets them. The report is printed, unless `echo` is false.

    BlockyardError is raised where the program cannot be started at all. A run that fails ends the search: the answer has `failed_at` and
    `error`. Ctrl-C raises KeyboardInterrupt; the runs that were made are kept.
    """
    if len(vary) != 1:
        raise ValueError(f"vary names one option with its values, not {len(vary)}; fit_map takes two")
    options = _varied(vary) + ["--steps", steps, "--devices", devices] + (["--try-settings"] if try_settings else [])
    options += ["--at-once", at_once, *_page(report)]
    options += _given(gpu=gpu, limit=limit, conf=conf, keep=keep, fresh=fresh, python=python)
    return Fit.of(_ask(program, args, options, echo))


def fit_map(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    vary: Mapping[str, Sequence[int]],
    settings: Sequence[str] = (),
    mesh: "Mapping[str, Sequence[int]] | None" = None,
    ranks: int | None = None,
    nproc_per_node: int | None = None,
    at_once: int = 1,
    report: "str | os.PathLike[str] | None" = None,
    gpu: str | Sequence[str] = "h200",
    limit: "int | str | None" = None,
    steps: int = 3,
    conf: str | None = None,
    devices: int = 1,
    keep: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "FitMap":
    """The largest value of one option for each value of another, under each of several `settings`, or for each layout of `ranks` ranks: a `FitMap`.

    `vary` is two names with their values as `fit` takes them, the searched one first, or one name where `settings` are given, each a text of
    PYTORCH_CUDA_ALLOC_CONF, or a `mesh` with its `ranks`, as `fit_layouts` takes them. All else is as in `fit`.
    """
    if len(vary) != (1 if settings or mesh else 2):
        raise ValueError("vary names two options, or one with settings or a mesh")
    if (mesh is None) != (ranks is None) or (mesh and settings):
        raise ValueError("a mesh has a number of ranks, and no settings beside it")
    options = _varied(vary) + _settings(settings) + ["--steps", steps, "--devices", devices]
    options += ["--at-once", at_once, *_page(report)]
    if mesh is not None and ranks is not None:
        options += _mesh(mesh, ranks, nproc_per_node)
    options += _given(gpu=gpu, limit=limit, conf=conf, keep=keep, fresh=fresh, python=python)
    return FitMap.of(_ask(program, args, options, echo))


def fit_settings(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    settings: Sequence[str],
    gpu: str | Sequence[str] = "h200",
    limit: "int | str | None" = None,
    steps: int = 3,
    conf: str | None = None,
    devices: int = 1,
    at_once: int = 1,
    keep: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "FitSettings":
    """Which settings of the allocator a program fits under, replayed over the requests of one run: a `FitSettings`.

    `settings` are texts of PYTORCH_CUDA_ALLOC_CONF. The replays are estimates; the own settings, and those that pass with the least peak
    reserved, are run, too. All else is as in `fit`.
    """
    if not settings:
        raise ValueError("settings are missing")
    options = _settings(settings) + ["--steps", steps, "--devices", devices, "--at-once", at_once]
    options += _given(gpu=gpu, limit=limit, conf=conf, keep=keep, fresh=fresh, python=python)
    return FitSettings.of(_ask(program, args, options, echo))


def fit_layouts(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    mesh: Mapping[str, Sequence[int]],
    ranks: int,
    nproc_per_node: int | None = None,
    at_once: int = 1,
    preload: Sequence[str] = (),
    scheduler: Any = None,
    gpu: str | Sequence[str] = "h200",
    limit: "int | str | None" = None,
    steps: int = 3,
    conf: str | None = None,
    keep: "str | os.PathLike[str] | None" = None,
    fresh: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "FitLayouts":
    """Which layouts of `ranks` ranks fit: a `FitLayouts`.

    `mesh` has for each dimension all numbers of ranks that it may have, `{"dp": range(1, 65), "tp": [1, 2, 4, 8]}`: the program gets them as its
    options `--dp` and `--tp`. Layouts whose product is the number of ranks run, `at_once` side by side. `preload` names modules that are loaded once
    for all of them, ["torch", "torch.distributed.fsdp"].

    `scheduler` is None for this machine, a `dask.distributed.Client`, or "ray" (which is initialized if need be): each layout is a task then, and
    with `preload` all layouts with one size of the first dimension, which share the loaded modules. Workers need the program under the same path,
    this package and PyTorch. The work of a lost worker is done again; runs that were kept on its machine are known there. All else is as in `fit`.
    """
    asked: dict[str, Any] = {"nproc_per_node": nproc_per_node, "at_once": at_once, "preload": list(preload), "gpu": gpu, "limit": limit}
    asked |= {"steps": steps, "conf": conf, "keep": keep, "fresh": fresh, "python": python}
    _schedulers.check(scheduler)
    if scheduler is None:
        return FitLayouts.of(_layouts(program, args, mesh, ranks, asked, echo))
    if fresh:
        raise ValueError("fresh would make tasks forget what others keep; name a new file as keep instead")
    path, words = os.path.abspath(os.fspath(program)), [str(word) for word in args]
    meshes = _meshes(mesh, ranks, bool(preload))
    if not os.path.isfile(path) or not meshes:
        # The command says what is wrong.
        return FitLayouts.of(_layouts(program, args, mesh, ranks, asked, echo))
    answers = _schedulers.each(scheduler, _layouts, [(path, words, part, ranks, asked, False) for part in meshes])
    found = FitLayouts.of(_joined(mesh, ranks, meshes, answers))
    if echo:
        print(found)
    return found


def _layouts(
    program: "str | os.PathLike[str]", args: Sequence[object], mesh: Mapping[str, Sequence[int]], ranks: int, asked: Any, echo: bool
) -> Any:
    """The JSON for some layouts; a task of a scheduler."""
    asked = dict(asked)
    options = [*_mesh(mesh, ranks, asked.pop("nproc_per_node")), "--steps", asked.pop("steps"), "--at-once", asked.pop("at_once")]
    preload = asked.pop("preload")
    if preload:
        options += ["--preload", ",".join(preload)]
    return _ask(program, args, options + _given(**asked), echo)


def _all_layouts(mesh: Mapping[str, Sequence[int]], ranks: int) -> list[dict[str, int]]:
    """The layouts that multiply to the ranks, in the command's order."""
    sizes = [sorted({size for size in sizes if size > 0}) for sizes in mesh.values()]
    return [dict(zip(mesh, layout)) for layout in itertools.product(*sizes) if math.prod(layout) == ranks]


def _meshes(mesh: Mapping[str, Sequence[int]], ranks: int, is_shared: bool) -> list[dict[str, list[int]]]:
    """The parts of a mesh that are a task each: a layout, or all with one size of the first dimension."""
    layouts = _all_layouts(mesh, ranks)
    if not is_shared:
        return [{name: [size] for name, size in layout.items()} for layout in layouts]
    first, *others = mesh
    return [{first: [size], **{name: list(mesh[name]) for name in others}} for size in dict.fromkeys(layout[first] for layout in layouts)]


def _joined(mesh: Mapping[str, Sequence[int]], ranks: int, meshes: Sequence[Mapping[str, Sequence[int]]], answers: Sequence[Any]) -> Any:
    """The answers of tasks as one. A task that failed has its error in each of its layouts; where all failed, there is no answer."""
    raws = [answer for answer in answers if not isinstance(answer, Exception)]
    if not raws:
        raise answers[0]
    whole = {**raws[0], "runs": sum(raw["runs"] for raw in raws), "known": sum(raw["known"] for raw in raws)}

    def of_gpu(place: int) -> dict[str, Any]:
        rows: list[Any] = []
        for part, answer in zip(meshes, answers):
            if isinstance(answer, Exception):
                names = ("fits", "peak_allocated", "peak_reserved", "exact", "ranks", "under_limit")
                failed = dict.fromkeys(names) | {"error": f"{type(answer).__name__}: {answer}"}
                rows += [{"layout": layout, **failed} for layout in _all_layouts(part, ranks)]
            else:
                rows += [answer, *answer["others"]][place]["layouts"]
        fitting = [row for row in rows if row["fits"]]
        best = min(fitting, key=lambda row: row["peak_reserved"], default=None)
        errors = [error for raw in raws if (error := [raw, *raw["others"]][place]["error"]) is not None]
        return {"mesh": list(mesh), "layouts": rows, "best": best and best["layout"], "error": errors[0] if errors else None}

    others = [{**other, **of_gpu(place)} for place, other in enumerate(raws[0]["others"], 1)]
    return {**whole, **of_gpu(0), "others": others}


def _varied(vary: Mapping[str, Sequence[int]]) -> list[object]:
    options: list[object] = []
    for name, values in vary.items():
        if len(values) not in (2, 3):
            raise ValueError(f"the values of {name} are (low, high) or (low, high, multiple), not {values!r}")
        low, high, *multiple = values
        options += ["--vary", f"{name}={low}..{high}" + "".join(f":{part}" for part in multiple)]
    return options


def _settings(settings: Sequence[str]) -> list[object]:
    return [part for conf in settings for part in ("--vary", f"conf={conf}")]


def _mesh(mesh: Mapping[str, Sequence[int]], ranks: int, nproc_per_node: int | None) -> list[object]:
    named = ",".join(f"{name}=" + ",".join(str(size) for size in sizes) for name, sizes in mesh.items())
    return ["--mesh", named, "--ranks", ranks] + ([] if nproc_per_node is None else ["--nproc-per-node", nproc_per_node])


def _page(report: "str | os.PathLike[str] | None") -> list[object]:
    return [] if report is None else ["--report", os.fspath(report)]


def _given(
    *,
    gpu: str | Sequence[str],
    limit: "int | str | None",
    conf: str | None,
    keep: "str | os.PathLike[str] | None",
    fresh: bool,
    python: "str | os.PathLike[str] | None",
) -> list[object]:
    options: list[object] = ["--gpu", gpu if isinstance(gpu, str) else ",".join(gpu)]
    options += ["--python", sys.executable if python is None else os.fspath(python)]
    given = {"--limit": limit, "--conf": conf, "--keep": None if keep is None else os.fspath(keep)}
    for option, value in given.items():
        if value is not None:
            options += [option, value]
    return options + (["--fresh"] if fresh else [])


def _ask(program: "str | os.PathLike[str]", args: Sequence[object], options: Sequence[object], echo: bool) -> Any:
    """The JSON of the command with these options."""
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        report = pathlib.Path(folder, "report.json")
        words = [*map(str, options), "--json", str(report)]
        command = [sys.executable, "-m", "blockyard", "fit", *words, os.fspath(program), "--", *map(str, args)]
        errors = _run(command, echo)
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        return json.loads(report.read_text())


@dataclasses.dataclass(frozen=True, repr=False)
class FitRun(Answer):
    """A run of the program with one value. Where it does not fit, the peaks are those until it ran out.

    `outside` has the bytes that nvidia-smi would show beside the peak reserved, by what takes it: an estimate, empty where nothing was recorded of the GPU.
    """

    value: int
    fits: bool
    peak_allocated: int
    peak_reserved: int
    exact: bool
    outside: dict[str, int]

    @classmethod
    def of(cls, raw: Any) -> "FitRun":
        outside = {row["what"]: row["bytes"] for row in raw["outside"]}
        return cls(raw, raw["value"], raw["fits"], raw["peak_allocated"], raw["peak_reserved"], raw["exact"], outside)

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


@dataclasses.dataclass(frozen=True, repr=False)
class FitRow(Answer):
    """A row of a map: the largest value that fits for `value` of the other option, under the settings `conf` or for a `layout` of ranks, and the
    run of the next one."""

    value: int | None
    conf: str | None
    layout: dict[str, int] | None
    largest: int | None
    next: FitRun | None
    exact: bool
    probes: list[FitRun]
    error: str | None

    @classmethod
    def of(cls, raw: Any) -> "FitRow":
        following = None if raw["next"] is None else FitRun.of(raw["next"])
        probes = [FitRun.of(row) for row in raw["probes"]]
        other = (raw.get("value"), raw.get("conf"), raw.get("layout"))
        return cls(raw, *other, raw["largest"], following, raw["exact"], probes, raw["error"])

    def __str__(self) -> str:
        layout = " ".join(f"{name}={count}" for name, count in (self.layout or {}).items())
        other = layout or (self.conf if self.value is None else self.value)
        return f"{other}: {self.largest if self.error is None else self.error}"


@dataclasses.dataclass(frozen=True, repr=False)
class FitMap(Answer):
    """The largest value by row, on the GPU whose id is `gpu`. `others` are the answers for further GPUs."""

    gpu: str
    limit: int
    rows: list[FitRow]
    others: "list[FitMap]"

    @classmethod
    def of(cls, raw: Any) -> "FitMap":
        rows = [FitRow.of(row) for row in raw["rows"]]
        return cls(raw, raw["gpu"]["id"], raw["limit"], rows, [cls.of(row) for row in raw.get("others", [])])

    def __str__(self) -> str:
        return ", ".join(map(str, self.rows))


@dataclasses.dataclass(frozen=True, repr=False)
class FitSetting(Answer):
    """Settings: what the replay says (`fits` is None where `error` says why it says nothing), and the run under them, if one was made."""

    conf: str
    fits: bool | None
    peak_allocated: int | None
    peak_reserved: int | None
    error: str | None
    run: FitRun | None

    @classmethod
    def of(cls, raw: Any) -> "FitSetting":
        run = None if raw["run"] is None else FitRun.of(raw["run"])
        replayed = (raw.get("fits"), raw.get("peak_allocated"), raw.get("peak_reserved"), raw.get("error"))
        return cls(raw, raw["conf"], *replayed, run)

    def __str__(self) -> str:
        verdict = self.error if self.fits is None else "fits" if self.fits else "runs out"
        return f"{self.conf or 'no settings'}: {verdict}"


@dataclasses.dataclass(frozen=True, repr=False)
class FitSettings(Answer):
    """Settings under which a program fits, or not, the own ones first. `best` pass with the least peak reserved; None where none passes."""

    gpu: str
    limit: int
    best: str | None
    settings: list[FitSetting]
    error: str | None
    others: "list[FitSettings]"

    @classmethod
    def of(cls, raw: Any) -> "FitSettings":
        settings = [FitSetting.of(row) for row in raw["settings"]]
        others = [cls.of(row) for row in raw.get("others", [])]
        return cls(raw, raw["gpu"]["id"], raw["limit"], raw["best"], settings, raw["error"], others)

    def __str__(self) -> str:
        return ", ".join(map(str, self.settings))


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayout(Answer):
    """A layout: its dimensions, and the most that a rank of those that ran takes. `fits` is None where `error` says why its program failed,
    or where it was not run."""

    layout: dict[str, int]
    fits: bool | None
    peak_allocated: int | None
    peak_reserved: int | None
    exact: bool | None
    error: str | None

    @classmethod
    def of(cls, raw: Any) -> "FitLayout":
        peaks = (raw["peak_allocated"], raw["peak_reserved"])
        return cls(raw, raw["layout"], raw["fits"], *peaks, raw["exact"], raw["error"])

    def __str__(self) -> str:
        named = " ".join(f"{name}={count}" for name, count in self.layout.items())
        return f"{named}: peak reserved {size(self.peak_reserved)}" if self.error is None else f"{named}: {self.error}"


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayouts(Answer):
    """Layouts of ranks. `best` fits with the least peak reserved; None where none fits."""

    gpu: str
    limit: int
    best: dict[str, int] | None
    layouts: list[FitLayout]
    others: "list[FitLayouts]"

    @classmethod
    def of(cls, raw: Any) -> "FitLayouts":
        layouts = [FitLayout.of(row) for row in raw["layouts"]]
        others = [cls.of(row) for row in raw.get("others", [])]
        return cls(raw, raw["gpu"]["id"], raw["limit"], raw["best"], layouts, others)

    def __str__(self) -> str:
        fits = sum(layout.fits is True for layout in self.layouts)
        return f"{fits} of {len(self.layouts)} layouts fit; the best is {self.best}"
