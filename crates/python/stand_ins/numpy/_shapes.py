"""Shapes, and the places of elements in a flat list."""

from functools import reduce as _reduce


def _product(shape):
    return _reduce(lambda a, b: a * b, shape, 1)


def _strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def _places(shape):
    import itertools

    return itertools.product(*map(range, shape))


def _place(at, strides):
    return sum(a * s for a, s in zip(at, strides))


def broadcast_shapes(*shapes):
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(shape)):
            if size != 1:
                if result[-1 - i] not in (1, size):
                    raise ValueError(
                        "operands could not be broadcast together with shapes " + " ".join(map(str, shapes))
                    )
                result[-1 - i] = size
    return tuple(result)
