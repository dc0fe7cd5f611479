"""numpy itself, where it is installed: arrays of numbers that nobody knows, and arrays over the memory of tensors.

An array with an unknown number in it has a separate class, whose elements are objects. Every function of numpy gives numbers
that are unknown for it, in the shape and the type that numpy gives; what depends on the values is refused in words.
"""

import collections
import sys
import weakref

import torch
from torch._unknown import UnknownNumber

# What these functions give does not depend on the elements.
_OF_SHAPES = {
    "shape",
    "ndim",
    "size",
    "result_type",
    "can_cast",
    "may_share_memory",
    "shares_memory",
    "zeros_like",
    "ones_like",
    "empty_like",
}
# The shape of what these functions give depends on the elements.
_OF_VALUES = {
    "nonzero", "argwhere", "flatnonzero", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "extract", "compress",
    "bincount", "setdiff1d", "union1d", "intersect1d", "setxor1d", "trim_zeros", "save", "savez", "savez_compressed", "savetxt", "histogramdd",
    "histogram_bin_edges", "iscomplexobj", "isrealobj", "array_equiv", "real_if_close", "tobytes", "tofile", "dump", "dumps", "choose",
}  # fmt: skip
_TEXTS = {"array2string": str, "array_str": str, "array_repr": repr}
_WRITES = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"}
_IN_PLACE = ("fill", "sort", "partition", "put", "byteswap", "resize", "itemset")
_METHODS = (
    "all any argmax argmin argpartition argsort clip conj conjugate cumprod cumsum diagonal dot flatten max mean min prod ptp ravel repeat "
    "round searchsorted std sum take trace var astype"
).split()
_REFUSED = ("nonzero", "compress", "tobytes", "tofile", "dump", "dumps", "choose")

_numpy = UnknownArray = SharedArray = _plain_array = None


def _refuse(name):
    raise ValueError(
        f"numpy.{name} needs values that lie on the GPU or are random, which are not computed here; use numbers in their place"
    )


def _dtype_of(number):
    name = str(number.dtype).rpartition(".")[2] if number.dtype is not None else "float64"
    return _numpy.dtype("bool" if name == "bool" else "int64" if "int" in name else "float64")


def _stand(value):
    """A value without unknown numbers in the place of one that has them: the same shape and the same type."""
    if type(value) is UnknownNumber:
        return {"f": 1.0, "i": 1, "b": True}[_dtype_of(value).kind]
    if isinstance(value, UnknownArray):
        return _numpy.ones(value.shape, value.dtype)
    if isinstance(value, SharedArray):
        return value._pulled()
    if type(value) in (list, tuple):
        return type(value)(map(_stand, value))
    if type(value) is dict:
        return {key: _stand(item) for key, item in value.items()}
    return value


def _is_unknown(value):
    if type(value) is UnknownNumber or isinstance(value, UnknownArray):
        return True
    if type(value) in (list, tuple):
        return any(map(_is_unknown, value))
    return type(value) is dict and any(map(_is_unknown, value.values()))


def _number(dtype):
    return UnknownNumber(getattr(torch, {"bool_": "bool"}.get(dtype.name, dtype.name), torch.float64))


def unknown_array(shape, dtype):
    """An array of numbers that nobody knows; it takes no memory."""
    dtype = _numpy.dtype(dtype)
    one = _numpy.empty((), object)
    one[()] = _number(dtype)
    made = _numpy.broadcast_to(one, shape).view(UnknownArray)
    made._claimed = dtype
    return made


def _unknown(result):
    """A result of numpy with unknown numbers in the place of its numbers."""
    if isinstance(result, _numpy.ndarray):
        return (
            unknown_array(result.shape, result.dtype)
            if result.dtype.kind in "biuf"
            else _refuse("array of " + result.dtype.name)
        )
    if isinstance(result, (_numpy.generic, bool, int, float)):
        return _number(_numpy.asarray(result).dtype)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(_unknown, result))
    if isinstance(result, (list, tuple)):
        return type(result)(map(_unknown, result))
    return result


