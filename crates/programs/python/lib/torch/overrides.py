"""`torch.overrides`, which is not modeled."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _refused import Missing as _Missing


def is_tensor_like(inp):
    import torch

    return isinstance(inp, torch.Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args):
    return False


def wrap_torch_function(dispatcher):
    return lambda function: function


def resolve_name(f):
    return getattr(f, "__name__", None)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(f"torch.overrides.{name}", "operators are not intercepted here")
