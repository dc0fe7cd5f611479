"""Functions that the methods of tensors call."""

from _torch import operator as _operator


def _reflected(name):
    operator = _operator(name)

    def method(self, other):
        return operator(other, self)

    return method


# The operators that special methods call.
_SPECIAL = {
    "__add__": "add",
    "__radd__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__rmul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__neg__": "neg",
    "__abs__": "abs",
    "__invert__": "bitwise_not",
    "__and__": "bitwise_and",
    "__rand__": "bitwise_and",
    "__or__": "bitwise_or",
    "__ror__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__rxor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}


def _index(index):
    import torch

    if type(index) is list:
        return (
            torch.tensor(index)
            if all(not isinstance(i, (slice, type(...), type(None))) for i in index)
            else tuple(index)
        )
    if type(index) is not tuple:
        return torch.tensor(index) if index.ndim else index
    return tuple(torch.tensor(i) if type(i) in (list, range) or _is_array(i) else i for i in index)


def _is_array(value):
    return type(value).__module__ == "numpy" and value.ndim > 0


def _need(name):
    made = _operator(name)
    if made is None:

        def missing(*args, **kwargs):
            raise NotImplementedError(f"the operator {name} is not modeled here")

        return missing
    return made


_rsub, _pow, _floor_divide, _remainder, _matmul = map(_need, ("rsub", "pow", "floor_divide", "remainder", "matmul"))
_operator_item, _getitem, _setitem = _need("item"), _need("__getitem__"), _need("__setitem__")
_split_sizes, _split_size = _need("split_with_sizes"), _need("split")


def _split(tensor, split_size, dim=0):
    return (
        _split_sizes(tensor, list(split_size), dim)
        if isinstance(split_size, (list, tuple))
        else _split_size(tensor, split_size, dim)
    )


def _unflatten(tensor, dim, sizes):
    dim = dim + tensor.dim() if dim < 0 else dim
    return tensor.view(*tensor.shape[:dim], *sizes, *tensor.shape[dim + 1 :])
