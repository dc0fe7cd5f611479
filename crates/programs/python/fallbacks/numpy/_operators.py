"""Operators of arrays and of their elements."""

import builtins

from numpy import _elementwise as _e
from numpy._array import ndarray
from numpy._axes import round as _round
from numpy._making import full
from numpy._near import NearNumber
from numpy._offers import refuse
from numpy._products import matmul
from numpy._types import generic, number, str_

_TWO = {
    "add": _e.add,
    "sub": _e.subtract,
    "mul": _e.multiply,
    "truediv": _e.divide,
    "floordiv": _e.floor_divide,
    "mod": _e.remainder,
    "pow": _e.power,
    "and": _e.bitwise_and,
    "or": _e.bitwise_or,
    "xor": _e.bitwise_xor,
    "matmul": matmul,
    "lshift": lambda *numbers: refuse("left_shift", "multiply by powers of two"),
    "rshift": lambda *numbers: refuse("right_shift", "use // with powers of two"),
    "divmod": lambda x, y: (x // y, x % y),
}
_COMPARED = {
    "gt": _e.greater,
    "lt": _e.less,
    "ge": _e.greater_equal,
    "le": _e.less_equal,
    "eq": _e.equal,
    "ne": _e.not_equal,
}
_ONE = {"neg": _e.negative, "pos": _e.positive, "abs": _e.absolute, "invert": _e.invert}
_CLASSES = (ndarray, number, generic, NearNumber)
_KNOWN = {"builtins", "numpy", "torch._unknown", "numpy._near"}


def _is_foreign(other):
    """Whether the operator is left to the other object, such as a tensor."""
    is_ours = isinstance(other, (ndarray, generic, int, float, str, list, tuple)) or type(other).__module__ in _KNOWN
    return not is_ours or hasattr(other, "is_cuda") or isinstance(other, (dict, set, type(None)))


def _forward(function):
    return lambda self, other: NotImplemented if _is_foreign(other) else function(self, other)


def _reflected(function):
    return lambda self, other: NotImplemented if _is_foreign(other) else function(other, self)


def _in_place(function):
    return lambda self, other: function(self, other, out=self)


def _compared(name, function):
    def apply(self, other):
        is_text = isinstance(other, str) != (self.dtype.kind == "U") and not isinstance(other, (ndarray, list, tuple))
        if name in ("eq", "ne") and (is_text or other is None and isinstance(self, ndarray)):
            made = full(self.shape, name == "ne", bool)
            return made if made.ndim else made[()]
        return NotImplemented if is_text or _is_foreign(other) else function(self, other)

    return apply


for _class in _CLASSES:
    for _name, _function in _TWO.items():
        setattr(_class, f"__{_name}__", _forward(_function))
        setattr(_class, f"__r{_name}__", _reflected(_function))
    for _name, _function in _COMPARED.items():
        setattr(_class, f"__{_name}__", _compared(_name, _function))
    for _name, _function in _ONE.items():
        setattr(_class, f"__{_name}__", lambda self, function=_function: function(self))
    # A class that defines `__eq__` alone would have lost its hash.
    _class.__hash__ = (
        None if _class is ndarray else NearNumber._refuse if _class is NearNumber else lambda self: hash(self._value)
    )
for _name, _function in _TWO.items():
    if _name != "divmod":
        setattr(ndarray, f"__i{_name}__", _in_place(_function))
for _name in ("add", "mul", "mod", "rmul", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(str_, f"__{_name}__", getattr(str, f"__{_name}__"))
str_.__radd__ = lambda self, other: str.__add__(other, self) if isinstance(other, str) else NotImplemented


def _round_number(self, digits=None):
    if digits is None and self.dtype.kind == "f":
        return builtins.round(float(self))
    return _round(self, digits or 0)


number.__round__ = _round_number
