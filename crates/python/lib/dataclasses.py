"""Classes made of their fields."""

import copy as _copy


class _Missing:
    def __repr__(self):
        return "<dataclasses._MISSING_TYPE object>"


MISSING = _Missing()
KW_ONLY = type("KW_ONLY", (), {})


class FrozenInstanceError(AttributeError):
    pass


class Field:
    def __init__(self, default, default_factory, init, repr, hash, compare, metadata, kw_only):
        self.name = self.type = None
        self.default, self.default_factory, self.init, self.repr = default, default_factory, init, repr
        self.hash, self.compare, self.metadata, self.kw_only = hash, compare, metadata or {}, kw_only

    def __repr__(self):
        return f"Field(name={self.name!r},type={self.type!r},default={self.default!r})"


def field(
    *,
    default=MISSING,
    default_factory=MISSING,
    init=True,
    repr=True,
    hash=None,
    compare=True,
    metadata=None,
    kw_only=False,
):
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return Field(default, default_factory, init, repr, hash, compare, metadata, kw_only)


def _is_class_variable(annotation):
    return "ClassVar" in (annotation if isinstance(annotation, str) else repr(annotation))


def _own_annotations(cls):
    own = cls.__dict__
    has_own = any(
        name in own for name in ("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__")
    )
    return cls.__annotations__ if has_own else {}


def _collect(cls, kw_only):
    fields = {}
    for base in cls.__mro__[-1:0:-1]:
        fields.update(getattr(base, "__dataclass_fields__", {}) if "__dataclass_fields__" in base.__dict__ else {})
    for name, annotation in _own_annotations(cls).items():
        if annotation is KW_ONLY or annotation == "KW_ONLY":
            kw_only = True
            continue
        if _is_class_variable(annotation):
            continue
        default = cls.__dict__.get(name, MISSING)
        made = default if isinstance(default, Field) else field(default=default)
        if isinstance(made.default, (list, dict, set)):
            raise ValueError(
                f"mutable default {type(made.default)} for field {name} is not allowed: use default_factory"
            )
        made.name, made.type, made.kw_only = name, annotation, made.kw_only or kw_only
        fields[name] = made
        if isinstance(default, Field):
            if made.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, made.default)
    return fields


def _make_init(fields, frozen, has_post_init):
    parameters = [f for f in fields if f.init and not f.kw_only] + [None] + [f for f in fields if f.init and f.kw_only]
    if parameters[-1] is None:
        parameters.pop()
    names, seen_default = ["self"], None
    for f in parameters:
        if f is None:
            names.append("*")
        elif f.default is MISSING and f.default_factory is MISSING:
            if seen_default is not None and "*" not in names:
                raise TypeError(f"non-default argument {f.name!r} follows default argument {seen_default!r}")
            names.append(f.name)
        else:
            seen_default = f.name
            names.append(f"{f.name}=_d_{f.name}")
    body, scope = [], {"_MISSING": MISSING, "_set": object.__setattr__}
    for f in fields:
        if f.default is not MISSING:
            scope[f"_d_{f.name}"] = f.default
        elif f.default_factory is not MISSING:
            scope[f"_d_{f.name}"], scope[f"_f_{f.name}"] = MISSING, f.default_factory
        if not f.init and f.default_factory is MISSING:
            continue
        value = f.name if f.init else "_MISSING"
        if f.default_factory is not MISSING:
            value = f"_f_{f.name}() if {value} is _MISSING else {value}"
        body.append(f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if has_post_init:
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(names)}):\n  " + "\n  ".join(body or ["pass"]), scope)
    return scope["__init__"]


