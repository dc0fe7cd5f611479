"""Shapes, strides, and the places of elements in memory."""

from functools import reduce as _reduce
from operator import index as _index


class AxisError(ValueError, IndexError):
    __module__ = "numpy.exceptions"


def product(shape):
    return _reduce(lambda a, b: a * b, shape, 1)


def shape_of(shape):
    """A shape as a tuple, from a number or a sequence of numbers."""
    if isinstance(shape, (tuple, list)) or hasattr(shape, "tolist") and getattr(shape, "ndim", 0) == 1:
        shape = tuple(_index(size) for size in shape)
    elif shape is None:
        shape = ()
    else:
        shape = (_index(shape),)
    if any(size < 0 for size in shape):
        raise ValueError("negative dimensions are not allowed")
    return shape


def strides_of(shape):
    if 0 in shape:
        return (0,) * len(shape)
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def places(shape, strides, offset=0):
    """The places of all elements in the order of C."""
    found = [offset]
    for size, stride in zip(shape, strides):
        if stride == 1 and found == [offset]:
            found = range(offset, offset + size)
        else:
            steps = range(0, size * stride, stride) if stride and size else [0] * size
            found = [place + step for place in found for step in steps]
    return found


def broadcast(*shapes):
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(shape)):
            if size != 1:
                if result[-1 - i] not in (1, size):
                    raise ValueError(
                        "operands could not be broadcast together with shapes " + " ".join(map(text_of, shapes)) + " "
                    )
                result[-1 - i] = size
    return tuple(result)


def text_of(shape):
    """A shape as numpy's errors write it."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def axis_of(axis, rank):
    axis = _index(axis)
    if not -rank <= axis < rank:
        raise AxisError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def axes_of(axis, rank, is_strict=True):
    """Several axes, sorted; all of them for `None`. Some functions take an axis of a number as well."""
    if axis is None or rank == 0 and not is_strict and axis in (0, -1):
        return list(range(rank))
    axes = [axis_of(one, rank) for one in axis] if isinstance(axis, (tuple, list)) else [axis_of(axis, rank)]
    if len(set(axes)) < len(axes):
        raise ValueError("duplicate value in 'axis'")
    return sorted(axes)


def memory_order(shape, strides):
    """The axes from the largest stride to the smallest, as an iterator over memory visits them."""
    axes = list(range(len(shape)))[::-1]
    for end in range(1, len(axes)):
        step, place = abs(strides[axes[end]]), end
        for at in range(end - 1, -1, -1):
            other = abs(strides[axes[at]])
            if 1 in (shape[axes[end]], shape[axes[at]]) or 0 in (step, other):
                continue
            if other <= step:
                break
            place = at
        axes.insert(place, axes.pop(end))
    return axes[::-1]
