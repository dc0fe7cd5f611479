"""Elements and parts of arrays by indices."""

import operator

from torch._unknown import UnknownNumber

from numpy._near import unknown
from numpy._offers import refuse
from numpy._shapes import broadcast, places, product, strides_of, text_of
from numpy._values import cast, cast_one, scalar

_WRONG = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"


def steps_of_view(shape, steps, wanted):
    """The strides of a view of another shape over the same memory, or `None` where only a copy has that shape."""
    if product(shape) == 0:
        return strides_of(wanted)
    # Axes that lie in memory as one.
    runs = []
    for size, step in zip(shape, steps):
        if size != 1 and runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        elif size != 1:
            runs.append((size, step))
    found, left, step = [], 1, 1
    for size in reversed(wanted):
        if left == 1 and size != 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.insert(0, step)
        left, step = left // size, step * size
    return found


def _parsed(array, index):
    """The parts of an index: an int, a slice, `None`, an array, or an unknown number; one for each axis and each new axis."""
    parts, used = [], 0
    for part in index if isinstance(index, tuple) else (index,):
        part = _part(part)
        parts.append(part)
        used += 0 if part is None or part is Ellipsis else part.ndim if _is_mask(part) else 1
    if used > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed")
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = [slice(None)] * (array.ndim - used)
    return parts, bool(dots)


def _part(part):
    from numpy._array import ndarray
    from numpy._making import array as make
    from numpy._types import integer

    if part is None or part is Ellipsis or isinstance(part, slice) or type(part) is UnknownNumber:
        return part
    is_list = isinstance(part, (list, tuple, range))
    if is_list or hasattr(part, "is_cuda") or isinstance(part, ndarray):
        made = make(part, copy=False)
        made = made.astype("int64") if is_list and not made.size else made
        if made.dtype.kind not in "iub":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if made.ndim or made.dtype.kind == "b":
            return made if made.ndim else refuse("an index of True or False", "use a slice, or an array of bools")
        return made._all()[0]
    if isinstance(part, bool) or getattr(getattr(part, "dtype", None), "kind", "") == "b":
        refuse("an index of True or False", "use a slice, or an array of bools")
    if isinstance(part, (int, integer)) or hasattr(part, "__index__") and not hasattr(part, "dtype"):
        return operator.index(part)
    raise IndexError(_WRONG)


def _is_mask(part):
    return getattr(getattr(part, "dtype", None), "kind", "") == "b" and hasattr(part, "_read")


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
    return tuple(shape), tuple(steps), offset


