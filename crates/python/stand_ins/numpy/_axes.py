"""Functions over axes: reductions, orders, counts."""

import builtins as _builtins
import math as _math
from math import nan

from numpy._array import _unknown, ndarray
from numpy._making import array, asarray
from numpy._shapes import _product
from numpy._types import bool_, int64
from numpy._types import of as _of


def _reduction(function, result=None):
    def apply(a, axis=None, dtype=None, out=None, keepdims=False, **kwargs):
        a = asarray(a)
        kind = _of(dtype) if dtype is not None else _of(result) if result is not None else a.dtype
        if result == "float" and a.dtype.kind == "f" and dtype is None:
            kind = a.dtype
        if axis is None:
            value = _unknown() if a._values is None else function(a._values, **kwargs)
            return ndarray((1,) * a.ndim, kind, [value]) if keepdims else value
        axes = sorted(x % a.ndim for x in (axis if isinstance(axis, (tuple, list)) else (axis,)))
        rest = [i for i in range(a.ndim) if i not in axes]
        shape = [1 if i in axes else size for i, size in enumerate(a.shape) if keepdims or i not in axes]
        if a._values is None:
            return ndarray(shape, kind)
        moved = a.transpose(rest + axes)
        count = _product([a.shape[i] for i in axes])
        values = [function(moved._values[i : i + count], **kwargs) for i in range(0, len(moved._values), count)]
        return ndarray(shape, kind, values) if shape else values[0]

    return apply


def _mean(values):
    return _math.fsum(values) / len(values) if values else nan


def _var(values, ddof=0):
    center = _mean(values)
    return _math.fsum((v - center) ** 2 for v in values) / (len(values) - ddof)


def _median(values):
    values, middle = sorted(values), len(values) // 2
    return float(values[middle]) if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


sum, prod = _reduction(lambda v: _math.fsum(v) if any_float(v) else _builtins.sum(v)), _reduction(lambda v: _product(v))
max = amax = nanmax = _reduction(_builtins.max)
min = amin = nanmin = _reduction(_builtins.min)
mean, var, std, median = (
    _reduction(f, "float") for f in (_mean, _var, lambda v, ddof=0: _math.sqrt(_var(v, ddof)), _median)
)
nanmean = mean
argmax, argmin = (
    _reduction(f, int64) for f in (lambda v: v.index(_builtins.max(v)), lambda v: v.index(_builtins.min(v)))
)
any, all = (_reduction(f, bool_) for f in (lambda v: _builtins.any(v), lambda v: _builtins.all(v)))
average = mean
count_nonzero = _reduction(lambda v: _builtins.sum(1 for x in v if x), int64)


def any_float(values):
    return _builtins.any(isinstance(value, float) for value in values)


for _name, _function in (
    ("sum", sum),
    ("prod", prod),
    ("max", max),
    ("min", min),
    ("mean", mean),
    ("var", var),
    ("std", std),
    ("argmax", argmax),
    ("argmin", argmin),
    ("any", any),
    ("all", all),
):
    setattr(ndarray, _name, lambda self, *args, f=_function, **kwargs: f(self, *args, **kwargs))


def ptp(a):
    return max(a) - min(a)


def percentile(a, q, axis=None):
    values = sorted(asarray(a)._all())

    def one(q):
        at = (len(values) - 1) * q / 100
        low = int(at)
        return values[low] + (values[_builtins.min(low + 1, len(values) - 1)] - values[low]) * (at - low)

    return array([one(x) for x in q]) if isinstance(q, (list, tuple, ndarray)) else one(q)


def quantile(a, q, axis=None):
    return percentile(a, q * 100 if not isinstance(q, (list, tuple)) else [x * 100 for x in q])


def cumsum(a, axis=None):
    total, values = 0, []
    for value in asarray(a)._all():
        total += value
        values.append(total)
    return array(values)


def diff(a, n=1, axis=-1):
    values = asarray(a)._all()
    return array([b - a for a, b in zip(values, values[1:])])


def sort(a, axis=-1):
    return array(sorted(asarray(a)._all()), asarray(a).dtype)


def argsort(a, axis=-1, **kwargs):
    values = asarray(a)._all()
    return array(sorted(range(len(values)), key=values.__getitem__), int64)


ndarray.argsort, ndarray.cumsum = argsort, cumsum


def unique(ar, return_index=False, return_inverse=False, return_counts=False):
    values = asarray(ar)._all()
    found = sorted(set(values))
    results = [array(found, asarray(ar).dtype)]
    if return_index:
        results.append(array([values.index(v) for v in found], int64))
    if return_inverse:
        results.append(array([found.index(v) for v in values], int64))
    if return_counts:
        results.append(array([values.count(v) for v in found], int64))
    return results[0] if len(results) == 1 else tuple(results)


def bincount(x, weights=None, minlength=0):
    values = asarray(x)._all()
    return array(
        [values.count(i) for i in range(_builtins.max(minlength, _builtins.max(values, default=-1) + 1))], int64
    )


def searchsorted(a, v, side="left"):
    import bisect

    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    values = asarray(a)._all()
    return array([find(values, x) for x in v], int64) if isinstance(v, (list, tuple, ndarray)) else find(values, v)
