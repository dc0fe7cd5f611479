"""Arrays made of numbers and of other arrays."""

import math as _math

from numpy._array import _MOST, _cast, _from_tensor, ndarray
from numpy._types import bool_, float64, int64, object_
from numpy._types import of as _of


def array(object, dtype=None, copy=True, ndmin=0, **kwargs):
    if isinstance(object, ndarray):
        return object.astype(dtype) if dtype is not None else object.copy()
    if hasattr(object, "numpy") and hasattr(object, "is_cuda"):
        made = _from_tensor(object)
        return made.astype(dtype) if dtype is not None else made
    shape, values = [], object
    while isinstance(values, (list, tuple, range, ndarray)):
        shape.append(len(values))
        if not len(values):
            break
        values = values[0]
    flat = []

    def flatten(data, depth):
        if depth == len(shape):
            flat.append(data.item() if hasattr(data, "item") and not isinstance(data, float) else data)
        else:
            if len(data) != shape[depth]:
                raise ValueError(
                    "setting an array element with a sequence. The requested array has an inhomogeneous shape"
                )
            for item in data:
                flatten(item, depth + 1)

    flatten(object, 0)
    if dtype is None:
        kinds = {type(value) for value in flat}
        dtype = (
            bool_
            if kinds == {bool}
            else int64
            if kinds and kinds <= {int, bool}
            else float64
            if all_numbers(flat)
            else object_
        )
    dtype = _of(dtype)
    return ndarray(shape, dtype, [_cast(value, dtype) for value in flat] if dtype.kind != "O" else flat)


def all_numbers(values):
    return all(isinstance(value, (int, float)) for value in values)


def asarray(a, dtype=None, **kwargs):
    return a if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype) else array(a, dtype)


ascontiguousarray = asfarray = asarray


def _filled(shape, value, kind):
    made = ndarray(shape, kind)
    if made.size <= _MOST:
        made._values = [_cast(value, made.dtype)] * made.size
    return made


def zeros(shape, dtype=float64, order="C"):
    return _filled(shape, 0, dtype)


def ones(shape, dtype=float64, order="C"):
    return _filled(shape, 1, dtype)


empty = zeros


def full(shape, fill_value, dtype=None):
    return _filled(shape, fill_value, dtype or array(fill_value).dtype)


def zeros_like(a, dtype=None):
    return zeros(asarray(a).shape, dtype or asarray(a).dtype)


def ones_like(a, dtype=None):
    return ones(asarray(a).shape, dtype or asarray(a).dtype)


def full_like(a, fill_value, dtype=None):
    return full(asarray(a).shape, fill_value, dtype or asarray(a).dtype)


empty_like = zeros_like


def arange(start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    count = max(0, _math.ceil((stop - start) / step))
    made = ndarray((count,), dtype or (int64 if all(isinstance(v, int) for v in (start, stop, step)) else float64))
    if count <= _MOST:
        made._values = [_cast(start + i * step, made.dtype) for i in range(count)]
    return made


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    step = (stop - start) / max(1, num - 1 if endpoint else num)
    values = [start + i * step for i in range(num)]
    if endpoint and num > 1:
        values[-1] = stop
    return array([float(v) for v in values], dtype)


def logspace(start, stop, num=50, base=10.0):
    return array([base**v for v in linspace(start, stop, num)._all()])


def eye(N, M=None, dtype=float64):
    M = N if M is None else M
    return array([[1 if i == j else 0 for j in range(M)] for i in range(N)], dtype)


identity = eye


def meshgrid(*arrays, indexing="xy"):
    a, b = map(asarray, arrays)
    shape = (len(b), len(a)) if indexing == "xy" else (len(a), len(b))
    first = [x for _ in b for x in a] if indexing == "xy" else [x for x in a for _ in b]
    second = [y for y in b for _ in a] if indexing == "xy" else [y for _ in a for y in b]
    return [ndarray(shape, a.dtype, first), ndarray(shape, b.dtype, second)]
