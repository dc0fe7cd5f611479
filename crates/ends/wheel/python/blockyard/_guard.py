"""Programs, compared with a repository's `memory.toml`, which limits their GPU memory; the runs need no GPU."""

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from blockyard import _command
from blockyard._answers import GuardReport
from blockyard._dry_run import DryRun


def guard(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    gpu: str | None = None,
    budget: "int | str | None" = None,
    tolerance: "int | str | None" = None,
    steps: int | None = None,
    conf: str | None = None,
    file: "str | os.PathLike[str]" = "memory.toml",
    update: bool = False,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "list[Guard]":
    """Runs a PyTorch program without a GPU and compares it with its entry in `file`: a `Guard` for each GPU of the program in the file.

    The program is below the folder of `file` and starts in this folder. An entry is found by the program, its arguments and, if it is named,
    the GPU; arguments of this function replace values of the entry. `budget` is the most that may be reserved, in bytes or with a unit
    ("60 GiB"), `tolerance` how much more than the baseline the peaks may be ("1%", "64 MiB"). The program ends after `steps` steps of
    its first optimizer. Without an entry the budget alone counts. `update` writes the program's memory into the file. The report is
    printed, unless `echo` is false.

    BlockyardError is raised if the program cannot be started, the file cannot be read, or the entry has neither a baseline nor a budget. A
    program that fails has an answer, which does not pass.
    """
    options = {"file": os.fspath(file), "python": python, "gpu": gpu, "budget": budget, "tolerance": tolerance}
    options |= {"steps": steps, "conf": conf, "update": update}
    raw = _command.ask("guard", [os.fspath(program), "--", *args], options, echo)
    return [Guard.of(row) for row in raw["programs"]]


@dataclasses.dataclass(frozen=True, repr=False)
class Guard(GuardReport):
    """Whether a program passes on a GPU. The attributes are the fields of `blockyard guard --json`, in docs/guard-json.md.

    `text` is the report. `failures` are the kinds of what fails: "budget", "allocated", "reserved", "out_of_memory", "error". `rows` add
    up to the change of the peak allocated, to the byte; without a baseline `rows` is empty. `run` is the dry run.
    """

    @property
    def run(self) -> DryRun:
        """The dry run of the program, without a snapshot."""
        raw: dict[str, Any] = self.raw["dry_run"]
        return DryRun.of(raw, name=pathlib.Path(self.program).name, content=None)

    def __str__(self) -> str:
        return self.text.rstrip("\n")
