"""`torch.utils`."""

from torch.utils import data, checkpoint, hooks
from torch.utils import _pytree
from torch._aliases import alias as _alias

_alias("torch.utils.data", ("dataloader", "dataset", "sampler"), data)


def set_module(obj, mod):
    obj.__module__ = mod


def swap_tensors(t1, t2):
    t1.data, t2.data = t2.data, t1.data


cmake_prefix_path = ""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.utils", name)
