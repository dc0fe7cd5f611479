"""Lines of the user's program."""

import os
import sys
import threading

_OWN = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.path.dirname(_OWN)
# Only the files of installed packages and Python's own have these; `blockyard_record::INSTALLED_PATHS` has the same.
_INSTALLED = ("site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/usr/lib/")


def is_ours(file):
    """Whether the file is a part of the runner."""
    return os.path.abspath(file).startswith(_FOLDER + os.sep)


def is_library(file):
    """Whether the file is not a part of the user's program."""
    return file.startswith("<") or any(part in file for part in _INSTALLED) or is_ours(file)


def of_traceback(trace):
    """The innermost line of the program's own files in a traceback; None where there is none."""
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_library(file):
            found = {"file": file, "line": trace.tb_lineno}
        trace = trace.tb_next
    return found


def of_entry(frames):
    """The innermost line of the program's own files in an event of PyTorch's trace.

    `frames` begin with the innermost.
    """
    for frame in frames:
        file = frame["filename"]
        if frame["line"] > 0 and not is_library(file):
            return {"file": file, "line": frame["line"]}
    return None


def here():
    """The innermost line of the program's own files that the calling thread runs."""
    return _of_frame(sys._getframe(1))


def of_main_thread():
    """The innermost line of the program's own files that the main thread runs."""
    return _of_frame(sys._current_frames().get(threading.main_thread().ident))


def own_files():
    """The files of the program that Python loaded."""
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(os.path.abspath(file) for file in files if file and not is_library(file))


def _of_frame(frame):
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return {"file": file, "line": frame.f_lineno}
        frame = frame.f_back
    return None
