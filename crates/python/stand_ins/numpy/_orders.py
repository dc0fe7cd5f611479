"""Sorted elements, running sums, counts and percentiles."""

import bisect
import builtins as _builtins
import math as _math

from numpy import _elementwise as _e
from numpy._array import MOST, filled, laid_out_as, ndarray
from numpy._axes import _method, _over, lanes, made
from numpy._making import asarray
from numpy._near import are_special, unknown
from numpy._offers import offer, refuse, warn
from numpy._shapes import axes_of, axis_of, product
from numpy._types import B1, F8, I8, U8, of, promote
from numpy._values import cast, rounded, settled


def _along(a, axis, kind, function, length=None):
    """Applies a function from a list to a list along an axis; the list's length may change to `length`."""
    axis = axis_of(axis, a.ndim)
    shape = [length if i == axis and length is not None else size for i, size in enumerate(a.shape)]
    if a._read() is None or product(shape) > MOST:
        return filled(shape, kind, None)
    values = []
    for lane in lanes(a, [axis]):
        values += function(lane) if not are_special(lane) else [unknown(kind)] * shape[axis]
    rest = [i for i in range(a.ndim) if i != axis]
    made = filled([shape[i] for i in (*rest, axis)], kind, values)
    order = sorted(range(a.ndim), key=(rest + [axis]).__getitem__)
    made = made.transpose(order)
    return made if made._is_contiguous() else made.copy()


def _sortable(values):
    """Numbers in order, with those that are no numbers at the end."""
    known = [value for value in values if value == value]
    return sorted(known) + [value for value in values if value != value]


def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if order is not None:
        refuse("sort with order=", "sort a list of tuples")
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    made = _along(a, axis, a.dtype, _sortable)
    return laid_out_as(a, a.dtype, made._read()) if a.ndim > 1 else made


def _sort_in_place(self, axis=-1, kind=None, order=None, *, stable=None):
    self[...] = sort(self, axis, kind, order)


def argsort(a, axis=-1, kind=None, order=None, *, stable=None, descending=False):
    if order is not None or descending:
        refuse("argsort with order= or descending=", "use numpy.argsort(-a)")
    a = asarray(a)
    if axis is None:
        a, axis = a.ravel(), 0
    is_stable = stable or kind in ("stable", "mergesort")

    def one(values):
        places = sorted(
            range(len(values)),
            key=lambda i: (values[i] != values[i], values[i]) if values[i] == values[i] else (True, 0),
        )
        if not is_stable:
            # The order of equal elements depends on the processor.
            for k in range(1, len(places)):
                a, b = values[places[k - 1]], values[places[k]]
                if a == b or a != a and b != b:
                    return _with_ties(values, places)
        return places

    return _along(a, axis, I8, one)


def _with_ties(values, places):
    found = list(places)
    for k in range(len(places)):
        value = values[places[k]]
        for other in (k - 1, k + 1):
            if 0 <= other < len(places):
                neighbor = values[places[other]]
                if neighbor == value or neighbor != neighbor and value != value:
                    found[k] = unknown(I8)
    return found


def partition(a, kth, axis=-1):
    refuse("partition", "use numpy.sort")


def argpartition(a, kth, axis=-1):
    refuse("argpartition", "use numpy.argsort")


def lexsort(keys, axis=-1):
    refuse("lexsort", "sort a list of tuples")


# --- running sums and differences


def accumulated(function, array, axis, dtype=None):
    a = asarray(array)
    kind = of(dtype) if dtype is not None else a.dtype
    if dtype is None and function.__name__ in ("add", "multiply"):
        kind = I8 if kind.kind in "ib" else U8 if kind.kind == "u" else kind
    if function.__name__.startswith("logical"):
        kind = B1
    a = a.astype(kind) if kind is not a.dtype else a

    def one(values):
        total, totals = None, []
        for value in values:
            if total is not None:
                value = function.values([[total], [value]], kind, kind)[0]
                value = rounded([value], kind)[0] if kind.kind == "f" else settled([value], kind)[0]
            total = value
            totals.append(value)
        return totals

    if a._read() is not None and are_special(a._read()):
        return _accumulated_unknown(function, a, axis, kind)
    return _along(a, axis, kind, one)


def _accumulated_unknown(function, a, axis, kind):
    """What comes before the first unknown number is known."""
    slices = [a[(slice(None),) * axis_of(axis, a.ndim) + (i,)] for i in range(a.shape[axis])]
    for i in range(1, len(slices)):
        slices[i] = function(slices[i - 1], slices[i])
    from numpy._several import stack

    return stack(slices, axis_of(axis, a.ndim)).astype(kind)


def _running(function):
    def apply(a, axis=None, dtype=None, out=None):
        if out is not None:
            refuse(f"cum{'sum' if function is _e.add else 'prod'} with out=", "assign the result")
        a = asarray(a)
        return accumulated(
            function,
            a.ravel() if axis is None or not a.ndim and axis in (0, -1) else a,
            0 if axis is None else axis,
            dtype,
        )

    apply.__name__ = "cumsum" if function is _e.add else "cumprod"
    return apply


