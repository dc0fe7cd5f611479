"""Exceptions as texts."""

import sys as _sys


def format_exception_only(exc, value=None, **kwargs):
    exc = value if value is not None else exc
    text = str(exc)
    name = type(exc).__qualname__
    if type(exc).__module__ not in ("builtins", "__main__"):
        name = f"{type(exc).__module__}.{name}"
    return [f"{name}: {text}\n" if text else f"{name}\n"]


def extract_tb(tb, limit=None):
    found = []
    while tb is not None:
        found.append((tb.tb_frame.f_code.co_filename, tb.tb_lineno, tb.tb_frame.f_code.co_name, ""))
        tb = tb.tb_next
    return found


def format_tb(tb, limit=None):
    return [
        f'  File "{file}", line {line}, in {name}\n'
        for file, line, name, _ in extract_tb(tb)
        if not file.startswith("<")
    ]


def format_exception(exc, value=None, tb=None, *args, **kwargs):
    exc = value if value is not None else exc
    lines = format_tb(exc.__traceback__)
    return (["Traceback (most recent call last):\n"] if lines else []) + lines + format_exception_only(exc)


def format_exc(limit=None, chain=True):
    exc = _sys.exc_info()[1]
    return "".join(format_exception(exc)) if exc is not None else "NoneType: None\n"


def print_exc(limit=None, file=None, chain=True):
    (file or _sys.stderr).write(format_exc())


def print_exception(exc, value=None, tb=None, limit=None, file=None, chain=True):
    (file or _sys.stderr).write("".join(format_exception(exc, value)))


def print_stack(f=None, limit=None, file=None):
    pass


def format_stack(f=None, limit=None):
    return []