def _forget(array):
    """Makes all numbers of an array unknown."""
    if array.flags.writeable:
        _numpy.ndarray.__setitem__(array, ..., _number(array.dtype))


def _computed(name, function, arguments, keywords):
    """What numpy gives for numbers in the places of unknown values."""
    if (
        name in _OF_VALUES
        or name in ("where", "repeat", "delete", "insert")
        and _is_unknown(arguments[1:] if name != "where" else len(arguments) == 1 and [arguments[0]] or ())
    ):
        _refuse(name)
    with _numpy.errstate(all="ignore"):
        try:
            return function(*_stand(tuple(arguments)), **_stand(keywords))
        except _numpy.linalg.LinAlgError:
            _refuse(name)


def call_ufunc(ufunc, method, inputs, keywords):
    """A function of each element, of which an argument is unknown or has the memory of a tensor."""
    outs = keywords.get("out") or ()
    if method == "at":
        if isinstance(inputs[0], UnknownArray):
            _forget(inputs[0])
            return None
        if _is_unknown(inputs):
            _refuse(f"{ufunc.__name__}.at")
    if not _is_unknown(inputs) and not _is_unknown(tuple(outs)) and not _is_unknown(keywords.get("where", True)):
        keywords["out"] = tuple(_stand(out) for out in outs) or None
        result = getattr(ufunc, method)(*_stand(inputs), **keywords)
        for out in outs or inputs[:1] if method == "at" else outs:
            if isinstance(out, SharedArray):
                out._push()
        return outs[0] if len(outs) == 1 else outs or result
    keywords.pop("out", None)
    result = _computed(ufunc.__name__, getattr(ufunc, method), inputs, keywords)
    for out in outs:
        if not isinstance(out, UnknownArray):
            raise ValueError(
                "an array of numbers cannot take numbers that lie on the GPU or are random, which are not computed here; "
                "assign the result to a new name, as in a = a + b"
            )
        _forget(out)
    return outs[0] if len(outs) == 1 else outs or _unknown(result)


def call_function(function, arguments, keywords):
    """Another function of numpy, of which an argument is unknown or has the memory of a tensor."""
    name = function.__name__
    if not _is_unknown(arguments) and not _is_unknown(keywords):
        result = function(*_stand(tuple(arguments)), **_stand(keywords))
        if name in _WRITES and isinstance(arguments[0], SharedArray):
            arguments[0]._push()
        return result
    if name in _TEXTS and arguments:
        return _TEXTS[name](arguments[0])
    if name in _WRITES or keywords.get("out") is not None:
        target = keywords.get("out", arguments[0] if arguments else None)
        if not isinstance(target, UnknownArray):
            _refuse(f"{name} into an array of numbers")
        _forget(target)
        return target if name not in _WRITES else None
    if getattr(function, "__module__", "").startswith("numpy.testing"):
        from _host import note

        note("the assertion depends on values that are not computed; it is assumed to hold")
        return None
    if name == "full_like" and not _is_unknown(arguments[1:]):
        return function(*_stand(tuple(arguments)), **keywords)
    result = _computed(name, function, arguments, keywords)
    return result if name in _OF_SHAPES else _unknown(result)


