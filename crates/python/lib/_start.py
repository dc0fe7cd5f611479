"""What the interpreter imports before a program: standard output, and modules that programs expect to be there."""

import gc
import sys
import _collector
from _host import write as _write

for _name in ("collect", "enable", "disable", "isenabled", "get_threshold", "set_threshold", "get_count"):
    setattr(gc, _name, getattr(_collector, _name))


class _Stream:
    encoding, errors, closed, mode = "utf-8", "strict", False, "w"

    def __init__(self, name):
        self.name = f"<{name}>"

    def write(self, text):
        return _write(text)

    def writelines(self, lines):
        for line in lines:
            _write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def reconfigure(self, **settings):
        pass

    def fileno(self):
        return 1


sys.stdout = sys.__stdout__ = _Stream("stdout")
sys.stderr = sys.__stderr__ = _Stream("stderr")
