"""Sorted elements, running sums, counts and percentiles."""

import bisect
import builtins as _builtins
import math as _math

from numpy import _elementwise as _e
from numpy._array import MAX_KNOWN, filled, laid_out_as, ndarray
from numpy._axes import _over, as_method, lanes, made, shape_after
from numpy._making import asarray, linspace
from numpy._near import are_special, unknown
from numpy._offers import offer, refuse
from numpy._shapes import axes_of, axis_of, product, strides_of
from numpy._types import B1, F8, I8, U8, of, promote
from numpy._values import cast, rounded, settled


def _along(a, axis, kind, function):
    """Applies a function from a list to a list of the same length along an axis."""
    axis = axis_of(axis, a.ndim)
    if a._read() is None or a.size > MAX_KNOWN:
        return filled(a.shape, kind, None)
    values = []
    for lane in lanes(a, [axis]):
        values += function(lane) if not are_special(lane) else [unknown(kind)] * len(lane)
    rest = [i for i in range(a.ndim) if i != axis]
    found = filled([a.shape[i] for i in (*rest, axis)], kind, values)
    found = found.transpose(sorted(range(a.ndim), key=(rest + [axis]).__getitem__))
    return found if found._is_contiguous() else found.copy()


def _flat(a, axis):
    """The array and the axis of a function whose axis may be `None`, for all elements."""
    a = asarray(a)
    return (a.ravel(), 0) if axis is None or not a.ndim and axis in (0, -1) else (a, axis)


def _sortable(values):
    """Numbers in order, with NaN at the end."""
    return sorted(value for value in values if value == value) + [value for value in values if value != value]


def sort(a, axis=-1, kind=None, *, stable=None):
    a, axis = (asarray(a), axis) if axis is not None else _flat(a, axis)
    found = _along(a, axis, a.dtype, _sortable)
    return laid_out_as(a, a.dtype, found._read()) if a.ndim > 1 else found


def _sort_in_place(self, axis=-1, kind=None):
    self[...] = sort(self, axis, kind)


def argsort(a, axis=-1, kind=None, *, stable=None):
    a, axis = _flat(a, axis)
    is_stable = stable or kind in ("stable", "mergesort")

    def one(values):
        keys = list(map(_order, values))
        places = sorted(range(len(values)), key=keys.__getitem__)
        if is_stable:
            return places
        # The order of equal elements depends on the processor.
        groups = [keys[place] for place in places]
        return [
            unknown(I8) if key in (groups[k - 1] if k else None, *groups[k + 1 : k + 2]) else place
            for k, (place, key) in enumerate(zip(places, groups))
        ]

    return _along(a, axis, I8, one)


def _order(value):
    """A key that sorts NaN after all numbers."""
    return (value != value, value if value == value else 0)


# --- running sums and differences


def _running(name, function):
    def apply(a, axis=None, dtype=None):
        a, axis = _flat(a, axis)
        kind = (
            of(dtype) if dtype is not None else I8 if a.dtype.kind in "ib" else U8 if a.dtype.kind == "u" else a.dtype
        )

        def one(values):
            totals = values[:1]
            for value in values[1:]:
                value = function.values([[totals[-1]], [value]], kind, kind)
                totals += rounded(value, kind) if kind.kind == "f" else settled(value, kind)
            return totals

        return _along(a.astype(kind) if kind is not a.dtype else a, axis, kind, one)

    apply.__name__ = name
    return apply


cumsum, cumprod = _running("cumsum", _e.add), _running("cumprod", _e.multiply)


def diff(a, n=1, axis=-1):
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = asarray(a)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    before = (slice(None),) * axis_of(axis, a.ndim)
    subtract = _e.not_equal if a.dtype is B1 else _e.subtract
    for _ in range(n):
        a = subtract(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


# --- counts


def unique(ar, return_index=False, return_inverse=False, return_counts=False):
    a = asarray(ar)
    keys = [value if value == value else "nan" for value in a._known("unique")]
    firsts, counts = {}, {}
    for i, key in enumerate(keys):
        firsts.setdefault(key, i)
        counts[key] = counts.get(key, 0) + 1
    found = _sortable([_math.nan if key == "nan" and a.dtype.kind == "f" else key for key in firsts])
    order = [key if key == key else "nan" for key in found]
    places = {key: i for i, key in enumerate(order)}
    results = [filled((len(found),), a.dtype, found)]
    if return_index:
        results.append(filled((len(found),), I8, [firsts[key] for key in order]))
    if return_inverse:
        results.append(filled(a.shape, I8, [places[key] for key in keys]))
    if return_counts:
        results.append(filled((len(found),), I8, [counts[key] for key in order]))
    return results[0] if len(results) == 1 else tuple(results)


def bincount(x, /, weights=None, minlength=0):
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"object {'too deep' if x.ndim else 'of too small depth'} for desired array")
    if x.dtype.kind not in "iub":
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'")
    values = x._known("bincount")
    if values and _builtins.min(values) < 0:
        raise ValueError("'list' argument must have no negative elements")
    count = _builtins.max(minlength, _builtins.max(values, default=-1) + 1)
    totals = [0] * count if weights is None else [0.0] * count
    parts = [1] * len(values) if weights is None else asarray(weights).astype(F8)._all()
    if len(parts) != len(values):
        raise ValueError("The weights and list don't have the same length.")
    for value, part in zip(values, parts):
        totals[value] = totals[value] + part if not are_special([part, totals[value]]) else unknown(F8)
    return filled((count,), I8 if weights is None else F8, totals)


