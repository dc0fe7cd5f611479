"""`torch.nn.parallel`: one process on one device."""

from _refused import Missing as _Missing
from torch.nn.layers import DataParallel
from torch._aliases import alias as _alias


DistributedDataParallel = _Missing(
    "torch.nn.parallel.DistributedDataParallel", "it needs several processes; run the module itself"
)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError("torch.nn.parallel.data_parallel is modeled for one device: call the module itself")
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class _Names:
    DistributedDataParallel, DataParallel = DistributedDataParallel, DataParallel


_alias(__name__, ("distributed",), _Names)
