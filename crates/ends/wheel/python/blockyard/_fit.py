"""The largest value of a program's option that fits a GPU, by runs of the program without a GPU."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from blockyard import _cluster, _command, _native
from blockyard._answers import Fit, FitLayouts, FitMap, FitSettings
from blockyard._page import write_whole

A = TypeVar("A", FitLayouts, FitMap)

# The numbers of ranks of each dimension, by name, or as the command takes them: "dp=1..64,tp=1,2,4".
Mesh = str | Mapping[str, Sequence[int]]


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
    """Finds the largest value of an option with which a PyTorch program fits a GPU, by runs of the program without a GPU: a `Fit`.

    `vary` is one name with its lowest and its highest value, `{"batch-size": (1, 512)}` for the program's own option `--batch-size`,
    `{"env:BATCH": (1, 64)}` for a variable of its environment; with a third number the values are the multiples of this number. `args` are the program's other
    arguments. `gpu` is the GPU, or several, each with its own answer, or "all". `limit` is the most that may be reserved on each
    device, in bytes or with a unit ("16 GiB"); None for the GPU's memory. Each run ends after `steps` steps of the program's first optimizer.
    `conf` is PYTORCH_CUDA_ALLOC_CONF; with `try_settings` the search is made with expandable segments, too. Searches for several GPUs run
    `at_once` side by side, as far as the host's memory allows. `report` is the file for a page of HTML with the curves. Runs are kept, in `keep` or
    in the cache directory, so that a second call goes on; `fresh` forgets them. The report is printed, unless `echo` is false.

    BlockyardError is raised if the program cannot be started. A run that fails ends the search: the answer has `failed_at` and
    `error`. Ctrl-C raises KeyboardInterrupt; the runs that were made are kept.
    """
    if len(vary) != 1:
        raise ValueError(f"vary names one option with its values, not {len(vary)}; fit_map takes two")
    options: dict[str, object] = {
        "vary": _varied(vary),
        "gpu": _command.joined(gpu),
        "limit": limit,
        "steps": steps,
        "conf": conf,
    }
    options |= {"devices": devices, "try_settings": try_settings, "at_once": at_once, "report": report}
    options |= {"keep": keep, "fresh": fresh, "python": python}
    return Fit.of(ask(_words(program, args), None, None, options, echo))


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
    scheduler: Any = None,
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
    PYTORCH_CUDA_ALLOC_CONF, or a `mesh` with its `ranks`, as `fit_layouts` takes them. With a mesh and a `scheduler`, as `fit_layouts` takes one,
    the search of each layout is a task. All else is as in `fit`.
    """
    if len(vary) != (1 if settings or mesh else 2):
        raise ValueError("vary names two options, or one with settings or a mesh")
    if (mesh is None) != (ranks is None) or (mesh and settings):
        raise ValueError("a mesh has a number of ranks, and no settings beside it")
    options: dict[str, object] = {
        "vary": [*_varied(vary), *_confs(settings)],
        "gpu": _command.joined(gpu),
        "limit": limit,
        "steps": steps,
    }
    options |= {"conf": conf, "devices": devices, "at_once": at_once, "report": report, "keep": keep, "fresh": fresh}
    options |= {"ranks": ranks, "nproc_per_node": nproc_per_node, "python": python}
    return _of_mesh(FitMap, program, args, mesh, options, scheduler, echo)


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
    options: dict[str, object] = {
        "vary": _confs(settings),
        "gpu": _command.joined(gpu),
        "limit": limit,
        "steps": steps,
        "conf": conf,
    }
    options |= {"devices": devices, "at_once": at_once, "keep": keep, "fresh": fresh, "python": python}
    return FitSettings.of(ask(_words(program, args), None, None, options, echo))


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

    `mesh` has all numbers of ranks of each dimension, `{"dp": range(1, 65), "tp": [1, 2, 4, 8]}`: the program gets them as its
    options `--dp` and `--tp`. Layouts whose product is the number of ranks run, `at_once` side by side. `preload` names modules that are loaded once
    for all of them, ["torch", "torch.distributed.fsdp"].

    `scheduler` is None for this machine, a `dask.distributed.Client`, or "ray" (which is initialized if it is not): then each layout is a task, and
    with `preload` all layouts with one size of the first dimension, which share the loaded modules. Workers need the program under the same path,
    this package and PyTorch. The scheduler repeats the work of a lost worker; runs that were kept on a machine are known on this machine. All else is as in `fit`.
    """
    options: dict[str, object] = {
        "ranks": ranks,
        "nproc_per_node": nproc_per_node,
        "at_once": at_once,
        "gpu": _command.joined(gpu),
    }
    options |= {"preload": ",".join(preload) or None, "limit": limit, "steps": steps, "conf": conf}
    options |= {"keep": keep, "fresh": fresh, "python": python}
    return _of_mesh(FitLayouts, program, args, mesh, options, scheduler, echo)


def _of_mesh(
    kind: type[A],
    program: "str | os.PathLike[str]",
    args: Sequence[object],
    mesh: "Mesh | None",
    options: Mapping[str, Any],
    scheduler: Any,
    echo: bool,
) -> A:
    """The answer of this process, or that of tasks of a scheduler."""
    _cluster.check(scheduler)
    if scheduler is None:
        return kind.of(ask(_words(program, args), None, mesh, options, echo))
    if mesh is None:
        raise ValueError("a scheduler makes each layout a task: give a mesh with its ranks")
    if options["fresh"]:
        raise ValueError("with a scheduler, fresh would delete runs that other tasks keep; name a new file as keep")
    path = os.path.abspath(os.fspath(program))
    if not os.path.isfile(path) or not parts(mesh, options["ranks"], False):
        # The command says what is wrong.
        return kind.of(ask(_words(path, args), None, mesh, options, echo))
    raw = ask_cluster(scheduler, _words(path, args), None, mesh, options)
    found = kind.of(raw)
    if echo:
        print(found)
    return found


def ask_cluster(
    scheduler: Any, words: Sequence[str], folder: str | None, mesh: Mesh, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The JSON of the command, of which each layout is a task; with modules to preload, the layouts that share them."""
    options = dict(options)
    report, ranks = options.pop("report", None), options["ranks"]
    meshes = parts(mesh, ranks, options.get("preload") is not None)
    answers = _cluster.each(scheduler, ask, [(words, folder, part, options) for part in meshes])
    raw = _joined(mesh, ranks, meshes, answers)
    if report is not None:
        parts_of_page = _native.ReportArguments(False, [], None, None, None)
        write_whole(report, _native.report("fit.json", json.dumps(raw).encode(), parts_of_page).encode())
    return raw


