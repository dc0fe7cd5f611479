"""Functions of each element: the class, types of results, and what happens to unknown numbers."""

from torch._unknown import UnknownNumber

from numpy import _values
from numpy._array import MOST, filled, laid_out, ndarray, spread
from numpy._near import SPECIAL, NearNumber, are_special, combine, unknown
from numpy._offers import refuse
from numpy._shapes import broadcast, memory_order, product
from numpy._types import B1, F8, I8, O8, generic, of, promote
from numpy._values import cast, kind_of, scalar, settled


def operand(value, name):
    """A number or an array as an array, and whether its type is weak: a number of Python's own takes the type of the others."""
    if isinstance(value, ndarray):
        return value, None
    if isinstance(value, generic):
        return value._array() if not isinstance(value, str) else filled((), value.dtype, [str(value)]), None
    if type(value) in (int, float, bool):
        return filled((), kind_of(value), [value]), type(value) if type(value) is not bool else None
    if type(value) is UnknownNumber:
        kind = kind_of(value)
        return filled((), kind, [value]), float if kind is F8 else int if kind is I8 else None
    if type(value) is NearNumber:
        return value._array(), None
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
        return F8 if weak is float else operands[0][0].dtype if len(operands) == 1 else _of_whole(operands)
    if weak is float and kind.kind in "iub":
        return F8
    if weak is int and kind is B1:
        return I8
    return kind


def _of_whole(operands):
    kind = I8
    for array, _ in operands:
        kind = promote(kind, array.dtype)
    return kind


