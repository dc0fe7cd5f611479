"""Arrays made of numbers and of other arrays."""

import math
import operator

from torch._unknown import UnknownNumber

from numpy import _array
from numpy._array import MOST, filled, laid_out_as, ndarray, spread
from numpy._near import NearNumber, are_special
from numpy._offers import offer, refuse
from numpy._shapes import broadcast, product, shape_of
from numpy._types import B1, F8, I8, O8, generic, of, promote, text_type
from numpy._values import cast, cast_one, kind_of, rounded

_PLAIN = {int, float, bool}


def _from_tensor(tensor):
    if tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if tensor.is_cuda:
        raise TypeError(
            f"can't convert {tensor.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    name = str(tensor.dtype).rpartition(".")[2]
    if name == "bfloat16":
        raise TypeError("Got unsupported ScalarType BFloat16")
    made = filled(tuple(tensor.shape), of(name), None)
    made._memory = _array.Memory(tensor._known_values(), tensor)
    return made


def _is_tensor(value):
    return hasattr(value, "is_cuda") and hasattr(value, "numpy")


class _Found:
    """The elements of nested lists."""

    def __init__(self):
        self.values, self.kinds, self.is_unknown = [], {}, False

    def add(self, data, depth=0):
        """Adds the elements of one object and returns its shape."""
        if isinstance(data, (list, tuple, range)) and not hasattr(data, "_fields_of_numpy"):
            if depth > 64:
                raise ValueError(
                    "setting an array element with a sequence. The requested array would exceed the maximum number of dimension of 64."
                )
            if _PLAIN.issuperset(map(type, data)):
                for kind in set(map(type, data)):
                    self.kinds[kind] = F8 if kind is float else B1 if kind is bool else None
                if int in self.kinds and self.kinds[int] is None:
                    self.kinds[int] = _whole(data)
                self.values.extend(data)
                return (len(data),)
            inner = None
            for item in data:
                shape = self.add(item, depth + 1)
                if inner is None:
                    inner = shape
                elif shape != inner:
                    self._refuse(data, depth)
            return (len(data), *(inner or ()))
        if _is_tensor(data):
            data = _from_tensor(data)
        if isinstance(data, ndarray):
            self.kinds[data.dtype] = data.dtype
            self.is_unknown |= data._read() is None
            self.values.extend(data._all())
            return data._shape
        if isinstance(data, str):
            kind = text_type(len(data))
            data = str(data)
        else:
            kind = kind_of(data) or O8
            if isinstance(data, generic):
                data = data._value
        self.kinds[(type(data), kind)] = kind
        self.values.append(data)
        return ()

    def _refuse(self, data, depth):
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape after "
            f"{depth + 1} dimensions. The detected shape was {(len(data),)} + inhomogeneous part."
            if depth == 0
            else "setting an array element with a sequence. The requested array has an inhomogeneous shape."
        )

    def kind(self):
        kind = None
        for one in self.kinds.values():
            kind = one if kind is None else promote(kind, one)
        return kind or F8


def _whole(values):
    whole = [value for value in values if type(value) is int]
    return promote(kind_of(min(whole)), kind_of(max(whole)))


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0):
    if order not in ("K", "C", "A") or type(subok) is not bool:
        refuse("array with order=", "use transpose")
    kind = of(dtype) if dtype is not None else None
    if kind is not None and kind.kind == "c":
        refuse("array of complex numbers", "use torch's, or Python's")
    if isinstance(object, ndarray):
        if kind is not None and kind is not object.dtype:
            made = object.astype(kind)
        else:
            made = object.__copy__() if copy else object
    elif _is_tensor(object):
        made = _from_tensor(object)
        made = made.astype(kind) if kind is not None and kind is not made.dtype else made.copy() if copy else made
    else:
        made = _of_objects(object, kind)
    if made.ndim < ndmin:
        made = made.reshape((1,) * (ndmin - made.ndim) + made._shape)
    return made


def _of_objects(data, kind):
    if not isinstance(data, (list, tuple, range, int, float, str, generic, NearNumber)):
        if hasattr(data, "__array__"):
            return array(data.__array__(), kind)
        if isinstance(data, complex):
            refuse("array of complex numbers", "use torch's, or Python's")
        if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (dict, bytes)):
            data = list(data)
        elif hasattr(data, "__next__"):
            refuse("array of a generator", "use a list")
    found = _Found()
    if kind is O8:
        shape = found.add(data) if isinstance(data, (list, tuple)) else ()
        return filled(shape, O8, found.values if shape or found.values else [data])
    shape = found.add(data)
    if complex in map(type, found.values):
        refuse("array of complex numbers", "use torch's, or Python's")
    own = found.kind()
    if kind is None:
        kind = own
    values = found.values
    if found.is_unknown and product(shape) > MOST:
        return filled(shape, kind, None)
    if kind.kind != "O":
        values = (
            [cast_one(value, kind, True) for value in values]
            if kind.kind in "iu" or are_special(values)
            else cast(values, own, kind)
        )
        if kind.kind == "f" and own is F8 and kind is F8:
            values = [float(value) if type(value) in _PLAIN else value for value in values]
        if kind.kind == "U" and not kind.itemsize:
            kind = text_type(max(map(len, values), default=1))
        if kind.kind == "b":
            values = [value if type(value) in (bool, UnknownNumber) else bool(value) for value in values]
    return filled(shape, kind, values)


