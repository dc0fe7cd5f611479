"""Indices of elements."""

import itertools

from numpy._array import filled
from numpy._making import asarray
from numpy._offers import offer, refuse
from numpy._shapes import product, shape_of, strides_of
from numpy._types import I8
from numpy._values import scalar


def unravel_index(indices, shape, order="C"):
    if order != "C":
        refuse("unravel_index with order=", "turn the shape around")
    shape, indices = shape_of(shape), asarray(indices)
    values = indices._known("unravel_index")
    for value in values:
        if not 0 <= value < product(shape):
            raise ValueError(f"index {value} is out of bounds for array with size {product(shape)}")
    found = [[value // stride % size for value in values] for stride, size in zip(strides_of(shape), shape)]
    return tuple(filled(indices.shape, I8, one) if indices.ndim else scalar(one[0], I8) for one in found)


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    if mode != "raise" or order != "C":
        refuse("ravel_multi_index with mode= or order=", "leave the argument out")
    dims, arrays = shape_of(dims), [asarray(one) for one in multi_index]
    rows = list(zip(*(one._known("ravel_multi_index") for one in arrays)))
    for row in rows:
        if any(not 0 <= value < size for value, size in zip(row, dims)):
            raise ValueError("invalid entry in coordinates array")
    found = [sum(value * stride for value, stride in zip(row, strides_of(dims))) for row in rows]
    return filled(arrays[0].shape, I8, found) if arrays[0].ndim else scalar(found[0], I8)


def ndindex(*shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return itertools.product(*map(range, shape))


def ndenumerate(arr):
    arr = asarray(arr)
    return zip(itertools.product(*map(range, arr.shape)), arr.flat)


def _triangle(n, k, m, is_in):
    places = [(i, j) for i in range(n) for j in range(n if m is None else m) if is_in(j - i, k)]
    return tuple(filled((len(places),), I8, [place[axis] for place in places]) for axis in (0, 1))


def triu_indices(n, k=0, m=None):
    return _triangle(n, k, m, lambda distance, k: distance >= k)


def tril_indices(n, k=0, m=None):
    return _triangle(n, k, m, lambda distance, k: distance <= k)


offer(globals())
