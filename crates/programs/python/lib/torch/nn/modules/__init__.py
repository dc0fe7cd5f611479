"""`torch.nn.modules`: the modules by the files that PyTorch has them in."""

import sys

from torch import nn as _nn
from torch.nn.layers import *
from torch.nn.more_layers import *
from torch.nn.containers import Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict
from torch.nn.module import Module
from torch._aliases import alias as _alias


def _ntuple(count):
    return lambda value: tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Utils:
    _single, _pair, _triple, _quadruple = map(staticmethod, map(_ntuple, (1, 2, 3, 4)))
    _ntuple = staticmethod(_ntuple)


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class _Names:
    """The names of all modules, which are found in each of these files."""

    _Loss, _WeightedLoss = _Loss, _WeightedLoss

    def __getattr__(self, name):
        from torch.nn import layers

        if hasattr(layers, name):
            return getattr(layers, name)
        return getattr(_nn, name)


_alias(
    __name__,
    (
        "activation",
        "batchnorm",
        "container",
        "conv",
        "distance",
        "dropout",
        "flatten",
        "fold",
        "instancenorm",
        "linear",
        "loss",
        "module",
        "normalization",
        "padding",
        "pixelshuffle",
        "pooling",
        "rnn",
        "sparse",
        "transformer",
        "upsampling",
    ),
    _Names(),
)
_alias(__name__, ("utils",), _Utils)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_nn, name)