class ufunc:
    """A function of each element. `kinds` gives the type of the numbers that it reads and the type of its results."""

    __module__ = "numpy"

    def __init__(self, name, function, kinds, nin=2, identity=None, for_floats=None):
        self.__name__, self._function, self._kinds, self.nin, self.identity = name, function, kinds, nin, identity
        self.nout, self.nargs = 1, nin + 1
        self._for_floats = for_floats

    def __repr__(self):
        return f"<ufunc '{self.__name__}'>"

    def __call__(self, *inputs, out=None, dtype=None, where=True, **others):
        if others:
            refuse(f"{self.__name__} with {next(iter(others))}=", "leave the argument out")
        if len(inputs) == self.nin + 1 and out is None:
            out = inputs[-1]
            inputs = inputs[:-1]
        if len(inputs) != self.nin:
            raise TypeError(
                f"{self.__name__}() takes from {self.nin} to {self.nin + 1} positional arguments but {len(inputs)} were given"
            )
        operands = [operand(value, self.__name__) for value in inputs]
        out = out[0] if isinstance(out, tuple) else out
        if where is not True:
            return self._masked(inputs, out, dtype, where)
        result = self._result(operands, of(dtype) if dtype is not None else None)
        if out is None:
            return (
                result
                if result.ndim
                else scalar(result._memory.kept[0], result.dtype)
                if result._memory.kept is not None
                else unknown(result.dtype)
            )
        if out._shape != result._shape and broadcast(out._shape, result._shape) != out._shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {_text(out._shape)} doesn't match the broadcast shape {_text(result._shape)}"
            )
        if not _fits(result.dtype, out.dtype):
            raise UFuncTypeError(
                f"Cannot cast ufunc '{self.__name__}' output from {result.dtype!r} to {out.dtype!r} with casting rule 'same_kind'"
            )
        out[...] = result
        return out

    def _masked(self, inputs, out, dtype, where):
        if out is None:
            refuse(f"{self.__name__} with where= and without out=", "use numpy.where")
        result = self(*inputs, dtype=dtype)
        from numpy._making import asarray

        out[...] = _where(asarray(where), asarray(result), out)
        return out

    def _result(self, operands, dtype):
        name = self.__name__
        kind, result = self._kinds(name, operands, dtype)
        shape = broadcast(*(array._shape for array, _ in operands)) if len(operands) > 1 else operands[0][0]._shape
        lists = []
        for array, weak in operands:
            values = array._read()
            if values is None or product(shape) > MOST:
                return filled(shape, result, None)
            if array._shape != shape:
                values = spread(array, shape)._read()
            if kind is not None and array.dtype is not kind:
                values = self._converted(values, array, weak, kind)
            lists.append(values)
        values = settled(self.values(lists, kind, result), result)
        order = [a for a, _ in operands if a._shape == shape and a.ndim > 1]
        if order:
            axes = memory_order(shape, order[0]._steps)
            if axes != list(range(len(shape))):
                return laid_out(shape, axes, result, values)
        return filled(shape, result, values)

    def _converted(self, values, array, weak, kind):
        if weak is int and kind.kind in "iu":
            return [_values.cast_one(value, kind, True) for value in values]
        return cast(values, array.dtype, kind)

    def values(self, lists, kind, result):
        """The results before they are rounded to their type."""
        function = (
            self._for_floats
            if self._for_floats is not None and kind is not None and kind.kind == "f"
            else self._function
        )
        if kind is not None and kind.kind == "O":
            return list(map(self._function, *lists))
        if getattr(function, "takes_kind", False):
            plain = function
            function = lambda *numbers: plain(kind, *numbers)  # noqa: E731
        if not any(are_special(values) for values in lists):
            return list(map(function, *lists))
        return [
            function(*numbers)
            if SPECIAL.isdisjoint(map(type, numbers))
            else combine(self.__name__, function, result, numbers)
            for numbers in zip(*lists)
        ]

    # --- over an axis

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        from numpy import _axes

        found = {"add": _axes.sum, "multiply": _axes.prod, "maximum": _axes.max, "minimum": _axes.min, "logical_and": _axes.all, "logical_or": _axes.any}  # fmt: skip
        if self.__name__ not in found or out is not None:
            refuse(f"{self.__name__}.reduce", "use a loop")
        options = {} if dtype is None else {"dtype": dtype}
        return found[self.__name__](array, axis=axis, keepdims=keepdims, **options)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        from numpy import _orders

        if out is not None:
            refuse(f"{self.__name__}.accumulate with out=", "assign the result")
        return _orders.accumulated(self, array, axis, dtype)

    def outer(self, A, B):
        from numpy._making import asarray

        A, B = asarray(A), asarray(B)
        return self(A.reshape(A._shape + (1,) * B.ndim), B)

    def at(self, a, indices, b=None):
        """Adds (or what the function does) at each index, also where one is named twice."""
        from numpy._making import asarray

        indices = asarray(indices)
        if a.ndim != 1 or indices.ndim != 1 or self.nin != 2:
            refuse(f"{self.__name__}.at for more than one axis", "use a loop")
        values = spread(asarray(b), indices._shape)._all()
        for place, value in zip(indices._known(f"{self.__name__}.at"), values):
            a[place] = self(a[place], scalar(value, asarray(b).dtype))

    def reduceat(self, *arguments, **keywords):
        refuse(f"{self.__name__}.reduceat", "use a loop")


class UFuncTypeError(TypeError):
    __module__ = "numpy._core._exceptions"


def _text(shape):
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _fits(source, kind):
    order = "buifcO"
    if source.kind == kind.kind or kind is O8:
        return True
    if source.kind == "i" and kind.kind == "u":
        return False
    return source.kind in order and kind.kind in order and order.index(source.kind) <= order.index(kind.kind)


def _where(condition, x, y):
    kind = promote(x.dtype, y.dtype)
    shape = broadcast(condition._shape, x._shape, y._shape)
    parts = [spread(a, shape)._read() for a in (condition, x, y)]
    if None in parts or product(shape) > MOST:
        return filled(shape, kind, None)
    chosen, a, b = parts
    a, b = cast(a, x.dtype, kind), cast(b, y.dtype, kind)
    values = [unknown(kind) if type(c) in SPECIAL else one if c else other for c, one, other in zip(chosen, a, b)]
    return filled(shape, kind, values)
