"""Functions of each element."""

import builtins as _builtins
import math as _math
from math import inf, nan

from numpy._near import about as _about
from numpy._offers import refuse as _refuse
from numpy._offers import warn as _warn
from numpy._types import B1, F4, F8, I1, O8, smallest_float
from numpy._types import bool as _bool
from numpy._types import dtypes as _dtypes
from numpy._ufunc import UFuncTypeError, ufunc
from numpy._ufunc import common_kind as _common
from numpy._ufunc import operand as _operand
from numpy._values import round_one as _round_one

_TEXT = "ufunc {!r} did not contain a loop with signature matching types ({}) -> None"


def _wrong(name, operands):

    kinds = ", ".join(
        f"<class 'numpy.dtypes.{a.dtype.name.rstrip('0123456789').capitalize()}DType'>" for a, _ in operands
    )
    return UFuncTypeError(_TEXT.format(name, kinds))


# --- types of what a function reads and gives


def _numbers(name, operands, dtype):
    kind = dtype or _common(operands)
    if kind.kind == "U":
        if name == "add":
            _refuse("add of texts", "use Python's own texts")
        raise _wrong(name, operands)
    if kind is B1 and name in ("subtract", "negative", "positive"):
        if name == "subtract":
            raise TypeError(
                "numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` operator, or the logical_xor function instead."
            )
        if name == "negative":
            raise TypeError(
                "The numpy boolean negative, the `-` operator, is not supported, use the `~` operator or the logical_not function instead."
            )
        raise _wrong(name, operands)
    if kind is B1 and name == "sign":
        raise _wrong(name, operands)
    if kind is B1 and name in ("floor_divide", "remainder", "power", "square", "fmod", "reciprocal"):
        kind = I1
    return kind, kind


def _floats(name, operands, dtype):
    kind = dtype or _common(operands)
    if kind is O8:
        return kind, kind
    if kind.kind == "U":
        raise _wrong(name, operands)
    kind = smallest_float(kind)
    return kind, kind


def _quotients(name, operands, dtype):
    kind = dtype or _common(operands)
    if kind.kind == "U":
        raise _wrong(name, operands)
    kind = kind if kind.kind in "fO" else F8
    return kind, kind


def _rounding(name, operands, dtype):
    kind = dtype or operands[0][0].dtype
    return (kind, kind) if kind.kind in "iub" else _floats(name, operands, dtype)


def _comparison(name, operands, dtype):
    texts = [a.dtype.kind == "U" for a, _ in operands]
    if any(texts):
        if not all(texts):
            _refuse(f"{name} of texts and numbers", "compare texts with texts")
        return None, B1
    kind = _common(operands)
    if kind.kind in "iu" and all(a.dtype.kind in "iub" for a, _ in operands):
        return None, B1  # Whole numbers compare as they are.
    return kind, B1


def _truths(name, operands, dtype):
    return None, B1


def _tests(name, operands, dtype):
    if operands[0][0].dtype.kind not in "fiub":
        raise TypeError(
            f"ufunc '{name}' not supported for the input types, and the inputs could not be safely coerced to any supported types "
            "according to the casting rule ''safe''"
        )
    return None, B1


def _bits(name, operands, dtype):
    kind = _common(operands)
    if kind.kind not in "iub" or kind is B1 and name in ("gcd", "lcm"):
        raise TypeError(
            f"ufunc '{name}' not supported for the input types, and the inputs could not be safely coerced to any supported types "
            "according to the casting rule ''safe''"
        )
    if kind is B1 and "shift" in name:
        kind = I1
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
    try:
        return x / y
    except ZeroDivisionError:
        if x == 0 or x != x:
            if x == 0:
                _warn("invalid value encountered in divide")
            return nan
        _warn("divide by zero encountered in divide")
        return inf if (x > 0) == (_math.copysign(1, y) > 0) else -inf


@_takes_kind
def _floor_divide(kind, x, y):
    if kind.kind != "f":
        if y == 0:
            _warn("divide by zero encountered in floor_divide")
            return 0
        return x // y
    if y == 0:
        if x == 0 or x != x:
            return nan
        _warn("divide by zero encountered in floor_divide")
        return inf if (x > 0) == (_math.copysign(1, y) > 0) else -inf
    return x // y if _math.isfinite(x) else nan


