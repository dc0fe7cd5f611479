"""Elements as Python's numbers: how numbers of one type become numbers of another."""

import math
import struct
from array import array as _packed

from torch._unknown import UnknownNumber

from numpy._near import SPECIAL, NearNumber, are_special, between, unknown
from numpy._types import B1, F4, F8, I8, U8, generic, limits

_HALF = struct.Struct("<e")


def half(value):
    try:
        return _HALF.unpack(_HALF.pack(value))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def rounded(values, kind):
    """Floats as the nearest numbers of a smaller type; all of them are known."""
    if kind is F8:
        return values
    if kind is F4:
        return _packed("f", values).tolist()
    return [half(value) for value in values]


def round_one(value, kind):
    return value if kind is F8 else rounded([value], kind)[0]


def settled(values, kind):
    """Results of an operator as elements of a type: floats are rounded, whole numbers begin again at their limits."""
    if kind.kind == "f":
        if kind is F8:
            return values
        if not are_special(values):
            return rounded(values, kind)
        return [cast_one(value, kind) for value in values]
    if kind.kind in "iu":
        low, high = limits(kind)
        if are_special(values):
            return [value if type(value) in SPECIAL else _wrapped(value, kind) for value in values]
        if values and (min(values) < low or max(values) > high):
            return [_wrapped(value, kind) for value in values]
    return values


def _wrapped(value, kind):
    bits = 8 * kind.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind.kind == "i" and value >> bits - 1 else value


def cast(values, source, kind):
    """Elements of the type `source` as elements of the type `kind`."""
    if source is kind:
        return list(values)
    if kind.kind == "f" and source.kind in "iub" and not are_special(values):
        return rounded([float(value) for value in values], kind)
    if kind.kind == "f" and source.kind == "f" and not are_special(values):
        return list(rounded(values, kind))
    return [cast_one(value, kind) for value in values]


def cast_one(value, kind, is_checked=False):
    """One number as an element of a type. `is_checked` refuses whole numbers beyond the limits, as numpy does for Python's own."""
    if isinstance(value, generic):
        value, is_checked = value if kind.kind == "U" else value._value, False
    if type(value) is UnknownNumber:
        return unknown(kind) if kind.kind in "fiub" else value
    if type(value) is NearNumber:
        if kind.kind == "f":
            return between(value.low, value.high, kind)
        return unknown(kind)
    if kind.kind == "f":
        return round_one(float(value), kind)
    if kind.kind in "iu":
        if isinstance(value, float):
            low, high = limits(kind)
            if value != value or not low <= int_or(value) <= high:
                return unknown(kind)  # It depends on the processor.
        value = int(value)
        if is_checked and not limits(kind)[0] <= value <= limits(kind)[1]:
            raise OverflowError(f"Python integer {value} out of bounds for {kind.name}")
        return _wrapped(value, kind)
    if kind.kind == "b":
        return bool(value)
    if kind.kind == "U":
        text = str(value)
        return text[: kind.itemsize // 4] if kind.itemsize else text
    return value


def int_or(value):
    return int(value) if math.isfinite(value) else 1 << 200


def scalar(value, kind):
    """An element as what `array[i]` gives."""
    if type(value) is UnknownNumber or type(value) is NearNumber:
        return value
    return kind.type._of(value)


def kind_of(value):
    """The type of one Python number, as `array` finds it; `None` for other objects."""
    if isinstance(value, generic) or type(value) is NearNumber:
        return value.dtype
    if type(value) is UnknownNumber:
        name = str(value.dtype).rpartition(".")[2] if value.dtype is not None else "float64"
        # A number of a tensor is Python's when it was taken out: `loss.item()`.
        return B1 if name == "bool" else I8 if "int" in name else F8
    if isinstance(value, bool):
        return B1
    if isinstance(value, int):
        return I8 if -(1 << 63) <= value < 1 << 63 else U8 if 0 <= value < 1 << 64 else None
    return F8 if isinstance(value, float) else None
