"""Many ranks: the same work for each file, on one process, on Dask or on Ray, and one table of what came back."""

import dataclasses
import os
import pathlib

from blockyard import _files, _native
from blockyard._answers import Answer, size

_COLUMNS = (
    "rank",
    "path",
    "error",
    "device",
    "requests",
    "peak_allocated",
    "peak_reserved",
    "device_allocs",
    "ooms",
    "first_oom",
    "placements",
    "identical",
    "cause",
    "notes",
)


def rank(path, confs=(), verify=True):
    """The work for one file: a list of dictionaries, one for each device, which any scheduler can send about.

    A file that cannot be read gives one dictionary with its `error`. `path` is a path of this machine, or an URL that fsspec opens where
    it is installed. `settings` of a dictionary has the peak reserved and the device calls under each of `confs`.
    """
    try:
        opened = _files.open(_content(path))
        runs = [(None, opened)] if isinstance(opened, _files.Run) else [(d.index, d) for d in opened.devices]
        return [_row(path, index, run, confs, verify) for index, run in runs]
    except (_native.BlockyardError, OSError, ImportError) as error:
        return [{"path": str(path), "error": f"{error}"}]


def ranks(paths, scheduler=None, *, confs=(), verify=True):
    """Opens, verifies and asks each file, and gathers the answers.

    `paths` is a list of files, or a folder whose files are taken in the order of their names, numbers by value. `scheduler` is None for this
    process, a `dask.distributed.Client`, or "ray" (which is initialized if need be). A lost worker's files are done again by the scheduler; a
    file that fails is a row with its error, whatever the reason.
    """
    paths = _listed(paths)
    if scheduler is None:
        answers = [rank(path, confs, verify) for path in paths]
    elif scheduler == "ray":
        answers = _on_ray(paths, confs, verify)
    elif hasattr(scheduler, "submit") and hasattr(scheduler, "gather"):
        answers = _on_dask(scheduler, paths, confs, verify)
    else:
        raise TypeError('scheduler is None, a dask.distributed.Client or "ray"')
    rows = [{"rank": number, **row} for number, answer in enumerate(answers) for row in answer]
    return Ranks.of(rows, list(confs))


@dataclasses.dataclass(frozen=True, repr=False)
class Ranks(Answer):
    """What all ranks came to. `rows` are dictionaries, one for each device of each rank; `table` is the same for Arrow."""

    rows: list
    failed: list
    worst: int | None
    imbalance: float | None
    first_oom: dict | None
    best_conf: str | None
    best_peak_reserved: int | None

    @classmethod
    def of(cls, rows, confs):
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
            worst and worst["rank"],
            max(peaks) * len(peaks) / sum(peaks) if peaks and sum(peaks) else None,
            min(out, key=lambda row: row["first_oom"], default=None),
            best and best[1],
            best and best[0],
        )

    @property
    def table(self):
        """All rows as an Arrow table; what a failed rank does not have is null."""
        columns = [(name, [_cell(row.get(name)) for row in self.rows]) for name in _COLUMNS]
        return _native.table(columns)

    def __str__(self):
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
        return "; ".join(parts)


def _row(path, index, run, confs, verify):
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
    }
    if verify and isinstance(run, _files.Device):
        certificate = run.verify()
        row["placements"], row["identical"] = certificate.placements, certificate.identical
    return row


def _best(rows, confs):
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


def _listed(paths):
    if isinstance(paths, (str, os.PathLike)):
        folder = pathlib.Path(paths)
        files = [path for path in folder.iterdir() if path.is_file()]
        return sorted(files, key=lambda path: _by_number(path.name))
    return list(paths)


def _by_number(name):
    parts, digits = [], ""
    for letter in name + " ":
        if letter.isdigit():
            digits += letter
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, letter))
    return parts


def _content(path):
    if isinstance(path, str) and "://" in path:
        import fsspec

        with fsspec.open(path, "rb") as file:
            return file.read()
    return path


def _on_dask(client, paths, confs, verify):
    futures = [
        client.submit(rank, str(path), tuple(confs), verify, pure=False, retries=2, key=f"blockyard-{place}-{path}")
        for place, path in enumerate(paths)
    ]
    answers = []
    for path, future in zip(paths, futures):
        try:
            answers.append(future.result())
        # Whatever ended the work of this rank: the others go on.
        except Exception as error:  # noqa: BLE001
            answers.append([{"path": str(path), "error": f"{type(error).__name__}: {error}"}])
    return answers


def _on_ray(paths, confs, verify):
    import ray

    if not ray.is_initialized():
        ray.init()
    task = ray.remote(max_retries=2)(rank)
    answers = []
    for path, reference in [(path, task.remote(str(path), tuple(confs), verify)) for path in paths]:
        try:
            answers.append(ray.get(reference))
        except ray.exceptions.RayError as error:
            answers.append([{"path": str(path), "error": f"{type(error).__name__}: {error}"}])
    return answers


def _cell(value):
    return value if value is None or isinstance(value, int) else str(value)