@_takes_kind
def _remainder(kind, x, y):
    if y == 0 and kind.kind != "f":
        _warn("divide by zero encountered in remainder")
        return 0
    if kind.kind == "f" and (y == 0 or not _math.isfinite(x)):
        if x == x:
            _warn("invalid value encountered in remainder")
        return nan
    return x % y


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
        return _builtins.pow(x, y, 1 << 64) if abs(x) > 1 and y > 64 else x**y
    if y == 1 or x == 1:
        return x
    if y == 0:
        return 1.0
    try:
        value = x**y
    except ZeroDivisionError:
        _warn("divide by zero encountered in power")
        return _math.copysign(inf, x) if y % 2 == 1 else inf
    except OverflowError:
        _warn("overflow encountered in power")
        return -inf if x < 0 and y % 2 == 1 else inf
    if type(value) is complex:
        _warn("invalid value encountered in power")
        return nan
    if not _math.isfinite(value) or not _math.isfinite(x):
        return value
    if _is_exact(x, y, value) and _round_one(value, kind) == value:
        return value
    return _about(value, kind, 2 if kind is F8 else 6)


def _larger(x, y):
    return x if x >= y or x != x else y


def _smaller(x, y):
    return x if x <= y or x != x else y


add, subtract, multiply = ufunc("add", _add, _numbers, identity=0), ufunc("subtract", lambda x, y: x - y, _numbers), ufunc("multiply", _multiply, _numbers, identity=1)  # fmt: skip
divide = true_divide = ufunc("divide", _divide, _quotients)
floor_divide, remainder = ufunc("floor_divide", _floor_divide, _numbers), ufunc("remainder", _remainder, _numbers)
mod = remainder
maximum, minimum = ufunc("maximum", _larger, _numbers), ufunc("minimum", _smaller, _numbers)
fmax = ufunc("fmax", lambda x, y: y if x != x else x if y != y or x >= y else y, _numbers)
fmin = ufunc("fmin", lambda x, y: y if x != x else x if y != y or x <= y else y, _numbers)
greater, less, greater_equal, less_equal, equal, not_equal = (
    ufunc(name, function, _comparison)
    for name, function in (
        ("greater", lambda x, y: x > y),
        ("less", lambda x, y: x < y),
        ("greater_equal", lambda x, y: x >= y),
        ("less_equal", lambda x, y: x <= y),
        ("equal", lambda x, y: x == y),
        ("not_equal", lambda x, y: x != y),
    )
)
logical_and, logical_or, logical_xor = (
    ufunc(name, function, _truths)
    for name, function in (
        ("logical_and", lambda x, y: bool(x and y)),
        ("logical_or", lambda x, y: bool(x or y)),
        ("logical_xor", lambda x, y: bool(x) != bool(y)),
    )
)
logical_not = ufunc("logical_not", lambda x: not x, _truths, 1)
bitwise_and, bitwise_or, bitwise_xor = (
    ufunc(name, function, _bits)
    for name, function in (
        ("bitwise_and", lambda x, y: x & y),
        ("bitwise_or", lambda x, y: x | y),
        ("bitwise_xor", lambda x, y: x ^ y),
    )
)


@_takes_kind
def _shift_left(kind, x, y):
    return x << y if 0 <= y < 8 * kind.itemsize else 0


@_takes_kind
def _shift_right(kind, x, y):
    return x >> y if 0 <= y < 8 * kind.itemsize else -1 if x < 0 else 0


left_shift, right_shift = ufunc("left_shift", _shift_left, _bits), ufunc("right_shift", _shift_right, _bits)
gcd, lcm = ufunc("gcd", _math.gcd, _bits), ufunc("lcm", _math.lcm, _bits)
invert = bitwise_not = bitwise_invert = ufunc(
    "invert", _takes_kind(lambda kind, x: not x if kind is B1 else ~x), _bits, 1
)
negative, positive = ufunc("negative", lambda x: -x, _numbers, 1), ufunc("positive", lambda x: x, _numbers, 1)
absolute = abs = ufunc("absolute", lambda x: x if type(x) is bool else _builtins.abs(x), _numbers, 1)
fabs = ufunc("fabs", _math.fabs, _floats, 1)
_square_of = ufunc("square", lambda x: x * x, _numbers, 1)


