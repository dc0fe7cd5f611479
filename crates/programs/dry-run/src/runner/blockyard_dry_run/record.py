"""Lines of the run's report: one object in JSON a line.

The library for CUDA writes to the same file, so that the lines of both are in order.
"""

import json
import os

from blockyard_dry_run import places

_file = None


def record(line):
    """Appends a line; whole even where another thread or the library writes at the same time."""
    global _file
    if _file is None:
        path = os.environ.get("STANDIN_REPORT")
        if not path:
            return
        _file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.write(_file, (json.dumps(line) + "\n").encode())


def estimate(text):
    """Records that later numbers are an estimate, with the reason and the line of the program that runs."""
    record({"kind": "estimate", "text": text, **(places.here() or {"file": "", "line": 0})})