def dataclass(
    cls=None,
    /,
    *,
    init=True,
    repr=True,
    eq=True,
    order=False,
    unsafe_hash=False,
    frozen=False,
    match_args=True,
    kw_only=False,
    slots=False,
    weakref_slot=False,
):
    if cls is None:
        return lambda c: dataclass(
            c,
            init=init,
            repr=repr,
            eq=eq,
            order=order,
            unsafe_hash=unsafe_hash,
            frozen=frozen,
            match_args=match_args,
            kw_only=kw_only,
            slots=slots,
        )
    by_name = _collect(cls, kw_only)
    fields = list(by_name.values())
    cls.__dataclass_fields__ = by_name
    cls.__dataclass_params__ = {"frozen": frozen, "eq": eq, "order": order}
    compared = tuple(f.name for f in fields if f.compare)

    def values(obj):
        return tuple(getattr(obj, name) for name in compared)

    def give(name, function):
        if name not in cls.__dict__:
            function.__name__, function.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(cls, name, function)

    if init:
        cls.__init__ = _make_init(fields, frozen, hasattr(cls, "__post_init__"))
        cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
    if repr:
        shown = tuple(f.name for f in fields if f.repr)
        give(
            "__repr__",
            lambda self: type(self).__qualname__ + "(" + ", ".join(f"{n}={getattr(self, n)!r}" for n in shown) + ")",
        )
    if eq:
        give(
            "__eq__",
            lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented,
        )
    if order:
        give(
            "__lt__",
            lambda self, other: values(self) < values(other) if other.__class__ is self.__class__ else NotImplemented,
        )
        give(
            "__le__",
            lambda self, other: values(self) <= values(other) if other.__class__ is self.__class__ else NotImplemented,
        )
        give(
            "__gt__",
            lambda self, other: values(self) > values(other) if other.__class__ is self.__class__ else NotImplemented,
        )
        give(
            "__ge__",
            lambda self, other: values(self) >= values(other) if other.__class__ is self.__class__ else NotImplemented,
        )
    if unsafe_hash or (eq and frozen):
        cls.__hash__ = lambda self: hash(values(self))
    elif eq and "__hash__" not in cls.__dict__:
        cls.__hash__ = None
    if match_args:
        cls.__match_args__ = tuple(f.name for f in fields if f.init and not f.kw_only)
    if frozen:

        def refuse_set(self, name, value):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        def refuse_delete(self, name):
            raise FrozenInstanceError(f"cannot delete field {name!r}")

        cls.__setattr__, cls.__delattr__ = refuse_set, refuse_delete
    return cls


def is_dataclass(obj):
    return hasattr(obj if isinstance(obj, type) else type(obj), "__dataclass_fields__")


def fields(class_or_instance):
    try:
        return tuple(class_or_instance.__dataclass_fields__.values())
    except AttributeError:
        raise TypeError("must be called with a dataclass type or instance") from None


def _convert(value, make):
    if is_dataclass(value) and not isinstance(value, type):
        return make([(f.name, _convert(getattr(value, f.name), make)) for f in fields(value)])
    if isinstance(value, (list, tuple)):
        return type(value)(_convert(v, make) for v in value)
    if isinstance(value, dict):
        return {_convert(k, make): _convert(v, make) for k, v in value.items()}
    return _copy.deepcopy(value)


def asdict(obj, *, dict_factory=dict):
    if not is_dataclass(obj) or isinstance(obj, type):
        raise TypeError("asdict() should be called on dataclass instances")
    return _convert(obj, dict_factory)


def astuple(obj, *, tuple_factory=tuple):
    return _convert(obj, lambda pairs: tuple_factory(value for _, value in pairs))


def replace(obj, /, **changes):
    for f in fields(obj):
        if f.init and f.name not in changes:
            changes[f.name] = getattr(obj, f.name)
    return obj.__class__(**changes)


def make_dataclass(cls_name, field_list, *, bases=(), namespace=None, **kwargs):
    annotations, body = {}, dict(namespace or {})
    for item in field_list:
        name, kind, *default = (item, object) if isinstance(item, str) else item
        annotations[name] = kind
        if default:
            body[name] = default[0]
    body["__annotations__"] = annotations
    return dataclass(type(cls_name, bases, body), **kwargs)