def _make_classes():
    base = _numpy.ndarray

    class UnknownArray(base):
        """An array with unknown numbers: an array of objects, which says of itself that it has the type of the numbers."""

        def __array_finalize__(self, other):
            self._claimed = getattr(other, "_claimed", None)

        dtype = property(lambda self: self._claimed or base.dtype.__get__(self))
        itemsize = property(lambda self: self.dtype.itemsize)
        nbytes = property(lambda self: self.dtype.itemsize * self.size)

        def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
            return call_ufunc(ufunc, method, inputs, keywords)

        def __array_function__(self, function, types, arguments, keywords):
            return call_function(function, arguments, keywords)

        def __getitem__(self, index):
            if _is_unknown(index):
                return _taken(self, index)
            found = base.__getitem__(self, index)
            return self.dtype.type(found) if type(found) in (int, float, bool) else found

        def __setitem__(self, index, value):
            if _is_unknown(index):
                _forget(self)
            elif self.flags.writeable:
                value = base.view(value, base) if isinstance(value, UnknownArray) else value
                base.__setitem__(self, index, value)

        def __str__(self):
            return str(self.view(base)) if self.ndim else str(self[()])

        def __repr__(self):
            text = repr(self.view(base))
            if self.dtype.name in ("float64", "int64", "bool"):
                return text.replace(", dtype=object)", ")").replace(",\n      dtype=object)", ")")
            return text.replace("dtype=object)", f"dtype={self.dtype.name})")

        def __format__(self, spec):
            return format(self[()], spec) if not self.ndim else str(self)

        def __reduce_ex__(self, protocol):
            _refuse("ndarray.__reduce__")

        __reduce__ = __reduce_ex__

        def __deepcopy__(self, memo):
            return self.copy()

        def __contains__(self, value):
            return bool(_number(_numpy.dtype(bool)))

    for name in _METHODS:
        setattr(UnknownArray, name, _method(name))
    for name in _IN_PLACE:
        setattr(UnknownArray, name, lambda self, *arguments, **keywords: _forget(self))
    for name in _REFUSED:
        setattr(UnknownArray, name, lambda self, *arguments, name=name, **keywords: _refuse(f"ndarray.{name}"))

    class SharedArray(base):
        """An array over the memory of a tensor: it reads what the tensor has, and the tensor gets what is written."""

        def __array_finalize__(self, other):
            self._link = getattr(other, "_link", None)

        def _is_linked(self):
            return self._link is not None and _numpy.may_share_memory(self.view(base), self._link.memory)

        def _pulled(self):
            if self._is_linked():
                self._link.pull()
            return self.view(base)

        def _push(self):
            if self._is_linked():
                self._link.push()

        def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
            return call_ufunc(ufunc, method, inputs, keywords)

        def __array_function__(self, function, types, arguments, keywords):
            return call_function(function, arguments, keywords)

        def __getitem__(self, index):
            self._pulled()
            return base.__getitem__(self, _stand(index) if not _is_unknown(index) else index)

        def __setitem__(self, index, value):
            self._pulled()
            base.__setitem__(self, _stand(index), value)
            self._push()

    for name in ("__str__", "__repr__", "__format__", "__iter__", "__contains__", "__float__", "__int__", "__bool__", "__index__", "__reduce__",
                 "tolist", "item", "copy", "tobytes", "nonzero", "compress", "choose", *_METHODS):  # fmt: skip
        setattr(SharedArray, name, _reading(name, base))
    for name in _IN_PLACE:
        setattr(SharedArray, name, _writing(name, base))
    for cls in (UnknownArray, SharedArray):
        # A program sees numpy's own class.
        cls.__name__ = cls.__qualname__ = "ndarray"
        cls.__module__ = "numpy"
    return UnknownArray, SharedArray


def _method(name):
    def call(self, *arguments, **keywords):
        if _is_unknown(keywords.get("out")) or _is_unknown(arguments) and name == "repeat":
            _refuse(f"ndarray.{name}")
        with _numpy.errstate(all="ignore"):
            return _unknown(getattr(_stand(self), name)(*_stand(arguments), **_stand(keywords)))

    call.__name__ = name
    return call


def _reading(name, base):
    def call(self, *arguments, **keywords):
        found = getattr(self._pulled(), name)
        return found(*arguments, **keywords)

    call.__name__ = name
    return call


def _writing(name, base):
    def call(self, *arguments, **keywords):
        getattr(self._pulled(), name)(*arguments, **keywords)
        self._push()

    call.__name__ = name
    return call