class _Chosen:
    """What an index with arrays chooses: the shape, the order of its axes in memory, and places; `None` for places that are not known."""

    def __init__(self, array, parts):
        self.is_unknown = False
        slices, lists, firsts, axis = [], [], [], 0
        for at, part in enumerate(parts):
            if part is None:
                slices.append((at, [0]))
            elif isinstance(part, slice):
                slices.append((at, [i * array._steps[axis] for i in range(*part.indices(array._shape[axis]))]))
                axis += 1
            else:
                firsts.append(at)
                found = self._of_mask(array, part, axis) if _is_mask(part) else [self._of_numbers(array, part, axis)]
                lists += found
                axis += len(found)
        try:
            shape = broadcast(*(shape for shape, _ in lists))
        except ValueError:
            texts = " ".join(text_of(shape) for shape, _ in lists)
            raise IndexError(
                f"shape mismatch: indexing arrays could not be broadcast together with shapes {texts}"
            ) from None
        offsets = [array._offset] * product(shape)
        for own, steps in lists:
            missing = len(shape) - len(own)
            spread = [0] * missing + [0 if size == 1 else stride for size, stride in zip(own, strides_of(own))]
            offsets = [offset + steps[at] for offset, at in zip(offsets, places(shape, spread))]
        # The memory has the axes of the arrays first. Arrays side by side leave their axes where they were.
        for _, steps in slices:
            offsets = [place + step for place in offsets for step in steps]
        is_together = firsts == list(range(firsts[0], firsts[-1] + 1))
        before = len([at for at, _ in slices if at < firsts[0]]) if is_together else 0
        count = len(shape)
        self.places, self.inner_shape = offsets, (*shape, *(len(steps) for _, steps in slices))
        self.axes = [*range(count, count + before), *range(count), *range(count + before, len(self.inner_shape))]
        self.shape = tuple(self.inner_shape[axis] for axis in self.axes)

    def _of_mask(self, array, mask, axis):
        """For each axis of an array of bools, the steps to the elements that are chosen."""
        for k, (size, is_in) in enumerate(zip(array._shape[axis:], mask._shape)):
            if size != is_in:
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis + k}; "
                    f"size of axis is {size} but size of corresponding boolean axis is {is_in}"
                )
        taken = [i for i, is_in in enumerate(mask._known("ndarray[condition]")) if is_in]
        rows = zip(strides_of(mask._shape), mask._shape, array._steps[axis:])
        return [((len(taken),), [i // stride % size * step for i in taken]) for stride, size, step in rows]

    def _of_numbers(self, array, part, axis):
        """The shape of one number or an array of numbers, and the steps to the elements."""
        shape, numbers = (part._shape, part._all()) if hasattr(part, "_shape") else ((), [part])
        if UnknownNumber in map(type, numbers):
            self.is_unknown = True
            return shape, [0] * len(numbers)
        return shape, [_place(number, array._shape[axis], axis) * array._steps[axis] for number in numbers]

    def in_order(self):
        """The places in the order of C."""
        strides = strides_of(self.inner_shape)
        return [self.places[at] for at in places(self.shape, [strides[axis] for axis in self.axes])]


def _is_basic(parts):
    return all(part is None or isinstance(part, (slice, int)) for part in parts)


def get(array, index):
    from numpy._array import filled

    parts, has_dots = _parsed(array, index)
    values = array._memory.values()
    if _is_basic(parts):
        shape, steps, offset = _basic(array, parts)
        if shape or has_dots:
            return array._seen(shape, steps, offset)
        return scalar(values[offset], array.dtype) if values is not None else unknown(array.dtype)
    chosen = _Chosen(array, parts)
    if values is not None and not chosen.is_unknown:
        values = [values[place] for place in chosen.places]
    else:
        values = [unknown(array.dtype)] * len(chosen.places)
    made = filled(chosen.inner_shape, array.dtype, values)
    if not chosen.shape:
        return made if has_dots else made[()]
    made = made.transpose(chosen.axes)
    made.base = None
    return made


def _as_written(value, shape, kind):
    """The elements of a value that is written to a part of this shape; `None` where they are not known."""
    from numpy._array import spread
    from numpy._making import array as make

    if type(value) is int and kind.kind in "iu":
        return [cast_one(value, kind, True)] * product(shape)
    value = make(value, copy=False)
    while value.ndim > len(shape) and value._shape[0] == 1:
        value = value[0]
    if value.ndim > len(shape) or any(a not in (1, b) for a, b in zip(reversed(value._shape), reversed(shape))):
        raise ValueError(
            f"could not broadcast input array from shape {text_of(value._shape)} into shape {text_of(shape)}"
        )
    values = spread(value, shape)._read()
    return cast(values, value.dtype, kind) if values is not None and value.dtype is not kind else values


def put(array, index, value):
    parts, _ = _parsed(array, index)
    if not array._is_writeable:
        raise ValueError("assignment destination is read-only")
    if _is_basic(parts):
        shape, steps, offset = _basic(array, parts)
        array._write(places(shape, steps, offset), _as_written(value, shape, array.dtype))
        return
    is_unknown = any(_is_mask(part) and UnknownNumber in map(type, part._all()) for part in parts)
    chosen = None if is_unknown else _Chosen(array, parts)
    if chosen is None or chosen.is_unknown:
        array._write(None, None)
        return
    array._write(chosen.in_order(), _as_written(value, chosen.shape, array.dtype))
