"""numpy's functions, where numpy is installed, for lists that have unknown numbers and tensors in them.

numpy would make arrays of objects of such lists, which compare as known numbers do.
"""

from _torch import TensorBase

from torch import _numpy_arrays as _arrays
from torch._unknown import UnknownNumber

_numpy = None


def _with_unknown(made, dtype):
    """An array of objects as one with unknown numbers, if it has any."""
    if made.dtype != object or isinstance(made, _arrays.UnknownArray):
        return made
    values = made.ravel().tolist()
    if UnknownNumber not in map(type, values):
        return made
    if dtype is None:
        kinds = [
            _arrays._dtype_of(value) if type(value) is UnknownNumber else _arrays._plain_array(value).dtype
            for value in values
        ]
        dtype = _numpy.result_type(*set(kinds))
    dtype = _numpy.dtype(dtype)
    if dtype.kind not in "biuf":
        return made
    made = made.view(_arrays.UnknownArray)
    made._claimed = dtype
    return made


def _has_unknown(value):
    """Whether a list has unknown numbers, or tensors, in it."""
    if type(value) in (list, tuple):
        return any(map(_has_unknown, value))
    return type(value) is UnknownNumber or isinstance(value, (_arrays.UnknownArray, TensorBase))


def _prepared(value):
    """A list with unknown numbers as an array."""
    return _numpy.asarray(value) if type(value) in (list, tuple) and _has_unknown(value) else value


def _making(function):
    """A function that makes an array of lists, arrays and tensors."""
    is_copy = function.__name__ == "array"

    def make(object, dtype=None, *arguments, **keywords):
        if isinstance(object, TensorBase):
            object = object.numpy()
        if isinstance(object, (_arrays.UnknownArray, _arrays.SharedArray)) and (dtype is None or object.dtype == dtype):
            return object.copy() if is_copy and keywords.get("copy", True) else object
        if isinstance(object, _arrays.UnknownArray):
            return object.astype(dtype)
        if type(object) in (list, tuple) and any(isinstance(item, TensorBase) for item in object):
            object = [make(item) if isinstance(item, TensorBase) else item for item in object]
        if type(object) in (list, tuple) and any(isinstance(item, _arrays.UnknownArray) for item in object):
            object = [item.view(_numpy.ndarray) if isinstance(item, _arrays.UnknownArray) else item for item in object]
        try:
            made = function(object, dtype, *arguments, **keywords)
        except ValueError:
            if not _has_unknown(object):
                raise
            made = function(object, _numpy.dtype("O"))
        return _with_unknown(made, dtype) if made.dtype.kind == "O" else made

    make.__name__, make.__doc__, make.__module__ = function.__name__, function.__doc__, "numpy"
    return make


def _calling(function):
    """A function of which an argument may be a list of unknown numbers."""

    def call(*arguments, **keywords):
        if (
            function.__name__ in _JOINING
            and arguments
            and type(arguments[0]) in (list, tuple)
            and _has_unknown(arguments[0])
        ):
            arguments = ([_numpy.asarray(item) for item in arguments[0]], *arguments[1:])
        elif arguments:
            arguments = tuple(map(_prepared, arguments))
        found = function(*arguments, **{name: _prepared(value) for name, value in keywords.items()})
        return _with_unknown(found, None) if type(found) is _numpy.ndarray and found.dtype.kind == "O" else found

    call.__name__, call.__doc__, call.__module__ = function.__name__, function.__doc__, "numpy"
    return call


class _Ufunc:
    """A function of each element, of which an argument may be a list of unknown numbers."""

    def __init__(self, ufunc):
        self._ufunc, self.__doc__, self.__name__ = ufunc, ufunc.__doc__, ufunc.__name__

    def __call__(self, *arguments, **keywords):
        return self._ufunc(*map(_prepared, arguments), **keywords)

    def __getattr__(self, name):
        return getattr(self._ufunc, name)

    def __repr__(self):
        return repr(self._ufunc)

    def __reduce__(self):
        return self._ufunc.__reduce__()


_JOINING = ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "broadcast_arrays")


def install(numpy):
    """Puts the functions into numpy."""
    global _numpy
    _numpy = numpy
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        setattr(numpy, name, _making(getattr(numpy, name)))
    for name, function in list(vars(numpy).items()):
        if isinstance(function, numpy.ufunc):
            setattr(numpy, name, _Ufunc(function))
        elif name == "full" or type(function).__name__ == "_ArrayFunctionDispatcher":
            setattr(numpy, name, _calling(function))