def searchsorted(a, v, side="left"):
    a, v = asarray(a), asarray(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    if a._read() is None or v._read() is None or are_special(a._read()) or are_special(v._read()):
        return made(None, v.shape, I8)
    kind = promote(a.dtype, v.dtype)
    key, wanted = (list(map(_order, cast(one._read(), one.dtype, kind))) for one in (a, v))
    return made([find(key, value) for value in wanted], v.shape, I8)


def _place_between(bounds, value):
    """The interval of a value between rising bounds, of which the last one includes its end; `None` outside."""
    if not bounds[0] <= value <= bounds[-1]:
        return None
    return _builtins.min(bisect.bisect_right(bounds, value) - 1, len(bounds) - 2)


def histogram(a, bins=10, range=None):
    a = asarray(a).ravel()
    if isinstance(bins, str) or isinstance(bins, int) and a.dtype.kind == "f" and a.dtype is not F8:
        refuse("histogram with named bins, or of float32", "give the number of bins, and use astype(float)")
    if isinstance(bins, int) and bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    is_known = a._read() is not None and not are_special(a._read())
    if isinstance(bins, int):
        edges = _edges(a._read(), bins, range) if is_known else filled((bins + 1,), F8, None)
    else:
        edges = asarray(bins)
        bounds = edges._known("histogram")
        if _builtins.any(x > y for x, y in zip(bounds, bounds[1:])):
            raise ValueError("`bins` must increase monotonically, when an array")
    if not is_known:
        return filled((edges.size - 1,), I8, None), edges
    counts = [0] * (edges.size - 1)
    for value in a._read():
        place = _place_between(edges._read(), value)
        if place is not None:
            counts[place] += 1
    return filled((len(counts),), I8, counts), edges


def _edges(values, bins, range):
    """The ends of intervals of one width."""
    if range is None:
        values = values if _builtins.all(value == value for value in values) else [_math.nan]
        range = (_builtins.min(values), _builtins.max(values)) if values else (0, 1)
    low, high = map(float, range)
    if not (_math.isfinite(low) and _math.isfinite(high)):
        raise ValueError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    edges = linspace(low, high, bins + 1) if low < high else linspace(low - 0.5, high + 0.5, bins + 1)
    if len(set(edges._read())) <= bins:
        raise ValueError(f"Too many bins for data range. Cannot create {bins} finite-sized bins.")
    return edges


# --- percentiles


def _lerp(a, b, t):
    return a if a == b else b - (b - a) * (1 - t) if t >= 0.5 else a + (b - a) * t


def _quantiles(name, a, q, most, axis, keepdims):
    a, q = asarray(a), asarray(q)
    if a.dtype.kind == "b" or a.dtype.kind == "f" and a.dtype is not F8:
        refuse(f"{name} of {a.dtype}", "use astype(float)")
    axes = axes_of(axis, a.ndim)
    shape = shape_after(a, axes, keepdims)
    count = product([a.shape[i] for i in axes])
    if a._read() is None or q._read() is None or are_special(q._read()):
        return made(None, (*q.shape, *shape), F8)
    if not _builtins.all(0 <= value <= most for value in q._read()):
        raise ValueError(f"{name.capitalize()}s must be in the range [0, {most}]")
    if not count:
        refuse(f"{name} of nothing", "leave empty arrays out")
    rows = [None if are_special(lane) else _sortable(lane) for lane in lanes(a, axes)]
    results = []
    for part in q._read():
        at = float(part) / most * (count - 1)
        low = _math.floor(at)
        for row in rows:
            if row is None:
                results.append(unknown(F8))
            elif row[-1] != row[-1]:
                results.append(_math.nan)
            else:
                results.append(float(_lerp(row[low], row[_builtins.min(low + 1, count - 1)], at - low)))
    return made(results, (*q.shape, *shape), F8)


def percentile(a, q, axis=None, *, keepdims=False):
    return _quantiles("percentile", a, q, 100, axis, keepdims)


def quantile(a, q, axis=None, *, keepdims=False):
    return _quantiles("quantile", a, q, 1, axis, keepdims)


def median(a, axis=None, *, keepdims=False):
    a = asarray(a)
    if a.dtype.kind == "f" and a.dtype.itemsize < 4:
        refuse("median of float16", "use astype(float)")
    kind = a.dtype if a.dtype.kind == "f" else F8

    def one(values):
        if not values:
            return _math.nan
        values = _sortable(values)
        if values[-1] != values[-1]:
            return _math.nan
        middle = len(values) // 2
        if len(values) % 2:
            return float(values[middle])
        return rounded([rounded([values[middle - 1] + values[middle] + 0.0], kind)[0] / 2], kind)[0]

    return _over(a, axis, keepdims, kind, one)


# --- places


def nonzero(a):
    a = asarray(a)
    taken = [i for i, value in enumerate(a._known("nonzero")) if value]
    return tuple(
        filled((len(taken),), I8, [i // stride % size for i in taken])
        for stride, size in zip(strides_of(a.shape), a.shape)
    )


def flatnonzero(a):
    return nonzero(asarray(a).ravel())[0]


offer(globals(), ("lanes", "made", "as_method"), False)
for _name in ("argsort", "cumsum", "cumprod", "searchsorted", "nonzero"):
    setattr(ndarray, _name, as_method(globals()[_name]))
ndarray.sort = _sort_in_place