@_takes_kind
def _sign(kind, x):
    value = (x > 0) - (x < 0)
    return value if kind.kind != "f" else x if x != x else float(value)


sign = ufunc("sign", _sign, _numbers, 1)


@_takes_kind
def _reciprocal(kind, x):
    if kind.kind != "f":
        _refuse("reciprocal of whole numbers", "use 1 / a")
    return _divide(1.0, x)


reciprocal = ufunc("reciprocal", _reciprocal, _numbers, 1)
square = _square_of


_SCALARS = {float, int, *_dtypes} - {_bool}


def _number_power(x, y):
    try:
        value = x**y
    except (ZeroDivisionError, OverflowError):
        return _power(F8, x, y)
    return value if type(value) is float else _power(F8, x, y)


class _Power(ufunc):
    """`power`, which numpy does by a product or a root where one exponent is given."""

    def __call__(self, x, y, /, out=None, dtype=None, **others):
        is_number = type(y) in (int, float)
        if (
            is_number
            and out is None
            and dtype is None
            and not others
            and y in (2, 0.5, -1)
            and getattr(x, "ndim", 0) > 0
        ):
            kind = getattr(getattr(x, "dtype", None), "kind", "")
            if y == 2 and type(y) is int and kind in "iufb" and kind:
                return _square_of(x)
            if y == 2 and kind == "f":
                return _square_of(x)
            if kind == "f":
                return sqrt(x) if y == 0.5 else reciprocal(x)
        if type(x) in _SCALARS and type(y) in _SCALARS and not others and out is None and dtype is None:
            operands = [_operand(x, "power"), _operand(y, "power")]
            if _common(operands) is F8:
                # Python's own function, as numpy's for two numbers.
                return F8.type(_number_power(*(float(a._all()[0]) for a, _ in operands)))
        return super().__call__(x, y, out=out, dtype=dtype, **others)


power = pow = _Power("power", _power, _numbers)
float_power = ufunc("float_power", _power, lambda name, operands, dtype: (F8, F8))

# --- functions of floats


def _libm(name, function, is_exact=None, at_pole=None, steps=2):
    """A function whose last digit depends on the processor, but where its result is exact."""

    @_takes_kind
    def apply(kind, x):
        if x != x:
            return x
        try:
            value = function(x)
        except OverflowError:
            _warn(f"overflow encountered in {name}")
            return -inf if x < 0 and name == "sinh" else inf
        except ValueError:
            if at_pole is not None and x == at_pole[0]:
                _warn(f"divide by zero encountered in {name}")
                return at_pole[1]
            _warn(f"invalid value encountered in {name}")
            return nan
        if is_exact is not None and is_exact(x, value, kind):
            return value
        if kind is not F8 and _math.isfinite(value):
            if not _math.isfinite(_round_one(value, kind)):
                return value
        return _about(value, kind, 5 if kind is F4 else steps)

    return ufunc(name, apply, _floats, 1)


def _zero(x, value, kind):
    return x == 0


def _is_power_of_ten(x, value, kind):
    return value == int(value) and kind is F8 and 0 <= value <= 15 and 10.0**value == x


