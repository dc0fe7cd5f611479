"""Functions of each element."""

import builtins as _builtins
import math as _math
import operator as _o
from math import inf, nan

from numpy._near import about as _about
from numpy._near import unknown as _unknown
from numpy._offers import refuse as _refuse
from numpy._types import B1, F8, I1, smallest_float
from numpy._types import bool as _bool
from numpy._types import dtypes as _dtypes
from numpy._ufunc import common_kind as _common
from numpy._ufunc import operand as _operand
from numpy._ufunc import ufunc
from numpy._values import round_one as _round_one

# --- types of what a function reads and gives


def _of_numbers(name, operands):
    """The common type of operands, which are numbers."""
    if any(a.dtype.kind == "U" for a, _ in operands):
        _refuse(f"{name} of texts", "use Python's own texts")
    return _common(operands)


def _numbers(name, operands):
    kind = _of_numbers(name, operands)
    if kind is B1 and name in ("subtract", "negative", "positive", "sign"):
        _refuse(f"{name} of bools", "use the operators ^ and ~, or astype(int)")
    if kind is B1 and name in ("floor_divide", "remainder", "power", "square"):
        kind = I1
    return kind, kind


def _floats(name, operands):
    kind = smallest_float(_of_numbers(name, operands))
    return kind, kind


def _quotients(name, operands):
    kind = _of_numbers(name, operands)
    kind = kind if kind.kind == "f" else F8
    return kind, kind


def _rounding(name, operands):
    kind = operands[0][0].dtype
    return (kind, kind) if kind.kind in "iub" else _floats(name, operands)


def _comparison(name, operands):
    texts = [a.dtype.kind == "U" for a, _ in operands]
    if any(texts):
        if not all(texts):
            _refuse(f"{name} of texts and numbers", "compare texts with texts")
        return None, B1
    # Whole numbers compare as they are.
    return None if all(a.dtype.kind in "iub" for a, _ in operands) and _common(operands).kind != "f" else _common(
        operands
    ), B1


def _truths(name, operands):
    return None, B1


def _tests(name, operands):
    _of_numbers(name, operands)
    return None, B1


def _bits(name, operands):
    kind = _of_numbers(name, operands)
    if kind.kind not in "iub":
        raise TypeError(f"ufunc '{name}' not supported for the input types")
    return kind, kind


def _takes_kind(function):
    function.takes_kind = True
    return function


# --- arithmetic


@_takes_kind
def _add(kind, x, y):
    return x or y if kind is B1 else x + y


@_takes_kind
def _multiply(kind, x, y):
    return x and y if kind is B1 else x * y


def _divide(x, y):
    if y:
        return x / y
    return nan if x == 0 or x != x else inf if (x > 0) == (_math.copysign(1, y) > 0) else -inf


@_takes_kind
def _floor_divide(kind, x, y):
    if kind.kind != "f":
        return x // y if y else 0
    return x // y if y and _math.isfinite(x) else _divide(x, y) if not y else nan


@_takes_kind
def _remainder(kind, x, y):
    if kind.kind != "f":
        return x % y if y else 0
    return x % y if y and _math.isfinite(x) else nan


def _is_exact(x, y, value):
    (a, b), (c, d) = x.as_integer_ratio(), value.as_integer_ratio()
    if y == int(y) and _builtins.abs(y) < 1100:
        a, b = (a, b) if y > 0 else (b, a)
        return a ** _builtins.abs(int(y)) * d == c * b ** _builtins.abs(int(y))
    return y == 0.5 and c * c * b == a * d * d


@_takes_kind
def _power(kind, x, y):
    if kind.kind != "f":
        if y < 0:
            raise ValueError("Integers to negative integer powers are not allowed.")
        return _builtins.pow(x, y, 1 << 64) if _builtins.abs(x) > 1 and y > 64 else x**y
    if y == 1 or x == 1:
        return x
    if y == 0:
        return 1.0
    try:
        value = x**y
    except ZeroDivisionError:
        return _math.copysign(inf, x) if y % 2 == 1 else inf
    except OverflowError:
        return -inf if x < 0 and y % 2 == 1 else inf
    if type(value) is complex:
        return nan
    if not _math.isfinite(value) or not _math.isfinite(x):
        return value
    if _is_exact(x, y, value) and _round_one(value, kind) == value:
        return value
    return _about(value, kind, 2 if kind is F8 else 6)


@_takes_kind
def _sign(kind, x):
    value = (x > 0) - (x < 0)
    return value if kind.kind != "f" else x if x != x else float(value)


def _one_of(is_first):
    @_takes_kind
    def apply(kind, x, y):
        if x == y == 0 and kind.kind == "f" and _math.copysign(1, x) != _math.copysign(1, y):
            return _unknown(kind)  # Which zero it is depends on the processor.
        return x if is_first(x, y) or x != x else y

    return apply


def _made(kinds, nin=2, **functions):
    return [ufunc(name, function, kinds, nin) for name, function in functions.items()]


