"""`torch.functional`: names of `torch`."""

import torch

__path__ = []  # Modules below are found, and refused in a sentence.


def __getattr__(name):
    from torch import _names

    if name.startswith("__") or not _names.is_public("torch.functional", name):
        raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
    return getattr(torch, name)