exp, expm1, sin, tan, tanh, sinh, arctan, arcsin, arcsinh = (
    _libm(name, function, _zero)
    for name, function in (
        ("exp", _math.exp),
        ("expm1", _math.expm1),
        ("sin", _math.sin),
        ("tan", _math.tan),
        ("tanh", _math.tanh),
        ("sinh", _math.sinh),
        ("arctan", _math.atan),
        ("arcsin", _math.asin),
        ("arcsinh", _math.asinh),
    )
)
cos, cosh = _libm("cos", _math.cos, _zero), _libm("cosh", _math.cosh, _zero)
arccos, arccosh = (
    _libm(name, f, lambda x, value, kind: x == 1) for name, f in (("arccos", _math.acos), ("arccosh", _math.acosh))
)
arctanh = _libm("arctanh", _math.atanh, _zero)
log = _libm("log", _math.log, lambda x, value, kind: x == 1, at_pole=(0, -inf))
log2 = _libm("log2", _math.log2, lambda x, value, kind: _math.frexp(x)[0] == 0.5, at_pole=(0, -inf))
log10 = _libm("log10", _math.log10, _is_power_of_ten, at_pole=(0, -inf))
log1p = _libm("log1p", _math.log1p, _zero, at_pole=(-1, -inf))
exp2 = _libm("exp2", lambda x: 2.0**x, lambda x, value, kind: x == int(x))
cbrt = _libm("cbrt", lambda x: _math.copysign(_math.exp(_math.log(_math.fabs(x)) / 3), x) if x else x, _zero, steps=16)
asin, acos, atan, asinh, acosh, atanh = arcsin, arccos, arctan, arcsinh, arccosh, arctanh


def _root(x):
    if x < 0:
        _warn("invalid value encountered in sqrt")
        return nan
    return _math.sqrt(x)


sqrt = ufunc("sqrt", _root, _floats, 1)


def _whole(function):
    return lambda x: x if x != x or x in (inf, -inf) or type(x) is not float else _math.copysign(float(function(x)), x)


floor, ceil, trunc = (
    ufunc(name, _whole(f), _rounding, 1)
    for name, f in (("floor", _math.floor), ("ceil", _math.ceil), ("trunc", _math.trunc))
)
rint = ufunc("rint", _whole(_builtins.round), _floats, 1)
fix = trunc
isnan = ufunc("isnan", lambda x: x != x, _tests, 1)
isinf = ufunc("isinf", lambda x: x in (inf, -inf), _tests, 1)
isfinite = ufunc("isfinite", lambda x: x - x == 0, _tests, 1)
signbit = ufunc("signbit", lambda x: _math.copysign(1, x) < 0, _tests, 1)


def _scaled(up, down):
    @_takes_kind
    def apply(kind, x):
        factor = _round_one(_round_one(up, kind) / _round_one(down, kind), kind)
        return x * factor

    return apply


degrees, radians = (
    ufunc("degrees", _scaled(180.0, _math.pi), _floats, 1),
    ufunc("radians", _scaled(_math.pi, 180.0), _floats, 1),
)
rad2deg, deg2rad = degrees, radians


def _of_two(name, function, is_exact):
    @_takes_kind
    def apply(kind, x, y):
        if x != x or y != y:
            return nan
        value = function(x, y)
        return value if is_exact(x, y, value) else _about(value, kind, 2 if kind is F8 else 6)

    return ufunc(name, apply, _floats)


def _sum_of_exponentials(x, y):
    if x == y:
        return x + _math.log(2)
    return _max_of(x, y) + _math.log1p(_math.exp(-_math.fabs(x - y)))


def _max_of(x, y):
    return x if x > y else y


arctan2 = _of_two("arctan2", _math.atan2, lambda x, y, value: x == 0 and y > 0)
atan2 = arctan2
hypot = _of_two("hypot", _math.hypot, lambda x, y, value: value == int(value) and value * value == x * x + y * y)
logaddexp = _of_two("logaddexp", _sum_of_exponentials, lambda x, y, value: False)
copysign = ufunc("copysign", _math.copysign, _floats)


@_takes_kind
def _fmod(kind, x, y):
    if kind.kind == "f":
        return _math.fmod(x, y) if y and _math.isfinite(x) else nan
    return int(_math.copysign(1, x)) * (_builtins.abs(x) % _builtins.abs(y)) if y else 0


fmod = ufunc("fmod", _fmod, _numbers)
heaviside = ufunc("heaviside", lambda x, y: x if x != x else 0.0 if x < 0 else 1.0 if x > 0 else y, _floats)
conjugate = conj = ufunc("conjugate", lambda x: x, _numbers, 1)

__all__ = [name for name, value in list(globals().items()) if isinstance(value, ufunc) and not name.startswith("_")]