add, subtract, multiply, floor_divide, remainder = _made(
    _numbers,
    add=_add,
    subtract=_o.sub,
    multiply=_multiply,
    floor_divide=_floor_divide,
    remainder=_remainder,
)
maximum, minimum = _made(_numbers, maximum=_one_of(_o.ge), minimum=_one_of(_o.le))
divide = true_divide = ufunc("divide", _divide, _quotients)
mod = remainder
greater, less, greater_equal, less_equal, equal, not_equal = _made(
    _comparison, greater=_o.gt, less=_o.lt, greater_equal=_o.ge, less_equal=_o.le, equal=_o.eq, not_equal=_o.ne
)
logical_and, logical_or = _made(
    _truths, logical_and=lambda x, y: _builtins.bool(x and y), logical_or=lambda x, y: _builtins.bool(x or y)
)
logical_not = ufunc("logical_not", lambda x: not x, _truths, 1)
bitwise_and, bitwise_or, bitwise_xor = _made(_bits, bitwise_and=_o.and_, bitwise_or=_o.or_, bitwise_xor=_o.xor)
invert = bitwise_not = ufunc("invert", _takes_kind(lambda kind, x: not x if kind is B1 else ~x), _bits, 1)
negative, positive, absolute, square, sign = _made(
    _numbers,
    1,
    negative=_o.neg,
    positive=lambda x: x,
    absolute=lambda x: x if type(x) is bool else _builtins.abs(x),
    square=lambda x: x * x,
    sign=_sign,
)
abs = absolute
_reciprocal = ufunc("reciprocal", lambda x: _divide(1.0, x), _floats, 1)
_SCALARS = {float, int, *_dtypes} - {_bool}


def _number_power(x, y):
    try:
        value = x**y
    except (ZeroDivisionError, OverflowError):
        return _power(F8, x, y)
    return value if type(value) is float else _power(F8, x, y)


class _Power(ufunc):
    """`power`, which numpy does by a product or a root where one exponent is given."""

    def __call__(self, x, y, /, out=None, **others):
        if not others:
            kind = getattr(getattr(x, "dtype", None), "kind", "")
            if kind == "b":
                _refuse("power of bools", "use astype")
            if type(y) in (int, float) and y in (2, 0.5, -1) and getattr(x, "ndim", 0) > 0:
                if y == 2 and (kind == "f" or type(y) is int and kind in ("i", "u")):
                    return square(x, out=out)
                if kind == "f":
                    return (sqrt if y == 0.5 else _reciprocal)(x, out=out)
            if out is None and type(x) in _SCALARS and type(y) in _SCALARS:
                operands = [_operand(x, "power"), _operand(y, "power")]
                if _common(operands) is F8:
                    # Python's own function, as numpy's for two numbers.
                    return F8.type(_number_power(*(float(a._all()[0]) for a, _ in operands)))
        return super().__call__(x, y, out=out, **others)


power = _Power("power", _power, _numbers)

# --- functions of floats


def _libm(name, function, is_exact=lambda x, value, kind: x == 0, pole=None):
    """A function whose last digit depends on the processor, but where its result is exact. It is minus infinity at its pole."""

    @_takes_kind
    def apply(kind, x):
        if x != x:
            return x
        try:
            value = function(x)
        except OverflowError:
            return -inf if x < 0 and name == "sinh" else inf
        except ValueError:
            return -inf if x == pole else nan
        if is_exact(x, value, kind) or kind is not F8 and not _math.isfinite(_round_one(value, kind)):
            return value
        return _about(value, kind, 2 if kind is F8 else 5)

    return ufunc(name, apply, _floats, 1)


def _is_power_of_ten(x, value, kind):
    return value == int(value) and kind is F8 and 0 <= value <= 15 and 10.0**value == x


exp, expm1, sin, cos, tan, sinh, cosh, tanh, arcsin, arctan = (
    _libm(name, getattr(_math, name.replace("arc", "a")))
    for name in ("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arctan")
)
arccos = _libm("arccos", _math.acos, lambda x, value, kind: x == 1)
log = _libm("log", _math.log, lambda x, value, kind: x == 1, pole=0)
log2 = _libm("log2", _math.log2, lambda x, value, kind: _math.frexp(x)[0] == 0.5, pole=0)
log10 = _libm("log10", _math.log10, _is_power_of_ten, pole=0)
log1p = _libm("log1p", _math.log1p, pole=-1)


def _root(x):
    if x < 0:
        return nan
    return _math.sqrt(x)


def _whole(function):
    return lambda x: x if x != x or x in (inf, -inf) or type(x) is not float else _math.copysign(float(function(x)), x)


sqrt, rint = ufunc("sqrt", _root, _floats, 1), ufunc("rint", _whole(_builtins.round), _floats, 1)
floor, ceil, trunc = _made(_rounding, 1, floor=_whole(_math.floor), ceil=_whole(_math.ceil), trunc=_whole(_math.trunc))
isnan, isinf, isfinite = _made(
    _tests, 1, isnan=lambda x: x != x, isinf=lambda x: x in (inf, -inf), isfinite=lambda x: x - x == 0
)

__all__ = [name for name, value in list(globals().items()) if isinstance(value, ufunc) and not name.startswith("_")]
