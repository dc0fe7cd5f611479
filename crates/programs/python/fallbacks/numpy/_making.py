"""Arrays made of numbers and of other arrays."""

import functools
import math
import operator

from torch._unknown import UnknownNumber

from numpy import _array
from numpy._array import MAX_KNOWN, filled, laid_out_as, ndarray, spread
from numpy._near import NearNumber, are_special, unknown
from numpy._offers import offer, refuse
from numpy._shapes import broadcast, product, shape_of
from numpy._types import B1, F8, I8, generic, of, promote, text_type
from numpy._values import cast, cast_one, kind_of, rounded

_PLAIN = {int, float, bool}


def _from_tensor(tensor):
    """The array of `Tensor.numpy()`, which has checked the tensor."""
    made = filled(tuple(tensor.shape), of(str(tensor.dtype).rpartition(".")[2]), None)
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
        if isinstance(data, (list, tuple, range)):
            types = set(map(type, data))
            if _PLAIN.issuperset(types):
                whole = [value for value in data if type(value) is int] if int in types else ()
                ends = (min(whole), max(whole)) if whole else ()
                self._of_kinds(kind_of(value) for value in (*(kind() for kind in types - {int}), *ends))
                self.values.extend(data)
                return (len(data),)
            shapes = {self.add(item, depth + 1): None for item in data}
            if len(shapes) > 1:
                raise ValueError(
                    "setting an array element with a sequence. The requested array has an inhomogeneous shape after "
                    f"{depth + 1} dimensions."
                )
            return (len(data), *next(iter(shapes), ()))
        if _is_tensor(data):
            data = data.numpy()
        if isinstance(data, ndarray):
            self._of_kinds([data.dtype])
            self.is_unknown |= data._read() is None
            self.values.extend(data._all())
            return data._shape
        kind = text_type(len(data)) if isinstance(data, str) else kind_of(data)
        self._of_kinds([kind], type(data).__name__)
        self.values.append(data._value if isinstance(data, generic) else data)
        return ()

    def _of_kinds(self, kinds, name="large int"):
        for kind in kinds:
            if kind is None:
                refuse(f"array of {name}", "use a list of Python")
            self.kinds[kind] = None


def array(object, dtype=None, *, copy=True, ndmin=0):
    kind = of(dtype) if dtype is not None else None
    if isinstance(object, ndarray):
        if kind is not None and kind is not object.dtype:
            made = object.astype(kind)
        else:
            made = object.__copy__() if copy else object
    elif _is_tensor(object):
        made = object.numpy()
        made = made.astype(kind) if kind is not None and kind is not made.dtype else made.copy() if copy else made
    else:
        made = _of_objects(object, kind)
    return made.reshape((1,) * (ndmin - made.ndim) + made._shape) if made.ndim < ndmin else made


def _of_objects(data, kind):
    if not isinstance(data, (list, tuple, range, int, float, str, generic, NearNumber)):
        if hasattr(data, "__array__"):
            return array(data.__array__(), kind)
        if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (dict, bytes)):
            data = list(data)
    found = _Found()
    shape = found.add(data)
    own = functools.reduce(promote, found.kinds) if found.kinds else F8
    kind = own if kind is None else kind
    values = found.values
    if found.is_unknown and product(shape) > MAX_KNOWN:
        return filled(shape, kind, None)
    if kind.kind in "iu" or are_special(values):
        values = [cast_one(value, kind, True) for value in values]
    elif kind.kind == "f" and own is F8:
        values = rounded([float(value) for value in values], kind)
    else:
        values = cast(values, own, kind) if own is not kind else values
    if kind.kind == "U" and not kind.itemsize:
        kind = text_type(max(map(len, values), default=1))
    return filled(shape, kind, values)


def asarray(a, dtype=None, *, copy=None):
    if isinstance(a, ndarray) and not copy and (dtype is None or of(dtype) is a.dtype):
        return a
    return array(a, dtype, copy=bool(copy))


asanyarray = asarray


def ascontiguousarray(a, dtype=None):
    a = asarray(a, dtype)
    a = a if a._is_contiguous() else a.copy()
    return a if a.ndim else a.reshape(1)


def copy(a):
    return array(a)


def _full(shape, value, kind):
    shape = shape_of(shape)
    count = product(shape)
    return filled(shape, kind, [value] * count if count <= MAX_KNOWN else None)


def zeros(shape, dtype=F8):
    kind = of(dtype)
    return _full(shape, "" if kind.kind == "U" else cast_one(0, kind), kind)


