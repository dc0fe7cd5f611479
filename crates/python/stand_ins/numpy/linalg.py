"""Norms."""

import math as _math

import numpy as _np


def norm(x, ord=None, axis=None, keepdims=False):
    if axis is not None:
        return _np.sqrt(_np.sum(_np.multiply(x, x), axis=axis, keepdims=keepdims))
    return _math.sqrt(_math.fsum(float(value) ** 2 for value in _np.asarray(x)._all()))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"numpy.linalg.{name} is not modeled here; use numbers and lists")
