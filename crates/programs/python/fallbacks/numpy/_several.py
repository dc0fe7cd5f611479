"""Functions of several arrays, of shapes, and methods as functions."""

import functools
import operator

from numpy import _elementwise as _e
from numpy import _ufunc
from numpy._array import MAX_KNOWN, filled, laid_out, ndarray, spread
from numpy._array import broadcast_to as _broadcast_to
from numpy._axes import all as _all
from numpy._axes import as_method
from numpy._making import asarray, full
from numpy._near import are_special, unknown
from numpy._offers import offer, refuse
from numpy._orders import nonzero
from numpy._shapes import axes_of, axis_of, broadcast, memory_order, product, shape_of
from numpy._types import B1, F8, I8, generic, of, promote
from numpy._values import cast, cast_one, scalar


def concatenate(arrays, /, axis=0, *, dtype=None):
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [a.ravel() for a in arrays], 0
    if any(a.ndim == 0 for a in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = axis_of(axis, arrays[0].ndim)
    shape = list(arrays[0].shape)
    for a in arrays:
        if a.ndim != len(shape):
            raise ValueError("all the input arrays must have same number of dimensions")
        if any(size != other for i, (size, other) in enumerate(zip(shape, a.shape)) if i != axis):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    shape[axis] = sum(a.shape[axis] for a in arrays)
    kind = of(dtype) if dtype is not None else functools.reduce(promote, (a.dtype for a in arrays))
    if product(shape) > MAX_KNOWN or all(a._read() is None for a in arrays):
        return filled(shape, kind, None)
    outer, values = product(shape[:axis]), []
    lists = [cast(a._all(), a.dtype, kind) if a.dtype is not kind else a._all() for a in arrays]
    for i in range(outer):
        for a, elements in zip(arrays, lists):
            step = a.size // outer
            values += elements[i * step : (i + 1) * step]
    orders = [memory_order(a.shape, a._steps) for a in arrays]
    is_one = orders.count(orders[0]) == len(orders)
    return laid_out(shape, orders[0] if is_one else list(range(len(shape))), kind, values)


def stack(arrays, axis=0, *, dtype=None):
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(a, axis) for a in arrays], axis, dtype=dtype)


