"""Questions about types of elements."""

import contextlib

from numpy._offers import offer, refuse
from numpy._types import F2, F4, F8, dtype, generic, limits, of, promote
from numpy._ufunc import common_kind, operand


def _type(value):
    if isinstance(value, type) and issubclass(value, generic):
        return value
    return of(value).type


def issubdtype(arg1, arg2):
    return issubclass(_type(arg1), _type(arg2))


def promote_types(type1, type2):
    return promote(of(type1), of(type2))


def result_type(*arrays_and_dtypes):
    operands = []
    for one in arrays_and_dtypes:
        if isinstance(one, (type, str, dtype)):
            from numpy._making import zeros

            operands.append((zeros((), of(one)), None))
        else:
            operands.append(operand(one, "result_type"))
    return common_kind(operands)


def can_cast(from_, to, casting="safe"):
    if casting != "safe" or not isinstance(from_, (type, str, dtype)):
        refuse("can_cast of values or with casting=", "compare numpy.promote_types")
    return promote(of(from_), of(to)) is of(to)


def min_scalar_type(a):
    refuse("min_scalar_type", "name the type")


class finfo:
    """The limits of a type of floats."""

    def __init__(self, dtype):
        kind = of(dtype) if not hasattr(dtype, "dtype") else of(dtype.dtype)
        if kind.kind != "f":
            raise ValueError(f"data type {kind.type!r} not inexact")
        mantissa, exponent, digits = {F8: (52, 1023, 15), F4: (23, 127, 6), F2: (10, 15, 3)}[kind]
        make = kind.type
        self.dtype, self.bits, self.precision, self.nmant = kind, 8 * kind.itemsize, digits, mantissa
        self.eps, self.epsneg = make(2.0**-mantissa), make(2.0 ** -(mantissa + 1))
        self.max = make((2.0 - 2.0**-mantissa) * 2.0**exponent)
        self.min, self.tiny = make(-self.max), make(2.0 ** (1 - exponent))
        self.smallest_normal, self.smallest_subnormal = self.tiny, make(2.0 ** (1 - exponent - mantissa))
        self.resolution = make(10.0**-digits)
        self.maxexp, self.minexp = exponent + 1, 1 - exponent


class iinfo:
    """The limits of a type of whole numbers."""

    def __init__(self, type):
        kind = of(type) if not hasattr(type, "dtype") else of(type.dtype)
        if kind.kind not in "iu":
            raise ValueError(f"Invalid integer data type {kind.kind!r}.")
        self.dtype, self.kind, self.bits = kind, kind.kind, 8 * kind.itemsize
        self.min, self.max = limits(kind)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class errstate(contextlib.ContextDecorator):
    """Warnings about numbers are left out inside; a program that wants errors of them is refused."""

    def __init__(self, **kwargs):
        if any(value in ("raise", "call", "log", "print") for value in kwargs.values()):
            refuse("errstate with 'raise'", "compare with numpy.isfinite")
        self.is_quiet = any(value == "ignore" for value in kwargs.values())

    def __enter__(self):
        import warnings

        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        if self.is_quiet:
            warnings.simplefilter("ignore", RuntimeWarning)

    def __exit__(self, *exception):
        self.caught.__exit__(*exception)


def seterr(all=None, divide=None, over=None, under=None, invalid=None):
    if any(value not in (None, "warn", "ignore") for value in (all, divide, over, under, invalid)):
        refuse("seterr with 'raise'", "compare with numpy.isfinite")
    return geterr()


def geterr():
    return {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


offer(globals())
