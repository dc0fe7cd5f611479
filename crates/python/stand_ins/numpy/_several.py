"""Functions of several arrays, and methods as functions."""

from functools import reduce as _reduce

from numpy._array import _MOST, _broadcast, ndarray
from numpy._axes import sum as _sum
from numpy._elementwise import _binary
from numpy._making import array, asarray
from numpy._shapes import _product
from numpy._types import bool_
from numpy._types import wider as _wider


def concatenate(arrays, axis=0, **kwargs):
    arrays = [asarray(a) for a in arrays]
    axis %= arrays[0].ndim
    shape = list(arrays[0].shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)
    kind = _reduce(_wider, (a.dtype for a in arrays))
    if any(a._values is None for a in arrays) or _product(shape) > _MOST:
        return ndarray(shape, kind)
    outer = _product(shape[:axis])
    values = []
    for i in range(outer):
        for a in arrays:
            step = a.size // outer
            values.extend(a._values[i * step : (i + 1) * step])
    return ndarray(shape, kind, values)


def stack(arrays, axis=0, **kwargs):
    arrays = [asarray(a) for a in arrays]
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


def expand_dims(a, axis):
    a = asarray(a)
    shape = list(a.shape)
    shape.insert(axis if axis >= 0 else axis + a.ndim + 1, 1)
    return ndarray(shape, a.dtype, a._values)


def vstack(arrays):
    return concatenate([asarray(a) if asarray(a).ndim > 1 else expand_dims(a, 0) for a in arrays], 0)


def hstack(arrays):
    return concatenate(arrays, 0 if asarray(arrays[0]).ndim == 1 else 1)


def append(arr, values, axis=None):
    return concatenate([asarray(arr).ravel(), asarray(values).ravel()])


def split(ary, sections, axis=0):
    size = len(ary) // sections if isinstance(sections, int) else None
    bounds = [i * size for i in range(sections + 1)] if size is not None else [0, *sections, len(ary)]
    return [ary[a:b] for a, b in zip(bounds, bounds[1:])]


array_split = split


def tile(A, reps):
    return array(asarray(A).tolist() * reps)


def repeat(a, repeats, axis=None):
    return asarray(a).repeat(repeats)


def reshape(a, shape):
    return asarray(a).reshape(shape)


def transpose(a, axes=None):
    return asarray(a).transpose(axes)


def squeeze(a, axis=None):
    return asarray(a).squeeze(axis)


def ravel(a):
    return asarray(a).ravel()


def copy(a):
    return asarray(a).copy()


def flip(m, axis=0):
    return asarray(m)[::-1]


def dot(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim == 1 and b.ndim == 1:
        return _sum(a * b)
    kind = _wider(a.dtype, b.dtype)
    columns = b.T if b.ndim == 2 else b.reshape(1, -1)
    shape = a.shape[:-1] + (b.shape[1:] if b.ndim == 2 else ())
    if a._values is None or b._values is None or _product(shape) > _MOST:
        return ndarray(shape, kind)
    width = a.shape[-1]
    rows = [a._values[i : i + width] for i in range(0, a.size, width)]
    cols = [columns._values[i : i + width] for i in range(0, columns.size, width)]
    return ndarray(shape, kind, [sum(x * y for x, y in zip(row, column)) for row in rows for column in cols])


matmul = dot
ndarray.dot = ndarray.__matmul__ = dot


def outer(a, b):
    return asarray(a).reshape(-1, 1) * asarray(b).reshape(1, -1)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = asarray(a), asarray(b)
    return all(abs(x - y) <= atol + rtol * abs(y) for x, y in zip(a._all(), _broadcast(b, a.shape)._all()))


isclose = _binary(lambda x, y: abs(x - y) <= 1e-08 + 1e-05 * abs(y), bool_)


def array_equal(a, b):
    return asarray(a).shape == asarray(b).shape and asarray(a)._all() == asarray(b)._all()