def ask(
    words: Sequence[str], folder: str | None, mesh: "Mesh | None", options: Mapping[str, Any], echo: bool = False
) -> dict[str, Any]:
    """The JSON of the command, which runs in this folder; also a task of a scheduler."""
    if folder is not None:
        os.chdir(folder)
    return _command.ask("fit", words, {**options, "mesh": None if mesh is None else _mesh_text(mesh)}, echo)


def parts(mesh: Mesh, ranks: int, is_shared: bool) -> list[dict[str, list[int]]]:
    """The parts of a mesh that are a task each: a layout, or all with one size of the first dimension."""
    groups: dict[int, list[dict[str, int]]] = {}
    for place, layout in enumerate(_native.layouts(_mesh_text(mesh), ranks)):
        groups.setdefault(next(iter(layout.values())) if is_shared else place, []).append(layout)
    return [{name: sorted({layout[name] for layout in group}) for name in group[0]} for group in groups.values()]


def _joined(mesh: Mesh, ranks: int, meshes: Sequence[Mesh], answers: Sequence[Any]) -> dict[str, Any]:
    """The answers of tasks as one. A task that failed has its error in each of its layouts; if all tasks failed, the first error is raised."""
    raws = [answer for answer in answers if not isinstance(answer, Exception)]
    if not raws:
        raise answers[0]
    whole = {**raws[0], "runs": sum(raw["runs"] for raw in raws), "known": sum(raw["known"] for raw in raws)}
    is_search = "rows" in whole
    if is_search:
        whole["by"] = {**whole["by"], "list": _native.layouts(_mesh_text(mesh), ranks)}

    def of_gpu(place: int) -> dict[str, Any]:
        found = [answer if isinstance(answer, Exception) else [answer, *answer["others"]][place] for answer in answers]
        rows = [row for part, answer in zip(meshes, found) for row in _rows(part, ranks, answer, is_search)]
        if is_search:
            return {"rows": rows}
        best = min((row for row in rows if row["fits"]), key=lambda row: row["peak_reserved"], default=None)
        ends = (answer["error"] for answer in found if not isinstance(answer, Exception))
        error = next((end for end in ends if end is not None), None)
        return {"layouts": rows, "best": best and best["layout"], "error": error}

    others = [{**other, **of_gpu(place)} for place, other in enumerate(raws[0]["others"], 1)]
    return {**whole, **of_gpu(0), "others": others}


def _rows(part: Mesh, ranks: int, answer: Any, is_search: bool) -> list[dict[str, Any]]:
    """The layouts in the answer of a task; if the task failed, its layouts with the error and without numbers."""
    if not isinstance(answer, Exception):
        rows: list[dict[str, Any]] = answer["rows" if is_search else "layouts"]
        return rows
    failed: dict[str, Any] = dict.fromkeys(("fits", "peak_allocated", "peak_reserved", "exact", "ranks", "under_limit"))
    if is_search:
        failed = {"largest": None, "next": None, "exact": False, "failed_at": None, "probes": [], "contradictions": []}
    failed["error"] = f"{type(answer).__name__}: {answer}"
    return [{"layout": layout, **failed} for layout in _native.layouts(_mesh_text(part), ranks)]


def _varied(vary: Mapping[str, Sequence[int]]) -> list[str]:
    texts = []
    for name, values in vary.items():
        if len(values) not in (2, 3):
            raise ValueError(f"the values of {name} are (low, high) or (low, high, multiple), not {values!r}")
        low, high, *multiple = values
        texts.append(f"{name}={low}..{high}" + "".join(f":{part}" for part in multiple))
    return texts


def _confs(settings: Sequence[str]) -> list[str]:
    return [f"conf={conf}" for conf in settings]


def _mesh_text(mesh: Mesh) -> str:
    if isinstance(mesh, str):
        return mesh
    return ",".join(f"{name}=" + ",".join(map(str, sizes)) for name, sizes in mesh.items())


def _words(program: "str | os.PathLike[str]", args: Sequence[object]) -> list[str]:
    return [os.fspath(program), "--", *map(str, args)]
