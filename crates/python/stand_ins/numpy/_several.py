"""Functions of several arrays, of shapes, and methods as functions."""

import operator
from functools import reduce as _reduce

from numpy import _elementwise as _e
from numpy import _ufunc
from numpy._array import MOST, broadcast_to, filled, laid_out, ndarray, spread
from numpy._axes import _method
from numpy._making import asarray
from numpy._near import are_special, unknown
from numpy._offers import offer, refuse
from numpy._shapes import axes_of, axis_of, broadcast, memory_order, product, shape_of
from numpy._types import B1, I8, of, promote
from numpy._values import cast, cast_one, scalar


def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    if out is not None or casting != "same_kind":
        refuse("concatenate with out= or casting=", "assign the result")
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [a.ravel() for a in arrays], 0
    if any(a.ndim == 0 for a in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = axis_of(axis, arrays[0].ndim)
    shape = list(arrays[0].shape)
    for k, a in enumerate(arrays):
        if a.ndim != len(shape):
            raise ValueError(
                f"all the input arrays must have same number of dimensions, but the array at index 0 has {len(shape)} dimension(s) "
                f"and the array at index {k} has {a.ndim} dimension(s)"
            )
        for i, (size, other) in enumerate(zip(shape, a.shape)):
            if i != axis and size != other:
                raise ValueError(
                    f"all the input array dimensions except for the concatenation axis must match exactly, but along dimension {i}, "
                    f"the array at index 0 has size {size} and the array at index {k} has size {other}"
                )
    shape[axis] = sum(a.shape[axis] for a in arrays)
    kind = of(dtype) if dtype is not None else _reduce(promote, (a.dtype for a in arrays))
    if product(shape) > MOST or all(a._read() is None for a in arrays):
        return filled(shape, kind, None)
    outer, values = product(shape[:axis]), []
    lists = [cast(a._all(), a.dtype, kind) if a.dtype is not kind else a._all() for a in arrays]
    for i in range(outer):
        for a, elements in zip(arrays, lists):
            step = a.size // outer
            values += elements[i * step : (i + 1) * step]
    orders = [memory_order(a.shape, a._steps) for a in arrays]
    return laid_out(
        shape, orders[0] if orders.count(orders[0]) == len(orders) else list(range(len(shape))), kind, values
    )


concat = concatenate


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError("need at least one array to stack")
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(a, axis) for a in arrays], axis, out, dtype=dtype, casting=casting)


def expand_dims(a, axis):
    a = asarray(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    axes = axes_of(tuple(axes), rank)
    sizes = iter(a.shape)
    return a.reshape([1 if i in axes else next(sizes) for i in range(rank)])


def _at_least(rank, a):
    a = asarray(a)
    if a.ndim >= rank:
        return a
    if rank == 1:
        return a.reshape(1)
    if rank == 2:
        return a.reshape(1, -1)
    return a.reshape(1, -1, 1) if a.ndim < 2 else a[:, :, None]


def atleast_1d(*arys):
    found = tuple(_at_least(1, a) for a in arys)
    return found[0] if len(found) == 1 else found


def atleast_2d(*arys):
    found = tuple(_at_least(2, a) for a in arys)
    return found[0] if len(found) == 1 else found


def atleast_3d(*arys):
    found = tuple(_at_least(3, a) for a in arys)
    return found[0] if len(found) == 1 else found


def vstack(tup, *, dtype=None):
    return concatenate([_at_least(2, a) for a in tup], 0, dtype=dtype)


def hstack(tup, *, dtype=None):
    arrays = [_at_least(1, a) for a in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup):
    return concatenate([_at_least(3, a) for a in tup], 2)


def column_stack(tup):
    return concatenate([asarray(a).reshape(-1, 1) if asarray(a).ndim < 2 else asarray(a) for a in tup], 1)


def append(arr, values, axis=None):
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        arr, values, axis = arr.ravel(), values.ravel(), 0
    return concatenate((arr, values), axis)


def insert(arr, obj, values, axis=None):
    arr = asarray(arr)
    if axis is not None or not isinstance(obj, int):
        refuse("insert with axis= or several places", "use numpy.concatenate")
    arr = arr.ravel()
    obj = obj + arr.size if obj < 0 else obj
    if not 0 <= obj <= arr.size:
        raise IndexError(f"index {obj} is out of bounds for axis 0 with size {arr.size}")
    return concatenate((arr[:obj], asarray(values).astype(arr.dtype).ravel(), arr[obj:]))


def delete(arr, obj, axis=None):
    arr = asarray(arr)
    if axis is None:
        arr, axis = arr.ravel(), 0
    axis, size = axis_of(axis, arr.ndim), arr.shape[axis]
    taken = range(*obj.indices(size)) if isinstance(obj, slice) else asarray(obj).ravel().tolist()
    if asarray(obj).dtype is B1 if not isinstance(obj, slice) else False:
        refuse("delete with bools", "use a[~condition]")
    for i in taken:
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of bounds for axis {axis} with size {size}")
    gone = {i % size for i in taken}
    return take(arr, [i for i in range(size) if i not in gone], axis)


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


def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0 if asarray(ary).ndim == 1 else 1)


