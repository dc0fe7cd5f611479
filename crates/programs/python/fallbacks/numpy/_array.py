"""The class of arrays: a view of memory by a shape, strides and an offset, as numpy's."""

import operator
import types

from numpy import _index
from numpy._near import are_special, unknown
from numpy._offers import refuse, refuse_unknown
from numpy._shapes import axes_of, axis_of, broadcast, memory_order, places, product, shape_of, strides_of, text_of
from numpy._types import F8, of, text_length, text_type
from numpy._values import cast, scalar

# Elements of larger arrays are not kept.
MAX_KNOWN = 65536


class Memory:
    """The elements that views share; `None` where they are not known. A tensor may have the same memory."""

    __slots__ = ("kept", "tensor", "version")

    def __init__(self, values, tensor=None):
        self.kept, self.tensor, self.version = values, tensor, None if tensor is None else tensor._version

    def values(self):
        if self.tensor is not None and self.tensor._version != self.version:
            self.kept, self.version = self.tensor._known_values(), self.tensor._version
        return self.kept

    def write(self, values):
        """The elements after a change."""
        self.kept = values
        if self.tensor is not None:
            if values is None:
                self.tensor.copy_(self.tensor.new_empty(self.tensor.shape))
            else:
                self.tensor._set_values(
                    [value if type(value) in (int, float, bool) else unknown(F8) for value in values]
                )
            self.version = self.tensor._version


