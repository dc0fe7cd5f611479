"""`torch.nn`."""

from torch.nn.parameter import Parameter, Buffer, UninitializedParameter
from torch.nn import functional, init
from torch.nn.module import Module
from torch.nn.containers import Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict
from torch.nn.layers import *
from torch.nn import layers as modules
from torch.nn import utils


class attention:
    class SDPBackend:
        FLASH_ATTENTION, EFFICIENT_ATTENTION, MATH, CUDNN_ATTENTION = range(4)

    @staticmethod
    def sdpa_kernel(*args, **kwargs):
        raise NotImplementedError("torch.nn.attention.sdpa_kernel is not modeled here: the kernel is the one that PyTorch chooses on its own")


class parallel:
    DataParallel = modules.DataParallel

    class DistributedDataParallel:
        def __init__(self, *args, **kwargs):
            raise NotImplementedError("DistributedDataParallel is not modeled here: it needs several processes; run the module itself")


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    from torch import _names
    _names.refuse("torch.nn", name)