def expand_dims(a, axis):
    a = asarray(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    axes = axes_of(tuple(axes), rank)
    sizes = iter(a.shape)
    return a.reshape([1 if i in axes else next(sizes) for i in range(rank)])


def _at_least(rank, a):
    a = asarray(a)
    return a if a.ndim >= rank else a.reshape((1,) * (rank - a.ndim) + a.shape)


def atleast_1d(ary):
    return _at_least(1, ary)


def atleast_2d(ary):
    return _at_least(2, ary)


def vstack(tup, *, dtype=None):
    return concatenate([_at_least(2, a) for a in tup], 0, dtype=dtype)


def hstack(tup, *, dtype=None):
    arrays = [_at_least(1, a) for a in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


def column_stack(tup):
    return concatenate([asarray(a).reshape(-1, 1) if asarray(a).ndim < 2 else asarray(a) for a in tup], 1)


def append(arr, values, axis=None):
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        arr, values, axis = arr.ravel(), values.ravel(), 0
    return concatenate((arr, values), axis)


def split(ary, indices_or_sections, axis=0):
    ary = asarray(ary)
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    ary = asarray(ary)
    axis = axis_of(axis, ary.ndim)
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(size, indices_or_sections)
        ends = [0]
        for k in range(indices_or_sections):
            ends.append(ends[-1] + each + (k < more))
    else:
        ends = [0, *asarray(indices_or_sections).tolist(), size]
    before = (slice(None),) * axis
    return [ary[(*before, slice(a, b))] for a, b in zip(ends, ends[1:])]


def tile(A, reps):
    A, reps = asarray(A), shape_of(reps)
    rank = max(A.ndim, len(reps))
    reps = (1,) * (rank - len(reps)) + reps
    A = A.reshape((1,) * (rank - A.ndim) + A.shape)
    inner = [size for pair in zip([1] * rank, A.shape) for size in pair]
    wide = tuple(size for pair in zip(reps, A.shape) for size in pair)
    return spread(A.reshape(inner), wide).copy().reshape([a * b for a, b in zip(reps, A.shape)])


def repeat(a, repeats, axis=None):
    a = asarray(a)
    if axis is None or not a.ndim and axis in (0, -1):
        a, axis = a.ravel(), 0
    size = a.shape[axis_of(axis, a.ndim)]
    counts = asarray(repeats)._known("repeat")
    counts = counts * size if len(counts) == 1 else counts
    if len(counts) != size:
        raise ValueError(f"operands could not be broadcast together with shape ({size},) ({len(counts)},)")
    if any(count < 0 for count in counts):
        raise ValueError("repeats may not contain negative values.")
    return take(a, [i for i, count in enumerate(counts) for _ in range(count)], axis)


def take(a, indices, axis=None):
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = axis_of(axis, a.ndim)
    if not isinstance(indices, int) and not asarray(indices).size:
        indices = asarray(indices).astype(I8)
    found = a[(slice(None),) * axis + (asarray(indices) if not isinstance(indices, int) else indices,)]
    return found if not isinstance(found, ndarray) or found._is_contiguous() else found.copy()


def _of_method(name):
    def function(a, *arguments, **keywords):
        return getattr(a if isinstance(a, generic) else asarray(a), name)(*arguments, **keywords)

    function.__name__ = name
    return function


reshape, transpose, swapaxes, squeeze, ravel = map(_of_method, ("reshape", "transpose", "swapaxes", "squeeze", "ravel"))


def moveaxis(a, source, destination):
    a = asarray(a)
    source, destination = ((x,) if isinstance(x, int) else tuple(x) for x in (source, destination))
    source, destination = ([axis_of(x, a.ndim) for x in axes] for axes in (source, destination))
    order = [i for i in range(a.ndim) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return a.transpose(order)


def flip(m, axis=None):
    m = asarray(m)
    axes = axes_of(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


def pad(array, pad_width, mode="constant", *, constant_values=0):
    a = asarray(array)
    widths = asarray(pad_width)
    if mode != "constant" or asarray(constant_values).ndim:
        refuse(f"pad with mode={mode!r}", "use torch.nn.functional.pad")
    widths = _broadcast_to(widths, (a.ndim, 2)).tolist()
    made = full([size + x + y for size, (x, y) in zip(a.shape, widths)], constant_values, a.dtype)
    made[tuple(slice(x, x + size) for size, (x, _) in zip(a.shape, widths))] = a
    return made


def shape(a):
    return asarray(a).shape


def ndim(a):
    return asarray(a).ndim


# --- choices and comparisons


def where(condition, x=None, y=None, /):
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    operands = [_ufunc.operand(x, "where"), _ufunc.operand(y, "where")]
    kind = _ufunc.common_kind(operands)
    x, y = (
        filled(a.shape, kind, [cast_one(value, kind, True) for value in a._all()])
        if weak is not None and a.dtype is not kind
        else a
        for a, weak in operands
    )
    return _ufunc.chosen(asarray(condition), x, y)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    x, y = asarray(a), asarray(b)
    shape = broadcast(x.shape, y.shape)
    if x._read() is None or y._read() is None:
        return filled(shape, B1, None) if shape else unknown(B1)
    values = []
    for p, q in zip(*(cast(spread(one, shape)._read(), one.dtype, F8) for one in (x, y))):
        if are_special([p, q]):
            values.append(unknown(B1))
        elif p != p or q != q:
            values.append(equal_nan and p != p and q != q)
        else:
            values.append(p == q or abs(q) != float("inf") and abs(p - q) <= atol + rtol * abs(q))
    return filled(shape, B1, values) if shape else scalar(values[0], B1)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    found = _all(isclose(a, b, rtol, atol, equal_nan))
    return bool(found) if not are_special([found]) else found


def array_equal(a1, a2):
    a, b = asarray(a1), asarray(a2)
    found = _all(_e.equal(a, b)) if a.shape == b.shape else False
    return bool(found) if not are_special([found]) else found


for _name in ("take", "repeat"):
    setattr(ndarray, _name, as_method(globals()[_name]))
offer(globals())