def ones(shape, dtype=F8):
    return _full(shape, cast_one(1, of(dtype)), of(dtype))


def empty(shape, dtype=F8):
    """Memory that nobody wrote: its values are not known."""
    kind = of(dtype)
    return _full(shape, "" if kind.kind == "U" else unknown(kind), kind)


def full(shape, fill_value, dtype=None):
    value = array(fill_value)
    kind = of(dtype) if dtype is not None else value.dtype
    if value.ndim == 0:
        return _full(shape, cast_one(value._all()[0], kind), kind)
    return _array.broadcast_to(array(value, kind), shape).copy()


def _like(make):
    def function(a, dtype=None):
        a = asarray(a)
        made = make(a._shape, a.dtype if dtype is None else dtype)
        return laid_out_as(a, made.dtype, made._read())

    function.__name__ = make.__name__ + "_like"
    return function


zeros_like, ones_like, empty_like = map(_like, (zeros, ones, empty))


def full_like(a, fill_value, dtype=None):
    return full(asarray(a)._shape, fill_value, asarray(a).dtype if dtype is None else dtype)


def _number(value, what):
    """A number of the program as Python's own."""
    if isinstance(value, ndarray) and value.ndim == 0:
        value = value._all()[0]
    value = value._value if isinstance(value, generic) else value
    if type(value) not in _PLAIN:
        refuse(f"{what} of these bounds", "use numbers")
    return value


def arange(start, stop=None, step=None, dtype=None):
    start, stop, step = (0, start, step) if stop is None else (start, stop, step)
    step = 1 if step is None else step
    kinds = [value.dtype if isinstance(value, ndarray) else kind_of(value) for value in (start, stop, step)]
    start, stop, step = (_number(value, "arange") for value in (start, stop, step))
    kind = of(dtype) if dtype is not None else functools.reduce(promote, kinds, I8)
    if step == 0:
        raise ZeroDivisionError("division by zero")
    count = max(0, math.ceil((stop - start) / step))
    if count > MAX_KNOWN:
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


def linspace(start, stop, num=50, endpoint=True, *, dtype=None):
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = float(_number(start, "linspace")), float(_number(stop, "linspace"))
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else math.nan
    if parts > 0 and step != 0:
        values = [i * step + start for i in range(num)]
    else:
        values = [i / max(parts, 1) * (stop - start) + start for i in range(num)]
    if endpoint and num > 1:
        values[-1] = stop
    if dtype is not None and of(dtype).kind in "iu":
        values = [float(math.floor(value)) for value in values]
    made = filled((num,), F8, values if num <= MAX_KNOWN else None)
    return made.astype(dtype) if dtype is not None else made


def eye(N, M=None, k=0, dtype=F8):
    N, M = operator.index(N), operator.index(N if M is None else M)
    made = zeros((N, M), dtype)
    if N * M <= MAX_KNOWN:
        values, one = made._read(), cast_one(1, made.dtype)
        for i in range(max(0, -k), min(N, M - k)):
            values[i * M + i + k] = one
    return made


def meshgrid(*xi, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    arrays = [asarray(x).ravel() for x in xi]
    rank = len(arrays)
    seen = [a.reshape([-1 if i == k else 1 for i in range(rank)]) for k, a in enumerate(arrays)]
    if indexing == "xy" and rank > 1:
        seen = [a.swapaxes(0, 1) for a in seen]
    shape = broadcast(*(a._shape for a in seen))
    return tuple(spread(a, shape).copy() for a in seen)


def _triangle(m, is_kept):
    m = asarray(m)
    if m.ndim < 2:
        refuse("tril and triu of one axis", "use an array of two axes")
    if m._read() is None:
        return filled(m._shape, m.dtype, None)
    (rows, columns), zero = m._shape[-2:], cast_one(0, m.dtype)
    values = [v if is_kept(i % columns - i // columns % rows) else zero for i, v in enumerate(m._read())]
    return filled(m._shape, m.dtype, values)


def tril(m, k=0):
    return _triangle(m, lambda distance: distance <= k)


def triu(m, k=0):
    return _triangle(m, lambda distance: distance >= k)


def diag(v):
    v = asarray(v)
    if v.ndim == 1:
        made = zeros((len(v), len(v)), v.dtype)
        made._memory.kept[:: len(v) + 1] = v._all()
        return made
    if v.ndim != 2 or v._read() is None:
        refuse("diag of this array", "use a list of two axes")
    return filled((min(v._shape),), v.dtype, v._all()[:: v._shape[1] + 1][: min(v._shape)])


offer(globals())
