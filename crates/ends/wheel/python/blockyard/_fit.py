"""The largest value of a program's option that fits a GPU, by runs of the program without a GPU."""

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
from blockyard._answers import Fit, FitLayouts, FitMap, FitSettings
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
    options = _varied(vary) + _settings(settings) + ["--steps", steps, "--devices", devices, "--at-once", at_once]
    options += _given(gpu=gpu, limit=limit, conf=conf, keep=keep, fresh=fresh, python=python)
    _schedulers.check(scheduler)
    if scheduler is not None:
        return _map_on(
            scheduler,
            os.path.abspath(os.fspath(program)),
            args,
            options,
            mesh,
            ranks,
            nproc_per_node,
            report,
            fresh,
            echo,
        )
    options += _page(report)
    if mesh is not None and ranks is not None:
        options += _mesh(mesh, ranks, nproc_per_node)
    return FitMap.of(_ask(program, args, options, echo))


def _map_on(
    scheduler: Any,
    program: str,
    args: Sequence[object],
    options: Sequence[object],
    mesh: "Mapping[str, Sequence[int]] | None",
    ranks: int | None,
    nproc_per_node: int | None,
    report: "str | os.PathLike[str] | None",
    fresh: bool,
    echo: bool,
) -> "FitMap":
    """The search of each layout as a task."""
    if mesh is None or ranks is None:
        raise ValueError("a scheduler makes each layout a task: give a mesh with its ranks")
    if fresh:
        raise ValueError("with a scheduler, fresh would delete runs that other tasks keep; name a new file as keep")
    parts = _meshes(mesh, ranks, False)
    words = [str(word) for word in args]
    calls = [(program, words, [*options, *_mesh(part, ranks, nproc_per_node)], False) for part in parts]
    raw = _joined(mesh, ranks, parts, _schedulers.each(scheduler, _ask, calls))
    found = FitMap.of(raw)
    if report is not None:
        write_page(raw, os.fspath(report))
    if echo:
        print(found)
    return found


def write_page(raw: Any, out: str) -> None:
    """The page with the curves of a search whose JSON this is."""
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        file = pathlib.Path(folder, "fit.json")
        file.write_text(json.dumps(raw))
        _native.command(["blockyard", "report", str(file), "--out", out])


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

    `mesh` has all numbers of ranks of each dimension, `{"dp": range(1, 65), "tp": [1, 2, 4, 8]}`: the program gets them as its
    options `--dp` and `--tp`. Layouts whose product is the number of ranks run, `at_once` side by side. `preload` names modules that are loaded once
    for all of them, ["torch", "torch.distributed.fsdp"].

    `scheduler` is None for this machine, a `dask.distributed.Client`, or "ray" (which is initialized if it is not): then each layout is a task, and
    with `preload` all layouts with one size of the first dimension, which share the loaded modules. Workers need the program under the same path,
    this package and PyTorch. The scheduler repeats the work of a lost worker; runs that were kept on a machine are known on this machine. All else is as in `fit`.
    """
    asked: dict[str, Any] = {
        "nproc_per_node": nproc_per_node,
        "at_once": at_once,
        "preload": list(preload),
        "gpu": gpu,
        "limit": limit,
    }
    asked |= {"steps": steps, "conf": conf, "keep": keep, "fresh": fresh, "python": python}
    _schedulers.check(scheduler)
    if scheduler is None:
        return FitLayouts.of(_layouts(program, args, mesh, ranks, asked, echo))
    if fresh:
        raise ValueError("with a scheduler, fresh would delete runs that other tasks keep; name a new file as keep")
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
    program: "str | os.PathLike[str]",
    args: Sequence[object],
    mesh: Mapping[str, Sequence[int]],
    ranks: int,
    asked: Any,
    echo: bool,
) -> Any:
    """The JSON for some layouts; a task of a scheduler."""
    asked = dict(asked)
    options = [
        *_mesh(mesh, ranks, asked.pop("nproc_per_node")),
        "--steps",
        asked.pop("steps"),
        "--at-once",
        asked.pop("at_once"),
    ]
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
    return [
        {first: [size], **{name: list(mesh[name]) for name in others}}
        for size in dict.fromkeys(layout[first] for layout in layouts)
    ]


def _joined(
    mesh: Mapping[str, Sequence[int]], ranks: int, meshes: Sequence[Mapping[str, Sequence[int]]], answers: Sequence[Any]
) -> Any:
    """The answers of tasks as one. A task that failed has its error in each of its layouts; if all tasks failed, the first error is raised."""
    raws = [answer for answer in answers if not isinstance(answer, Exception)]
    if not raws:
        raise answers[0]
    whole = {**raws[0], "runs": sum(raw["runs"] for raw in raws), "known": sum(raw["known"] for raw in raws)}
    if "rows" in whole:
        whole["by"] = {**whole["by"], "list": _all_layouts(mesh, ranks)}

    def of_gpu(place: int) -> dict[str, Any]:
        rows: list[Any] = []
        for part, answer in zip(meshes, answers):
            if isinstance(answer, Exception):
                failed = {**_failed_row("rows" in whole), "error": f"{type(answer).__name__}: {answer}"}
                rows += [{"layout": layout, **failed} for layout in _all_layouts(part, ranks)]
            else:
                found = [answer, *answer["others"]][place]
                rows += found["rows" if "rows" in whole else "layouts"]
        if "rows" in whole:
            return {"rows": rows}
        fitting = [row for row in rows if row["fits"]]
        best = min(fitting, key=lambda row: row["peak_reserved"], default=None)
        errors = [error for raw in raws if (error := [raw, *raw["others"]][place]["error"]) is not None]
        return {
            "mesh": list(mesh),
            "layouts": rows,
            "best": best and best["layout"],
            "error": errors[0] if errors else None,
        }

    others = [{**other, **of_gpu(place)} for place, other in enumerate(raws[0]["others"], 1)]
    return {**whole, **of_gpu(0), "others": others}


def _failed_row(is_search: bool) -> dict[str, Any]:
    """The fields of a layout whose task failed, but for its error."""
    if is_search:
        nothing: dict[str, Any] = {"largest": None, "next": None, "exact": False, "failed_at": None}
        return {**nothing, "probes": [], "contradictions": []}
    return dict.fromkeys(("fits", "peak_allocated", "peak_reserved", "exact", "ranks", "under_limit"))


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
    return ["--mesh", named, "--ranks", ranks] + (
        [] if nproc_per_node is None else ["--nproc-per-node", nproc_per_node]
    )


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
