"""`torch.utils`."""

from torch.utils import data, checkpoint, hooks
from torch.utils import _pytree
from torch._aliases import alias as _alias

_alias("torch.utils.data", ("dataloader", "dataset", "sampler"), data)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.utils", name)