cumsum, cumprod = _running(_e.add), _running(_e.multiply)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    if prepend is not None or append is not None:
        refuse("diff with prepend= or append=", "use numpy.concatenate first")
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


def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    if axis is not None or not equal_nan:
        refuse("unique with axis= or equal_nan=", "use a set of tuples")
    a = asarray(ar)
    values = a._known("unique")
    found = list(dict.fromkeys(_sortable(value for value in values if value == value)))
    firsts = {}
    for i, value in enumerate(values):
        firsts.setdefault(value if value == value else "nan", i)
    keys = found + (["nan"] if "nan" in firsts else [])
    results = [filled((len(keys),), a.dtype, found + [_math.nan] * (len(keys) - len(found)))]
    if return_index:
        results.append(filled((len(keys),), I8, [firsts[key] for key in keys]))
    places = {key: i for i, key in enumerate(keys)}
    inverse = [places[value if value == value else "nan"] for value in values]
    if return_inverse:
        results.append(filled(a.shape, I8, inverse))
    if return_counts:
        counts = [0] * len(keys)
        for i in inverse:
            counts[i] += 1
        results.append(filled((len(keys),), I8, counts))
    return results[0] if len(results) == 1 else tuple(results)


def bincount(x, /, weights=None, minlength=0):
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(
            "object too deep for desired array" if x.ndim > 1 else "object of too small depth for desired array"
        )
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