def asarray(a, dtype=None, order=None, *, copy=None):
    if order not in (None, "K", "C", "A"):
        refuse("asarray with order=", "use transpose")
    if isinstance(a, ndarray) and not copy and (dtype is None or of(dtype) is a.dtype):
        return a
    return array(a, dtype, copy=bool(copy))


def asanyarray(a, dtype=None, order=None):
    return asarray(a, dtype, order)


def ascontiguousarray(a, dtype=None):
    a = asarray(a, dtype)
    a = a if a._is_contiguous() else a.copy()
    return a if a.ndim else a.reshape(1)


def copy(a, order="K", subok=False):
    return array(a, order=order)


def asfarray(*arguments, **keywords):
    raise AttributeError(
        "`np.asfarray` was removed in the NumPy 2.0 release. Use `np.asarray` with a proper dtype instead."
    )


def _full(shape, value, kind):
    shape = shape_of(shape)
    if kind.kind == "c":
        refuse("zeros of complex numbers", "use torch's")
    count = product(shape)
    return filled(shape, kind, [value] * count if count <= MOST else None)


def zeros(shape, dtype=F8, order="C"):
    return _ordered(_full(shape, _zero(of(dtype)), of(dtype)), order)


def _ordered(made, order):
    if order != "C":
        refuse("zeros with order=", "use transpose")
    return made


def _zero(kind):
    return "" if kind.kind == "U" else 0 if kind.kind == "O" else cast_one(0, kind)


def ones(shape, dtype=None, order="C"):
    kind = of(dtype)
    return _ordered(_full(shape, 1 if kind.kind == "O" else cast_one(1, kind), kind), order)


def empty(shape, dtype=F8, order="C"):
    """Memory that nobody wrote: its values are not known."""
    from numpy._near import unknown

    kind = of(dtype)
    value = unknown(kind) if kind.kind in "fiub" else _zero(kind) if kind.kind == "U" else None
    return _ordered(_full(shape, value, kind), order)


def full(shape, fill_value, dtype=None, order="C"):
    value = array(fill_value)
    kind = of(dtype) if dtype is not None else value.dtype
    shape = shape_of(shape)
    if value.ndim == 0:
        return _ordered(_full(shape, cast_one(value._all()[0], kind), kind), order)
    while value.ndim > len(shape) and value._shape[0] == 1:
        value = value[0]
    value = array(value, kind)
    if value.ndim > len(shape) or broadcast(value._shape, shape) != shape:
        raise ValueError(f"could not broadcast input array from shape {value._shape} into shape {shape}")
    return spread(value, shape).copy()


def _like(make):
    def function(a, dtype=None, order="K", subok=True, shape=None):
        if order not in ("K", "C") or shape is not None:
            refuse(f"{make.__name__}_like with order= or shape=", f"use numpy.{make.__name__}")
        a = asarray(a)
        made = make(a._shape, a.dtype if dtype is None else dtype)
        return laid_out_as(a, made.dtype, made._read())

    function.__name__ = make.__name__ + "_like"
    return function


zeros_like, ones_like, empty_like = map(_like, (zeros, ones, empty))


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None):
    if order != "K" or shape is not None:
        refuse("full_like with order= or shape=", "use numpy.full")
    return full(asarray(a)._shape, fill_value, asarray(a).dtype if dtype is None else dtype)


def _number(value):
    """A number of the program as Python's own."""
    if isinstance(value, ndarray) and value.ndim == 0:
        value = value._all()[0]
    return value._value if isinstance(value, generic) else value


