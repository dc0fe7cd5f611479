"""Mathematics over numbers of the interpreter."""

import _math


def _known(function):
    """The function, which returns an unknown number if an argument is one: `torch` marks unknown numbers with `is_unknown`."""

    def call(*arguments):
        for argument in arguments:
            if getattr(argument, "is_unknown", False):
                return +argument
        return function(*arguments)

    return call


atan2, copysign, fmod, ldexp = map(_known, (_math.atan2, _math.copysign, _math.fmod, _math.ldexp))
log10, log2, nextafter, pow = map(_known, (_math.log10, _math.log2, _math.nextafter, _math.pow))
_ln, _hypot2 = _known(_math.ln), _known(_math.hypot2)
frexp = _math.frexp

pi, e, tau, inf, nan = 3.141592653589793, 2.718281828459045, 6.283185307179586, float("inf"), float("nan")
for _name in (
    "sqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "gamma",
    "lgamma",
    "log1p",
    "fabs",
):
    globals()[_name] = _known(lambda x, name=_name: _math.unary(name, x))


def log(x, base=None):
    return _ln(x) if base is None else _ln(x) / _ln(base)


def floor(x):
    method = getattr(type(x), "__floor__", None)
    return method(x) if method else int(float(x) // 1)


def ceil(x):
    method = getattr(type(x), "__ceil__", None)
    return method(x) if method else -int(-float(x) // 1)


def trunc(x):
    return x.__trunc__()


def _is_assumed(x):
    """Whether the number is not known: it is assumed to be finite, so that a check for infinite numbers does not end the program."""
    if getattr(x, "is_unknown", False):
        from _host import note

        note("a number on the GPU is assumed to be finite")
        return True
    return False


def isnan(x):
    x = float(x)
    return not _is_assumed(x) and x != x


def isinf(x):
    x = float(x)
    return not _is_assumed(x) and x in (inf, -inf)


def isfinite(x):
    x = float(x)
    return _is_assumed(x) or x == x and x not in (inf, -inf)


def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    if a == b:
        return True
    if isinf(a) or isinf(b):
        return False
    return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)


def degrees(x):
    return x * (180.0 / pi)


def radians(x):
    return x * (pi / 180.0)


def hypot(*coordinates):
    if len(coordinates) == 2:
        return _hypot2(*coordinates)
    largest = max(map(abs, coordinates), default=0.0)
    return largest * sqrt(fsum((c / largest) ** 2 for c in coordinates)) if largest else 0.0


def dist(p, q):
    return hypot(*(a - b for a, b in zip(p, q)))


def modf(x):
    whole = float(trunc(x)) if isfinite(x) else x
    return (copysign(x - whole if isfinite(x) else 0.0, x), whole)


def fsum(values):
    partials = []
    for x in values:
        kept = []
        for y in partials:
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low:
                kept.append(low)
            x = high
        partials = kept + [x]
    return sum(partials, 0.0)


def prod(values, *, start=1):
    for value in values:
        start = start * value
    return start


def sumprod(p, q):
    return sum(a * b for a, b in zip(p, q, strict=True))


def gcd(*integers):
    result = 0
    for b in integers:
        a = result
        while b:
            a, b = b, a % b
        result = abs(a)
    return result


def lcm(*integers):
    result = 1
    for b in integers:
        if b == 0:
            return 0
        result = abs(result * b) // gcd(result, b)
    return result


def factorial(n):
    if n != int(n) or n < 0:
        raise ValueError("factorial() not defined for negative values")
    return prod(range(2, n + 1))


def perm(n, k=None):
    return prod(range(n, n - (n if k is None else k), -1))


def comb(n, k):
    if k > n:
        return 0
    k = min(k, n - k)
    return prod(range(n - k + 1, n + 1)) // factorial(k)


def isqrt(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    x = 1 << (n.bit_length() + 1) // 2
    while True:
        y = (x + n // x) // 2
        if y >= x:
            return x
        x = y


def remainder(x, y):
    n = round(x / y)
    return x - n * y


def ulp(x):
    return nextafter(abs(x), inf) - abs(x)
