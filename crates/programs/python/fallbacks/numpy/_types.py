"""Types of elements: `dtype`, and the classes of numbers that an element is."""

import builtins as _builtins

from numpy._offers import refuse


class dtype:
    """A type of elements; there is one object for each."""

    __slots__ = ("name", "kind", "itemsize", "char", "type")

    def __new__(cls, value):
        return of(value)

    @property
    def str(self):
        if self.kind == "U":
            return f"<U{self.itemsize // 4}"
        return f"{'|' if self.itemsize == 1 else '<'}{self.kind}{self.itemsize}"

    def __eq__(self, other):
        if type(other) is dtype:
            return self.name == other.name
        try:
            return other is not None and self.name == of(other).name
        except (TypeError, NotImplementedError):
            return False

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"dtype('{self!s}')"

    def __str__(self):
        return self.str if self.kind == "U" else self.name

    def __reduce__(self):
        return of, (self.str,)


dtype.__module__ = "numpy.dtypes"


def _new(name, kind, itemsize, char, type):
    made = object.__new__(dtype)
    made.name, made.kind, made.itemsize, made.char, made.type = name, kind, itemsize, char, type
    return made


def _of_number(method):
    """A method of an array without dimensions, which gives a number and not such an array."""

    def call(*arguments, **keywords):
        found = method(*arguments, **keywords)
        return found[()] if getattr(found, "shape", None) == () else found

    return call


class generic:
    """A number or a text that is an element of an array; it has the methods of an array without dimensions."""

    __slots__ = ()
    __module__ = "numpy"
    dtype = None
    shape, ndim, size, strides = (), 0, 1, ()
    itemsize = nbytes = property(lambda self: self.dtype.itemsize)
    T = property(lambda self: self)

    def item(self):
        return self._value

    tolist = item

    def _array(self):
        from numpy._array import filled

        return filled((), self.dtype, [self._value])

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        from numpy._array import ndarray

        if not hasattr(ndarray, name):
            raise AttributeError(f"'{type(self).__module__}.{type(self).__name__}' object has no attribute '{name}'")
        found = getattr(self._array(), name)
        return _of_number(found) if callable(found) else found

    def __getitem__(self, index):
        return self if type(index) is tuple and not index else self._array()[index]

    def __array__(self, *arguments, **keywords):
        return self._array()

    def __repr__(self):
        return f"np.{type(self).__name__}({self!s})"

    def __hash__(self):
        return hash(self._value)

    def __int__(self):
        return int(self._value)

    def __float__(self):
        return float(self._value)

    def __reduce__(self):
        return type(self), (self._value,)


class number(generic):
    __slots__ = ()
    __module__ = "numpy"

    def __new__(cls, value=0):
        if cls.dtype is None:
            raise TypeError(f"cannot create 'numpy.{cls.__name__}' instances")
        from numpy._making import array
        from numpy._values import cast_one

        if type(value) in (int, float) or isinstance(value, generic):
            return cls._of(cast_one(value, cls.dtype, is_checked=True))
        made = array(value, dtype=cls.dtype)
        return made[()] if made.shape == () else made

    @classmethod
    def _of(cls, value):
        made = object.__new__(cls)
        made._value = value
        return made

    def __bool__(self):
        return self._value != 0

    def __format__(self, spec):
        return format(self._value, spec) if spec else str(self)


class integer(number):
    __slots__ = ()
    __module__ = "numpy"

    def __index__(self):
        return self._value

    def __str__(self):
        return str(self._value)


class floating(number):
    __slots__ = ()
    __module__ = "numpy"

    def __str__(self):
        from numpy._print import scalar_text

        return scalar_text(self._value, self.dtype)

    def __format__(self, spec):
        return format(self._value, spec)


class bool(generic):
    __slots__ = ("_value",)
    __module__ = "numpy"

    def __new__(cls, value=False):
        return cls._of(_builtins.bool(value))

    @classmethod
    def _of(cls, value):
        return TRUE if value else FALSE

    def __bool__(self):
        return self._value

    def __index__(self):
        raise TypeError("'numpy.bool' object cannot be interpreted as an integer")

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return f"np.{self._value}_"

    def __format__(self, spec):
        return format(self._value if not spec or spec[-1] == "s" else int(self._value), spec) if spec else str(self)


bool_ = bool
TRUE, FALSE = object.__new__(bool_), object.__new__(bool_)
TRUE._value, FALSE._value = True, False


class str_(str, generic):
    __module__ = "numpy"
    _value = property(lambda self: str(self))
    dtype = property(lambda self: text_type(max(len(self), 1)))

    @classmethod
    def _of(cls, value):
        return cls(value)

    def __getitem__(self, index):
        return str.__getitem__(self, index)

    def __repr__(self):
        return f"np.str_({str.__repr__(self)})"

    __str__, __hash__ = str.__str__, str.__hash__

    def __reduce__(self):
        return str_, (str(self),)


