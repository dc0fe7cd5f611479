"""Functions of each element: the class, types of results, and what happens to unknown numbers."""

from torch._unknown import UnknownNumber

from numpy._array import MAX_KNOWN, filled, laid_out, ndarray, spread
from numpy._near import SPECIAL, NearNumber, are_special, combine, unknown
from numpy._offers import refuse
from numpy._shapes import broadcast, memory_order, product, text_of
from numpy._types import B1, F8, I8, generic, promote
from numpy._values import cast, cast_one, kind_of, scalar, settled


def operand(value, name):
    """A number or an array as an array, and whether its type is weak: a number of Python's own takes the type of the others."""
    if isinstance(value, ndarray):
        return value, None
    if isinstance(value, (generic, NearNumber)):
        return value._array(), None
    if type(value) in (int, float, bool):
        return filled((), kind_of(value), [value]), type(value) if type(value) is not bool else None
    if type(value) is UnknownNumber:
        kind = kind_of(value)
        return filled((), kind, [value]), float if kind is F8 else int if kind is I8 else None
    if hasattr(value, "is_cuda"):
        raise TypeError(f"numpy.{name} of a tensor is not modeled here: use torch.{name}, or pass tensor.numpy()")
    from numpy._making import array

    return array(value), None


def common_kind(operands):
    """The type of an operator's numbers; Python's own numbers only change its family."""
    kind, weak = None, None
    for array, is_weak in operands:
        if is_weak is None:
            kind = array.dtype if kind is None else promote(kind, array.dtype)
        elif weak is not float:
            weak = is_weak
    if kind is None:
        kind = F8 if weak is float else I8
        for array, _ in operands:
            kind = promote(kind, array.dtype)
        return kind
    if weak is float and kind.kind in "iub":
        return F8
    return I8 if weak is int and kind is B1 else kind


class ufunc:
    """A function of each element. `kinds` gives the type of the numbers that it reads, `None` for their own types, and the type of its results."""

    __module__ = "numpy"

    def __init__(self, name, function, kinds, nin=2):
        self.__name__, self._function, self._kinds, self.nin = name, function, kinds, nin

    def __repr__(self):
        return f"<ufunc '{self.__name__}'>"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"numpy.{self.__name__}.{name} is not modeled here: use numpy.sum, numpy.cumsum, or a loop"
        )

    def __call__(self, *inputs, out=None, **others):
        if others:
            refuse(f"{self.__name__} with {next(iter(others))}=", "leave the argument out")
        if len(inputs) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} positional arguments but {len(inputs)} were given")
        result = self._result([operand(value, self.__name__) for value in inputs])
        out = out[0] if isinstance(out, tuple) else out
        if out is None:
            return result if result.ndim else result[()]
        if out._shape != result._shape and broadcast(out._shape, result._shape) != out._shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {text_of(out._shape)} doesn't match the broadcast shape {text_of(result._shape)}"
            )
        if not _fits(result.dtype, out.dtype):
            raise UFuncTypeError(
                f"Cannot cast ufunc '{self.__name__}' output from {result.dtype!r} to {out.dtype!r} with casting rule 'same_kind'"
            )
        out[...] = result
        return out

    def _result(self, operands):
        kind, result = self._kinds(self.__name__, operands)
        shape = broadcast(*(array._shape for array, _ in operands))
        lists = []
        for array, weak in operands:
            values = array._read()
            if values is None or product(shape) > MAX_KNOWN:
                return filled(shape, result, None)
            values = spread(array, shape)._read()
            if kind is not None and array.dtype is not kind:
                if weak is int and kind.kind in "iu":
                    values = [cast_one(array._all()[0], kind, True)] * len(values)
                else:
                    values = cast(values, array.dtype, kind)
            lists.append(values)
        values = settled(self.values(lists, kind, result), result)
        order = [a for a, _ in operands if a._shape == shape and a.ndim > 1]
        return (
            laid_out(shape, memory_order(shape, order[0]._steps), result, values)
            if order
            else filled(shape, result, values)
        )

    def values(self, lists, kind, result):
        """The results before they are rounded to their type."""
        function = self._function
        if getattr(function, "takes_kind", False):
            function = lambda *numbers: self._function(kind, *numbers)
        if not any(are_special(values) for values in lists):
            return list(map(function, *lists))
        return [
            function(*numbers)
            if SPECIAL.isdisjoint(map(type, numbers))
            else combine(self.__name__, function, result, numbers)
            for numbers in zip(*lists)
        ]


class UFuncTypeError(TypeError):
    __module__ = "numpy._core._exceptions"


def _fits(source, kind):
    order = "buif"
    if source.kind == kind.kind:
        return True
    if source.kind == "i" and kind.kind == "u":
        return False
    return source.kind in order and kind.kind in order and order.index(source.kind) <= order.index(kind.kind)


def chosen(condition, x, y):
    """`where` of three arrays."""
    kind = promote(x.dtype, y.dtype)
    shape = broadcast(condition._shape, x._shape, y._shape)
    parts = [spread(a, shape)._read() for a in (condition, x, y)]
    if None in parts or product(shape) > MAX_KNOWN:
        return filled(shape, kind, None)
    conditions, a, b = parts
    a, b = cast(a, x.dtype, kind), cast(b, y.dtype, kind)
    values = [unknown(kind) if type(c) in SPECIAL else one if c else other for c, one, other in zip(conditions, a, b)]
    return filled(shape, kind, values)
