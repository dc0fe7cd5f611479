"""The named tuples that some operators return."""

from collections import namedtuple as _namedtuple
from _torch import register as _register


def _make(name, fields):
    base = _namedtuple(name, fields)

    class Result(base):
        __slots__ = ()
        n_fields = n_sequence_fields = len(base._fields)
        n_unnamed_fields = 0

        def __new__(cls, items):
            return tuple.__new__(cls, items)

        def __repr__(self):
            lines = [f"{field}={value!r}" for field, value in zip(base._fields, self)]
            return f"torch.return_types.{name}(\n" + ",\n".join(lines) + ")"
    Result.__name__ = Result.__qualname__ = name
    return Result


_TABLE = {name: _make(name, "values indices") for name in ("max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin")}
_TABLE["aminmax"] = _make("aminmax", "min max")
svd = _make("svd", "U S V")
globals().update(_TABLE)
_register("return_types", _TABLE)
