"""Functions that make one number of all elements along axes."""

import builtins as _builtins
import functools
import math as _math
from math import nan

from torch._unknown import UnknownNumber

from numpy import _elementwise as _e
from numpy._array import filled, laid_out_as, ndarray, spread
from numpy._index import steps_of_view
from numpy._making import asarray
from numpy._near import are_special, are_unknown, between, ends, unknown
from numpy._offers import offer, refuse
from numpy._shapes import axes_of, axis_of, memory_order, places, product, strides_of
from numpy._types import B1, F2, F4, F8, I8, U8, limits, of, promote
from numpy._values import rounded, scalar, settled


def made(values, shape, kind):
    """The result of a reduction: a number where no axis is left."""
    if shape:
        return filled(shape, kind, values)
    return scalar(values[0], kind) if values is not None else unknown(kind)


def shape_after(a, axes, keepdims):
    return tuple(1 if i in axes else size for i, size in enumerate(a.shape) if keepdims or i not in axes)


def lanes(a, axes):
    """The elements that become one number each, in lists."""
    rest = [i for i in range(a.ndim) if i not in axes]
    values, count = a.transpose(rest + list(axes))._read() if a.ndim else a._read(), product([a.shape[i] for i in axes])
    if count == 0:
        return [[] for _ in range(product([a.shape[i] for i in rest]))]
    return [values[i : i + count] for i in range(0, len(values), count)]


def _over(a, axis, keepdims, kind, function, special=lambda lane: None, is_strict=True):
    """Applies a function to each list of elements; `special` gets the lists with special numbers, and gives `None` where nobody knows."""
    axes = axes_of(axis, a.ndim, is_strict)
    shape = shape_after(a, axes, keepdims)
    if a._read() is None:
        return made(None, shape, kind)
    values = [special(lane) if are_special(lane) else function(lane) for lane in lanes(a, axes)]
    return made(settled([unknown(kind) if value is None else value for value in values], kind), shape, kind)


# --- sums, in numpy's order


def _pairwise(values, to_kind):
    """The sum of a run, as numpy adds it: by eights, and in halves where it is long."""
    count = len(values)
    if count < 8:
        total = to_kind(0.0)
        for value in values:
            total = to_kind(total + value)
        return total
    if count <= 128:
        parts = values[:8]
        whole = count - count % 8
        for i in range(8, whole, 8):
            parts = [to_kind(part + value) for part, value in zip(parts, values[i : i + 8])]
        a, b, c, d, e, f, g, h = parts
        total = to_kind(to_kind(to_kind(a + b) + to_kind(c + d)) + to_kind(to_kind(e + f) + to_kind(g + h)))
        for value in values[whole:]:
            total = to_kind(total + value)
        return total
    half = count // 2
    half -= half % 8
    return to_kind(_pairwise(values[:half], to_kind) + _pairwise(values[half:], to_kind))


def _rounding(kind):
    """How sums of a type are rounded; unknown and near numbers round themselves."""
    if kind is F2:
        refuse("sum and prod of float16", "use astype")
    if kind is F8:
        return lambda value: value
    return lambda value: rounded([value], F4)[0] if type(value) is float else value


def _in_order(a, axes, start, fold):
    """Reduces along axes as numpy's loop over memory does; `fold` adds a run of elements to a total."""
    order = [axis for axis in memory_order(a.shape, a._steps) if a.shape[axis] != 1]
    rest = [i for i in range(a.ndim) if i not in axes]
    kept_steps = dict(zip(rest, strides_of([a.shape[i] for i in rest])))
    totals = [start] * product([a.shape[i] for i in rest])
    memory = a._memory.values()
    if not a.size:
        return totals
    if not rest:
        shape, steps = [a.shape[axis] for axis in order], [a._steps[axis] for axis in order]
        if a.size > 8192 and steps_of_view(shape, steps, [a.size]) is None:
            return [UnknownNumber()]
        return [fold(start, [memory[place] for place in places(shape, steps, a._offset)])]
    inner, inner_step = 1, 0
    while order and order[-1] in axes:
        axis = order[-1]
        if inner > 1 and a._steps[axis] != inner_step * inner:
            break
        if inner == 1:
            inner_step = a._steps[axis]
        inner *= a.shape[axis]
        order.pop()
    shape = [a.shape[axis] for axis in order]
    begins = places(shape, [a._steps[axis] for axis in order], a._offset)
    targets = places(shape, [kept_steps.get(axis, 0) for axis in order])
    for begin, target in zip(begins, targets):
        end = begin + inner * inner_step
        values = memory[begin : end if end >= 0 else None : inner_step] if inner_step else [memory[begin]] * inner
        # A run is read from the lowest place on, as numpy's loop does.
        totals[target] = fold(totals[target], values[::-1] if inner_step < 0 else values)
    return totals


