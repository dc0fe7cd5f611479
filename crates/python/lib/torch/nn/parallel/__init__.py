"""`torch.nn.parallel`: one process on one device."""

from _refused import Missing as _Missing
from torch.nn.layers import DataParallel
from torch._aliases import alias as _alias


DistributedDataParallel = _Missing("torch.nn.parallel.DistributedDataParallel", "it needs several processes; run the module itself")
data_parallel = _Missing("torch.nn.parallel.data_parallel", "call the module itself")


class _Names:
    DistributedDataParallel, DataParallel = DistributedDataParallel, DataParallel


_alias(__name__, ("distributed",), _Names)
