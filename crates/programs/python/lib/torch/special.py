"""`torch.special`: other names of operators."""

__path__ = []  # Modules below are found, and refused in a sentence.

from _torch import operator as _operator

import torch

# Names here and names in `torch`, where they differ.
_NAMES = {
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "multigammaln": "mvlgamma",
}


def log_softmax(input, dim, *, dtype=None):
    return torch.log_softmax(input, dim, dtype=dtype) if dtype is not None else torch.log_softmax(input, dim)


def softmax(input, dim, *, dtype=None):
    return torch.softmax(input, dim, dtype=dtype) if dtype is not None else torch.softmax(input, dim)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    if not _names.is_public("torch.special", name):
        _names.refuse("torch.special", name)
    made = _operator("special_" + name) or getattr(torch, _NAMES.get(name, name), None)
    if made is None:
        _names.refuse("torch.special", name)
    return made
