"""Elements and parts of arrays by indices."""

import operator

from torch._unknown import UnknownNumber

from numpy._near import NearNumber, unknown
from numpy._offers import refuse, refuse_unknown
from numpy._shapes import broadcast, places, product, strides_of
from numpy._values import cast, scalar

_WRONG = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"


def steps_of_view(shape, steps, wanted):
    """The strides of a view of another shape over the same memory, or `None` where only a copy has that shape."""
    old = [(size, step) for size, step in zip(shape, steps) if size != 1]
    if product(shape) == 0:
        return strides_of(wanted)
    found, at = [], 0
    wanted_at = 0
    while wanted_at < len(wanted):
        if wanted[wanted_at] == 1:
            found.append(None)
            wanted_at += 1
            continue
        begin, group_at, new, had = wanted_at, at, wanted[wanted_at], old[at][0]
        while new != had:
            if new < had:
                wanted_at += 1
                new *= wanted[wanted_at]
            else:
                at += 1
                had *= old[at][0]
        for k in range(group_at, at):
            if old[k][1] != old[k + 1][1] * old[k + 1][0]:
                return None
        step, group = old[at][1], []
        for size in reversed(wanted[begin : wanted_at + 1]):
            group.insert(0, step)
            step *= size
        found += group
        at += 1
        wanted_at += 1
    later = 1
    for k in range(len(found) - 1, -1, -1):
        if found[k] is None:
            found[k] = later
        later = found[k] * wanted[k]
    return found


def _parsed(array, index):
    """The parts of an index: an int, a slice, `None`, an array, or an unknown number; one for each axis and each new axis."""
    from numpy._array import ndarray
    from numpy._making import array as make
    from numpy._types import bool_, generic, integer

    parts, used = [], 0
    for part in index if isinstance(index, tuple) else (index,):
        if part is None or part is Ellipsis or isinstance(part, slice):
            used += isinstance(part, slice)
        elif type(part) is UnknownNumber:
            used += 1
        elif type(part) is NearNumber:
            raise IndexError(_WRONG)
        elif isinstance(part, (bool, bool_)) or isinstance(part, ndarray) and part.ndim == 0 and part.dtype.kind == "b":
            refuse("ndarray with True or False as an index", "use a slice, or an array of bools")
        elif (
            isinstance(part, (int, integer)) or isinstance(part, ndarray) and part.ndim == 0 and part.dtype.kind in "iu"
        ):
            number = part if isinstance(part, int) else part._all()[0] if isinstance(part, ndarray) else part._value
            part = number
            used += 1
        elif isinstance(part, (list, ndarray, range)) or hasattr(part, "is_cuda") or isinstance(part, tuple):
            is_list = isinstance(part, (list, tuple, range))
            part = make(part)
            if is_list and part.size == 0:
                part = part.astype("int64")
            if part.dtype.kind not in "iub":
                raise IndexError(
                    "arrays used as indices must be of integer (or boolean) type"
                    if not is_list or part.dtype.kind != "O"
                    else _WRONG
                )
            if part.ndim == 0:
                part = part._all()[0]
            used += part.ndim if isinstance(part, ndarray) and part.dtype.kind == "b" else 1
        elif hasattr(part, "__index__") and not isinstance(part, generic):
            part = operator.index(part)
            used += 1
        else:
            raise IndexError(_WRONG)
        parts.append(part)
    if used > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed")
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = [slice(None)] * (array.ndim - used)
    return parts, bool(dots)


def _place(number, size, axis):
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {size}")
    return number + size if number < 0 else number


def _basic(array, parts):
    shape, steps, offset, axis = [], [], array._offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            steps.append(0)
            continue
        size, step = array._shape[axis], array._steps[axis]
        if isinstance(part, slice):
            begin, end, by = part.indices(size)
            count = len(range(begin, end, by))
            shape.append(count)
            steps.append(step * by)
            offset += begin * step if count else 0
        else:
            offset += _place(part, size, axis) * step
        axis += 1
    return shape, steps, offset


