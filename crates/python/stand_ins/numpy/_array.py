"""The class of arrays."""

from math import inf

from numpy._shapes import _place, _places, _product, _strides
from numpy._types import float64
from numpy._types import of as _of

# Elements of larger arrays are not kept.
_MOST = 65536


def _unknown(kind=None):
    from torch import UnknownNumber
    from torch import float64 as double_type

    return UnknownNumber(double_type)


class ndarray:
    __module__ = "numpy"
    __array_priority__ = 1.0

    def __init__(self, shape, dtype=float64, values=None):
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.dtype = _of(dtype)
        # None where the values are not known.
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
            shape[shape.index(-1)] = self.size // max(1, -_product(shape))
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
        value = _broadcast(_asarray(value), shape)
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
    return ndarray(tuple(tensor.shape), name, tensor._known_values())


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
        # As many digits after the point as the longest needs, and room for them everywhere.
        texts = [
            repr(v)
            if getattr(v, "is_unknown", False)
            else f"{v:.8f}".rstrip("0")
            if v == v and v not in (inf, -inf)
            else str(v)
            for v in map(_whole_as_float, values)
        ]
        behind = max((len(text) - text.find(".") - 1 for text in texts if "." in text), default=0)
        texts = [text + " " * (behind - (len(text) - text.find(".") - 1)) if "." in text else text for text in texts]
    else:
        texts = list(map(repr, values))
    if not array.shape:
        return texts[0].strip()
    width = max(map(len, texts), default=0)
    texts = [text.rjust(width) for text in texts]
    if is_cut:
        return "[" + comma.join(texts[:3]) + comma + "..." + comma + comma.join(texts[3:]) + "]"
    for depth, size in enumerate(reversed(array.shape)):
        between = comma if depth == 0 else comma.rstrip() + "\n" * depth + " " * (array.ndim - depth)
        texts = ["[" + between.join(texts[i : i + size]) + "]" for i in range(0, len(texts), size)] if size else ["[]"]
    return texts[0]


def _whole_as_float(value):
    return float(value) if isinstance(value, int) else value


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
        index[at : at + 1] = [slice(None)] * (len(shape) - sum(1 for i in index if i is not Ellipsis and i is not None))
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
            chosen = [int(i) for i in _asarray(part)._all()]
            if arrays is None:
                arrays = len(axes)
                found.extend(_asarray(part).shape)
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


def _broadcast(array, shape):
    if array.shape == tuple(shape) or array._values is None:
        return ndarray(shape, array.dtype, array._values)
    padded = (1,) * (len(shape) - array.ndim) + array.shape
    strides = [0 if size == 1 else stride for size, stride in zip(padded, _strides(padded))]
    return ndarray(shape, array.dtype, [array._values[_place(at, strides)] for at in _places(shape)])


def _asarray(value):
    from numpy._making import asarray

    return asarray(value)


def broadcast_to(array, shape):
    return _broadcast(_asarray(array), shape)
