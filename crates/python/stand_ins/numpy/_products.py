"""Products of vectors and matrices. Their sums of floats are rounded in an order that depends on the machine's library."""

import math

from numpy import _elementwise as _e
from numpy._array import MOST, filled, ndarray
from numpy._axes import _method, made
from numpy._axes import sum as _sum
from numpy._making import asarray, diagonal
from numpy._near import NearNumber, are_unknown, between, ends, unknown
from numpy._offers import offer, refuse
from numpy._shapes import broadcast, product
from numpy._types import B1, O8, promote
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
    from numpy._near import epsilon

    size = sum(max(map(abs, one)) if isinstance(one, list) else abs(one) for one in products)
    slack = (count + 1) * epsilon(kind) * size
    return between(low - slack, high + slack, kind)


def _checked(a, b):
    for one in (a, b):
        if one.dtype is O8 or one.dtype.kind == "U":
            refuse("dot of objects", "use a loop")
    return promote(a.dtype, b.dtype)


def _rows(a, kind):
    values, width = cast(a._read(), a.dtype, kind), a.shape[-1]
    return [values[i * width : (i + 1) * width] for i in range(product(a.shape[:-1]))]


def _wrong(a, b, name):
    text = [("(" + ",".join(map(str, one.shape)) + ("," if one.ndim == 1 else "") + ")") for one in (a, b)]
    k, m = a.ndim - 1, max(b.ndim - 2, 0)
    if name == "matmul":
        return ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->(n?,m?) "
            f"(size {b.shape[m]} is different from {a.shape[k]})"
        )
    return ValueError(f"shapes {text[0]} and {text[1]} not aligned: {a.shape[k]} (dim {k}) != {b.shape[m]} (dim {m})")


def dot(a, b, out=None):
    if out is not None:
        refuse("dot with out=", "assign the result")
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        return _e.multiply(a, b)
    if a.ndim > 2 or b.ndim > 2:
        refuse("dot of more than two axes", "use numpy.matmul")
    return _product(a, b, "dot")


def _product(a, b, name):
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise _wrong(a, b, name)
    kind = _checked(a, b)
    shape = a.shape[:-1] + (b.shape[1:] if b.ndim == 2 else ())
    if a._read() is None or b._read() is None or product(shape) > MOST:
        return made(None, shape, kind)
    rows, columns = _rows(a, kind), _rows(b.T, kind)
    values = settled([_sum_of_products(row, column, kind) for row in rows for column in columns], kind)
    return made(values, shape, kind)


def matmul(x1, x2, /, out=None):
    if out is not None:
        refuse("matmul with out=", "assign the result")
    a, b = asarray(x1), asarray(x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"matmul: Input operand {0 if a.ndim == 0 else 1} does not have enough dimensions (has 0, gufunc core with signature "
            "(n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    if a.ndim <= 2 and b.ndim <= 2:
        return _product(a, b, "matmul")
    from numpy._array import spread
    from numpy._several import stack

    if a.ndim == 1 or b.ndim == 1:
        if b.ndim == 1:
            return matmul(a, b.reshape(-1, 1))[..., 0]
        return matmul(a.reshape(1, -1), b)[..., 0, :]
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    a, b = spread(a, batch + a.shape[-2:]), spread(b, batch + b.shape[-2:])
    if a._read() is None or b._read() is None:
        return filled((*batch, a.shape[-2], b.shape[-1]), _checked(a, b), None)
    pairs = zip(a.copy().reshape((-1, *a.shape[-2:])), b.copy().reshape((-1, *b.shape[-2:])))
    return stack([_product(x, y, "matmul") for x, y in pairs]).reshape((*batch, a.shape[-2], b.shape[-1]))


def vdot(a, b):
    return dot(asarray(a).ravel(), asarray(b).ravel())


def inner(a, b):
    a, b = asarray(a), asarray(b)
    return dot(a, b.T if b.ndim == 2 else b)


def outer(a, b, out=None):
    if out is not None:
        refuse("outer with out=", "assign the result")
    return _e.multiply(asarray(a).reshape(-1, 1), asarray(b).reshape(1, -1))


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    if (axis1, axis2) != (0, 1) or dtype is not None or out is not None or asarray(a).ndim != 2:
        refuse("trace of more than two axes", "use numpy.diagonal")
    return _sum(diagonal(a, offset).copy())


def convolve(a, v, mode="full"):
    a, v = asarray(a), asarray(v)
    if a.ndim != 1 or v.ndim != 1 or mode not in ("full", "same", "valid"):
        refuse("convolve of more than one axis", "use torch.nn.functional.conv2d")
    if not a.size or not v.size:
        raise ValueError(f"{'a' if not a.size else 'v'} cannot be empty")
    if len(v) > len(a):
        a, v = v, a
    kind = _checked(a, v)
    long, short = cast(a._all(), a.dtype, kind), cast(v._all(), v.dtype, kind)[::-1]
    n, m = len(long), len(short)
    values = []
    for end in range(1, n + m):
        begin = end - m
        row, column = long[max(begin, 0) : end], short[max(-begin, 0) : m - max(end - n, 0)]
        values.append(_sum_of_products(row, column, kind))
    values = settled(values, kind)
    if mode == "same":
        values = values[(m - 1) // 2 : (m - 1) // 2 + n]
    elif mode == "valid":
        values = values[m - 1 : n]
    return filled((len(values),), kind, values)


def einsum(subscripts, *operands, **kwargs):
    refuse("einsum", "use numpy.matmul, or torch.einsum")


def cov(m, y=None, rowvar=True, bias=False, ddof=None):
    from numpy._axes import mean
    from numpy._several import atleast_2d, concatenate

    rows = atleast_2d(asarray(m).astype(float))
    rows = rows if rowvar or rows.shape[0] == 1 else rows.T
    if y is not None:
        other = atleast_2d(asarray(y).astype(float))
        rows = concatenate((rows, other if rowvar or other.shape[0] == 1 else other.T))
    ddof = (0 if bias else 1) if ddof is None else ddof
    if rows.shape[1] - ddof <= 0:
        refuse("cov of so few numbers", "use more numbers")
    rows = _e.subtract(rows, mean(rows, axis=1)[:, None])
    return asarray(_e.multiply(dot(rows, rows.T), _e.divide(1, rows.shape[1] - ddof))).squeeze()


def corrcoef(x, y=None, rowvar=True):
    from numpy._axes import clip

    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return _e.divide(c, c)
    deviations = _e.sqrt(diagonal(c))
    c = _e.divide(_e.divide(c, deviations[:, None]), deviations[None, :])
    return clip(c, -1, 1)


offer(globals(), ("made",))
for _name in ("dot", "trace"):
    setattr(ndarray, _name, _method(globals()[_name]))
