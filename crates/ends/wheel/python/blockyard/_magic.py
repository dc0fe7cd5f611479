"""`%%blockyard h100`: a notebook's cell as a dry run."""

import argparse
import pathlib
import shlex
import tempfile
from typing import Any, NoReturn

from blockyard import _native
from blockyard._dry_run import DryRun, dry_run


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _native.BlockyardError(f"%%blockyard: {message}")


def _options(line: str) -> argparse.Namespace:
    parser = _Options(prog="%%blockyard", add_help=False)
    parser.add_argument("gpu", nargs="?", default="h200")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--conf")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--total-memory", type=int)
    return parser.parse_args(shlex.split(line))


def blockyard(line: str, cell: str) -> DryRun:
    """Runs the cell as a separate program on a simulated GPU: `%%blockyard h100,rtx4090 --steps 3`.

    The cell neither sees nor leaves variables of the notebook. Options: `--steps`, `--conf`, `--devices`, `--total-memory` in bytes.
    """
    options = vars(_options(line))
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        program = pathlib.Path(folder, "cell.py")
        program.write_text(cell, encoding="utf-8")
        return dry_run(program, **options)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext blockyard`."""
    shell.register_magic_function(blockyard, magic_kind="cell", magic_name="blockyard")
