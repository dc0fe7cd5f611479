"""Containers beyond the built-in ones."""

from _collections import deque
from collections import abc


class OrderedDict(dict):
    def move_to_end(self, key, last=True):
        value = self.pop(key)
        if last:
            self[key] = value
        else:
            rest = list(self.items())
            self.clear()
            self[key] = value
            self.update(rest)

    def popitem(self, last=True):
        if last or not self:
            return dict.popitem(self)
        key = next(iter(self))
        return key, self.pop(key)

    def __eq__(self, other):
        if isinstance(other, OrderedDict):
            return dict.__eq__(self, other) and list(self) == list(other)
        return dict.__eq__(self, other)

    __hash__ = None

    def copy(self):
        return self.__class__(self)

    def __repr__(self):
        return f"{type(self).__name__}({dict.__repr__(self) if self else ''})"


class defaultdict(dict):
    def __init__(self, default_factory=None, /, *args, **kwargs):
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable or None")
        dict.__init__(self, *args, **kwargs)
        self.default_factory = default_factory

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = value = self.default_factory()
        return value

    def copy(self):
        return type(self)(self.default_factory, self)

    def __repr__(self):
        return f"defaultdict({self.default_factory!r}, {dict.__repr__(self)})"


class Counter(dict):
    def __init__(self, iterable=None, /, **kwds):
        dict.__init__(self)
        self.update(iterable, **kwds)

    def __missing__(self, key):
        return 0

    def update(self, iterable=None, /, **kwds):
        if hasattr(iterable, "items"):
            for key, count in iterable.items():
                self[key] = self[key] + count
        elif iterable is not None:
            for key in iterable:
                self[key] = self[key] + 1
        for key, count in kwds.items():
            self[key] = self[key] + count

    def subtract(self, iterable=None, /, **kwds):
        for key, count in Counter(iterable, **kwds).items():
            self[key] = self[key] - count

    def most_common(self, n=None):
        ordered = sorted(self.items(), key=lambda item: item[1], reverse=True)
        return ordered if n is None else ordered[:n]

    def elements(self):
        for key, count in self.items():
            for _ in range(count):
                yield key

    def total(self):
        return sum(self.values())

    def copy(self):
        return Counter(self)

    def __add__(self, other):
        result = Counter(self)
        result.update(other)
        return +result

    def __sub__(self, other):
        result = Counter(self)
        result.subtract(other)
        return +result

    def __pos__(self):
        return Counter({key: count for key, count in self.items() if count > 0})

    def __repr__(self):
        if not self:
            return "Counter()"
        return "Counter({" + ", ".join(f"{key!r}: {count!r}" for key, count in self.most_common()) + "})"


class ChainMap(abc.MutableMapping):
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for mapping in self.maps:
            if key in mapping:
                return mapping[key]
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        del self.maps[0][key]

    def __iter__(self):
        merged = {}
        for mapping in reversed(self.maps):
            merged.update(dict.fromkeys(mapping))
        return iter(merged)

    def __len__(self):
        return len(set().union(*self.maps))

    def new_child(self, m=None):
        return ChainMap({} if m is None else m, *self.maps)


class UserDict(abc.MutableMapping):
    def __init__(self, other=None, /, **kwargs):
        self.data = {}
        self.update(other or {}, **kwargs)

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        self.data[key] = value

    def __delitem__(self, key):
        del self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return repr(self.data)


def namedtuple(typename, field_names, *, rename=False, defaults=None, module=None):
    if isinstance(field_names, str):
        field_names = field_names.replace(",", " ").split()
    fields = tuple(str(name) for name in field_names)
    defaults = tuple(defaults or ())
    given = dict(zip(fields[len(fields) - len(defaults) :], defaults))

    def __new__(cls, *args, **kwargs):
        if len(args) > len(fields):
            raise TypeError(
                f"{typename}.__new__() takes {len(fields) + 1} positional arguments but {len(args) + 1} were given"
            )
        values = list(args)
        for name in fields[len(args) :]:
            if name in kwargs:
                values.append(kwargs.pop(name))
            elif name in given:
                values.append(given[name])
            else:
                raise TypeError(f"{typename}.__new__() missing 1 required positional argument: '{name}'")
        if kwargs:
            raise TypeError(f"{typename}.__new__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        return tuple.__new__(cls, values)

    namespace = {
        "__new__": __new__,
        "_fields": fields,
        "_field_defaults": given,
        "__slots__": (),
        "__match_args__": fields,
        "_make": classmethod(lambda cls, iterable: cls(*iterable)),
        "_asdict": lambda self: dict(zip(fields, self)),
        "_replace": lambda self, /, **kwds: type(self)(**{**dict(zip(fields, self)), **kwds}),
        "__repr__": lambda self: (
            type(self).__name__ + "(" + ", ".join(f"{n}={v!r}" for n, v in zip(fields, self)) + ")"
        ),
        "__getnewargs__": lambda self: tuple(self),
    }
    for index, name in enumerate(fields):
        namespace[name] = property(lambda self, index=index: self[index])
    return type(typename, (tuple,), namespace)
