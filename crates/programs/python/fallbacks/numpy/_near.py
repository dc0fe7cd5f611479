"""Numbers whose last digits depend on the processor: numpy's own functions round them in more than one way."""

import math

from _torch import register
from torch._unknown import UnknownNumber

from numpy._types import F8


class NearNumber:
    """A number between two others, `low` and `high`. It prints where both print the same, and as `?` where they do not."""

    is_near = True
    # A program may ask `isinstance(value, float)`.
    __class__ = property(lambda self: float)
    ndim, shape, size = 0, (), 1

    def __init__(self, low, high, dtype=F8):
        self.low, self.high, self.dtype = low, high, dtype

    def _array(self):
        from numpy._array import filled

        return filled((), self.dtype, [self])

    def item(self):
        return self

    tolist = item

    def __array__(self, dtype=None, copy=None):
        return self._array()

    def astype(self, kind):
        return self._array().astype(kind)[()]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._array(), name)

    def _ends(self, function):
        """A result that is the same for both ends, or `None`."""
        low, high = function(self.dtype.type._of(self.low)), function(self.dtype.type._of(self.high))
        return low if low == high and type(low) is type(high) else None

    def __repr__(self):
        return self._ends(repr) or "?"

    def __str__(self):
        return self._ends(str) or "?"

    def __format__(self, spec):
        known = self._ends(lambda value: format(value, spec))
        return known if known is not None else format(UnknownNumber(), spec)

    def __round__(self, digits=None):
        known = self._ends(lambda value: round(value, digits))
        return known if known is not None else UnknownNumber()

    def __int__(self):
        known = self._ends(int)
        return known if known is not None else self._refuse()

    def __bool__(self):
        return True if self.low > 0 or self.high < 0 else UnknownNumber().__bool__()

    def _refuse(self, *arguments):
        raise ValueError(
            "the program needs all digits of a number whose last digit depends on the processor; "
            "round it first, as round(value, 6) or f'{value:.6f}' do"
        )

    __float__ = __hash__ = __index__ = __floor__ = __ceil__ = _refuse

    def __deepcopy__(self, memo):
        return self


SPECIAL = {UnknownNumber, NearNumber}
# `float(value)` and `"%.3f" % value` know such numbers.
register("NearNumber", NearNumber)


def are_special(values):
    return not SPECIAL.isdisjoint(map(type, values))


def are_unknown(values):
    return UnknownNumber in map(type, values)


def unknown(kind):
    """A number of a type that nobody knows."""
    import torch

    return UnknownNumber(getattr(torch, kind.name, torch.float64))


def about(value, kind, steps):
    """A number that is at most so many roundings away from `value`."""
    if not math.isfinite(value) or value == 0:
        return value
    step = steps * (math.ulp(value) if kind is F8 else epsilon(kind) * 2.0 ** (math.frexp(value)[1] - 1))
    return between(value - step, value + step, kind)


def epsilon(kind):
    return {8: 2.0**-52, 4: 2.0**-23, 2: 2.0**-10}[kind.itemsize]


def between(low, high, kind):
    from numpy._values import rounded

    if kind is not F8:
        low, high = rounded([low, high], kind)
    if low != low or high != high:
        return unknown(kind)
    return low if low == high else NearNumber(low, high, kind)


def ends(value):
    return (value.low, value.high) if type(value) is NearNumber else (value, value)


def combine(name, function, kind, values):
    """The result of an operator of which at least one number is near or unknown."""
    if UnknownNumber in map(type, values):
        return unknown(kind)
    pairs = list(map(ends, values))
    try:
        if name in _COMPARED:
            results = {function(a, b) for a in pairs[0] for b in pairs[-1]}
            # Equal numbers may lie between the ends.
            may_be_equal = name in ("equal", "not_equal") and pairs[0][0] <= pairs[1][1] and pairs[1][0] <= pairs[0][1]
            return results.pop() if len(results) == 1 and not may_be_equal else unknown(kind)
        if (
            name in ("divide", "floor_divide")
            and pairs[1][0] <= 0 <= pairs[1][1]
            or name == "power"
            and pairs[0][0] <= 0
        ):
            return unknown(kind)
        if name in _OF_TWO:
            found = [function(a, b) for a in pairs[0] for b in pairs[1]]
        elif name in _MONOTONE:
            found = list(map(function, pairs[0]))
        elif name in ("absolute", "square"):
            found = [*map(function, pairs[0]), *([0.0] if pairs[0][0] <= 0 <= pairs[0][1] else [])]
        else:
            return unknown(kind)
        results = [end for value in found for end in ends(value)]
        return between(min(results), max(results), kind)
    except (TypeError, ValueError, OverflowError):
        return unknown(kind)


_COMPARED = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_OF_TWO = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "power"}
_MONOTONE = {
    "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "tanh", "sinh", "arctan", "arcsin", "arccos", "floor", "ceil", "trunc",
    "rint", "negative", "positive", "sign", "reciprocal", "isnan", "isinf", "isfinite",
}  # fmt: skip
