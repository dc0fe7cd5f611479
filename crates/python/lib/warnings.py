"""Warnings, which go to standard error, each once for a line."""

import sys as _sys

filters = []
_seen = set()
_recorders = []


class WarningMessage:
    def __init__(self, message, category, filename, lineno):
        self.message, self.category, self.filename, self.lineno, self.line, self.file = (
            message,
            category,
            filename,
            lineno,
            None,
            None,
        )


def _action(message, category):
    import re

    for action, text, kind in filters:
        if issubclass(category, kind) and (not text or re.match(text, str(message), re.I)):
            return action
    return (
        "ignore" if issubclass(category, (DeprecationWarning, PendingDeprecationWarning, ImportWarning)) else "default"
    )


def warn(message, category=None, stacklevel=1, source=None, **kwargs):
    category = type(message) if isinstance(message, Warning) else category or UserWarning
    frame = _sys._getframe(1)
    for _ in range(stacklevel - 1):
        frame = frame.f_back or frame
    warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno)


def warn_explicit(message, category, filename, lineno, module=None, registry=None, **kwargs):
    action = _action(message, category)
    if action == "ignore":
        return
    if action == "error":
        raise message if isinstance(message, Warning) else category(message)
    if _recorders and _recorders[-1] is not None:
        _recorders[-1].append(
            WarningMessage(message if isinstance(message, Warning) else category(message), category, filename, lineno)
        )
        return
    key = (str(message), category, None if action == "once" else (filename, lineno))
    if action != "always":
        if key in _seen:
            return
        _seen.add(key)
    showwarning(message, category, filename, lineno)


def formatwarning(message, category, filename, lineno, line=None):
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"


def showwarning(message, category, filename, lineno, file=None, line=None):
    (file or _sys.stderr).write(formatwarning(message, category, filename, lineno, line))


def filterwarnings(action, message="", category=Warning, module="", lineno=0, append=False):
    item = (action, message, category)
    filters.append(item) if append else filters.insert(0, item)


def simplefilter(action, category=Warning, lineno=0, append=False):
    filterwarnings(action, "", category, append=append)


def resetwarnings():
    filters.clear()


class catch_warnings:
    def __init__(self, *, record=False, module=None, action=None, category=Warning, lineno=0, append=False):
        self._record, self._action = record, (action, category)

    def __enter__(self):
        self._before = list(filters)
        found = [] if self._record else None
        _recorders.append(found)
        if self._action[0] is not None:
            simplefilter(*self._action)
        return found

    def __exit__(self, *exc):
        _recorders.pop()
        filters[:] = self._before


class deprecated:
    def __init__(self, message, /, *, category=DeprecationWarning, stacklevel=1):
        pass

    def __call__(self, function):
        return function
