"""Questions about types of elements."""

import contextlib

from numpy._offers import offer, refuse
from numpy._types import F2, F4, F8, generic, limits, of


def issubdtype(arg1, arg2):
    first, second = (
        one if isinstance(one, type) and issubclass(one, generic) else of(one).type for one in (arg1, arg2)
    )
    return issubclass(first, second)


class finfo:
    """The limits of a type of floats."""

    def __init__(self, dtype):
        kind = of(getattr(dtype, "dtype", None) or dtype)
        if kind.kind != "f":
            raise ValueError(f"data type {kind.type!r} not inexact")
        mantissa, exponent, digits = {F8: (52, 1023, 15), F4: (23, 127, 6), F2: (10, 15, 3)}[kind]
        make = kind.type
        self.dtype, self.bits, self.precision = kind, 8 * kind.itemsize, digits
        self.eps, self.resolution = make(2.0**-mantissa), make(10.0**-digits)
        self.max = make((2.0 - 2.0**-mantissa) * 2.0**exponent)
        self.min, self.tiny = make(-self.max), make(2.0 ** (1 - exponent))
        self.smallest_normal, self.smallest_subnormal = self.tiny, make(2.0 ** (1 - exponent - mantissa))


class iinfo:
    """The limits of a type of whole numbers."""

    def __init__(self, type):
        kind = of(getattr(type, "dtype", None) or type)
        if kind.kind not in "iu":
            raise ValueError(f"Invalid integer data type {kind.kind!r}.")
        self.dtype, self.kind, self.bits = kind, kind.kind, 8 * kind.itemsize
        self.min, self.max = limits(kind)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class errstate(contextlib.ContextDecorator):
    """No warning about numbers is printed here; a program that wants errors of them is refused."""

    def __init__(self, **kwargs):
        seterr(**kwargs)

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


def seterr(**kwargs):
    if not {"warn", "ignore"}.issuperset(kwargs.values()):
        refuse("seterr with 'raise'", "compare with numpy.isfinite")
    return {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


offer(globals())