class _Chosen:
    """What an index with arrays chooses: the shape, the order of its axes in memory, and places; `None` for places that are not known."""

    def __init__(self, array, parts):
        from numpy._array import ndarray

        self.is_unknown = False
        groups, lists, firsts, axis = [], [], [], 0
        for at, part in enumerate(parts):
            if part is None:
                groups.append((1, [0]))
                continue
            size, step = array._shape[axis], array._steps[axis]
            if isinstance(part, slice):
                chosen = range(*part.indices(size))
                groups.append((len(chosen), [i * step for i in chosen]))
                axis += 1
                continue
            firsts.append(at)
            groups.append(None)
            if isinstance(part, ndarray) and part.dtype.kind == "b":
                for k, (found, is_in) in enumerate(zip(array._shape[axis:], part._shape)):
                    if found != is_in:
                        raise IndexError(
                            f"boolean index did not match indexed array along axis {axis + k}; "
                            f"size of axis is {found} but size of corresponding boolean axis is {is_in}"
                        )
                inner = strides_of(part._shape)
                taken = [i for i, is_in in enumerate(part._known("ndarray[condition]")) if is_in]
                for k, stride in enumerate(inner):
                    numbers = [i // stride % part._shape[k] for i in taken]
                    lists.append(((len(taken),), numbers, array._steps[axis + k]))
                axis += part.ndim
                continue
            if isinstance(part, ndarray):
                numbers, shape = part._read(), part._shape
                if numbers is None or UnknownNumber in map(type, numbers):
                    self.is_unknown, numbers = True, [0] * part.size
            else:
                shape = ()
                self.is_unknown |= type(part) is UnknownNumber
                numbers = [0 if type(part) is UnknownNumber else part]
            lists.append(
                (
                    shape,
                    [_place(number, size, axis) for number in numbers]
                    if size or numbers and not self.is_unknown
                    else numbers,
                    step,
                )
            )
            axis += 1
        try:
            shape = broadcast(*(shape for shape, _, _ in lists))
        except ValueError:
            texts = " ".join(
                "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")" for shape, _, _ in lists
            )
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes {texts} "
            ) from None
        offsets = [0] * product(shape)
        for own, numbers, step in lists:
            missing = len(shape) - len(own)
            steps = [0] * missing + [0 if size == 1 else stride for size, stride in zip(own, strides_of(own))]
            for k, at in enumerate(places(shape, steps)):
                offsets[k] += numbers[at] * step
        # Arrays side by side leave their axes where they were; else their axes come first.
        is_together = firsts == list(range(firsts[0], firsts[-1] + 1))
        front = firsts[0] if is_together else 0
        slices = [group for group in groups if group is not None]
        before = len([group for group in groups[:front] if group is not None])
        found = [array._offset]
        found = [place + more for place in found for more in offsets]
        for _, steps in slices:
            found = [place + more for place in found for more in steps]
        # The memory has the axes of the arrays first.
        sizes = [size for size, _ in slices]
        self.inner_shape, count = (*shape, *sizes), len(shape)
        self.axes = [*range(count, count + before), *range(count), *range(count + before, count + len(sizes))]
        self.shape = tuple(self.inner_shape[axis] for axis in self.axes)
        self.places = found

    def in_order(self):
        """The places in the order of C."""
        if self.axes == list(range(len(self.axes))):
            return self.places
        strides = strides_of(self.inner_shape)
        return [self.places[at] for at in places(self.shape, [strides[axis] for axis in self.axes])]


def _is_basic(parts):
    return all(part is None or isinstance(part, (slice, int)) for part in parts)


def get(array, index):
    from numpy._array import filled

    parts, has_dots = _parsed(array, index)
    if _is_basic(parts):
        shape, steps, offset = _basic(array, parts)
        if shape or has_dots:
            return array._seen(shape, steps, offset)
        values = array._memory.values()
        return scalar(values[offset], array.dtype) if values is not None else unknown(array.dtype)
    chosen = _Chosen(array, parts)
    values = array._memory.values()
    if chosen.is_unknown:
        values = [unknown(array.dtype)] * len(chosen.places)
    elif values is not None:
        values = [values[place] for place in chosen.places]
    made = (
        filled(chosen.inner_shape, array.dtype, values).transpose(chosen.axes)
        if chosen.axes
        else filled((), array.dtype, values)
    )
    made.base = None
    if not chosen.shape and not has_dots:
        return made[()]
    return made


def as_written(value, shape, kind):
    """The elements of a value that is written to a part of this shape; `None` where they are not known."""
    from numpy._array import spread
    from numpy._making import array as make

    if type(value) is int and kind.kind in "iu":
        from numpy._values import cast_one

        return [cast_one(value, kind, True)] * product(shape)
    value = make(value, copy=False)
    while value.ndim > len(shape) and value._shape[0] == 1:
        value = value[0]
    if value.ndim > len(shape) or broadcast_or_none(value._shape, shape) != tuple(shape):
        text = [("(" + ",".join(map(str, s)) + ("," if len(s) == 1 else "") + ")") for s in (value._shape, shape)]
        if len(shape) == 0:
            raise ValueError("setting an array element with a sequence.")
        raise ValueError(f"could not broadcast input array from shape {text[0]} into shape {text[1]}")
    if kind.kind in "iufb" and value.dtype.kind == "U" and kind.kind != "b":
        pass
    values = value._read()
    if values is None:
        return None
    spread_values = spread(value, tuple(shape))._read()
    return cast(spread_values, value.dtype, kind) if value.dtype is not kind else spread_values


def broadcast_or_none(a, b):
    try:
        return broadcast(a, b)
    except ValueError:
        return None


def put(array, index, value):
    parts, _ = _parsed(array, index)
    if not array._is_writeable:
        raise ValueError("assignment destination is read-only")
    if _is_basic(parts):
        shape, steps, offset = _basic(array, parts)
        where = places(shape, steps, offset)
        array._write(where, as_written(value, tuple(shape), array.dtype))
        return
    if any(getattr(part, "ndim", 0) and part.dtype.kind == "b" and _is_unknown(part) for part in parts):
        array._write(None, None)
        return
    chosen = _Chosen(array, parts)
    if chosen.is_unknown:
        array._write(None, None)
        return
    values = as_written(value, chosen.shape, array.dtype)
    array._write(chosen.in_order(), values)


def _is_unknown(part):
    values = part._read()
    return values is None or UnknownNumber in map(type, values)


__all__ = ["get", "put", "refuse_unknown"]
