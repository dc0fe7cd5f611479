"""Many ranks: the same work for each file, in one process, on Dask or on Ray, and one table of the results."""

import dataclasses
import os
import pathlib
import re
import resource
from collections.abc import Iterable, Sequence
from typing import Any, Union

from blockyard import _cluster, _files, _native, _progress
from blockyard._answer import Answer, size

Row = dict[str, Any]
Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

_COLUMNS = (
    "rank path error device requests peak_allocated peak_reserved device_allocs ooms"
    " first_oom placements identical cause notes process_memory"
).split()

# How many call sites of a rank are compared with those of the others.
_SITES = 100
# How many of those that differ most are kept.
_DIFFERING = 20
# The part of a Dask worker's memory that a file may take: at 95 percent its nanny ends the worker, which loses more than the file.
_PART_OF_WORKER = 0.9


def rank(
    path: "str | os.PathLike[str]", confs: Sequence[str] = (), verify: bool = True, memory: int | None = None
) -> list[Row]:
    """The work for one file: a list of dictionaries, one for each device, which any scheduler can send.

    A file that cannot be read gives one dictionary with its `error`. `path` is a path of this machine, or an URL that fsspec opens where
    it is installed. `settings` of a dictionary has the peak reserved and the device calls under each of `confs`, `sites` the call sites that hold
    most at the peak, `process_memory` the most memory that the process has had so far, in bytes. Once the process has more than `memory`
    bytes, the work on the file ends with an error.
    """
    try:
        with _progress.memory_limit(memory):
            opened = _files.open(_content(path))
            runs: list[tuple[int | None, _files.Run | _files.Device]]
            runs = [(None, opened)] if isinstance(opened, _files.Run) else [(d.index, d) for d in opened.devices]
            return [_row(path, index, run, confs, verify) for index, run in runs]
    # Whatever is wrong with one file: the other ranks are not lost with it.
    except Exception as error:  # noqa: BLE001
        said = (
            f"{error}" if isinstance(error, (_native.BlockyardError, OSError)) else f"{type(error).__name__}: {error}"
        )
        return [{"path": str(path), "error": said}]


def ranks(
    paths: Paths,
    scheduler: Any = None,
    *,
    confs: Sequence[str] = (),
    verify: bool = True,
    memory: int | None = None,
) -> "Ranks":
    """Opens, verifies and asks each file, and gathers the answers.

    `paths` is a list of files, or a folder whose files are taken in the order of their names, numbers by value. `scheduler` is None for this
    process, a `dask.distributed.Client`, or "ray" (which is initialized if need be). A lost worker's files are done again by the scheduler; a
    file that fails is a row with its error, whatever the reason. `memory` is the most memory, in bytes, that a process may have while it
    works on a file; a file that needs more is a row with an error. None is nine tenths of a Dask worker's own limit, and elsewhere no limit.
    """
    files = _listed(paths)
    work = _on_worker if _cluster.is_dask(scheduler) else rank
    answers = _cluster.each(scheduler, work, [(_sent(path, scheduler), tuple(confs), verify, memory) for path in files])
    answers = [
        [{"path": str(path), "error": f"{type(answer).__name__}: {answer}"}]
        if isinstance(answer, Exception)
        else answer
        for path, answer in zip(files, answers)
    ]
    rows = [{"rank": number, **row} for number, answer in enumerate(answers) for row in answer]
    return Ranks.from_rows(rows, list(confs))


@dataclasses.dataclass(frozen=True, repr=False)
class SiteDifference(Answer):
    """A call site that holds more at the peak of one rank than at that of another, in bytes."""

    stack: str
    least: int
    most: int
    least_rank: int
    most_rank: int

    def __str__(self) -> str:
        where = self.stack.splitlines()[0] if self.stack else "no stack"
        return f"{size(self.most)} on rank {self.most_rank}, {size(self.least)} on rank {self.least_rank}: {where}"


@dataclasses.dataclass(frozen=True, repr=False)
class Ranks(Answer):
    """The results of all ranks. `rows` are dictionaries, one for each device of each rank; `table` is the same for Arrow.

    `imbalance` is the highest peak reserved over the mean, `differing` are the call sites whose bytes at the peak differ most between ranks.
    """

    rows: list[Row]
    failed: list[Row]
    worst: int | None
    imbalance: float | None
    first_oom: Row | None
    best_conf: str | None
    best_peak_reserved: int | None
    differing: list[SiteDifference]

    @classmethod
    def from_rows(cls, rows: list[Row], confs: Sequence[str]) -> "Ranks":
        good = [row for row in rows if row.get("error") is None]
        failed = [row for row in rows if row.get("error") is not None]
        peaks = [row["peak_reserved"] for row in good]
        worst = max(good, key=lambda row: row["peak_reserved"], default=None)
        out = [row for row in good if row["first_oom"] is not None]
        best = _best(good, confs)
        return cls(
            {"rows": rows},
            rows,
            failed,
            None if worst is None else worst["rank"],
            max(peaks) * len(peaks) / sum(peaks) if peaks and sum(peaks) else None,
            min(out, key=lambda row: row["first_oom"], default=None),
            None if best is None else best[1],
            None if best is None else best[0],
            _differing(good),
        )

    @property
    def table(self) -> _native.Table:
        """All rows as an Arrow table; what a failed rank does not have is null."""
        columns = [(name, [_cell(row.get(name)) for row in self.rows]) for name in _COLUMNS]
        return _native.table(columns)

    def __str__(self) -> str:
        count = len({row["rank"] for row in self.rows})
        parts = [f"{count} ranks"]
        if self.failed:
            parts.append(f"{len(self.failed)} failed (first: {self.failed[0]['path']}: {self.failed[0]['error']})")
        if self.worst is not None:
            row = max((row for row in self.rows if "peak_reserved" in row), key=lambda row: row["peak_reserved"])
            parts.append(
                f"rank {self.worst} reserves most, {size(row['peak_reserved'])}, {self.imbalance:.2f} times the mean"
            )
        if self.first_oom is not None:
            parts.append(f"rank {self.first_oom['rank']} runs out first: {self.first_oom['cause']}")
        if self.best_conf is not None:
            parts.append(
                f"best for all: {self.best_conf or 'default settings'}, {size(self.best_peak_reserved)} at the worst rank"
            )
        if self.differing:
            parts.append(f"differs most: {self.differing[0]}")
        return "; ".join(parts)


