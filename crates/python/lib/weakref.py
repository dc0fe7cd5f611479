"""Weak references, and dictionaries that hold their keys or values weakly."""

from _weakref import CallableProxyType, ProxyType, ReferenceType, getweakrefcount, getweakrefs, proxy, ref

ProxyTypes = (ProxyType, CallableProxyType)


class WeakMethod:
    def __init__(self, method, callback=None):
        self._object = ref(method.__self__, callback)
        self._function = method.__func__

    def __call__(self):
        owner = self._object()
        return None if owner is None else self._function.__get__(owner, type(owner))


class WeakValueDictionary:
    def __init__(self, other=(), /, **kwargs):
        self._data = {}
        self.update(other, **kwargs)

    def update(self, other=(), /, **kwargs):
        for key, value in other.items() if hasattr(other, "items") else other:
            self[key] = value
        for key, value in kwargs.items():
            self[key] = value

    def __setitem__(self, key, value):
        data = self._data
        data[key] = ref(value, lambda _, key=key: data.pop(key, None))

    def __getitem__(self, key):
        value = self._data[key]()
        if value is None:
            raise KeyError(key)
        return value

    def __delitem__(self, key):
        del self._data[key]

    def get(self, key, default=None):
        reference = self._data.get(key)
        value = None if reference is None else reference()
        return default if value is None else value

    def __contains__(self, key):
        return self.get(key) is not None

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return iter(list(self._data))

    keys = __iter__

    def values(self):
        return [value for value in (reference() for reference in list(self._data.values())) if value is not None]

    def items(self):
        return [(key, value) for key, value in ((k, r()) for k, r in list(self._data.items())) if value is not None]

    def pop(self, key, *default):
        if key in self._data:
            return self._data.pop(key)()
        if default:
            return default[0]
        raise KeyError(key)


class WeakKeyDictionary:
    def __init__(self, other=None):
        self._data = {}
        if other is not None:
            for key, value in other.items():
                self[key] = value

    def __setitem__(self, key, value):
        data = self._data
        data[ref(key, lambda reference: data.pop(reference, None))] = value

    def __getitem__(self, key):
        return self._data[ref(key)]

    def __delitem__(self, key):
        del self._data[ref(key)]

    def get(self, key, default=None):
        return self._data.get(ref(key), default)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def __contains__(self, key):
        return ref(key) in self._data

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        return [key for key in (reference() for reference in list(self._data)) if key is not None]

    def values(self):
        return list(self._data.values())

    def items(self):
        return [(key, value) for key, value in ((r(), v) for r, v in list(self._data.items())) if key is not None]


class WeakSet:
    def __init__(self, items=()):
        self._data = WeakKeyDictionary()
        for item in items:
            self.add(item)

    def add(self, item):
        self._data[item] = None

    def discard(self, item):
        if item in self._data:
            del self._data[item]

    remove = discard

    def __contains__(self, item):
        return item in self._data

    def __iter__(self):
        return iter(self._data.keys())

    def __len__(self):
        return len(self._data)


def finalize(obj, function, /, *args, **kwargs):
    return ref(obj, lambda _: function(*args, **kwargs))
