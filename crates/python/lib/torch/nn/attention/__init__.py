"""`torch.nn.attention`: the kernel of attention is the one that PyTorch chooses on its own."""


class SDPBackend:
    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = -1, 0, 1, 2, 3, 4


def sdpa_kernel(*args, **kwargs):
    raise NotImplementedError("torch.nn.attention.sdpa_kernel is not modeled here: the kernel is the one that PyTorch chooses on its own")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names
    _names.refuse("torch.nn.attention", name)
