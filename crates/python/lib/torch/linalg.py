"""`torch.linalg`: norms."""

__path__ = []  # Modules below are found, and refused in a sentence.
import torch
from _torch import operator as _operator


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return _operator("linalg_vector_norm")(x, ord, [dim] if isinstance(dim, int) else dim, keepdim)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    return vector_norm(A, 2 if ord in (None, "fro") else ord, dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False):
    return vector_norm(A, 2, list(dim), keepdim)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    made = _operator("linalg_" + name)
    if made is None:
        from torch import _names
        _names.refuse("torch.linalg", name)
    return made
