"""Enumerations."""


class auto:
    value = None


class _Members(dict):
    def __init__(self):
        super().__init__()
        self.names = []
        self.last = []
        self.generate = None

    def __setitem__(self, key, value):
        if key == "_generate_next_value_":
            self.generate = value.__func__ if isinstance(value, staticmethod) else value
        is_member = not (
            key.startswith("_") or hasattr(value, "__get__") or isinstance(value, (classmethod, staticmethod, property))
        )
        if is_member:
            if key in self.names:
                raise TypeError(f"{key!r} already defined as {self[key]!r}")
            if isinstance(value, auto):
                if self.generate is not None:
                    value = self.generate(key, 1, len(self.names), list(self.last))
                else:
                    value = (
                        self.flag(self.last)
                        if self.is_flag
                        else (max((v for v in self.last if isinstance(v, int)), default=0) + 1)
                    )
            self.names.append(key)
            self.last.append(value)
        super().__setitem__(key, value)

    is_flag = False

    @staticmethod
    def flag(last):
        return 1 << max((v for v in last if isinstance(v, int)), default=0).bit_length()


class EnumType(type):
    @classmethod
    def __prepare__(mcls, name, bases, **kwds):
        members = _Members()
        for base in bases:
            if isinstance(base, EnumType):
                members.is_flag = members.is_flag or getattr(base, "_is_flag_", False)
                members.generate = members.generate or getattr(base, "_generate_", None)
        return members

    def __new__(mcls, name, bases, namespace, **kwds):
        values = {key: namespace[key] for key in getattr(namespace, "names", ())}
        rest = {key: value for key, value in namespace.items() if key not in values and key != "_generate_next_value_"}
        cls = super().__new__(mcls, name, bases, rest)
        cls._generate_ = staticmethod(namespace.generate) if getattr(namespace, "generate", None) else None
        cls._member_map_, cls._value2member_map_, cls._member_names_ = {}, {}, []
        kind = next((b for b in cls.__mro__ if b in (int, str, float, tuple)), object)
        for key, value in values.items():
            arguments = value if isinstance(value, tuple) else (value,)
            known = None
            try:
                known = cls._value2member_map_.get(value)
            except TypeError:
                pass
            if known is not None:
                cls._member_map_[key] = known
                type.__setattr__(cls, key, known)
                continue
            custom = namespace.get("__new__")
            if custom is not None:
                member = custom(cls, *arguments)
                value = getattr(member, "_value_", value)
            else:
                member = object.__new__(cls) if kind is object else kind.__new__(cls, *arguments)
            member._value_, member._name_ = value, key
            if "__init__" in namespace:
                member.__init__(*arguments)
            cls._member_map_[key] = member
            cls._member_names_.append(key)
            try:
                cls._value2member_map_[value] = member
            except TypeError:
                pass
            type.__setattr__(cls, key, member)
        return cls

    def __call__(cls, value, names=None, **kwds):
        if names is not None:
            members = _Members()
            members.is_flag = getattr(cls, "_is_flag_", False)
            for name in names.replace(",", " ").split() if isinstance(names, str) else names:
                members[name] = auto()
            return EnumType(value, (cls,), members)
        if isinstance(value, cls):
            return value
        if value in cls._value2member_map_:
            return cls._value2member_map_[value]
        for member in cls._member_map_.values():
            if member._value_ == value:
                return member
        return cls._missing_(value)

    def __iter__(cls):
        return (cls._member_map_[name] for name in cls._member_names_)

    def __len__(cls):
        return len(cls._member_names_)

    def __getitem__(cls, name):
        return cls._member_map_[name]

    def __contains__(cls, value):
        return isinstance(value, cls) or value in cls._value2member_map_

    def __bool__(cls):
        return True

    def __setattr__(cls, name, value):
        if name in cls.__dict__.get("_member_map_", {}):
            raise AttributeError(f"cannot reassign member {name!r}")
        super().__setattr__(name, value)

    @property
    def __members__(cls):
        return dict(cls._member_map_)

    def __repr__(cls):
        return f"<enum {cls.__name__!r}>"


EnumMeta = EnumType


class Enum(metaclass=EnumType):
    @property
    def name(self):
        return self._name_

    @property
    def value(self):
        return self._value_

    @classmethod
    def _missing_(cls, value):
        raise ValueError(f"{value!r} is not a valid {cls.__qualname__}")

    def __repr__(self):
        return f"<{type(self).__name__}.{self._name_}: {self._value_!r}>"

    def __str__(self):
        return f"{type(self).__name__}.{self._name_}"

    def __format__(self, spec):
        return format(str(self), spec)

    def __hash__(self):
        return hash(self._name_)

    def __reduce__(self):
        return type(self), (self._value_,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class IntEnum(int, Enum):
    __str__ = int.__repr__
    __format__ = int.__format__
    __hash__ = int.__hash__


class StrEnum(str, Enum):
    __str__ = str.__str__
    __format__ = str.__format__
    __hash__ = str.__hash__

    def _generate_next_value_(name, start, count, last):
        return name.lower()


class Flag(Enum):
    _is_flag_ = True

    @classmethod
    def _missing_(cls, value):
        if not isinstance(value, int):
            return super()._missing_(value)
        member = object.__new__(cls) if not issubclass(cls, int) else int.__new__(cls, value)
        names = [m._name_ for m in cls if m._value_ & value == m._value_ and m._value_]
        member._value_, member._name_ = value, "|".join(names) or None
        cls._value2member_map_[value] = member
        return member

    def __or__(self, other):
        return type(self)(self._value_ | type(self)(other)._value_)

    def __and__(self, other):
        return type(self)(self._value_ & type(self)(other)._value_)

    def __xor__(self, other):
        return type(self)(self._value_ ^ type(self)(other)._value_)

    def __invert__(self):
        return type(self)(sum(m._value_ for m in type(self) if not m._value_ & self._value_))

    def __contains__(self, other):
        return other._value_ & self._value_ == other._value_

    def __bool__(self):
        return bool(self._value_)


class IntFlag(int, Flag):
    __hash__ = int.__hash__


def unique(enumeration):
    aliases = [name for name, member in enumeration.__members__.items() if member.name != name]
    if aliases:
        raise ValueError(f"duplicate values found in {enumeration!r}: {', '.join(aliases)}")
    return enumeration
