"""Functions of each element."""

import builtins as _builtins
import math as _math
from math import inf, nan

from numpy._array import _broadcast, _cast, ndarray
from numpy._making import array, asarray
from numpy._shapes import _places, broadcast_shapes
from numpy._types import bool_, float64, int64
from numpy._types import of as _of
from numpy._types import wider as _wider


def _binary(function, result=None):
    def apply(a, b, **kwargs):
        if hasattr(a, "is_cuda") or hasattr(b, "is_cuda"):
            return NotImplemented
        a, b = asarray(a), asarray(b)
        shape = broadcast_shapes(a.shape, b.shape)
        kind = _of(result) if result is not None else _wider(a.dtype, b.dtype)
        if function is _divide and kind.kind != "f":
            kind = float64
        if a._values is None or b._values is None:
            made = ndarray(shape, kind)
        else:
            a, b = _broadcast(a, shape), _broadcast(b, shape)
            made = ndarray(shape, kind, [function(x, y) for x, y in zip(a._values, b._values)])
        return made if shape else made.item()

    return apply


def _divide(x, y):
    if y == 0:
        return nan if x == 0 or x != x else inf if x > 0 else -inf
    return x / y


add, subtract, multiply = (_binary(f) for f in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y))
divide = true_divide = _binary(_divide)
floor_divide, mod, power = (_binary(f) for f in (lambda x, y: x // y, lambda x, y: x % y, lambda x, y: x**y))
maximum, minimum = _binary(lambda x, y: x if x >= y else y), _binary(lambda x, y: x if x <= y else y)
greater, less, equal, not_equal = (
    _binary(f, bool_) for f in (lambda x, y: x > y, lambda x, y: x < y, lambda x, y: x == y, lambda x, y: x != y)
)
greater_equal, less_equal = (_binary(f, bool_) for f in (lambda x, y: x >= y, lambda x, y: x <= y))
logical_and, logical_or = (_binary(f, bool_) for f in (lambda x, y: bool(x and y), lambda x, y: bool(x or y)))
_and, _or = (_binary(f) for f in (lambda x, y: x & y, lambda x, y: x | y))
remainder = mod
for _name, _function in (
    ("add", add),
    ("sub", subtract),
    ("mul", multiply),
    ("truediv", divide),
    ("floordiv", floor_divide),
    ("mod", mod),
    ("pow", power),
    ("and", _and),
    ("or", _or),
):
    setattr(ndarray, f"__{_name}__", lambda self, other, f=_function: f(self, other))
    setattr(ndarray, f"__r{_name}__", lambda self, other, f=_function: f(other, self))
    setattr(ndarray, f"__i{_name}__", lambda self, other, f=_function: _into(self, f(self, other)))
for _name, _function in (
    ("gt", greater),
    ("lt", less),
    ("eq", equal),
    ("ne", not_equal),
    ("ge", greater_equal),
    ("le", less_equal),
):
    setattr(ndarray, f"__{_name}__", lambda self, other, f=_function: f(self, other))
ndarray.__hash__ = None


def _into(array, result):
    array._values = None if result._values is None else [_cast(value, array.dtype) for value in result._values]
    return array


def _unary(function, result=None):
    def apply(a, **kwargs):
        a = asarray(a)
        kind = _of(result) if result is not None else a.dtype if a.dtype.kind == "f" or function in _KEEP else float64
        made = ndarray(a.shape, kind, None if a._values is None else [function(x) for x in a._values])
        return made if a.shape else made.item()

    return apply


def _negative(x):
    return -x


_KEEP = (_negative, _builtins.abs)
exp, log, log2, log10, log1p, sqrt, sin, cos, tan, tanh, arctan, floor, ceil = (
    _unary(f)
    for f in (
        _math.exp,
        lambda x: _math.log(x) if x > 0 else -inf if x == 0 else nan,
        _math.log2,
        _math.log10,
        _math.log1p,
        lambda x: _math.sqrt(x) if x >= 0 else nan,
        _math.sin,
        _math.cos,
        _math.tan,
        _math.tanh,
        _math.atan,
        lambda x: float(_math.floor(x)),
        lambda x: float(_math.ceil(x)),
    )
)
negative, abs, square = _unary(_negative), _unary(_builtins.abs), lambda a: multiply(a, a)
absolute, fabs = abs, abs
isnan, isinf, isfinite = (
    _unary(f, bool_) for f in (lambda x: x != x, lambda x: x in (inf, -inf), lambda x: x == x and x not in (inf, -inf))
)
logical_not = _unary(lambda x: not x, bool_)
sign = _unary(lambda x: (x > 0) - (x < 0))
ndarray.__neg__, ndarray.__abs__, ndarray.__invert__ = (
    lambda self: negative(self),
    lambda self: abs(self),
    lambda self: logical_not(self),
)


def round(a, decimals=0):
    a = asarray(a)
    made = ndarray(a.shape, a.dtype, None if a._values is None else [_builtins.round(x, decimals) for x in a._values])
    return made if a.shape else made.item()


around = rint = round
ndarray.round = round


def clip(a, a_min=None, a_max=None):
    a = a if a_min is None else maximum(a, a_min)
    return a if a_max is None else minimum(a, a_max)


ndarray.clip = clip


def where(condition, x=None, y=None):
    condition = asarray(condition)
    if x is None:
        return nonzero(condition)
    x, y = asarray(x), asarray(y)
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    c, x, y = (_broadcast(a, shape) for a in (condition, x, y))
    kind = _wider(x.dtype, y.dtype)
    if None in (c._values, x._values, y._values):
        return ndarray(shape, kind)
    return ndarray(shape, kind, [a if chosen else b for chosen, a, b in zip(c._values, x._values, y._values)])


def nonzero(a):
    a = asarray(a)
    places = [at for at, value in zip(_places(a.shape), a._all()) if value]
    return tuple(array([at[axis] for at in places], int64) for axis in range(a.ndim))
