"""Tensors over the memory of arrays."""

import torch

from numpy._array import MAX_KNOWN, filled
from numpy._near import NearNumber, unknown
from numpy._types import of


def values_of(value):
    """The elements of an array or a number, as `torch.tensor` takes them."""
    array = value if hasattr(value, "_read") else value._array()
    return [unknown(array.dtype) if type(value) is NearNumber else value for value in array._all()]


def copied(array, dtype):
    made = torch.empty(tuple(array.shape), dtype=dtype, device="cpu")
    values = array._read() if hasattr(array, "_read") else array._array()._read()
    if values is not None and len(values) <= MAX_KNOWN:
        made._set_values(values_of(array))
    return made


def unknown_array(shape, name):
    return filled(shape, of(name), None)


def shared(array, dtype):
    """A tensor whose changes the array has as well, and the other way round."""
    if any(step < 0 for step in array._steps):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    memory = array._memory
    values = memory.values()
    if memory.tensor is None:
        if values is None or not array.size:
            return copied(array, dtype)
        whole = torch.empty(len(values), dtype=dtype, device="cpu")
        memory.tensor = whole
        memory.write(values)
    # The memory of a tensor in another order than C's is not that of the array.
    elif not memory.tensor.is_contiguous():
        return copied(array, dtype) if array.shape != tuple(memory.tensor.shape) else memory.tensor.detach()
    return (
        memory.tensor.detach()
        .reshape(-1)
        .as_strided(list(array.shape), list(array._steps), memory.tensor.storage_offset() + array._offset)
    )
