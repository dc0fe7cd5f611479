"""Arrays of the host, as far as programs of PyTorch need them: small ones with their values, large ones with their shapes."""

import builtins as _builtins
import math as _math
from functools import reduce as _reduce

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
# Elements of larger arrays are not kept.
_MOST = 65536


def _product(shape):
    return _reduce(lambda a, b: a * b, shape, 1)


def _unknown(kind=None):
    from torch import UnknownNumber, float64 as double_type

    return UnknownNumber(double_type)


class ndarray:
    __array_priority__ = 1.0

    def __init__(self, shape, dtype=float64, values=None):
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype = _of(dtype)
        # None where nobody knows them.
        self._values = values

    # --- shape

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: _product(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    __array_shape__ = shape = None
    flat = property(lambda self: iter(self._all()))

    @property
    def T(self):
        return self.transpose()

    def _all(self):
        return self._values if self._values is not None else [_unknown() for _ in range(self.size)]

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape, order="C"):
        shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in shape:
            shape[shape.index(-1)] = self.size // _builtins.max(1, -_product(shape))
        if _product(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {tuple(shape)}")
        return ndarray(shape, self.dtype, self._values)

    def flatten(self, order="C"):
        return ndarray((self.size,), self.dtype, None if self._values is None else list(self._values))

    ravel = flatten

    def squeeze(self, axis=None):
        keep = [size for i, size in enumerate(self.shape) if size != 1 or axis is not None and i != axis % self.ndim]
        return ndarray(keep, self.dtype, self._values)

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        axes = [axis % self.ndim for axis in axes] if axes and axes[0] is not None else list(reversed(range(self.ndim)))
        shape = [self.shape[axis] for axis in axes]
        if self._values is None:
            return ndarray(shape, self.dtype)
        strides = _strides(self.shape)
        return ndarray(
            shape, self.dtype, [self._values[_place(at, [strides[axis] for axis in axes])] for at in _places(shape)]
        )

    def swapaxes(self, a, b):
        axes = list(range(self.ndim))
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(axes)

    def repeat(self, repeats, axis=None):
        return ndarray(
            (self.size * repeats,),
            self.dtype,
            None if self._values is None else [v for v in self._values for _ in range(repeats)],
        )

    # --- values

    def copy(self, order="C"):
        return ndarray(self.shape, self.dtype, None if self._values is None else list(self._values))

    def astype(self, kind, copy=True):
        kind = _of(kind)
        return ndarray(
            self.shape, kind, None if self._values is None else [_cast(value, kind) for value in self._values]
        )

    def item(self, *args):
        if args:
            return self[args if len(args) > 1 else args[0]]
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._all()[0]

    def tolist(self):
        values = list(self._all())
        for size in reversed(self.shape[1:]):
            values = [values[i : i + size] for i in range(0, len(values), size)] if size else []
        return values if self.shape else values[0]

    def fill(self, value):
        self._values = [_cast(value, self.dtype)] * self.size

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    __index__ = __int__

    def __bool__(self):
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.item()) if self.size else False

    def __repr__(self):
        return (
            f"array({_shown(self)})"
            if self.dtype.name in ("float64", "int64", "bool")
            else f"array({_shown(self)}, dtype={self.dtype})"
        )

    def __str__(self):
        return _shown(self, " ")

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __getitem__(self, index):
        shape, places = _select(self.shape, index)
        values = None if self._values is None else [self._values[place] for place in places]
        if shape == () and not (isinstance(index, tuple) and Ellipsis in index):
            return values[0] if values is not None else _unknown()
        return ndarray(shape, self.dtype, values)

    def __setitem__(self, index, value):
        if self._values is None:
            return
        shape, places = _select(self.shape, index)
        value = _broadcast(asarray(value), shape)
        for place, item in zip(places, value._all()):
            self._values[place] = _cast(item, self.dtype)

    def __contains__(self, value):
        return value in self._all()

    # --- for torch

    def _to_tensor(self):
        import torch

        made = torch.empty(self.shape, dtype=getattr(torch, self.dtype.name), device="cpu")
        if self._values is not None and len(self._values) <= _MOST:
            made._set_values(self._values)
        return made


del ndarray.shape, ndarray.__array_shape__
ndarray.__array_shape__ = property(lambda self: self.shape)


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
    return ndarray(tuple(tensor.shape), name, tensor._values())


def _cast(value, kind):
    if getattr(value, "is_unknown", False):
        return value
    if kind.kind == "f":
        return float(value)
    if kind.kind in "iu":
        value = int(value)
        return value % (1 << (8 * kind.itemsize)) if kind.kind == "u" else value
    return bool(value) if kind.kind == "b" else value