def _float64():
    class float64(floating, float):
        __module__ = "numpy"
        __qualname__ = "float64"
        _value = property(lambda self: float.__float__(self))

        def __new__(cls, value=0.0):
            if type(value) is float:
                return float.__new__(cls, value)
            return number.__new__(cls, value)

        @classmethod
        def _of(cls, value):
            return float.__new__(cls, value)

        __hash__, __float__ = float.__hash__, float.__float__

        def __str__(self):
            return float.__repr__(self)

    return float64


float64 = double = _float64()


def _class(name, base, slots=("_value",)):
    return type(name, (base,), {"__slots__": slots, "__module__": "numpy", "__qualname__": name})


signedinteger, unsignedinteger = _class("signedinteger", integer, ()), _class("unsignedinteger", integer, ())
float32 = single = _class("float32", floating)
float16 = half = _class("float16", floating)
int8, int16, int32, int64 = (_class(f"int{bits}", signedinteger) for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_class(f"uint{bits}", unsignedinteger) for bits in (8, 16, 32, 64))
int_ = intp = long = longlong = int64
uint = uintp = ulong = ulonglong = uint64
byte, ubyte, short, ushort, intc = int8, uint8, int16, uint16, int32

dtypes = [float64, float32, float16, int64, int32, int16, int8, uint8, uint16, uint32, uint64, bool_]
_FOUND = {}
for _type, _char, _size in zip(dtypes, "dfelihbBHIL?", (8, 4, 2, 8, 4, 2, 1, 1, 2, 4, 8, 1)):
    _made = _new(_type.__name__.rstrip("_"), _type.__name__[0], _size, _char, _type)
    _type.dtype = _made
    _FOUND.update(dict.fromkeys((_type, _made.name, _char, _made.kind + str(_size), _made.str), _made))
F8, F4, F2, I8, I4, I2, I1, U1, U2, U4, U8, B1 = (_type.dtype for _type in dtypes)
_FOUND.update({float: F8, int: I8, _builtins.bool: B1, None: F8, floating: F8, integer: I8, "b1": B1})
_FOUND.update({"float": F8, "int": I8, "double": F8, "single": F4, "half": F2, "int_": I8, "bool_": B1})
_TEXTS = {}


def text_type(length):
    """The type of texts of at most so many characters."""
    if length not in _TEXTS:
        _TEXTS[length] = _new(f"str{32 * length}" if length else "str", "U", 4 * length, "U", str_)
    return _TEXTS[length]


def text_length(kind):
    """How many characters numpy keeps for the text of a number."""
    widths = {"i": {1: 4, 2: 6, 4: 11, 8: 21}, "u": {1: 3, 2: 5, 4: 10, 8: 20}, "b": {1: 5}}
    return widths.get(kind.kind, {}).get(kind.itemsize, 32)


def of(value):
    if type(value) is dtype:
        return value
    try:
        found = _FOUND.get(value)
    except TypeError:
        found = None
    if found is not None:
        return found
    if value in (str, str_, "U", "str", "<U"):
        return text_type(0)
    if isinstance(value, str) and value.lstrip("<")[:1] == "U" and value.lstrip("<U").isdigit():
        return text_type(int(value.lstrip("<U")))
    if isinstance(value, str) and "float" in value:
        raise TypeError(f"data type {value!r} not understood")
    refuse(f"dtype({value!r})", "use numbers, bool or str")


def smallest_float(kind):
    """The type of floats that holds the numbers of another type, as numpy's functions over floats choose it."""
    if kind.kind == "f":
        return kind
    return F2 if kind.itemsize == 1 else F4 if kind.itemsize == 2 else F8


def promote(a, b):
    """The type that holds the numbers of both."""
    if a is b:
        return a
    kinds = a.kind + b.kind
    if "U" in kinds:
        if a.kind == b.kind:
            return a if a.itemsize >= b.itemsize else b
        text, other = (a, b) if a.kind == "U" else (b, a)
        return text_type(_builtins.max(text.itemsize // 4, text_length(other)))
    if "b" in kinds:
        return b if a.kind == "b" else a
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    if "f" in kinds:
        whole, one = (a, b) if b.kind == "f" else (b, a)
        needed = smallest_float(whole)
        return one if one.itemsize >= needed.itemsize else needed
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return {1: I2, 2: I4, 4: I8, 8: F8}[unsigned.itemsize]


def limits(kind):
    """The least and the greatest whole number of a type."""
    bits = kind.itemsize * 8
    return (0, (1 << bits) - 1) if kind.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


__all__ = (
    "bool bool_ byte double dtype float16 float32 float64 floating generic half int8 int16 int32 int64 int_ intc integer intp long longlong "
    "number short signedinteger single str_ ubyte uint uint8 uint16 uint32 uint64 ushort unsignedinteger"
).split()
