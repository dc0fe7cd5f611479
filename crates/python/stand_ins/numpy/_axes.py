"""Functions that make one number of all elements along axes."""

import builtins as _builtins
import math as _math
from math import nan

from torch._unknown import UnknownNumber

from numpy import _elementwise as _e
from numpy._array import filled, ndarray
from numpy._making import asarray
from numpy._near import are_special, are_unknown, between, ends, unknown
from numpy._offers import offer, refuse, warn
from numpy._shapes import axes_of, axis_of, memory_order, places, product, strides_of
from numpy._types import B1, F2, F4, F8, I8, O8, U8, limits, of
from numpy._values import rounded, scalar

_NOTHING = object()


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


def _over(a, axis, keepdims, kind, function, near=None, is_strict=True):
    """Applies a function to each list of elements; a list with an unknown number gives an unknown number.

    `near` gets the lists of the ends of numbers that are only near.
    """
    axes = axes_of(axis, a.ndim, is_strict)
    shape = shape_after(a, axes, keepdims)
    if a._read() is None:
        return made(None, shape, kind)
    values = []
    for lane in lanes(a, axes):
        if not are_special(lane):
            values.append(function(lane))
        elif near is None or are_unknown(lane):
            values.append(unknown(kind))
        else:
            values.append(near(list(map(ends, lane))))
    return made(values, shape, kind)


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


def _plain(value):
    return value


def _single(value):
    return rounded([value], F4)[0] if type(value) is float else value


def _rounding(kind):
    """How sums of a type are rounded; unknown and near numbers round themselves."""
    return _plain if kind is F8 else _single


def _in_order(a, axes, start, run, step):
    """Reduces along axes as numpy's loop over memory does; `run` reduces a run of elements and `step` adds its result."""
    order = [axis for axis in memory_order(a.shape, a._steps) if a.shape[axis] != 1]
    rest = [i for i in range(a.ndim) if i not in axes]
    kept_steps = dict(zip(rest, strides_of([a.shape[i] for i in rest])))
    totals = [start] * product([a.shape[i] for i in rest])
    memory, offset = a._memory.values(), a._offset
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
    begins = places(shape, [a._steps[axis] for axis in order], offset)
    targets = places(shape, [kept_steps.get(axis, 0) for axis in order])
    if inner == 1:
        for begin, target in zip(begins, targets):
            totals[target] = step(totals[target], memory[begin])
        return totals
    for begin, target in zip(begins, targets):
        end = begin + inner * inner_step
        values = memory[begin : end if end >= 0 else None : inner_step] if inner_step else [memory[begin]] * inner
        # A run is read from the lowest place on, as numpy's loop does.
        totals[target] = step(totals[target], run(values[::-1] if inner_step < 0 else values))
    return totals


def _sum_kind(a, dtype):
    if dtype is not None:
        return of(dtype)
    kind = a.dtype
    if kind.kind == "U":
        raise TypeError(
            "the resolved dtypes are not compatible with add.reduce. Resolved (dtype('<U1'), dtype('<U1'), dtype('<U2'))"
        )
    return I8 if kind.kind in "ib" else U8 if kind.kind == "u" else kind


def _float_sums(a, axes, kind):
    """Sums of floats in the order of numpy. Halves are added as singles."""
    to_kind = _rounding(kind)
    if kind is F2:

        def step(total, value):
            return rounded([_single(total + value)], F2)[0]
    else:

        def step(total, value):
            return to_kind(total + value)

    return _in_order(a, axes, 0.0, lambda values: _pairwise(values, to_kind), step)


def _total(a, axis, kind, keepdims, whole, floats, empty):
    a = asarray(a)
    axes = axes_of(axis, a.ndim, False)
    shape = shape_after(a, axes, keepdims)
    if a._read() is None:
        return made(None, shape, kind)
    if kind.kind == "f":
        a = a.astype(kind) if a.dtype is not kind else a
        values = floats(a, axes, kind) if a.size else [float(empty)] * product(shape)
        return made([unknown(kind) if type(value) is UnknownNumber else value for value in values], shape, kind)
    from numpy._values import settled

    values = []
    for lane in lanes(a, axes):
        if are_special(lane):
            values.append(unknown(kind))
        elif kind is B1:
            values.append(bool(whole(lane)))
        else:
            values.append(whole([int(value) for value in lane] if kind.kind in "iu" else lane))
    return made(settled(values, kind), shape, kind)


def _refuse_options(name, out, initial, where):
    if out is not None or initial is not _NOTHING or where is not _NOTHING:
        refuse(
            f"{name} with out=, initial= or where=",
            "assign the result, and add the start or choose the elements yourself",
        )