def _shown(array, comma=", "):
    values = array._all()
    is_cut = len(values) > 1000
    if is_cut:
        values = values[:3] + values[-3:]
    if array.dtype.kind == "f":
        # As many digits behind the point as the longest needs, and room for them everywhere.
        texts = [
            repr(v)
            if getattr(v, "is_unknown", False)
            else f"{v:.8f}".rstrip("0")
            if v == v and v not in (inf, -inf)
            else str(v)
            for v in map(_whole_as_float, values)
        ]
        behind = _builtins.max((len(text) - text.find(".") - 1 for text in texts if "." in text), default=0)
        texts = [text + " " * (behind - (len(text) - text.find(".") - 1)) if "." in text else text for text in texts]
    else:
        texts = list(map(repr, values))
    if not array.shape:
        return texts[0].strip()
    width = _builtins.max(map(len, texts), default=0)
    texts = [text.rjust(width) for text in texts]
    if is_cut:
        return "[" + comma.join(texts[:3]) + comma + "..." + comma + comma.join(texts[3:]) + "]"
    for depth, size in enumerate(reversed(array.shape)):
        between = comma if depth == 0 else comma.rstrip() + "\n" * depth + " " * (array.ndim - depth)
        texts = ["[" + between.join(texts[i : i + size]) + "]" for i in range(0, len(texts), size)] if size else ["[]"]
    return texts[0]


def _whole_as_float(value):
    return float(value) if isinstance(value, int) else value


# --- shapes


def _strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def _places(shape):
    import itertools

    return itertools.product(*map(range, shape))


def _place(at, strides):
    return _builtins.sum(a * s for a, s in zip(at, strides))


def _select(shape, index):
    """The shape of `array[index]`, and the places of its elements in the flat list."""
    index = index if isinstance(index, tuple) else (index,)
    if len(index) == 1 and isinstance(index[0], ndarray) and index[0].dtype.kind == "b":
        step = _product(shape[index[0].ndim :])
        chosen = [i for i, is_in in enumerate(index[0]._all()) if is_in]
        return (len(chosen), *shape[index[0].ndim :]), [i * step + j for i in chosen for j in range(step)]
    index = list(index)
    if Ellipsis in [i for i in index if not isinstance(i, (ndarray, list))]:
        at = next(k for k, i in enumerate(index) if i is Ellipsis)
        index[at : at + 1] = [slice(None)] * (
            len(shape) - _builtins.sum(1 for i in index if i is not Ellipsis and i is not None)
        )
    axes, found, axis, arrays = [], [], 0, None
    strides = _strides(shape)
    for part in index:
        if part is None:
            found.append(1)
            axes.append([0])
            continue
        if axis >= len(shape):
            raise IndexError(
                f"too many indices for array: array is {len(shape)}-dimensional, but {len(index)} were indexed"
            )
        size, stride = shape[axis], strides[axis]
        if isinstance(part, slice):
            chosen = range(*part.indices(size))
            found.append(len(chosen))
            axes.append([i * stride for i in chosen])
        elif isinstance(part, (list, ndarray, range)) or hasattr(part, "tolist") and getattr(part, "ndim", 0):
            chosen = [int(i) for i in asarray(part)._all()]
            if arrays is None:
                arrays = len(axes)
                found.extend(asarray(part).shape)
                axes.append([(i % size) * stride for i in chosen])
            else:
                axes[arrays] = [a + (i % size) * stride for a, i in zip(axes[arrays], chosen)]
        else:
            part = int(part)
            if not -size <= part < size:
                raise IndexError(f"index {part} is out of bounds for axis {axis} with size {size}")
            axes.append([(part % size) * stride])
        axis += 1
    for size, stride in zip(shape[axis:], strides[axis:]):
        found.append(size)
        axes.append([i * stride for i in range(size)])
    places = [0]
    for axis in axes:
        places = [place + more for place in places for more in axis]
    return tuple(found), places


def broadcast_shapes(*shapes):
    rank = _builtins.max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(shape)):
            if size != 1:
                if result[-1 - i] not in (1, size):
                    raise ValueError(
                        "operands could not be broadcast together with shapes " + " ".join(map(str, shapes))
                    )
                result[-1 - i] = size
    return tuple(result)


def _broadcast(array, shape):
    if array.shape == tuple(shape) or array._values is None:
        return ndarray(shape, array.dtype, array._values)
    padded = (1,) * (len(shape) - array.ndim) + array.shape
    strides = [0 if size == 1 else stride for size, stride in zip(padded, _strides(padded))]
    return ndarray(shape, array.dtype, [array._values[_place(at, strides)] for at in _places(shape)])


def broadcast_to(array, shape):
    return _broadcast(asarray(array), shape)