class ndarray:
    __slots__ = ("_memory", "_shape", "_steps", "_offset", "dtype", "base", "_is_writeable", "__weakref__")
    __module__ = "numpy"

    def __new__(cls, *arguments, **keywords):
        refuse("ndarray as a function", "use numpy.zeros or numpy.array")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"numpy.ndarray.{name} is not modeled here: use torch, or numbers and lists")

    def __class_getitem__(cls, types):
        # `ndarray[...]` in a hint for a type.
        return cls

    # --- shape

    shape = property(lambda self: self._shape, lambda self, shape: refuse("ndarray.shape = ...", "use reshape"))
    ndim = property(lambda self: len(self._shape))
    size = property(lambda self: product(self._shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    strides = property(lambda self: tuple(step * self.itemsize for step in self._steps))
    T = property(lambda self: self.transpose())

    @property
    def flags(self):
        return types.SimpleNamespace(
            c_contiguous=self._is_contiguous(),
            f_contiguous=self.T._is_contiguous(),
            owndata=self.base is None,
            writeable=self._is_writeable,
        )

    def _is_contiguous(self):
        step = 1
        for size, stride in zip(reversed(self._shape), reversed(self._steps)):
            if size != 1 and stride != step:
                return self.size == 0
            step *= size
        return True

    def _seen(self, shape, steps, offset):
        made = view(self._memory, tuple(shape), tuple(steps), offset, self.dtype)
        made.base, made._is_writeable = self if self.base is None else self.base, self._is_writeable
        return made

    def __len__(self):
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self):
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape):
        shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        shape = [operator.index(size) for size in shape]
        if shape.count(-1) > 1:
            raise ValueError("can only specify one unknown dimension")
        wanted = text_of(shape)
        if -1 in shape:
            shape[shape.index(-1)] = self.size // max(-product(shape), 1)
        if product(shape) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        steps = _index.steps_of_view(self._shape, self._steps, shape)
        if steps is not None:
            return self._seen(shape, steps, self._offset)
        return filled(shape, self.dtype, self._read())

    def flatten(self):
        return filled((self.size,), self.dtype, self._read(True))

    def ravel(self):
        return self.reshape(-1) if self._is_contiguous() else self.flatten()

    def squeeze(self, axis=None):
        axes = [i for i, size in enumerate(self._shape) if size == 1] if axis is None else axes_of(axis, self.ndim)
        if any(self._shape[i] != 1 for i in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
        kept = [i for i in range(self.ndim) if i not in axes]
        return self._seen([self._shape[i] for i in kept], [self._steps[i] for i in kept], self._offset)

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and (isinstance(axes[0], (tuple, list)) or axes[0] is None) else axes
        if not axes:
            axes = range(self.ndim - 1, -1, -1)
        elif len(axes) != self.ndim:
            raise ValueError("axes don't match array")
        axes = [axis_of(axis, self.ndim) for axis in axes]
        if len(set(axes)) < len(axes):
            raise ValueError("repeated axis in transpose")
        return self._seen([self._shape[i] for i in axes], [self._steps[i] for i in axes], self._offset)

    def swapaxes(self, axis1, axis2):
        axes = list(range(self.ndim))
        a, b = axis_of(axis1, self.ndim), axis_of(axis2, self.ndim)
        axes[a], axes[b] = axes[b], axes[a]
        return self.transpose(axes) if axes else self._seen((), (), self._offset)

    # --- values

    def _read(self, is_copied=False):
        """The elements in the order of C; `None` where they are not known."""
        values = self._memory.values()
        if values is None:
            return None
        if self._is_contiguous():
            if self._offset == 0 and self.size == len(values):
                return list(values) if is_copied else values
            return values[self._offset : self._offset + self.size]
        return [values[place] for place in places(self._shape, self._steps, self._offset)]

    def _all(self):
        """The elements, with unknown numbers where they are not known."""
        values = self._read()
        return values if values is not None else [unknown(self.dtype)] * self.size

    def _known(self, what):
        """The elements; the function `what` refuses unknown ones."""
        values = self._read()
        if values is None or are_special(values):
            refuse_unknown(what)
        return values

    def _write(self, where, values):
        """Writes elements at places of the memory; `None` for values that are not known."""
        if not self._is_writeable:
            raise ValueError("assignment destination is read-only")
        kept = self._memory.values()
        if kept is None:
            return
        if where is None:
            self._memory.write([unknown(self.dtype)] * len(kept))
            return
        kept = list(kept) if self._memory.tensor is not None else kept
        if values is kept:  # A part of the array is written to another part.
            values = list(values)
        if values is None:
            values = [unknown(self.dtype)] * len(where)
        for place, value in zip(where, values):
            kept[place] = value
        self._memory.write(kept)

    def _places(self):
        return places(self._shape, self._steps, self._offset)

    def copy(self):
        return filled(self._shape, self.dtype, self._read(True))

    def __copy__(self):
        return laid_out_as(self, self.dtype, self._read(True))

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        if self._read() is None or are_special(self._read()):
            refuse_unknown("ndarray.__reduce__")
        return _restored, (self._shape, self.dtype.str, self._read(True))

    def astype(self, dtype, *, copy=True):
        kind = of(dtype)
        if kind is self.dtype and not copy:
            return self
        values = self._read()
        if values is not None:
            if kind.kind == "U" and self.dtype.kind == "f":
                values = [scalar(value, self.dtype) for value in values]
            values = cast(values, self.dtype, kind)
            if kind.kind == "U" and not kind.itemsize:
                kind = text_type(text_length(self.dtype))
        return laid_out_as(self, kind, values)

    def item(self, *place):
        if place:
            found = self.ravel()[place[0]] if len(place) == 1 else self[place]
            return found.item()
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._all()[0]

    def tolist(self):
        values, rank = list(self._all()), self.ndim
        for axis in range(rank - 1, 0, -1):
            size = self._shape[axis]
            values = [values[i * size : (i + 1) * size] for i in range(product(self._shape[:axis]))]
        return values if rank else values[0]

    def fill(self, value):
        self[...] = value

    def tobytes(self):
        from numpy._files import data_of

        return data_of(self)

    def __array__(self, dtype=None, copy=None):
        return self if dtype is None else self.astype(dtype)

    def _one(self):
        if self.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self._all()[0]

    def __float__(self):
        return float(self._one())

    def __int__(self):
        return int(self._one())

    def __index__(self):
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self._all()[0].__index__()

    def __bool__(self):
        if self.size == 1:
            return self._all()[0].__bool__()
        if self.size == 0:
            raise ValueError("The truth value of an empty array is ambiguous. Use `array.size > 0` to check it.")
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")

    def __repr__(self):
        from numpy._print import array_repr

        return array_repr(self)

    def __str__(self):
        from numpy._print import array2string

        return array2string(self) if self.ndim else str(self[()])

    def __format__(self, spec):
        if self.ndim == 0:
            return format(self[()], spec)
        if spec:
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return str(self)

    def __contains__(self, value):
        return bool((self == value).any())

    # --- elements

    def __getitem__(self, index):
        if type(index) is int and self._shape:
            size = self._shape[0]
            if not -size <= index < size:
                raise IndexError(f"index {index} is out of bounds for axis 0 with size {size}")
            offset = self._offset + (index + size if index < 0 else index) * self._steps[0]
            if len(self._shape) > 1:
                return self._seen(self._shape[1:], self._steps[1:], offset)
            values = self._memory.values()
            return scalar(values[offset], self.dtype) if values is not None else unknown(self.dtype)
        return _index.get(self, index)

    def __setitem__(self, index, value):
        _index.put(self, index, value)


def view(memory, shape, steps, offset, kind):
    made = object.__new__(ndarray)
    made._memory, made._shape, made._steps, made._offset, made.dtype = memory, shape, steps, offset, kind
    made.base, made._is_writeable = None, True
    return made


def filled(shape, kind, values):
    """A new array of these elements, in the order of C; `None` for elements that are not known."""
    shape = tuple(shape)
    return view(Memory(values), shape, strides_of(shape), 0, kind)


def laid_out(shape, order, kind, values):
    """The same, whose memory has the axes in another order."""
    if order == list(range(len(shape))):
        return filled(shape, kind, values)
    inner = [shape[axis] for axis in order]
    steps, strides = [0] * len(shape), strides_of(inner)
    for axis, stride in zip(order, strides):
        steps[axis] = stride
    if values is not None:
        moved = [None] * len(values)
        for place, value in zip(places(shape, steps), values):
            moved[place] = value
        values = moved
    return view(Memory(values), tuple(shape), tuple(steps), 0, kind)


def laid_out_as(array, kind, values):
    return laid_out(array._shape, memory_order(array._shape, array._steps), kind, values)


def _restored(shape, kind, values):
    return filled(shape, of(kind), values)


def broadcast_to(array, shape):
    from numpy._making import asarray

    array, shape = asarray(array), shape_of(shape)
    if len(shape) < array.ndim or broadcast(array._shape, shape) != shape:
        raise ValueError(
            f"operands could not be broadcast together: {text_of(array._shape)} and requested shape {text_of(shape)}"
        )
    made = spread(array, shape)
    made._is_writeable = False
    return made


def spread(array, shape):
    """The array as a view of a larger shape, whose new elements are the same ones."""
    if array._shape == shape:
        return array
    missing = len(shape) - array.ndim
    steps = [0] * missing + [
        0 if a == 1 and b != 1 else step for a, b, step in zip(array._shape, shape[missing:], array._steps)
    ]
    return array._seen(shape, steps, array._offset)