def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NOTHING, where=_NOTHING):
    _refuse_options("sum", out, initial, where)
    a = asarray(a)
    return _total(a, axis, _sum_kind(a, dtype), keepdims, _builtins.sum, _float_sums, 0)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=_NOTHING, where=_NOTHING):
    _refuse_options("prod", out, initial, where)
    a = asarray(a)
    kind = _sum_kind(a, dtype)
    to_kind = _rounding(kind)

    def floats(a, axes, kind):
        if kind is F2:
            refuse("prod of float16", "use astype")

        def run(values):
            total = values[0]
            for value in values[1:]:
                total = to_kind(total * value)
            return total

        def step(total, value):
            return to_kind(total * value)

        def whole_run(values):
            return values

        # Each element in turn, from the first on.
        return _in_order(a, axes, 1.0, whole_run, lambda total, values: _each(step, total, values))

    return _total(a, axis, kind, keepdims, _math.prod, floats, 1)


def _each(step, total, values):
    for value in values if isinstance(values, list) else [values]:
        total = step(total, value)
    return total


# --- largest and smallest


def _extreme(name, choose):
    def function(a, axis=None, out=None, keepdims=False, initial=_NOTHING, where=_NOTHING):
        _refuse_options(name, out, initial, where)
        a = asarray(a)

        def one(values):
            if not values:
                raise ValueError(
                    f"zero-size array to reduction operation {'maximum' if name == 'max' else 'minimum'} which has no identity"
                )
            if a.dtype.kind == "f":
                for value in values:
                    if value != value:
                        return value
            return choose(values)

        def near(pairs):
            return between(choose(low for low, _ in pairs), choose(high for _, high in pairs), a.dtype)

        return _over(a, axis, keepdims, a.dtype, one, near, False)

    function.__name__ = name
    return function


max, min = _extreme("max", _builtins.max), _extreme("min", _builtins.min)
amax, amin = max, min


def ptp(a, axis=None, out=None, keepdims=False):
    _refuse_options("ptp", out, _NOTHING, _NOTHING)
    return _e.subtract(max(a, axis=axis, keepdims=keepdims), min(a, axis=axis, keepdims=keepdims))


def _place_of(name, choose):
    def function(a, axis=None, out=None, *, keepdims=False):
        _refuse_options(name, out, _NOTHING, _NOTHING)
        a = asarray(a)
        if axis is not None and a.ndim:
            axis = axis_of(axis, a.ndim)

        def one(values):
            if not values:
                raise ValueError(f"attempt to get {name} of an empty sequence")
            for i, value in enumerate(values):
                if value != value:
                    return i
            return values.index(choose(values))

        def near(pairs):
            # The place is known where no other number can be as far.
            side = 0 if choose is _builtins.max else 1
            at = one([pair[side] for pair in pairs])
            bound = pairs[at][side]
            is_first = _builtins.all(
                k == at or (high < bound if side == 0 else low > bound) for k, (low, high) in enumerate(pairs)
            )
            return at if is_first else unknown(I8)

        return _over(a, axis, keepdims, I8, one, near, False)

    function.__name__ = name
    return function


argmax, argmin = _place_of("argmax", _builtins.max), _place_of("argmin", _builtins.min)


def _truth(name, function, decides):
    def apply(a, axis=None, out=None, keepdims=False, *, where=_NOTHING):
        _refuse_options(name, out, _NOTHING, where)
        a = asarray(a)
        axes = axes_of(axis, a.ndim, False)
        shape = shape_after(a, axes, keepdims)
        if a.dtype is O8:
            refuse(f"{name} of objects", f"use Python's {name}()")
        if a._read() is None:
            return made(None, shape, B1)
        values = []
        for lane in lanes(a, axes):
            known = [value for value in lane if not are_special([value])]
            decided = _builtins.any(bool(value) is decides for value in known)
            values.append(decides if decided else unknown(B1) if len(known) < len(lane) else not decides)
        return made(values, shape, B1)

    apply.__name__ = name
    return apply


any, all = _truth("any", _builtins.any, True), _truth("all", _builtins.all, False)


def count_nonzero(a, axis=None, *, keepdims=False):
    a = asarray(a)
    return _over(a, axis, keepdims, I8, lambda values: _builtins.sum(1 for value in values if value), is_strict=False)


# --- means


