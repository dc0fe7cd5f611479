"""`torch.nn`."""

from torch.nn.parameter import Parameter, Buffer, UninitializedParameter, UninitializedBuffer
from torch.nn import functional, init
from torch.nn.module import Module
from torch.nn.containers import Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict
from torch.nn.layers import *
from torch.nn.more_layers import *
from torch.nn.lazy import *
from torch.nn import utils
from torch.nn import modules
from torch.nn import parallel
from torch.nn import attention


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.nn", name)
