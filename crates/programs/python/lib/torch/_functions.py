"""Operators whose Python functions take more forms of arguments than their schemas."""

from builtins import sorted as _sorted

from _torch import operator as _operator

from torch._making import scalar_tensor
from torch._tensor import Size, Tensor, UnknownNumber
from torch._types import _type_of, result_type


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    if dim is None and p in ("fro", 2, 2.0):
        return _operator("linalg_vector_norm")(input, 2, None, keepdim)
    p = 2 if p in ("fro", None) else p
    return _operator("linalg_vector_norm")(input, p, [dim] if isinstance(dim, int) else dim, keepdim)


def split(tensor, split_size_or_sections, dim=0):
    return tensor.split(split_size_or_sections, dim)


def einsum(equation, *operands):
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _operator("einsum")(equation, list(operands))


def meshgrid(*tensors, indexing=None):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    tensors = list(tensors)
    swaps = indexing == "xy" and len(tensors) > 1
    if swaps:
        tensors[:2] = tensors[1::-1]
    shape = [t.numel() for t in tensors]
    made = [t.reshape([-1 if d == i else 1 for d in range(len(tensors))]).expand(shape) for i, t in enumerate(tensors)]
    if swaps:
        made = [made[1].transpose(0, 1), made[0].transpose(0, 1)] + [t.transpose(0, 1) for t in made[2:]]
    return tuple(made)


def where(condition, input=None, other=None):
    if input is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        # Two numbers become tensors on the condition's device first.
        input, other = (
            scalar_tensor(value, dtype=_type_of(type(value)), device=condition.device) for value in (input, other)
        )
    elif not isinstance(input, Tensor) or not isinstance(other, Tensor):
        # A single number becomes a tensor too, of the type that both operands promote to.
        tensor, value = (input, other) if isinstance(input, Tensor) else (other, input)
        kind = result_type(tensor, value)
        made = scalar_tensor(value, dtype=kind, device=tensor.device)
        input, other = (tensor.to(kind), made) if tensor is input else (made, tensor.to(kind))
        # The caller's condition outlives that number.
        result = _operator("where")(condition, input, other)
        del input, other, made, tensor
        return result
    return _operator("where")(condition, input, other)


def nonzero(input, *, as_tuple=False):
    found = _operator("nonzero")(input)
    return found.unbind(1) if as_tuple else found


def broadcast_tensors(*tensors):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


def broadcast_shapes(*shapes):
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(reversed(tuple(shape))):
            if size != 1:
                if result[rank - 1 - i] not in (1, size):
                    raise RuntimeError(
                        f"The size of tensor a ({result[rank - 1 - i]}) must match the size of tensor b ({size}) at non-singleton "
                        f"dimension {rank - 1 - i}"
                    )
                result[rank - 1 - i] = size
    return Size(result)


def atleast_1d(t):
    return t if t.dim() else t.reshape(1)


def atleast_2d(t):
    return t if t.dim() >= 2 else t.reshape(1, -1)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values = input._known_values() if input.is_cpu and dim is None else None
    if values is None or any(type(value) is UnknownNumber or value != value for value in values):
        if return_inverse or return_counts or dim is not None:
            raise NotImplementedError(
                "torch.unique with return_inverse, return_counts or dim is modeled for known values of the host only; "
                "count classes with torch.bincount"
            )
        return _operator("unique")(input)
    found = _sorted(set(values))
    from torch import tensor

    results = [tensor(found, dtype=input.dtype)]
    if return_inverse:
        places = {value: place for place, value in enumerate(found)}
        results.append(tensor([places[value] for value in values], dtype=_type_of(int)).reshape(input.shape))
    if return_counts:
        results.append(tensor([values.count(value) for value in found], dtype=_type_of(int)))
    return results[0] if len(results) == 1 else tuple(results)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _operator("allclose")(a, b, rtol, atol, equal_nan).item()


def equal(a, b):
    return a.shape == b.shape and (a == b).all().item()
