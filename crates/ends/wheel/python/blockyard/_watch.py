"""Watching a running program from the inside."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from blockyard import _command, _native

# The command writes the recording after the program's last line.
_END_SECONDS = 30


def watch(
    out: "str | os.PathLike[str]" = "watch.pickle",
    *,
    check: bool = False,
    all_lines: bool = False,
    stop_before_failure: int | None = None,
) -> None:
    """Watches this program from here on: standard error gets a line for each step, with the true peaks, the line that grew, and the step that
    will run out of memory. `out` gets the last steps. The arguments are the options of `blockyard watch` (docs/watch.md).

    Nothing happens in a program that is watched already. BlockyardError is raised where the command does not start.
    """
    if "blockyard_watch" in sys.modules:
        return
    folder = tempfile.mkdtemp(prefix="blockyard-watch-")
    options = {
        "listen": folder,
        "out": os.fspath(out),
        "check": check,
        "all_lines": all_lines,
        "stop_before_failure": stop_before_failure,
    }
    command = [sys.executable, "-m", "blockyard", "watch", *_command.words_of(options)]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE)
    attach = pathlib.Path(folder, "attach.py")
    while not attach.is_file():
        if reader.poll() is not None:
            shutil.rmtree(folder, ignore_errors=True)
            raise _native.BlockyardError(f"`blockyard watch` ended with status {reader.returncode}")
        time.sleep(0.01)
    # The reader ends when this process ends, however it does.
    atexit.register(_end, reader, folder, os.getpid())
    exec(compile(attach.read_text(), str(attach), "exec"), {})


def _end(reader: "subprocess.Popen[bytes]", folder: str, process: int) -> None:
    if reader.stdin is None or os.getpid() != process:
        return
    reader.stdin.close()
    try:
        reader.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        print("blockyard: the last steps are not written yet", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