def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0)


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


def take(a, indices, axis=None, out=None, mode="raise"):
    if out is not None or mode != "raise":
        refuse("take with out= or mode=", "use numpy.remainder or numpy.clip on the indices")
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    axis = axis_of(axis, a.ndim)
    if not isinstance(indices, int) and not asarray(indices).size:
        indices = asarray(indices).astype(I8)
    found = a[(slice(None),) * axis + (asarray(indices) if not isinstance(indices, int) else indices,)]
    return found if not isinstance(found, ndarray) or found._is_contiguous() else found.copy()


def take_along_axis(arr, indices, axis=-1):
    arr, indices = asarray(arr), asarray(indices)
    if axis is None:
        refuse("take_along_axis with axis=None", "use a.ravel()[indices]")
    axis = axis_of(axis, arr.ndim)
    if indices.ndim != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = [
        asarray(list(range(size))).reshape([-1 if k == i else 1 for k in range(arr.ndim)])
        for i, size in enumerate(arr.shape)
    ]
    index[axis] = indices
    return arr[tuple(index)]


def reshape(a, /, shape, order="C", *, copy=None):
    return asarray(a).reshape(shape, order=order, copy=copy)


def transpose(a, axes=None):
    return asarray(a).transpose(axes)


def permute_dims(a, axes=None):
    return asarray(a).transpose(axes)


def matrix_transpose(x, /):
    return asarray(x).mT


def swapaxes(a, axis1, axis2):
    return asarray(a).swapaxes(axis1, axis2)


