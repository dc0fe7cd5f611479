"""Objects in files, which are kept in memory: a copy of the object itself stands for its bytes."""

from copy import deepcopy as _copy

HIGHEST_PROTOCOL = DEFAULT_PROTOCOL = 5


class PickleError(Exception):
    pass


PicklingError = UnpicklingError = PickleError


class _Bytes(bytes):
    pass


def dumps(obj, protocol=None, **kwargs):
    made = _Bytes(b"pickle")
    made.value = _copy(obj)
    return made


def loads(data, **kwargs):
    if not isinstance(data, _Bytes):
        raise UnpicklingError("only what this program pickled itself can be read here")
    return _copy(data.value)


def dump(obj, file, protocol=None, **kwargs):
    import _files

    _files.store(file.name, _copy(obj))
    file._store = lambda: None


def load(file, **kwargs):
    if hasattr(file, "value"):
        return _copy(file.value)
    raise UnpicklingError("pickles cannot be read here; put the data into the program")
