"""Sizes, and numbers that only a GPU knows."""

from _host import asserted as _asserted_value
from _host import note as _note
from _host import note_branch as _note_branch


class Size(tuple):
    def numel(self):
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self):
        return "torch.Size([" + ", ".join(map(repr, self)) + "])"

    __str__ = __repr__

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __reduce__(self):
        return Size, (tuple(self),)


def _asserted():
    """What an unknown value of an assertion is assumed to be, so that the assertion holds; `None` elsewhere."""
    value = _asserted_value()
    if value is not None:
        _note("the assertion depends on values that are not computed; it is assumed to hold")
    return value


class UnknownNumber:
    """A number that is on the GPU. Its value is not known; the number prints as `?`, as do all numbers that are computed from it.

    The class is not a `float`, which Python's own code would read as a number: whatever asks for the value is refused.
    """

    is_unknown = True
    _assumption = "a number on the GPU is assumed to be false"

    def __init__(self, dtype=None):
        self.dtype = dtype

    # A program may ask `isinstance(loss, float)`.
    __class__ = property(lambda self: float)

    real = property(lambda self: self)
    imag = 0.0

    def _same(self, *others):
        for other in others:
            if hasattr(other, "shape") and hasattr(other, "ndim"):
                return NotImplemented  # A tensor or an array, which has its own numbers.
        return UnknownNumber(self.dtype)

    # What numpy calls where one of its functions gets such a number.

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        from torch import _numpy_arrays

        return _numpy_arrays.call_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, function, types, arguments, keywords):
        from torch import _numpy_arrays

        return _numpy_arrays.call_function(function, arguments, keywords)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _same
    __neg__ = __pos__ = __abs__ = __round__ = conjugate = item = _same
    # What numpy calls on the elements of an array of objects.
    sqrt = exp = log = log2 = log10 = sin = cos = tan = tanh = square = rint = _same

    def __divmod__(self, other):
        return self, self

    def _unknown_comparison(self, other):
        if hasattr(other, "shape") and hasattr(other, "ndim"):
            return NotImplemented
        value = _asserted()
        return UnknownComparison() if value is None else value

    __eq__ = __ne__ = _unknown_comparison

    def _order(infinity):
        """A comparison that a finite number passes with this infinity, and fails with the other one."""

        def compare(self, other):
            if type(other) is float and other in (infinity, -infinity):
                _note("a number on the GPU is assumed to be finite")
                return other == infinity
            return self._unknown_comparison(other)

        return compare

    __lt__ = __le__ = _order(float("inf"))
    __gt__ = __ge__ = _order(-float("inf"))
    del _order

    def __bool__(self):
        value = _asserted()
        if value is None:
            _note_branch(self._assumption)
        return bool(value)

    def _refuse(self, *arguments):
        raise ValueError(
            "the program needs the value of a number that lies on the GPU or is random, which is not computed here; "
            "use a number in its place: such a number can be printed and computed with, and prints as ?"
        )

    def __index__(self):
        # NumPy says of a refused index only that it is not an integer.
        _note(
            "a whole number is needed of a value that lies on the GPU or is random, which is not computed here; "
            "use a number in its place"
        )
        self._refuse()

    __int__ = __trunc__ = __floor__ = __ceil__ = __float__ = __complex__ = __hash__ = _refuse
    is_integer = as_integer_ratio = hex = _refuse

    def _of(self, kind):
        """What `int`, `float` or `bool` gives of this number."""
        import torch

        if kind is bool:
            return UnknownComparison()
        if kind is int:
            return UnknownNumber(torch.int64)
        return self if self.dtype is None or self.dtype.is_floating_point else UnknownNumber()

    def __repr__(self):
        return "?"

    __str__ = __repr__

    def __format__(self, spec):
        # Of a number's format only the width of the text is used.
        width = ""
        digits = spec.split(".")[0].rstrip("eEfFgGdn%,_").lstrip("+- 0")
        for character in reversed(digits):
            if not character.isdigit():
                break
            width = character + width
        return "?".rjust(int(width)) if width else "?"

    def __reduce__(self):
        return _unknown_number, (self.dtype,)

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self


# `type(x)` prints as an unknown class: the number may be of a float, an integer or a bool.
UnknownNumber.__name__ = UnknownNumber.__qualname__ = "?"
UnknownNumber.__module__ = "builtins"


def _unknown_number(dtype):
    return UnknownNumber(dtype)


def _blank(value):
    """An unknown value of the kind of this one; `None` for a kind of which no value can be unknown."""
    if isinstance(value, str):
        return "?"
    if isinstance(value, (int, float, UnknownNumber)):
        return UnknownNumber()
    if type(value) not in (list, tuple):
        return None
    made = [_blank(each) for each in value]
    return None if any(each is None for each in made) else type(value)(made)


def _item(values, key):
    """`values[key]` where the key is an unknown number or a tensor."""
    key = key.item() if hasattr(key, "item") and isinstance(values, (list, tuple, str, range)) else key
    if not isinstance(key, UnknownNumber) or not isinstance(values, (list, tuple, str, range, dict)):
        return values[key]
    elements = list(values.values()) if isinstance(values, dict) else values
    made = _blank(elements[0]) if len(elements) else None
    if made is not None:
        _note("the element depends on a number that is not computed here; it prints as ?")
        return made
    _note("the element depends on a number that is not computed here; the first element is assumed")
    return elements[0] if len(elements) else values[key]


class UnknownComparison(UnknownNumber):
    """Whether a number on the GPU is less than another, say: prints as `?`."""

    _assumption = "a comparison with a number on the GPU is assumed to be false"


def install_counters():
    """`collections.Counter` counts unknown numbers: each count of such a counter is unknown."""
    import collections
    import json

    def default(self, value, before=json.JSONEncoder.default):
        return "?" if type(value) is UnknownNumber else before(self, value)

    json.JSONEncoder.default = default
    Counter = collections.Counter
    update, get_item, text = Counter.update, Counter.__getitem__, Counter.__repr__

    def update_knowing(self, iterable=None, /, **counts):
        if iterable is not None and not hasattr(iterable, "items"):
            items = list(iterable)
            iterable = [item for item in items if type(item) is not UnknownNumber]
            if len(iterable) < len(items):
                self._unknown = next(item for item in items if type(item) is UnknownNumber)
        update(self, iterable, **counts)

    def get_item_knowing(self, key):
        return UnknownNumber() if hasattr(self, "_unknown") else get_item(self, key)

    def refusing(name):
        before = getattr(Counter, name)

        def call(self, *arguments, **keywords):
            if hasattr(self, "_unknown"):
                self._unknown._refuse()
            return before(self, *arguments, **keywords)

        return call

    Counter.update, Counter.__getitem__ = update_knowing, get_item_knowing
    Counter.get = lambda self, key, default=None: (
        UnknownNumber() if hasattr(self, "_unknown") else dict.get(self, key, default)
    )
    Counter.__repr__ = lambda self: "Counter(?)" if hasattr(self, "_unknown") else text(self)
    for name in ("most_common", "elements", "items", "values", "keys", "__iter__", "__len__", "__eq__"):
        setattr(Counter, name, refusing(name))
