"""Data, printed over several lines where one is too short."""

import sys as _sys


def _lines(value, indent, room, depth, sort):
    plain = repr(value) if not isinstance(value, dict) or not sort else None
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: (str(type(item[0])), item[0])) if sort else list(value.items())
        plain = "{" + ", ".join(f"{key!r}: {_lines(item, 0, 1 << 30, depth, sort)}" for key, item in items) + "}"
    if len(plain) <= room or not isinstance(value, (dict, list, tuple, set)) or not value:
        return plain
    inner = indent + 1
    if isinstance(value, dict):
        parts = [
            f"{key!r}: " + _lines(item, inner + len(repr(key)) + 2, room - len(repr(key)) - 4, depth, sort)
            for key, item in items
        ]
    else:
        parts = [_lines(item, inner, room - 2, depth, sort) for item in value]
    opening, closing = {dict: "{}", list: "[]", tuple: "()", set: "{}"}.get(type(value), "[]")
    return opening + (",\n" + " " * inner).join(parts) + closing


def pformat(object, indent=1, width=80, depth=None, *, compact=False, sort_dicts=True, underscore_numbers=False):
    return _lines(object, 0, width, depth, sort_dicts)


def pprint(
    object, stream=None, indent=1, width=80, depth=None, *, compact=False, sort_dicts=True, underscore_numbers=False
):
    (stream or _sys.stdout).write(pformat(object, indent, width, depth, sort_dicts=sort_dicts) + "\n")


pp = pprint


class PrettyPrinter:
    def __init__(self, indent=1, width=80, depth=None, stream=None, **kwargs):
        self._width, self._stream = width, stream

    def pprint(self, object):
        pprint(object, self._stream, width=self._width)

    def pformat(self, object):
        return pformat(object, width=self._width)