def searchsorted(a, v, side="left", sorter=None):
    if sorter is not None:
        refuse("searchsorted with sorter=", "sort first")
    a, v = asarray(a), asarray(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    if a._read() is None or v._read() is None or are_special(a._read()) or are_special(v._read()):
        return made([unknown(I8)] * v.size, v.shape, I8)
    kind = promote(a.dtype, v.dtype)
    values = cast(a._read(), a.dtype, kind)
    key = [_order(value) for value in values]
    return made([find(key, _order(value)) for value in cast(v._read(), v.dtype, kind)], v.shape, I8)


def _order(value):
    return (value != value, value) if value == value else (True, 0)


def digitize(x, bins, right=False):
    bins = asarray(bins)
    values = bins._known("digitize")
    if len(values) > 1 and values[0] > values[-1]:
        refuse("digitize with falling bins", "turn the bins around")
    return searchsorted(bins, x, side="left" if right else "right")


def histogram(a, bins=10, range=None, density=None, weights=None):
    if weights is not None or density:
        refuse("histogram with weights= or density=", "divide the counts yourself")
    a = asarray(a).ravel()
    if isinstance(bins, str):
        refuse("histogram with named bins", "give the number of bins")
    if a._read() is None or are_special(a._read()):
        count = bins if isinstance(bins, int) else asarray(bins).size - 1
        edges = filled((count + 1,), F8, [unknown(F8)] * (count + 1)) if isinstance(bins, int) else asarray(bins)
        return filled((count,), I8, [unknown(I8)] * count), edges
    values = a._read()
    if not isinstance(bins, int):
        edges = asarray(bins)
        bounds = edges._known("histogram")
        if _builtins.any(x > y for x, y in zip(bounds, bounds[1:])):
            raise ValueError("`bins` must increase monotonically, when an array")
        counts = [0] * (len(bounds) - 1)
        for value in values:
            if bounds[0] <= value <= bounds[-1]:
                counts[_builtins.min(bisect.bisect_right(bounds, value) - 1, len(counts) - 1)] += 1
        return filled((len(counts),), I8, counts), edges
    from numpy._making import linspace

    if a.dtype is not F8 and a.dtype.kind == "f":
        refuse("histogram of float32", "use astype(float)")
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is None:
        values = values if _builtins.all(value == value for value in values) else [_math.nan]
    low, high = range if range is not None else (_builtins.min(values), _builtins.max(values)) if values else (0, 1)
    low, high = float(low), float(high)
    if not (_math.isfinite(low) and _math.isfinite(high)):
        raise ValueError(
            f"autodetected range of [{low}, {high}] is not finite"
            if range is None
            else f"supplied range of [{low}, {high}] is not finite"
        )
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = linspace(low, high, bins + 1)
    bounds, counts = edges._read(), [0] * bins
    for value in map(float, values):
        if not low <= value <= high:
            continue
        place = int((value - low) / (high - low) * bins)
        place -= place == bins
        if value < bounds[place]:
            place -= 1
        elif value >= bounds[place + 1] and place != bins - 1:
            place += 1
        counts[place] += 1
    return filled((bins,), I8, counts), edges


# --- percentiles


def _lerp(a, b, t):
    return b - (b - a) * (1 - t) if t >= 0.5 else a + (b - a) * t


def _quantiles(name, a, q, axis, keepdims, parts):
    a = asarray(a)
    if a.dtype.kind == "b" or a.dtype.kind == "f" and a.dtype is not F8:
        refuse(f"{name} of {a.dtype}", "use astype(float)")
    parts = asarray(parts)
    axes = axes_of(axis, a.ndim)
    shape = tuple(1 if i in axes else size for i, size in enumerate(a.shape) if keepdims or i not in axes)
    count = product([a.shape[i] for i in axes])
    if a._read() is None or parts._read() is None:
        return made([unknown(F8)] * (product(shape) * parts.size), (*parts.shape, *shape), F8)
    rows = [lane if are_special(lane) else _sortable(lane) for lane in lanes(a, axes)]
    if not count:
        refuse(f"{name} of nothing", "leave empty arrays out")
    results = []
    for part in parts._read():
        at = unknown(F8) if are_special([part]) else part * (count - 1)
        for row in rows:
            if are_special(row) or are_special([at]):
                results.append(unknown(F8))
            elif row[-1] != row[-1]:
                results.append(_math.nan)
            else:
                low = _math.floor(at)
                high = _builtins.min(low + 1, count - 1)
                results.append(float(_lerp(row[low], row[high], at - low)))
    return made(results, (*parts.shape, *shape), F8)


def _checked_parts(name, q, method, out, most, overwrite):
    if method != "linear" or out is not None or overwrite:
        refuse(f"{name} with method= or out=", "leave the argument out")
    q = asarray(q)
    values = q._read()
    if values is not None and not are_special(values) and not _builtins.all(0 <= value <= most for value in values):
        raise ValueError(
            "Percentiles must be in the range [0, 100]" if most == 100 else "Quantiles must be in the range [0, 1]"
        )
    return q


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    parts = _checked_parts("percentile", q, method, out, 100, overwrite_input)
    return _quantiles("percentile", a, q, axis, keepdims, _e.divide(parts, 100))


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    parts = _checked_parts("quantile", q, method, out, 1, overwrite_input)
    return _quantiles("quantile", a, q, axis, keepdims, parts.astype(F8))


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    if out is not None or overwrite_input:
        refuse("median with out=", "assign the result")
    a = asarray(a)
    if a.dtype.kind == "f" and a.dtype is not F8 and a.dtype.itemsize != 4:
        refuse("median of float16", "use astype(float)")
    kind = a.dtype if a.dtype.kind == "f" else F8

    def one(values):
        if not values:
            warn("Mean of empty slice.")
            return _math.nan
        values = _sortable(values)
        if values[-1] != values[-1]:
            return _math.nan
        middle = len(values) // 2
        if len(values) % 2:
            return float(values[middle])
        return rounded([rounded([values[middle - 1] + values[middle] + 0.0], kind)[0] / 2], kind)[0]

    return _over(a, axis, keepdims, kind, one)


def interp(x, xp, fp, left=None, right=None, period=None):
    if period is not None:
        refuse("interp with period=", "use numpy.remainder first")
    x, xp, fp = asarray(x), asarray(xp).astype(F8)._known("interp"), asarray(fp).astype(F8)._known("interp")
    if len(xp) != len(fp):
        raise ValueError("fp and xp are not of the same length.")
    if not xp:
        raise ValueError("array of sample points is empty")
    left, right = fp[0] if left is None else float(left), fp[-1] if right is None else float(right)

    def one(value):
        if are_special([value]):
            return unknown(F8)
        if value != value:
            return value
        if value > xp[-1]:
            return right
        if value < xp[0]:
            return left
        k = bisect.bisect_right(xp, value) - 1
        if k == len(xp) - 1 or xp[k] == value:
            return fp[k]
        slope = (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
        return slope * (value - xp[k]) + fp[k]

    return made([one(value) for value in x.astype(F8)._all()], x.shape, F8)


def nonzero(a):
    a = asarray(a)
    from numpy._shapes import strides_of

    taken = [i for i, value in enumerate(a._known("nonzero")) if value]
    return tuple(
        filled((len(taken),), I8, [i // stride % size for i in taken])
        for stride, size in zip(strides_of(a.shape), a.shape)
    )


def flatnonzero(a):
    return nonzero(asarray(a).ravel())[0]


def argwhere(a):
    a = asarray(a)
    found = nonzero(a)
    return filled(
        (len(found[0]) if found else 0, a.ndim),
        I8,
        [value for row in zip(*(one._read() for one in found)) for value in row],
    )


def isin(element, test_elements, assume_unique=False, invert=False):
    element, among = asarray(element), asarray(test_elements)
    known, values = set(among._known("isin")), element._known("isin")
    return filled(element.shape, B1, [(value in known) != invert for value in values])


def _sets(name, function):
    def apply(ar1, ar2):
        a, b = asarray(ar1), asarray(ar2)
        kind = promote(a.dtype, b.dtype)
        left, right = (set(cast(one._known(name), one.dtype, kind)) for one in (a, b))
        found = sorted(function(left, right))
        return filled((len(found),), kind if name != "setdiff1d" else a.dtype, found)

    apply.__name__ = name
    return apply


union1d, intersect1d, setdiff1d = (
    _sets(name, f)
    for name, f in (("union1d", set.union), ("intersect1d", set.intersection), ("setdiff1d", set.difference))
)

offer(globals(), ("accumulated", "lanes", "made"), False)
for _name in ("argsort", "cumsum", "cumprod", "searchsorted", "nonzero"):
    setattr(ndarray, _name, _method(globals()[_name]))
ndarray.sort = _sort_in_place