def _taken(array, index):
    """Elements at places that are not known."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, UnknownArray) and part.dtype.kind == "b" for part in parts):
        _refuse("ndarray[condition]")
    places = [part if not _is_unknown(part) else _stand(part) * 0 for part in parts]
    return _unknown(_numpy.ones(array.shape, array.dtype)[tuple(places)])


class _Link:
    """The memory of a tensor and that of an array, which change together."""

    def __init__(self, tensor, memory):
        self.tensor, self.memory, self.version = tensor, memory, tensor._version

    def pull(self):
        if self.tensor._version == self.version:
            return
        values, self.version = self.tensor._known_values(), self.tensor._version
        if values is None or UnknownNumber in map(type, values):
            _refuse("ndarray over a tensor that was changed")
        self.memory.reshape(-1)[:] = values

    def push(self):
        self.tensor._set_values(self.memory.reshape(-1).tolist())
        self.version = self.tensor._version


def shared(tensor, name):
    """`Tensor.numpy()`."""
    values = tensor._known_values()
    if values is None:
        return unknown_array(tuple(tensor.shape), name)
    if UnknownNumber in map(type, values):
        made = _numpy.empty(len(values), object)
        made[:] = values
        made = made.reshape(tuple(tensor.shape)).view(UnknownArray)
        made._claimed = _numpy.dtype(name)
        return made
    memory = _plain_array(values, name).reshape(tuple(tensor.shape))
    made = memory.view(SharedArray)
    made._link = _Link(tensor, memory)
    return made


def values_of(value):
    """The elements of an array or of one number."""
    if isinstance(value, UnknownArray):
        return value.view(_numpy.ndarray).ravel().tolist()
    if isinstance(value, SharedArray):
        value = value._pulled()
    return _numpy.ravel(value).tolist()


def tensor_under(array):
    """The tensor whose memory an array of `Tensor.numpy()` has, in the shape of the array; `None` for other arrays."""
    if not isinstance(array, SharedArray) or not array._is_linked() or not array._link.tensor.is_contiguous():
        return None
    tensor, size = array._link.tensor.detach(), array.itemsize
    first = (array.ctypes.data - array._link.memory.ctypes.data) // size
    steps = [stride // size for stride in array.strides]
    return tensor.as_strided(list(array.shape), steps, tensor.storage_offset() + first)


class _Pair:
    """An array and the tensor that `torch.from_numpy` made of it: here the two do not change together."""

    def __init__(self, array, tensor):
        self.array, self.bytes = array, array.tobytes() if array.size <= 65536 else None
        # Another tensor over the same memory, so that the first one may die.
        self.tensor, self.version = tensor.detach(), tensor._version
        self.line, self.was_writeable = _line_of_program(), array.flags.writeable
        # A write to the array is an error while the tensor lives.
        array.flags.writeable = False

    def release(self):
        """The tensor has died; views of the tensor may live on."""
        if self.was_writeable:
            try:
                self.array.flags.writeable = True
            except ValueError:
                pass  # Its memory is read-only.
        self.check()
        _pairs.discard(self)
        if self.bytes is not None:
            if len(_released) == _released.maxlen:
                _released[0].check()
            _released.append(self)

    def check(self):
        """Notes a change that only one of the two has, once in a program."""
        global _is_noted
        is_array_changed = self.bytes is not None and self.array.tobytes() != self.bytes
        if (is_array_changed or self.tensor._version != self.version) and not _is_noted:
            from _host import note

            _is_noted = True
            note(
                f"the array of torch.from_numpy at line {self.line} or its tensor was changed, and the other one does not have the "
                "change here: use tensor.numpy() in the place of the array"
            )


# The pairs whose tensors live, and the last small ones whose tensors died.
_pairs, _released, _is_noted = set(), collections.deque(maxlen=64), False


def _line_of_program():
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__") != "__main__":
        frame = frame.f_back
    return frame.f_lineno


def keep(array, tensor):
    """Remembers that a tensor was made of an array, whose memory the tensor has in PyTorch."""
    if not isinstance(array, (UnknownArray, SharedArray)):
        pair = _Pair(array, tensor)
        _pairs.add(pair)
        weakref.finalize(tensor, pair.release)


def check_pairs():
    """Notes changes that only an array or its tensor has, at the end of the program."""
    for pair in (*_pairs, *_released):
        pair.check()


def install(numpy):
    """Prepares numpy after its import."""
    global _numpy, UnknownArray, SharedArray, _plain_array
    _numpy, _plain_array = numpy, numpy.array
    UnknownArray, SharedArray = _make_classes()
    from torch import _numpy_functions

    _numpy_functions.install(numpy)
