"""Reductions that leave out what is not a number."""

import builtins as _builtins
from math import inf

from numpy import _elementwise as _e
from numpy._array import laid_out_as
from numpy._axes import _NOTHING, _refuse_options, argmax, argmin, lanes, max, mean, min, sum, var
from numpy._making import asarray
from numpy._near import are_special
from numpy._offers import offer, refuse, warn
from numpy._shapes import axes_of
from numpy._types import B1, F8


def _cleaned(a, value):
    a = asarray(a)
    if a.dtype.kind != "f" or a._read() is None:
        return a, None
    values = a._read()
    is_nan = [not are_special([v]) and v != v for v in values]
    clean = laid_out_as(a, a.dtype, [value if bad else v for v, bad in zip(values, is_nan)])
    return clean, laid_out_as(a, B1, [not bad for bad in is_nan])


def nansum(a, axis=None, dtype=None, out=None, keepdims=False):
    return sum(_cleaned(a, 0.0)[0], axis=axis, dtype=dtype, out=out, keepdims=keepdims)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False):
    clean, is_number = _cleaned(a, 0.0)
    if is_number is None:
        return mean(a, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    count = sum(is_number, axis=axis, keepdims=keepdims)
    total = sum(clean, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    if 0 in [value for value in asarray(count)._all() if not are_special([value])]:
        warn("Mean of empty slice")
    return _e.divide(total, asarray(count).astype(clean.dtype if clean.dtype.kind == "f" else F8))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    clean, is_number = _cleaned(a, 0.0)
    if is_number is None:
        return var(a, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)
    _refuse_options("nanvar", out, _NOTHING, _NOTHING)
    count = sum(is_number, axis=axis, keepdims=True).astype(clean.dtype) if a is not None else None
    x = _e.multiply(_e.subtract(clean, _e.divide(sum(clean, axis=axis, keepdims=True), count)), is_number)
    total = sum(_e.multiply(x, x), axis=axis, keepdims=keepdims)
    degrees = _e.subtract(sum(is_number, axis=axis, keepdims=keepdims), ddof)
    if _builtins.any(value <= 0 for value in asarray(degrees)._all() if not are_special([value])):
        refuse("nanvar of too few numbers", "leave empty rows out")
    return _e.divide(total, asarray(degrees).astype(clean.dtype))


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    return _e.sqrt(nanvar(a, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims))


def _without(name, function, filler):
    def apply(a, axis=None, out=None, keepdims=False):
        clean, is_number = _cleaned(a, filler)
        if is_number is not None and not _builtins.all(
            _builtins.any(lane) for lane in lanes(is_number, axes_of(axis, clean.ndim, False))
        ):
            refuse(f"{name} of nothing but nan", "leave empty rows out")
        return function(clean, axis=axis, out=out, keepdims=keepdims)

    apply.__name__ = name
    return apply


nanmax, nanmin = _without("nanmax", max, -inf), _without("nanmin", min, inf)
nanargmax, nanargmin = _without("nanargmax", argmax, -inf), _without("nanargmin", argmin, inf)


offer(globals(), (), False)
