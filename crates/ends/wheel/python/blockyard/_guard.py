"""Programs, compared with a repository's `memory.toml`, which limits their GPU memory; the runs need no GPU."""

import dataclasses
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from blockyard import _native
from blockyard._answers import Answer
from blockyard._dry_run import DryRun, _cause, _run


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
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        report = pathlib.Path(folder, "report.json")
        options: list[object] = ["--file", os.fspath(file), "--json", report]
        options += ["--python", sys.executable if python is None else os.fspath(python)]
        given = {"--gpu": gpu, "--budget": budget, "--tolerance": tolerance, "--steps": steps, "--conf": conf}
        for option, value in given.items():
            if value is not None:
                options += [option, value]
        options += ["--update"] if update else []
        command = [
            sys.executable,
            "-m",
            "blockyard",
            "guard",
            *map(str, options),
            os.fspath(program),
            "--",
            *map(str, args),
        ]
        errors = _run(command, echo)
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        return [Guard.of(row) for row in json.loads(report.read_text())["programs"]]


@dataclasses.dataclass(frozen=True, repr=False)
class GuardRow(Answer):
    """A part of the change of the peak allocated: a line of the program, or everything else, for which `at` is None."""

    at: str | None
    code: str | None
    before: int
    after: int
    change: int

    @classmethod
    def of(cls, raw: Any) -> "GuardRow":
        return cls(raw, raw["at"], raw["code"], raw["before"], raw["after"], raw["change"])

    def __str__(self) -> str:
        return f"{self.change:+,}  {'everything else' if self.at is None else self.at}"


@dataclasses.dataclass(frozen=True, repr=False)
class Guard(Answer):
    """Whether a program passes on a GPU. `raw` has all fields of `blockyard guard --json`, in docs/guard-json.md.

    `text` is the report. `failures` are the kinds of what fails: "budget", "allocated", "reserved", "out_of_memory", "error". `rows` add
    up to the change of the peak allocated, to the byte; without a baseline `rows` is empty. `run` is the dry run.
    """

    program: str
    gpu: str
    passed: bool
    failures: list[str]
    text: str
    budget: int | None
    peak_allocated: int
    peak_reserved: int
    estimate: bool
    rows: list[GuardRow]
    run: DryRun

    @classmethod
    def of(cls, raw: Any) -> "Guard":
        return cls(
            raw,
            raw["program"],
            raw["gpu"],
            raw["passed"],
            [failure["kind"] for failure in raw["failures"]],
            raw["text"],
            raw["budget"],
            raw["peak_allocated"],
            raw["peak_reserved"],
            raw["estimate"],
            [GuardRow.of(row) for row in raw["rows"]],
            DryRun.of(raw["dry_run"], pathlib.Path(raw["program"]).name, None),
        )

    def __str__(self) -> str:
        return self.text.rstrip("\n")