def _reduced(a, axis, dtype, keepdims, whole, fold):
    """Sums and products: whole numbers by `whole`, and floats in the order of numpy by `fold`."""
    a = asarray(a)
    if a.dtype.kind == "U":
        raise TypeError("texts have no sum")
    kind = of(dtype) if dtype is not None else I8 if a.dtype.kind in "ib" else U8 if a.dtype.kind == "u" else a.dtype
    if kind.kind != "f" or a._read() is None:
        return _over(a, axis, keepdims, kind, lambda lane: whole(map(int, lane)), is_strict=False)
    a, axes, to_kind = a.astype(kind, copy=False), axes_of(axis, a.ndim, False), _rounding(kind)
    values = _in_order(a, axes, float(whole([])), lambda total, lane: fold(total, lane, to_kind))
    values = [unknown(kind) if type(value) is UnknownNumber else value for value in values]
    return made(values, shape_after(a, axes, keepdims), kind)


def sum(a, axis=None, dtype=None, *, keepdims=False):
    def fold(total, lane, to_kind):
        return to_kind(total + _pairwise(lane, to_kind))

    return _reduced(a, axis, dtype, keepdims, _builtins.sum, fold)


def prod(a, axis=None, dtype=None, *, keepdims=False):
    def fold(total, lane, to_kind):
        return functools.reduce(lambda total, value: to_kind(total * value), lane, total)

    return _reduced(a, axis, dtype, keepdims, _math.prod, fold)


# --- largest and smallest


def _extreme(name, choose):
    def function(a, axis=None, *, keepdims=False):
        a = asarray(a)

        def one(values):
            if not values:
                raise ValueError(f"zero-size array to reduction operation {name}imum which has no identity")
            return next((value for value in values if value != value), None) or choose(values)

        def special(lane):
            pairs = list(map(ends, lane))
            return (
                None
                if are_unknown(lane)
                else between(*(choose(pair[side] for pair in pairs) for side in (0, 1)), a.dtype)
            )

        return _over(a, axis, keepdims, a.dtype, one, special, False)

    function.__name__ = name
    return function


max, min = _extreme("max", _builtins.max), _extreme("min", _builtins.min)
amax, amin = max, min


def ptp(a, axis=None, *, keepdims=False):
    return _e.subtract(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def _place_of(name, choose):
    def function(a, axis=None, *, keepdims=False):
        a = asarray(a)
        if axis is not None and a.ndim:
            axis = axis_of(axis, a.ndim)

        def one(values):
            if not values:
                raise ValueError(f"attempt to get {name} of an empty sequence")
            return next((i for i, value in enumerate(values) if value != value), values.index(choose(values)))

        def special(lane):
            # The place is known where no other number can be as far.
            if are_unknown(lane):
                return None
            side = 0 if choose is _builtins.max else 1
            at = one([ends(value)[side] for value in lane])
            bound, others = ends(lane[at])[side], [ends(value)[1 - side] for value in lane[:at] + lane[at + 1 :]]
            return at if _builtins.all(other < bound if side == 0 else other > bound for other in others) else None

        return _over(a, axis, keepdims, I8, one, special, False)

    function.__name__ = name
    return function


argmax, argmin = _place_of("argmax", _builtins.max), _place_of("argmin", _builtins.min)


def _truth(name, decides):
    def function(a, axis=None, *, keepdims=False):
        def special(lane):
            is_decided = _builtins.any(bool(value) is decides for value in lane if not are_special([value]))
            return decides if is_decided else None

        def one(lane):
            return decides if _builtins.any(value.__bool__() is decides for value in lane) else not decides

        return _over(asarray(a), axis, keepdims, B1, one, special, False)

    function.__name__ = name
    return function


any, all = _truth("any", True), _truth("all", False)


def count_nonzero(a, axis=None, *, keepdims=False):
    return _over(asarray(a), axis, keepdims, I8, lambda values: _builtins.sum(map(bool, values)), is_strict=False)


# --- means


def _mean_kind(a, dtype):
    kind = of(dtype) if dtype is not None else F8 if a.dtype.kind in "iub" else a.dtype
    if kind.kind != "f" or F2 in (kind, a.dtype):
        refuse("mean, var and std of this type", "use astype(float)")
    if kind is not a.dtype and a.size > 8192 and a.dtype.kind == "f":
        refuse("mean of large arrays in another type", "use astype first")
    return kind


def mean(a, axis=None, dtype=None, *, keepdims=False):
    a = asarray(a)
    count = product([a.shape[i] for i in axes_of(axis, a.ndim)])
    total = sum(a, axis=axis, dtype=_mean_kind(a, dtype), keepdims=keepdims)
    return _e.divide(total, count) if count else _e.multiply(total, nan)


def var(a, axis=None, dtype=None, *, ddof=0, keepdims=False):
    a = asarray(a)
    kind, count = _mean_kind(a, dtype), product([a.shape[i] for i in axes_of(axis, a.ndim)])
    center = _e.divide(sum(a, axis=axis, dtype=kind, keepdims=True), count) if count else nan
    x = _e.subtract(a, center)
    total = sum(_e.multiply(x, x), axis=axis, dtype=kind, keepdims=keepdims)
    return _e.divide(total, _builtins.max(count - ddof, 0))


def std(a, axis=None, dtype=None, *, ddof=0, keepdims=False):
    return _e.sqrt(var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims))