# --- making arrays


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
    return _builtins.all(isinstance(value, (int, float)) for value in values)


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
    count = _builtins.max(0, _math.ceil((stop - start) / step))
    made = ndarray((count,), dtype or (int64 if all(isinstance(v, int) for v in (start, stop, step)) else float64))
    if count <= _MOST:
        made._values = [_cast(start + i * step, made.dtype) for i in range(count)]
    return made


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    step = (stop - start) / _builtins.max(1, num - 1 if endpoint else num)
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


# --- element by element


def _binary(function, result=None):
    def apply(a, b, **kwargs):
        if hasattr(a, "is_cuda") or hasattr(b, "is_cuda"):
            return NotImplemented
        a, b = asarray(a), asarray(b)
        shape = broadcast_shapes(a.shape, b.shape)
        kind = _of(result) if result is not None else _wider(a.dtype, b.dtype)
        if function is _divide and kind.kind != "f":
            kind = float64
        if a._values is None or b._values is None:
            made = ndarray(shape, kind)
        else:
            a, b = _broadcast(a, shape), _broadcast(b, shape)
            made = ndarray(shape, kind, [function(x, y) for x, y in zip(a._values, b._values)])
        return made if shape else made.item()

    return apply


def _divide(x, y):
    if y == 0:
        return nan if x == 0 or x != x else inf if x > 0 else -inf
    return x / y