def moveaxis(a, source, destination):
    a = asarray(a)
    source, destination = ((x,) if isinstance(x, int) else tuple(x) for x in (source, destination))
    source, destination = ([axis_of(x, a.ndim) for x in axes] for axes in (source, destination))
    order = [i for i in range(a.ndim) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return a.transpose(order)


def squeeze(a, axis=None):
    return asarray(a).squeeze(axis)


def ravel(a, order="C"):
    return asarray(a).ravel(order)


def flip(m, axis=None):
    m = asarray(m)
    axes = axes_of(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


def fliplr(m):
    return flip(m, 1)


def flipud(m):
    return flip(m, 0)


def roll(a, shift, axis=None):
    a = asarray(a)
    if axis is None:
        return roll(a.ravel(), shift, 0).reshape(a.shape)
    for one, by in zip(*((axis, shift) if isinstance(axis, tuple) else ((axis,), (shift,)))):
        one, size = axis_of(one, a.ndim), a.shape[one]
        a = take(a, [(i - operator.index(by)) % size for i in range(size)], one) if size else a
    return a


def rot90(m, k=1, axes=(0, 1)):
    if tuple(axes) != (0, 1):
        refuse("rot90 with axes=", "use flip and transpose")
    m, k = asarray(m), k % 4
    turned = m.swapaxes(0, 1)
    return (m[:], turned[::-1], m[::-1, ::-1], turned[:, ::-1])[k]


def pad(array, pad_width, mode="constant", *, constant_values=0):
    a = asarray(array)
    widths = asarray(pad_width)
    if mode != "constant" or asarray(constant_values).ndim:
        refuse(f"pad with mode={mode!r}", "use torch.nn.functional.pad")
    widths = broadcast_to(widths, (a.ndim, 2)).tolist()
    from numpy._making import full

    made = full([size + x + y for size, (x, y) in zip(a.shape, widths)], constant_values, a.dtype)
    made[tuple(slice(x, x + size) for size, (x, _) in zip(a.shape, widths))] = a
    return made


def shape(a):
    return asarray(a).shape


def size(a, axis=None):
    return asarray(a).size if axis is None else asarray(a).shape[axis]


def ndim(a):
    return asarray(a).ndim


def broadcast_arrays(*args):
    arrays = [asarray(a) for a in args]
    shape = broadcast(*(a.shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def broadcast_shapes(*args):
    return broadcast(*map(shape_of, args))


# --- choices and comparisons


def where(condition, x=None, y=None, /):
    if x is None and y is None:
        from numpy._orders import nonzero

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
    return _ufunc._where(asarray(condition), x, y)


def select(condlist, choicelist, default=0):
    result = asarray(default)
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = where(condition, choice, result)
    return result


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    x, y = asarray(a), asarray(b)
    shape = broadcast(x.shape, y.shape)
    if x._read() is None or y._read() is None:
        return filled(shape, B1, None) if shape else unknown(B1)
    lists = [cast(spread(one, shape)._read(), one.dtype, of(float)) for one in (x, y)]
    values = []
    for p, q in zip(*lists):
        if are_special([p, q]):
            values.append(unknown(B1))
        elif p != p or q != q:
            values.append(equal_nan and p != p and q != q)
        else:
            values.append(p == q or abs(q) != float("inf") and abs(p - q) <= atol + rtol * abs(q))
    return filled(shape, B1, values) if shape else scalar(values[0], B1)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    from numpy._axes import all as all_of

    found = all_of(isclose(a, b, rtol, atol, equal_nan))
    return bool(found) if not are_special([found]) else found


def array_equal(a1, a2, equal_nan=False):
    from numpy._axes import all as all_of

    a, b = asarray(a1), asarray(a2)
    if a.shape != b.shape:
        return False
    if equal_nan:
        refuse("array_equal with equal_nan=", "use numpy.allclose with equal_nan=")
    found = all_of(_e.equal(a, b))
    return bool(found) if not are_special([found]) else found


def isscalar(element):
    from numpy._types import generic

    return isinstance(element, (int, float, complex, str, bytes, generic))


def fill_diagonal(a, val, wrap=False):
    if wrap or a.ndim != 2:
        refuse("fill_diagonal of more than two axes", "use a loop")
    for i in range(min(a.shape)):
        a[i, i] = val


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = asarray(arr)
    axis = axis_of(axis, arr.ndim)
    moved = moveaxis(arr, axis, -1)
    results = [asarray(func1d(row, *args, **kwargs)) for row in moved.reshape(-1, moved.shape[-1])]
    made = stack(results).reshape(moved.shape[:-1] + results[0].shape)
    return moveaxis(made, -1, axis) if results[0].ndim == 1 else made


def copyto(dst, src, casting="same_kind", where=True):
    dst[...] = src if where is True else _ufunc._where(asarray(where), asarray(src), dst)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    from numpy._kinds import finfo

    a = asarray(x)
    if not copy:
        refuse("nan_to_num with copy=False", "assign the result")
    if a.dtype.kind == "f":
        most = finfo(a.dtype).max
        a = where(_e.isnan(a), a.dtype.type(nan), a)
        a = where(_e.equal(a, float("inf")), most if posinf is None else a.dtype.type(posinf), a)
        a = where(_e.equal(a, -float("inf")), -most if neginf is None else a.dtype.type(neginf), a)
    return a.copy() if isinstance(x, (ndarray, list, tuple)) else asarray(a)[()]


def vectorize(pyfunc, otypes=None):
    """A function of each element."""

    def call(*args):
        arrays = broadcast_arrays(*args)
        results = [pyfunc(*elements) for elements in zip(*(a.ravel() for a in arrays))]
        if not results:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        return asarray(results, otypes[0] if otypes else asarray(results[0]).dtype).reshape(arrays[0].shape)

    return call


def trim_zeros(filt, trim="fb"):
    refuse("trim_zeros", "use a slice")


def put(a, ind, v):
    refuse("put", "use a.flat[indices] = values")


def shares_memory(a, b):
    return a._memory is b._memory and not set(a._places()).isdisjoint(b._places())


def may_share_memory(a, b):
    return a._memory is b._memory


for _name in ("take", "repeat"):
    setattr(ndarray, _name, _method(globals()[_name]))
offer(globals())