def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=_NOTHING):
    _refuse_options("mean", out, _NOTHING, where)
    a = asarray(a)
    count = product([a.shape[i] for i in axes_of(axis, a.ndim)])
    if count == 0:
        warn("Mean of empty slice.")
    kind = of(dtype) if dtype is not None else F8 if a.dtype.kind in "iub" else F4 if a.dtype is F2 else a.dtype
    if kind.kind != "f":
        refuse(f"mean with the type {kind}", "use numpy.sum")
    if kind is not a.dtype and a.dtype is not F2 and a.size > 8192 and a.dtype.kind == "f":
        refuse("mean of large arrays in another type", "use astype first")
    total = sum(a, axis=axis, dtype=kind, keepdims=keepdims)
    if a.dtype is F2 and a.size > 8192:
        return unknown(F2) if not isinstance(total, ndarray) else filled(total.shape, F2, None)
    result = _e.divide(total, count) if count else _e.multiply(total, nan)
    if a.dtype is F2 and dtype is None:
        result = result.astype(F2) if isinstance(result, ndarray) else asarray(result).astype(F2)[()]
    return result


def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NOTHING, mean=_NOTHING, correction=_NOTHING
):
    _refuse_options("var", out, mean, where)
    if correction is not _NOTHING:
        ddof = correction
    a = asarray(a)
    kind = of(dtype) if dtype is not None else F8 if a.dtype.kind in "iub" else F4 if a.dtype is F2 else a.dtype
    if kind.kind != "f" or a.dtype is F2:
        refuse("var of this type", "use astype(float)")
    count = product([a.shape[i] for i in axes_of(axis, a.ndim)])
    center = _e.divide(sum(a, axis=axis, dtype=kind, keepdims=True), count) if count else nan
    x = _e.subtract(a, center)
    x = _e.multiply(x, x)
    total = sum(x, axis=axis, dtype=kind, keepdims=keepdims)
    if count - ddof <= 0:
        warn("Degrees of freedom <= 0 for slice")
    return _e.divide(total, _builtins.max(count - ddof, 0))


def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=_NOTHING, mean=_NOTHING, correction=_NOTHING
):
    _refuse_options("std", out, mean, where)
    return _e.sqrt(var(a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, correction=correction))


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = asarray(a)
    if weights is None:
        average = mean(a, axis=axis, keepdims=keepdims)
        if not asarray(average).size:
            raise ZeroDivisionError("division by zero")
        count = product([a.shape[i] for i in axes_of(axis, a.ndim)])
        return (average, asarray(average).dtype.type(count)) if returned else average
    weights = asarray(weights)
    if a.shape != weights.shape:
        if axis is None or isinstance(axis, tuple):
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axis = axis_of(axis, a.ndim)
        if weights.ndim != 1 or weights.shape[0] != a.shape[axis]:
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        from numpy._array import spread

        weights = spread(weights.reshape([-1 if i == axis else 1 for i in range(a.ndim)]), a.shape)
    from numpy._types import promote

    kind = promote(promote(a.dtype, weights.dtype), F8) if a.dtype.kind in "iub" else promote(a.dtype, weights.dtype)
    scale = sum(weights, axis=axis, dtype=kind, keepdims=keepdims)
    if _builtins.any(type(v) is float and v == 0 for v in asarray(scale)._all()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = _e.divide(sum(_e.multiply(a, weights, dtype=kind), axis=axis, keepdims=keepdims), scale)
    return (result, scale) if returned else result


# --- rounding, bounds, and products along an axis


def round(a, decimals=0, out=None):
    _refuse_options("round", out, _NOTHING, _NOTHING)
    a, is_number = asarray(a), not isinstance(a, (ndarray, list, tuple))
    if a.dtype.kind != "f":
        if a.dtype is B1 or decimals < 0:
            refuse("round of whole numbers to tens", "divide, round and multiply")
        return a.copy() if not is_number and a.ndim else a[()]
    if decimals == 0:
        return _e.rint(a)
    factor = 10.0 ** _builtins.abs(decimals)
    if decimals > 0:
        return _e.divide(_e.rint(_e.multiply(a, factor)), factor)
    return _e.multiply(_e.rint(_e.divide(a, factor)), factor)


around = round


def _inside(bound, kind):
    """A bound beyond the limits of whole numbers as the limit itself."""
    if type(bound) is not int or kind.kind not in "iu":
        return bound
    least, most = limits(kind)
    return least if bound < least else most if bound > most else bound


def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    low, high = a_min if a_min is not None else min, a_max if a_max is not None else max
    a = a if isinstance(a, ndarray) else asarray(a)
    low, high = (_inside(bound, a.dtype) for bound in (low, high))
    result = a if low is None else _e.maximum(a, low)
    result = result if high is None else _e.minimum(result, high)
    result = result.copy() if result is a else result
    if out is not None:
        out[...] = result
        return out
    return result if not isinstance(result, ndarray) or result.ndim else result[()]


def _method(function):
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__ = function.__name__
    return method


offer(globals(), ("made", "shape_after", "lanes"), False)
for _name in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "any", "all", "round", "clip"):
    setattr(ndarray, _name, _method(globals()[_name]))
