"""Abstract containers."""

from abc import ABCMeta, abstractmethod


def _has(*names):
    def check(cls, other):
        for name in names:
            for base in other.__mro__:
                if name in base.__dict__:
                    if base.__dict__[name] is None:
                        return NotImplemented
                    break
            else:
                return NotImplemented
        return True

    return check


def _abstract(name, methods, bases=()):
    def hook(cls, other):
        return check(cls, other) if cls is made else NotImplemented

    check = _has(*methods)
    made = ABCMeta(
        name,
        bases,
        {
            "__slots__": (),
            "__module__": "collections.abc",
            "__subclasshook__": classmethod(hook),
            "__class_getitem__": classmethod(lambda cls, item: cls),
        },
    )
    return made


Hashable = _abstract("Hashable", ["__hash__"])
Callable = _abstract("Callable", ["__call__"])
Iterable = _abstract("Iterable", ["__iter__"])
Iterator = _abstract("Iterator", ["__iter__", "__next__"], (Iterable,))
Generator = _abstract("Generator", ["__iter__", "__next__", "send", "throw", "close"], (Iterator,))
Reversible = _abstract("Reversible", ["__reversed__", "__iter__"], (Iterable,))
Sized = _abstract("Sized", ["__len__"])
Container = _abstract("Container", ["__contains__"])
Collection = _abstract("Collection", ["__len__", "__iter__", "__contains__"], (Sized, Iterable, Container))
Awaitable = _abstract("Awaitable", ["__await__"])


class Sequence(Reversible, Collection):
    __slots__ = ()

    def __iter__(self):
        i = 0
        while True:
            try:
                value = self[i]
            except IndexError:
                return
            yield value
            i += 1

    def __contains__(self, value):
        return any(v is value or v == value for v in self)

    def __reversed__(self):
        for i in reversed(range(len(self))):
            yield self[i]

    def index(self, value, start=0, stop=None):
        for i in range(start, len(self) if stop is None else stop):
            if self[i] is value or self[i] == value:
                return i
        raise ValueError

    def count(self, value):
        return sum(1 for v in self if v is value or v == value)


class MutableSequence(Sequence):
    __slots__ = ()

    def append(self, value):
        self.insert(len(self), value)

    def extend(self, values):
        for value in values:
            self.append(value)

    def pop(self, index=-1):
        value = self[index]
        del self[index]
        return value

    def __iadd__(self, values):
        self.extend(values)
        return self


class Set(Collection):
    __slots__ = ()


class MutableSet(Set):
    __slots__ = ()


class Mapping(Collection):
    __slots__ = ()

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key):
        try:
            self[key]
        except KeyError:
            return False
        return True

    def keys(self):
        return list(self)

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]

    def __eq__(self, other):
        return dict(self.items()) == dict(other.items()) if isinstance(other, Mapping) else NotImplemented


class MutableMapping(Mapping):
    __slots__ = ()

    def pop(self, key, *default):
        try:
            value = self[key]
        except KeyError:
            if default:
                return default[0]
            raise
        del self[key]
        return value

    def clear(self):
        for key in list(self):
            del self[key]

    def update(self, other=(), /, **kwds):
        for key in other if hasattr(other, "keys") else ():
            self[key] = other[key]
        if not hasattr(other, "keys"):
            for key, value in other:
                self[key] = value
        for key, value in kwds.items():
            self[key] = value

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]


Sequence.register(tuple)
Sequence.register(str)
Sequence.register(range)
Sequence.register(bytes)
MutableSequence.register(list)
MutableSequence.register(bytearray)
Set.register(frozenset)
MutableSet.register(set)
MutableMapping.register(dict)
KeysView = ValuesView = ItemsView = MappingView = Collection
