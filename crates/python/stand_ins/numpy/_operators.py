"""Operators of arrays and of their elements."""

from numpy import _elementwise as _e
from numpy._array import ndarray
from numpy._near import NearNumber
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
    "lshift": _e.left_shift,
    "rshift": _e.right_shift,
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


def _is_foreign(other):
    """Whether the operator is left to the other object, such as a tensor."""
    return hasattr(other, "is_cuda") or other is None or isinstance(other, (dict, set)) or type(other).__module__ not in _KNOWN and not isinstance(
        other, (ndarray, generic, int, float, str, list, tuple)
    )  # fmt: skip


_KNOWN = {"builtins", "numpy", "torch._unknown", "numpy._near"}


def _binary(function):
    def forward(self, other):
        return NotImplemented if _is_foreign(other) else function(self, other)

    def reflected(self, other):
        return NotImplemented if _is_foreign(other) else function(other, self)

    return forward, reflected


def _in_place(function):
    def apply(self, other):
        if self.ndim == 0 and not isinstance(self, ndarray):
            return function(self, other)
        return function(self, other, out=self)

    return apply


def _compared(name, function):
    def apply(self, other):
        if other is None or hasattr(other, "is_cuda") or isinstance(other, (dict, set)):
            if name in ("eq", "ne") and isinstance(self, ndarray) and other is None:
                from numpy._making import full

                return full(self.shape, name == "ne", bool)
            return NotImplemented
        if isinstance(other, str) != (getattr(self.dtype, "kind", "") == "U") and not isinstance(
            other, (ndarray, list, tuple)
        ):
            if name in ("eq", "ne"):
                from numpy._making import full

                made = full(self.shape, name == "ne", bool)
                return made if made.ndim else made[()]
            return NotImplemented
        return function(self, other)

    return apply


def _divmod(self, other):
    return self // other, self % other


for _name, _function in _TWO.items():
    _forward, _reflected = _binary(_function)
    for _class in (ndarray, number, generic, NearNumber):
        setattr(_class, f"__{_name}__", _forward)
        setattr(_class, f"__r{_name}__", _reflected)
    setattr(ndarray, f"__i{_name}__", _in_place(_function))
for _name, _function in _COMPARED.items():
    for _class in (ndarray, number, generic, NearNumber):
        setattr(_class, f"__{_name}__", _compared(_name, _function))
for _name, _function in _ONE.items():
    for _class in (ndarray, number, generic, NearNumber):
        setattr(_class, f"__{_name}__", lambda self, function=_function: function(self))
for _class in (ndarray, number, generic, NearNumber):
    _class.__divmod__ = _divmod
    _class.__rdivmod__ = lambda self, other: (other // self, other % self)
ndarray.__hash__ = None
# A class that defines `__eq__` alone would have lost its hash.
for _class in (generic, number):
    _class.__hash__ = lambda self: hash(self._value)
NearNumber.__hash__ = NearNumber._refuse
for _name in ("add", "mul", "mod", "rmul"):
    setattr(str_, f"__{_name}__", getattr(str, f"__{_name}__"))
str_.__radd__ = lambda self, other: str.__add__(other, self) if isinstance(other, str) else NotImplemented
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(str_, f"__{_name}__", getattr(str, f"__{_name}__"))


def _round_number(self, digits=None):
    from numpy._axes import round

    if digits is None and self.dtype.kind == "f":
        import builtins

        return builtins.round(float(self))
    return round(self, digits or 0)


number.__round__ = _round_number


def _matmul(self, other):
    from numpy._products import matmul

    return NotImplemented if hasattr(other, "is_cuda") else matmul(self, other)


def _rmatmul(self, other):
    from numpy._products import matmul

    return NotImplemented if hasattr(other, "is_cuda") else matmul(other, self)


def _imatmul(self, other):
    self[...] = _matmul(self, other)
    return self


ndarray.__matmul__, ndarray.__rmatmul__, ndarray.__imatmul__ = _matmul, _rmatmul, _imatmul