def _row(path: object, index: int | None, run: "_files.Run | _files.Device", confs: Sequence[str], verify: bool) -> Row:
    answer = run.what_if(*confs)
    own = answer.baseline
    row = {
        "path": str(path),
        "error": own.error,
        "device": index,
        "requests": answer.raw["requests"],
        "peak_allocated": own.peak_allocated,
        "peak_reserved": own.peak_reserved,
        "device_allocs": own.device_allocs,
        "ooms": own.ooms,
        "first_oom": own.first_oom and own.first_oom.request,
        "placements": None,
        "identical": None,
        "cause": run.autopsy().cause if own.first_oom else None,
        "notes": "; ".join(answer.notes) or None,
        "settings": [outcome.to_dict() for outcome in answer.settings],
        "sites": [],
    }
    if verify and isinstance(run, _files.Device):
        certificate = run.verify()
        row["placements"], row["identical"] = certificate.placements, certificate.identical
    if isinstance(run, _files.Device) and run.summary.events:
        row["sites"] = [(holder.stack, holder.bytes) for holder in run.top(_SITES)]
    # Linux counts it in KiB.
    row["process_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return row


def _differing(rows: list[Row]) -> list[SiteDifference]:
    """The call sites whose bytes differ most, most first. A site that a rank does not name holds at most as much as the last one that the
    rank names, or nothing where the rank names all."""
    named = [(row["rank"], dict(row["sites"]), row["sites"]) for row in rows if row["sites"]]
    found = []
    for stack in {stack for _, sites, _ in named for stack in sites}:
        held = [
            (sites.get(stack, every[-1][1] if len(every) == _SITES else 0), number) for number, sites, every in named
        ]
        (least, least_rank), (most, most_rank) = min(held), max(held)
        if most > least:
            raw = {
                "stack": stack,
                "least": least,
                "most": most,
                "least_rank": least_rank,
                "most_rank": most_rank,
            }
            found.append(SiteDifference(raw, **raw))
    return sorted(found, key=lambda site: (site.least - site.most, site.stack))[:_DIFFERING]


def _best(rows: list[Row], confs: Sequence[str]) -> tuple[int, str] | None:
    """The setting under which the worst rank reserves least; of equal ones that with the fewest device calls in all."""
    found = []
    for place, conf in enumerate(confs):
        outcomes = [row["settings"][place] for row in rows]
        if outcomes and all(outcome.get("error") is None and not outcome["ooms"] for outcome in outcomes):
            worst = max(outcome["peak_reserved"] for outcome in outcomes)
            calls = sum(outcome["device_allocs"] + outcome["device_frees"] for outcome in outcomes)
            found.append((worst, calls, place, conf))
    if not found:
        return None
    worst, _, _, conf = min(found)
    return worst, conf


def _listed(paths: Paths) -> "list[str | os.PathLike[str]]":
    if isinstance(paths, (str, os.PathLike)):
        folder = pathlib.Path(paths)
        inside = [path for path in folder.iterdir() if path.is_file()]
        inside.sort(key=lambda path: _by_number(path.name))
        return [*inside]
    return list(paths)


def _by_number(name: str) -> list[tuple[str, int]]:
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _content(path: "str | os.PathLike[str]") -> "str | os.PathLike[str] | bytes":
    if isinstance(path, str) and "://" in path:
        import fsspec

        with fsspec.open(path, "rb") as file:
            content: bytes = file.read()
            return content
    return path


def _sent(path: "str | os.PathLike[str]", scheduler: Any) -> "str | os.PathLike[str]":
    """The path as another process gets it."""
    return path if scheduler is None else str(path)


def _on_worker(path: str, confs: Sequence[str], verify: bool, memory: int | None) -> list[Row]:
    """`rank` on a worker of Dask, within the worker's memory where nothing else is wanted."""
    if memory is None:
        import distributed

        limit = distributed.get_worker().memory_manager.memory_limit
        memory = int(limit * _PART_OF_WORKER) if limit else None
    return rank(path, confs, verify, memory)


def _cell(value: object) -> int | str | None:
    return value if value is None or isinstance(value, int) else str(value)
