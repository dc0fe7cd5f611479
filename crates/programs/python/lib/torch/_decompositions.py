"""Decompositions of matrices: the memory of their results.

cuSOLVER's workspaces are not modeled here, so on a GPU each decomposition is marked as an estimate; gradients have the sizes of their inputs.
"""

import _torch_memory as _memory

import torch
from torch.autograd.function import Function as _Function


class _Decomposed(_Function):
    @staticmethod
    def forward(ctx, name, shapes, *inputs):
        first = next(t for t in inputs if isinstance(t, torch.Tensor))
        if first.is_cuda:
            _memory.note_estimate(name, "the sizes of the library's workspaces are not known here")
        ctx.inputs = [(t.shape, t.dtype, t.device) if isinstance(t, torch.Tensor) else None for t in inputs]
        made = tuple(torch.empty(shape, dtype=dtype or first.dtype, device=first.device) for shape, dtype in shapes)
        ctx.mark_non_differentiable(*[t for t in made if not t.dtype.is_floating_point])
        ctx.save_for_backward(*[t for t in made if t.dtype.is_floating_point])
        return made

    @staticmethod
    def backward(ctx, *grads):
        made = [
            None if kind is None or not need else torch.empty(kind[0], dtype=kind[1], device=kind[2])
            for kind, need in zip(ctx.inputs, ctx.needs_input_grad[2:])
        ]
        return (None, None, *made)


def decomposed(name, inputs, *shapes):
    """Tensors of these shapes, each with its type or `None` for that of the first input."""
    return _Decomposed.apply(name, shapes, *inputs)


def square(A, name):
    if A.dim() < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    return A.shape[:-2]
