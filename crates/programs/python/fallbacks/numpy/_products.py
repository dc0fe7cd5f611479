"""Products of vectors and matrices. Their sums of floats are rounded in an order that depends on the machine's library."""

import math

from numpy import _elementwise as _e
from numpy._array import MAX_KNOWN, filled, ndarray, spread
from numpy._axes import as_method, made
from numpy._making import asarray
from numpy._near import NearNumber, are_unknown, between, ends, epsilon, unknown
from numpy._offers import offer, refuse
from numpy._several import stack
from numpy._shapes import broadcast, product, text_of
from numpy._types import B1, promote
from numpy._values import cast, settled


def _sum_of_products(row, column, kind):
    """The sum of the products of two lists: exact where every order of adding gives the same number."""
    if are_unknown(row) or are_unknown(column):
        return unknown(kind)
    if kind is B1:
        return any(x and y for x, y in zip(row, column))
    if kind.kind in "iu":
        return sum(x * y for x, y in zip(row, column))
    if NearNumber in map(type, row) or NearNumber in map(type, column):
        products = [[a * b for a in ends(x) for b in ends(y)] for x, y in zip(row, column)]
        return _near(sum(map(min, products)), sum(map(max, products)), products, kind, len(row))
    products = [x * y for x, y in zip(row, column)]
    total = math.fsum(products) if all(map(math.isfinite, products)) else sum(products)
    if not math.isfinite(total):
        return total if total == total else math.nan
    if len(products) < 2 or _is_exact(products, row, column, kind):
        return total + 0.0
    return _near(total, total, products, kind, len(row))


def _is_exact(products, row, column, kind):
    """Whether every sum of these products is a number of the type: they are whole numbers of one small unit."""
    bits = 53 if kind.itemsize == 8 else 24
    pairs = [(x.as_integer_ratio(), y.as_integer_ratio()) for x, y in zip(row, column) if x and y]
    if not pairs:
        return True
    unit = max(x[1] * y[1] for x, y in pairs)
    return sum(abs(x[0] * y[0]) * (unit // (x[1] * y[1])) for x, y in pairs) < 1 << bits


def _near(low, high, products, kind, count):
    size = sum(max(map(abs, one)) if isinstance(one, list) else abs(one) for one in products)
    slack = (count + 1) * epsilon(kind) * size
    return between(low - slack, high + slack, kind)


def _checked(a, b):
    for one in (a, b):
        if one.dtype.kind == "U":
            refuse("dot of texts", "use a loop")
    return promote(a.dtype, b.dtype)


def _rows(a, kind):
    values, width = cast(a._read(), a.dtype, kind), a.shape[-1]
    return [values[i * width : (i + 1) * width] for i in range(product(a.shape[:-1]))]


def dot(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        refuse("dot of a number", "use the operator *")
    if a.ndim > 2 or b.ndim > 2:
        refuse("dot of more than two axes", "use numpy.matmul")
    return _product(a, b)


def _product(a, b):
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ValueError(f"shapes {text_of(a.shape)} and {text_of(b.shape)} do not fit in a product of matrices")
    kind = _checked(a, b)
    shape = a.shape[:-1] + (b.shape[1:] if b.ndim == 2 else ())
    if a._read() is None or b._read() is None or product(shape) > MAX_KNOWN:
        return made(None, shape, kind)
    rows, columns = _rows(a, kind), _rows(b.T, kind)
    values = settled([_sum_of_products(row, column, kind) for row in rows for column in columns], kind)
    return made(values, shape, kind)


def matmul(x1, x2, /):
    a, b = asarray(x1), asarray(x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul of a number: it needs at least one dimension")
    if a.ndim <= 2 and b.ndim <= 2:
        return _product(a, b)
    if a.ndim == 1 or b.ndim == 1:
        if b.ndim == 1:
            return matmul(a, b.reshape(-1, 1))[..., 0]
        return matmul(a.reshape(1, -1), b)[..., 0, :]
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    a, b = spread(a, batch + a.shape[-2:]), spread(b, batch + b.shape[-2:])
    if a._read() is None or b._read() is None:
        return filled((*batch, a.shape[-2], b.shape[-1]), _checked(a, b), None)
    pairs = zip(a.copy().reshape((-1, *a.shape[-2:])), b.copy().reshape((-1, *b.shape[-2:])))
    return stack([_product(x, y) for x, y in pairs]).reshape((*batch, a.shape[-2], b.shape[-1]))


def outer(a, b):
    return _e.multiply(asarray(a).reshape(-1, 1), asarray(b).reshape(1, -1))


offer(globals(), ("made",))
ndarray.dot = as_method(globals()["dot"])