add, subtract, multiply = (_binary(f) for f in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y))
divide = true_divide = _binary(_divide)
floor_divide, mod, power = (_binary(f) for f in (lambda x, y: x // y, lambda x, y: x % y, lambda x, y: x**y))
maximum, minimum = _binary(lambda x, y: x if x >= y else y), _binary(lambda x, y: x if x <= y else y)
greater, less, equal, not_equal = (
    _binary(f, bool_) for f in (lambda x, y: x > y, lambda x, y: x < y, lambda x, y: x == y, lambda x, y: x != y)
)
greater_equal, less_equal = (_binary(f, bool_) for f in (lambda x, y: x >= y, lambda x, y: x <= y))
logical_and, logical_or = (_binary(f, bool_) for f in (lambda x, y: bool(x and y), lambda x, y: bool(x or y)))
_and, _or = (_binary(f) for f in (lambda x, y: x & y, lambda x, y: x | y))
remainder = mod
for _name, _function in (
    ("add", add),
    ("sub", subtract),
    ("mul", multiply),
    ("truediv", divide),
    ("floordiv", floor_divide),
    ("mod", mod),
    ("pow", power),
    ("and", _and),
    ("or", _or),
):
    setattr(ndarray, f"__{_name}__", lambda self, other, f=_function: f(self, other))
    setattr(ndarray, f"__r{_name}__", lambda self, other, f=_function: f(other, self))
    setattr(ndarray, f"__i{_name}__", lambda self, other, f=_function: _into(self, f(self, other)))
for _name, _function in (
    ("gt", greater),
    ("lt", less),
    ("eq", equal),
    ("ne", not_equal),
    ("ge", greater_equal),
    ("le", less_equal),
):
    setattr(ndarray, f"__{_name}__", lambda self, other, f=_function: f(self, other))
ndarray.__hash__ = None


def _into(array, result):
    array._values = None if result._values is None else [_cast(value, array.dtype) for value in result._values]
    return array


def _unary(function, result=None):
    def apply(a, **kwargs):
        a = asarray(a)
        kind = _of(result) if result is not None else a.dtype if a.dtype.kind == "f" or function in _KEEP else float64
        made = ndarray(a.shape, kind, None if a._values is None else [function(x) for x in a._values])
        return made if a.shape else made.item()

    return apply


def _negative(x):
    return -x


_KEEP = (_negative, _builtins.abs)
exp, log, log2, log10, log1p, sqrt, sin, cos, tan, tanh, arctan, floor, ceil = (
    _unary(f)
    for f in (
        _math.exp,
        lambda x: _math.log(x) if x > 0 else -inf if x == 0 else nan,
        _math.log2,
        _math.log10,
        _math.log1p,
        lambda x: _math.sqrt(x) if x >= 0 else nan,
        _math.sin,
        _math.cos,
        _math.tan,
        _math.tanh,
        _math.atan,
        lambda x: float(_math.floor(x)),
        lambda x: float(_math.ceil(x)),
    )
)
negative, abs, square = _unary(_negative), _unary(_builtins.abs), lambda a: multiply(a, a)
absolute, fabs = abs, abs
isnan, isinf, isfinite = (
    _unary(f, bool_) for f in (lambda x: x != x, lambda x: x in (inf, -inf), lambda x: x == x and x not in (inf, -inf))
)
logical_not = _unary(lambda x: not x, bool_)
sign = _unary(lambda x: (x > 0) - (x < 0))
ndarray.__neg__, ndarray.__abs__, ndarray.__invert__ = (
    lambda self: negative(self),
    lambda self: abs(self),
    lambda self: logical_not(self),
)


def round(a, decimals=0):
    a = asarray(a)
    made = ndarray(a.shape, a.dtype, None if a._values is None else [_builtins.round(x, decimals) for x in a._values])
    return made if a.shape else made.item()


around = rint = round
ndarray.round = round


def clip(a, a_min=None, a_max=None):
    a = a if a_min is None else maximum(a, a_min)
    return a if a_max is None else minimum(a, a_max)


ndarray.clip = clip


def where(condition, x=None, y=None):
    condition = asarray(condition)
    if x is None:
        return nonzero(condition)
    x, y = asarray(x), asarray(y)
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    c, x, y = (_broadcast(a, shape) for a in (condition, x, y))
    kind = _wider(x.dtype, y.dtype)
    if None in (c._values, x._values, y._values):
        return ndarray(shape, kind)
    return ndarray(shape, kind, [a if chosen else b for chosen, a, b in zip(c._values, x._values, y._values)])


def nonzero(a):
    a = asarray(a)
    places = [at for at, value in zip(_places(a.shape), a._all()) if value]
    return tuple(array([at[axis] for at in places], int64) for axis in range(a.ndim))


# --- over axes


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


# --- several arrays


def concatenate(arrays, axis=0, **kwargs):
    arrays = [asarray(a) for a in arrays]
    axis %= arrays[0].ndim
    shape = list(arrays[0].shape)
    shape[axis] = _builtins.sum(a.shape[axis] for a in arrays)
    kind = _reduce(_wider, (a.dtype for a in arrays))
    if _builtins.any(a._values is None for a in arrays) or _product(shape) > _MOST:
        return ndarray(shape, kind)
    outer = _product(shape[:axis])
    values = []
    for i in range(outer):
        for a in arrays:
            step = a.size // outer
            values.extend(a._values[i * step : (i + 1) * step])
    return ndarray(shape, kind, values)


def stack(arrays, axis=0, **kwargs):
    arrays = [asarray(a) for a in arrays]
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


def expand_dims(a, axis):
    a = asarray(a)
    shape = list(a.shape)
    shape.insert(axis if axis >= 0 else axis + a.ndim + 1, 1)
    return ndarray(shape, a.dtype, a._values)


def vstack(arrays):
    return concatenate([asarray(a) if asarray(a).ndim > 1 else expand_dims(a, 0) for a in arrays], 0)


def hstack(arrays):
    return concatenate(arrays, 0 if asarray(arrays[0]).ndim == 1 else 1)


def append(arr, values, axis=None):
    return concatenate([asarray(arr).ravel(), asarray(values).ravel()])


def split(ary, sections, axis=0):
    size = len(ary) // sections if isinstance(sections, int) else None
    bounds = [i * size for i in range(sections + 1)] if size is not None else [0, *sections, len(ary)]
    return [ary[a:b] for a, b in zip(bounds, bounds[1:])]


array_split = split


def tile(A, reps):
    return array(asarray(A).tolist() * reps)


def repeat(a, repeats, axis=None):
    return asarray(a).repeat(repeats)


def reshape(a, shape):
    return asarray(a).reshape(shape)


def transpose(a, axes=None):
    return asarray(a).transpose(axes)


def squeeze(a, axis=None):
    return asarray(a).squeeze(axis)


def ravel(a):
    return asarray(a).ravel()


def copy(a):
    return asarray(a).copy()


def flip(m, axis=0):
    return asarray(m)[::-1]


def dot(a, b):
    a, b = asarray(a), asarray(b)
    if a.ndim == 1 and b.ndim == 1:
        return sum(a * b)
    kind = _wider(a.dtype, b.dtype)
    columns = b.T if b.ndim == 2 else b.reshape(1, -1)
    shape = a.shape[:-1] + (b.shape[1:] if b.ndim == 2 else ())
    if a._values is None or b._values is None or _product(shape) > _MOST:
        return ndarray(shape, kind)
    width = a.shape[-1]
    rows = [a._values[i : i + width] for i in range(0, a.size, width)]
    cols = [columns._values[i : i + width] for i in range(0, columns.size, width)]
    return ndarray(shape, kind, [_builtins.sum(x * y for x, y in zip(row, column)) for row in rows for column in cols])


matmul = dot
ndarray.dot = ndarray.__matmul__ = dot


def outer(a, b):
    return asarray(a).reshape(-1, 1) * asarray(b).reshape(1, -1)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = asarray(a), asarray(b)
    return _builtins.all(
        _builtins.abs(x - y) <= atol + rtol * _builtins.abs(y) for x, y in zip(a._all(), _broadcast(b, a.shape)._all())
    )


isclose = _binary(lambda x, y: _builtins.abs(x - y) <= 1e-08 + 1e-05 * _builtins.abs(y), bool_)


def array_equal(a, b):
    return asarray(a).shape == asarray(b).shape and asarray(a)._all() == asarray(b)._all()


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
