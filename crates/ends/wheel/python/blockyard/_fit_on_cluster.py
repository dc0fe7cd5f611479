"""`blockyard fit --on SCHEDULER`: the layouts of a mesh as tasks of a Dask or of a Ray cluster."""

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Sequence

from blockyard import _cluster, _fit, _native
from blockyard._answers import FitLayouts, FitMap


def is_asked(words: Sequence[str]) -> bool:
    """Whether these are the words of a `fit` with the option `--on`."""
    options, _ = _split(words)
    return options[:1] == ["fit"] and any(word == "--on" or word.startswith("--on=") for word in options)


def fit(words: Sequence[str]) -> int:
    """Does what the words say, and returns the exit status."""
    try:
        _fit_on(words[1:])
    except (ValueError, ImportError, OSError, _native.BlockyardError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _fit_on(words: Sequence[str]) -> None:
    options, arguments = _split(words)
    # The other options, and the program, are the command's matter.
    parser = argparse.ArgumentParser(prog="blockyard fit", add_help=False, allow_abbrev=False)
    for name in ("--on", "--mesh", "--ranks", "--json", "--report", "--preload", "--python"):
        parser.add_argument(name)
    parser.add_argument("--vary", action="append")
    parser.add_argument("--fresh", action="store_true")
    asked, others = parser.parse_known_args(options)
    if asked.mesh is None or not (asked.ranks or "").isdigit():
        raise ValueError("--on makes each layout a task: give --mesh and --ranks")
    if asked.fresh:
        raise ValueError("with --on, --fresh would delete runs that other tasks keep; name a new file with --keep")
    if asked.report and not asked.vary:
        raise ValueError("--report draws the runs of a search: --vary names an option or a variable")
    if not _native.layouts(asked.mesh, int(asked.ranks)):
        raise ValueError(f"no layout of {asked.mesh} has {asked.ranks} ranks")
    taken = {"ranks": int(asked.ranks), "report": asked.report, "vary": asked.vary, "preload": asked.preload}
    taken["python"] = asked.python
    with _cluster.Connection(asked.on) as scheduler:
        raw = _fit.ask_cluster(scheduler, [*others, "--", *arguments], os.getcwd(), asked.mesh, taken)
    print(FitMap.of(raw) if asked.vary else FitLayouts.of(raw))
    if asked.json:
        pathlib.Path(asked.json).write_text(json.dumps(raw) + "\n")


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and those after it, which are the program's."""
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])