def arange(start, stop=None, step=None, dtype=None, *, device=None):
    kinds = [
        kind_of(value) if not isinstance(value, ndarray) else value.dtype
        for value in (start, stop, step)
        if value is not None
    ]
    if None in kinds or any(type(_number(v)) in (UnknownNumber, NearNumber) for v in (start, stop, step)):
        refuse("arange of these bounds", "use numbers")
    kind = of(dtype) if dtype is not None else None
    if kind is None:
        kind = kinds[0]
        for one in kinds[1:]:
            kind = promote(kind, one)
        kind = I8 if kind is B1 else kind
    start, stop, step = _number(start), _number(stop), 1 if step is None else _number(step)
    start, stop = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ZeroDivisionError("division by zero")
    count = max(0, math.ceil((stop - start) / step))
    if count > MOST:
        return filled((count,), kind, None)
    # numpy adds to the first number multiples of the difference of the first two.
    first, second = cast_one(start, kind), cast_one(start + step, kind)
    delta = second - first
    if kind.kind == "f" and kind is not F8:
        delta = rounded([delta], kind)[0]
        products = rounded([i * delta for i in range(count)], kind)
        values = rounded([first + part for part in products], kind)
    else:
        values = [first + i * delta for i in range(count)]
    if count > 1:
        values[1] = second
    return filled((count,), kind, [cast_one(value, kind) for value in values])


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if (
        any(isinstance(value, ndarray) and value.ndim or isinstance(value, (list, tuple)) for value in (start, stop))
        or axis != 0
    ):
        refuse("linspace between arrays", "use numbers as the ends")
    kind = _of_float(start, stop)
    start, stop = _number(start), _number(stop)
    if type(start) in (UnknownNumber, NearNumber) or type(stop) in (UnknownNumber, NearNumber):
        refuse("linspace of numbers that are not known", "use numbers")
    start, stop, parts = float(start), float(stop), num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else math.nan
    if parts > 0 and step != 0:
        values = [i * step + start for i in range(num)]
    elif parts > 0:
        values = [i / parts * (stop - start) + start for i in range(num)]
    else:
        values = [i * (stop - start) + start for i in range(num)]
    if endpoint and num > 1:
        values[-1] = stop
    made = filled((num,), F8, values if num <= MOST else None)
    wanted = of(dtype) if dtype is not None else kind
    if wanted.kind in "iu":
        made = filled((num,), F8, [float(math.floor(value)) for value in values])
    made = made.astype(wanted) if wanted is not F8 else made
    return (made, F8.type(step)) if retstep else made


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    from numpy._elementwise import power

    made = power(base, linspace(start, stop, num=num, endpoint=endpoint, axis=axis))
    return made if dtype is None else made.astype(dtype)


def _of_float(*values):
    kind = F8
    for value in values:
        if kind_of(value) is None and not isinstance(value, ndarray):
            refuse("linspace of this end", "use a number")
    return kind


def eye(N, M=None, k=0, dtype=F8, order="C"):
    N, M, k = operator.index(N), operator.index(N if M is None else M), operator.index(k)
    made = zeros((N, M), dtype, order)
    if N * M <= MOST:
        values, one = made._read(), cast_one(1, made.dtype)
        for i in range(max(0, -k), min(N, M - k)):
            values[i * M + i + k] = one
    return made


def identity(n, dtype=None):
    return eye(n, dtype=F8 if dtype is None else dtype)


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    if sparse or not copy or indexing not in ("xy", "ij"):
        refuse("meshgrid with sparse= or copy=", "use broadcasting")
    arrays = [asarray(x).ravel() for x in xi]
    rank = len(arrays)
    seen = [a.reshape([-1 if i == k else 1 for i in range(rank)]) for k, a in enumerate(arrays)]
    if indexing == "xy" and rank > 1:
        seen = [a.swapaxes(0, 1) for a in seen]
    shape = broadcast(*(a._shape for a in seen))
    return tuple(spread(a, shape).copy() for a in seen)


def fromiter(iter, dtype, count=-1):
    values = list(iter)
    return array(values if count < 0 else values[:count], dtype)


def tri(N, M=None, k=0, dtype=F8):
    M = N if M is None else M
    return array([[1 if j <= i + k else 0 for j in range(M)] for i in range(N)], "int64").reshape(N, M).astype(dtype)


def _triangle(m, k, is_lower):
    m = asarray(m)
    rows, columns = m._shape[-2:]
    values = m._all()
    zero = cast_one(0, m.dtype)
    kept = [
        v
        if ((i % columns <= i // columns % rows + k) if is_lower else (i % columns >= i // columns % rows + k))
        else zero
        for i, v in enumerate(values)
    ]
    return filled(m._shape, m.dtype, kept if m._read() is not None else None)


def tril(m, k=0):
    return _triangle(m, k, True)


def triu(m, k=0):
    return _triangle(m, k, False)


def diag(v, k=0):
    v = asarray(v)
    if v.ndim == 1:
        size = len(v) + abs(k)
        made = zeros((size, size), v.dtype)
        for i, value in enumerate(v._all()):
            made._read()[(i + max(0, -k)) * size + i + max(0, k)] = value
        return made
    if v.ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return diagonal(v, k).copy()


def diagonal(a, offset=0, axis1=0, axis2=1):
    a = asarray(a)
    if (axis1, axis2) != (0, 1) or a.ndim != 2:
        refuse("diagonal of more than two axes", "use transpose and a loop")
    rows, columns = a._shape
    count = max(0, min(rows - max(0, -offset), columns - max(0, offset)))
    start = a._offset + max(0, -offset) * a._steps[0] + max(0, offset) * a._steps[1]
    made = a._seen((count,), (a._steps[0] + a._steps[1],), start)
    made._is_writeable = False
    return made


ndarray.diagonal = diagonal
offer(globals())