def average(a, axis=None, weights=None, *, keepdims=False):
    a = asarray(a)
    if weights is None:
        return mean(a, axis=axis, keepdims=keepdims)
    weights = asarray(weights)
    if a.shape != weights.shape:
        if axis is None or isinstance(axis, tuple):
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axis = axis_of(axis, a.ndim)
        if weights.ndim != 1 or weights.shape[0] != a.shape[axis]:
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        weights = spread(weights.reshape([-1 if i == axis else 1 for i in range(a.ndim)]), a.shape)
    kind = promote(a.dtype, weights.dtype)
    kind = promote(kind, F8) if a.dtype.kind in "iub" else kind
    scale = sum(weights, axis=axis, dtype=kind, keepdims=keepdims)
    if _builtins.any(type(v) is float and v == 0 for v in asarray(scale)._all()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return _e.divide(sum(_e.multiply(a.astype(kind), weights.astype(kind)), axis=axis, keepdims=keepdims), scale)


def _cleaned(a):
    """The array with zeros in the place of what is not a number, and where numbers are; `None` where the type has no others."""
    a = asarray(a)
    if a.dtype.kind != "f" or a._read() is None:
        return a, None
    is_nan = [not are_special([value]) and value != value for value in a._read()]
    clean = laid_out_as(a, a.dtype, [0.0 if bad else value for value, bad in zip(a._read(), is_nan)])
    return clean, laid_out_as(a, B1, [not bad for bad in is_nan])


def nansum(a, axis=None, dtype=None, *, keepdims=False):
    return sum(_cleaned(a)[0], axis=axis, dtype=dtype, keepdims=keepdims)


def nanmean(a, axis=None, *, keepdims=False):
    clean, is_number = _cleaned(a)
    if is_number is None:
        return mean(a, axis=axis, keepdims=keepdims)
    count = sum(is_number, axis=axis, keepdims=keepdims)
    return _e.divide(sum(clean, axis=axis, keepdims=keepdims), asarray(count).astype(clean.dtype))


# --- rounding, bounds


def round(a, decimals=0):
    a, is_number = asarray(a), not isinstance(a, (ndarray, list, tuple))
    if a.dtype.kind != "f":
        if a.dtype is B1 or decimals < 0:
            refuse("round of whole numbers to tens", "divide, round and multiply")
        return a.copy() if not is_number and a.ndim else a[()]
    if decimals == 0:
        return _e.rint(a)
    factor, to, back = 10.0 ** _builtins.abs(decimals), _e.multiply, _e.divide
    to, back = (to, back) if decimals > 0 else (back, to)
    return back(_e.rint(to(a, factor)), factor)


around = round


def _inside(bound, kind):
    """A bound beyond the limits of whole numbers as the limit itself."""
    if type(bound) is not int or kind.kind not in "iu":
        return bound
    least, most = limits(kind)
    return least if bound < least else most if bound > most else bound


def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    a = asarray(a)
    low = _inside(a_min if a_min is not None else min, a.dtype)
    high = _inside(a_max if a_max is not None else max, a.dtype)
    result = a if low is None else _e.maximum(a, low)
    result = result if high is None else _e.minimum(result, high)
    result = result.copy() if result is a else result
    if out is not None:
        out[...] = result
        return out
    return result if not isinstance(result, ndarray) or result.ndim else result[()]


def as_method(function):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__ = function.__name__
    return method


offer(globals(), ("made", "shape_after", "lanes", "as_method"), False)
for _name in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "any", "all", "round", "clip"):
    setattr(ndarray, _name, as_method(globals()[_name]))
