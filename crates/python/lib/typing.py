"""Type annotations: nothing checks them, so they are names that can be subscripted and combined."""

import collections as _collections
from collections import abc as _abc
from contextlib import AbstractContextManager as ContextManager

TYPE_CHECKING = False


class _Form:
    def __init__(self, name, origin=None, args=()):
        self._name, self.__origin__, self.__args__ = name, origin, args

    def __getitem__(self, args):
        args = args if isinstance(args, tuple) else (args,)
        return _Form(self._name, self, args)

    def __call__(self, *args, **kwargs):
        if isinstance(self.__origin__, type):
            return self.__origin__(*args, **kwargs)
        raise TypeError(f"Type {self._name} cannot be instantiated")

    def __or__(self, other):
        return _Form("Union", None, (self, other))

    __ror__ = __or__

    def __mro_entries__(self, bases):
        return (self.__origin__,) if isinstance(self.__origin__, type) else (Generic,)

    def __instancecheck__(self, value):
        return isinstance(value, self.__origin__ if isinstance(self.__origin__, type) else object)

    def __hash__(self):
        return hash(self._name)

    def __eq__(self, other):
        return isinstance(other, _Form) and self._name == other._name and self.__args__ == other.__args__

    def __repr__(self):
        inside = ", ".join(getattr(a, "__name__", repr(a)) for a in self.__args__)
        return f"typing.{self._name}" + (f"[{inside}]" if self.__args__ else "")


class Generic:
    def __class_getitem__(cls, args):
        return cls

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__()


class Protocol(Generic):
    pass


class TypeVar:
    def __init__(self, name, *constraints, bound=None, covariant=False, contravariant=False, default=None):
        self.__name__, self.__constraints__, self.__bound__ = name, constraints, bound

    def __or__(self, other):
        return _Form("Union", None, (self, other))

    __ror__ = __or__

    def __repr__(self):
        return "~" + self.__name__


class ParamSpec(TypeVar):
    args = kwargs = None


TypeVarTuple = TypeVar
for _name in (
    "Any",
    "Union",
    "Optional",
    "Literal",
    "Final",
    "ClassVar",
    "Annotated",
    "Type",
    "NoReturn",
    "Never",
    "Self",
    "TypeAlias",
    "Concatenate",
    "TypeGuard",
    "LiteralString",
    "Required",
    "NotRequired",
    "Unpack",
    "Required",
    "Awaitable",
    "Coroutine",
    "AsyncIterator",
    "AsyncGenerator",
    "SupportsFloat",
    "SupportsInt",
    "SupportsIndex",
    "Hashable",
    "Sized",
    "IO",
    "TextIO",
    "BinaryIO",
    "Pattern",
    "Match",
    "AnyStr",
    "Text",
):
    globals()[_name] = _Form(_name)
for _name, _origin in (
    ("List", list),
    ("Dict", dict),
    ("Set", set),
    ("FrozenSet", frozenset),
    ("Tuple", tuple),
    ("Callable", _abc.Callable),
    ("Iterable", _abc.Iterable),
    ("Iterator", _abc.Iterator),
    ("Generator", _abc.Generator),
    ("Sequence", _abc.Sequence),
    ("MutableSequence", _abc.MutableSequence),
    ("Mapping", _abc.Mapping),
    ("MutableMapping", _abc.MutableMapping),
    ("Collection", _abc.Collection),
    ("Container", _abc.Container),
    ("Reversible", _abc.Reversible),
    ("DefaultDict", _collections.defaultdict),
    ("OrderedDict", _collections.OrderedDict),
    ("Counter", _collections.Counter),
    ("Deque", _collections.deque),
    ("AbstractSet", _abc.Set),
):
    globals()[_name] = _Form(_name, _origin)
Any = type("Any", (), {"__class_getitem__": classmethod(lambda cls, item: cls)})
Text = str


class NamedTupleMeta(type):
    def __new__(mcls, name, bases, namespace):
        if not bases or bases == (_NamedTupleBase,):
            return type.__new__(mcls, name, bases, namespace)
        made = type.__new__(type, "_fields", (), {k: v for k, v in namespace.items() if k.startswith("__annot")})
        names = list(getattr(made, "__annotations__", {}))
        cls = _collections.namedtuple(name, names, defaults=[namespace[n] for n in names if n in namespace])
        for key, value in namespace.items():
            if (
                key not in names
                and not key.startswith("__annot")
                and key not in ("__module__", "__qualname__", "__classcell__")
            ):
                setattr(cls, key, value)
        return cls


class _NamedTupleBase:
    pass


class NamedTuple(_NamedTupleBase, metaclass=NamedTupleMeta):
    pass


class TypedDict(dict):
    def __init_subclass__(cls, total=True, **kwargs):
        pass


def NewType(name, kind):
    return lambda value: value


def cast(kind, value):
    return value


def overload(function):
    return function


def final(item):
    return item


def override(item):
    return item


def runtime_checkable(cls):
    return cls


def no_type_check(item):
    return item


def get_type_hints(obj, *args, **kwargs):
    return dict(getattr(obj, "__annotations__", {}))


def get_origin(kind):
    return getattr(kind, "__origin__", None)


def get_args(kind):
    return getattr(kind, "__args__", ())


def assert_never(value):
    raise AssertionError(f"Expected code to be unreachable, but got: {value!r}")
