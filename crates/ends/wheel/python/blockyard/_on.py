"""`blockyard fit --on SCHEDULER`: the layouts of a mesh as tasks of a Dask or of a Ray cluster."""

import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from blockyard import _fit, _native, _schedulers
from blockyard._answers import FitLayouts, FitMap
from blockyard._dry_run import _cause, _run


def is_asked(words: Sequence[str]) -> bool:
    """Whether these are the words of a `fit` with the option `--on`."""
    return list(words[:1]) == ["fit"] and any(_is_option(word, "--on") for word in _split(words)[0])


def fit(words: Sequence[str]) -> int:
    """Does what the words say, and returns the exit status."""
    try:
        return _fit_on(words[1:])
    except (ValueError, ImportError, OSError, _native.BlockyardError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _fit_on(words: Sequence[str]) -> int:
    options, arguments = _split(words)
    taken: dict[str, str] = {}
    for name in ("--on", "--mesh", "--ranks", "--json", "--report", "--preload"):
        value, options = _take(options, name)
        if value is not None:
            taken[name] = value
    if "--mesh" not in taken or not taken.get("--ranks", "").isdigit():
        raise ValueError("--on makes each layout a task: give --mesh and --ranks")
    if "--fresh" in options:
        raise ValueError("with --on, --fresh would delete runs that other tasks keep; name a new file with --keep")
    has_vary = any(_is_option(option, "--vary") for option in options)
    if "--report" in taken and not has_vary:
        raise ValueError("--report draws the runs of a search: --vary names an option or a variable")
    mesh, ranks = parsed_mesh(taken["--mesh"]), int(taken["--ranks"])
    preload = ["--preload", taken["--preload"]] if "--preload" in taken else []
    parts = _fit._meshes(mesh, ranks, bool(preload))
    if not parts:
        raise ValueError(f"no layout of {taken['--mesh']} has {ranks} ranks")
    calls = [([*options, *_words_of(part), "--ranks", str(ranks), *preload], arguments, os.getcwd()) for part in parts]
    with _Scheduler(taken["--on"]) as scheduler:
        answers = _schedulers.each(scheduler, _task, calls)
    raw = _fit._joined(mesh, ranks, parts, answers)
    print(FitMap.of(raw) if has_vary else FitLayouts.of(raw))
    if "--json" in taken:
        pathlib.Path(taken["--json"]).write_text(json.dumps(raw) + "\n")
    if "--report" in taken:
        _fit.write_page(raw, taken["--report"])
    return 0


def parsed_mesh(text: str) -> dict[str, list[int]]:
    """The numbers of ranks by dimension: `dp=1..64,tp=1,2,4`."""
    mesh: dict[str, list[int]] = {}
    name = ""
    for part in text.split(","):
        before, is_named, sizes = part.rpartition("=")
        name = before.strip() if is_named else name
        low, is_range, high = sizes.partition("..")
        if not name or not low.strip().isdigit() or (is_range and not high.strip().isdigit()):
            raise ValueError(f'a mesh is like "dp=1..64,tp=1,2,4", not {text!r}')
        mesh.setdefault(name, []).extend(range(int(low), int(high or low) + 1))
    return mesh


def _words_of(mesh: Mapping[str, Sequence[int]]) -> list[str]:
    return ["--mesh", ",".join(f"{name}=" + ",".join(map(str, sizes)) for name, sizes in mesh.items())]


def _task(options: Sequence[str], arguments: Sequence[str], folder: str) -> Any:
    """The JSON of the command for some layouts; runs on a worker."""
    os.chdir(folder)
    with tempfile.TemporaryDirectory(prefix="blockyard-") as place:
        report = pathlib.Path(place, "report.json")
        has_python = any(_is_option(option, "--python") for option in options)
        words = [*options] if has_python else [*options, "--python", sys.executable]
        errors = _run(
            [sys.executable, "-m", "blockyard", "fit", *words, "--json", str(report), "--", *arguments], False
        )
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        return json.loads(report.read_text())


class _Scheduler:
    """A client of `dask://HOST:PORT`, or Ray, as `ray` starts it or `ray://HOST:PORT` reaches it."""

    def __init__(self, name: str) -> None:
        self._client: Any = None
        self._name = name

    def __enter__(self) -> Any:
        kind, _, address = self._name.partition("://")
        if kind == "dask" and address:
            import distributed

            # Dask types its client without its arguments.
            client: Any = distributed.Client
            self._client = client(f"tcp://{address}")
            return self._client
        if kind != "ray":
            raise ValueError(f"--on takes dask://HOST:PORT, ray or ray://HOST:PORT, not {self._name!r}")
        import ray

        ray.init(self._name if address else None, log_to_driver=False)
        return "ray"

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
        elif self._name.startswith("ray"):
            import ray

            ray.shutdown()


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and those after it, which are the program's."""
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _is_option(word: str, name: str) -> bool:
    return word == name or word.startswith(f"{name}=")


def _take(words: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """The value of an option, and the words without it."""
    left: list[str] = []
    value = None
    rest = iter(words)
    for word in rest:
        if word == name:
            value = next(rest, "")
        elif word.startswith(f"{name}="):
            value = word.partition("=")[2]
        else:
            left.append(word)
    return value, left
