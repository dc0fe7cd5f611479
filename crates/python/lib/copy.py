"""Shallow and deep copies."""

import types as _types


class Error(Exception):
    pass


error = Error
_ATOMIC = (
    type(None),
    type(...),
    int,
    float,
    bool,
    complex,
    bytes,
    str,
    type,
    range,
    _types.FunctionType,
    type(len),
    property,
)


def copy(x):
    cls = type(x)
    if isinstance(x, _ATOMIC) or cls in (tuple, frozenset):
        return x
    if cls in (list, dict, set, bytearray):
        return x.copy()
    if hasattr(cls, "__copy__"):
        return x.__copy__()
    return _rebuild(x, x.__reduce_ex__(4), None)


_MISSING = []


def deepcopy(x, memo=None, _nil=_MISSING):
    cls = type(x)
    if cls in _ATOMIC or isinstance(x, type):
        return x
    if memo is None:
        memo = {}
    key = id(x)
    y = memo.get(key, _nil)
    if y is not _nil:
        return y
    if cls is list:
        y = memo[key] = []
        for item in x:
            y.append(deepcopy(item, memo))
    elif cls is dict:
        y = memo[key] = {}
        for k, v in x.items():
            y[deepcopy(k, memo)] = deepcopy(v, memo)
    elif cls is tuple:
        y = tuple([deepcopy(item, memo) for item in x])
        y = x if all(a is b for a, b in zip(x, y)) else y
    elif cls is set or cls is frozenset:
        y = cls([deepcopy(item, memo) for item in x])
    elif cls is _types.MethodType:
        y = _types.MethodType(x.__func__, deepcopy(x.__self__, memo))
    elif hasattr(cls, "__deepcopy__"):
        y = x.__deepcopy__(memo)
    elif isinstance(x, (_types.ModuleType,)):
        y = x
    else:
        y = _rebuild(x, x.__reduce_ex__(4), memo)
    if y is not x:
        memo[key] = y
        memo.setdefault(id(memo), []).append(x)
    return y


def _rebuild(x, reduced, memo):
    if isinstance(reduced, str):
        return x
    make, args, state, items, pairs = (tuple(reduced) + (None,) * 5)[:5]
    deep = memo is not None
    if deep:
        args = tuple(deepcopy(a, memo) for a in args)
    y = make(*args)
    if deep:
        memo[id(x)] = y
    if state is not None:
        if deep:
            state = deepcopy(state, memo)
        if hasattr(y, "__setstate__"):
            y.__setstate__(state)
        else:
            slots = None
            if isinstance(state, tuple) and len(state) == 2:
                state, slots = state
            if state is not None:
                y.__dict__.update(state)
            for name, value in (slots or {}).items():
                setattr(y, name, value)
    for item in items or ():
        y.append(deepcopy(item, memo) if deep else item)
    for key, value in pairs or ():
        y[deepcopy(key, memo) if deep else key] = deepcopy(value, memo) if deep else value
    return y


def replace(obj, /, **changes):
    return obj.__replace__(**changes)
