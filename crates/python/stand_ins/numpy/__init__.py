"""Arrays of the host, as far as programs of PyTorch need them: small ones with their values, large ones with their shapes."""

import math as _math

from numpy import _types
from numpy._types import (
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    object_,
    uint8,
    uint16,
    uint32,
    uint64,
    of as _of,
    wider as _wider,
)

pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
float_, int_, double, single, half, integer, floating, uint = (
    float64,
    int64,
    float64,
    float32,
    float16,
    int64,
    float64,
    uint64,
)
__version__ = "2.3.0"
from numpy._shapes import _product, broadcast_shapes
from numpy._array import _MOST, _from_tensor, broadcast_to, ndarray
from numpy._making import *
from numpy._elementwise import *
from numpy._axes import *
from numpy._several import *


def isscalar(element):
    return isinstance(element, (int, float, complex, str))


def set_printoptions(**kwargs):
    pass


def save(file, arr, **kwargs):
    import _files

    _files.store(file, asarray(arr).copy())


def load(file, **kwargs):
    import _files

    return _files.load(file)


class _Limit(float):
    def item(self):
        return float(self)


class finfo:
    def __init__(self, kind):
        limits = {"float32": (1.1920929e-07, 3.4028235e38, 1.1754944e-38), "float16": (0.000977, 65504.0, 6.1e-05)}.get(
            _of(kind).name, (2.220446049250313e-16, 1.7976931348623157e308, 2.2250738585072014e-308)
        )
        self.eps, self.max, self.tiny = map(_Limit, limits)
        self.min = _Limit(-self.max)


class iinfo:
    def __init__(self, kind):
        bits = _of(kind).itemsize * 8
        self.min, self.max = (0, (1 << bits) - 1) if _of(kind).kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


from numpy import random, linalg


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"numpy.{name} is not modeled here; use torch, or numbers and lists")
