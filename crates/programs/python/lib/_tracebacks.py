"""The exception that ended a program, as text, with the calls of the program's own code alone."""

import os
import traceback

_LIBRARY = os.path.dirname(os.path.abspath(__file__))


def describe(error, program):
    """The exit status after an exception, and its traceback, which is empty after a plain exit."""
    if error is None:
        return 0, None
    if isinstance(error, SystemExit):
        code = error.code
        if code is None or isinstance(code, int):
            return code or 0, None if code else ""
        return 1, f"{code}\n"
    shown = traceback.TracebackException.from_exception(error)
    _leave_out_library(shown, set())
    return 130 if isinstance(error, KeyboardInterrupt) else 1, "".join(shown.format())


def _is_shown(frame):
    return not frame.filename.startswith((_LIBRARY, "<frozen"))


def _leave_out_library(shown, seen):
    if shown is None or id(shown) in seen:
        return
    seen.add(id(shown))
    if shown.stack is not None:
        shown.stack[:] = [frame for frame in shown.stack if _is_shown(frame)]
    for other in (shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())):
        _leave_out_library(other, seen)
