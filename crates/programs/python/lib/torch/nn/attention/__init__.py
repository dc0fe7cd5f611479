"""`torch.nn.attention`: which kernels of attention PyTorch may choose."""

import contextlib
import enum

import _torch_memory as _memory


class SDPBackend(enum.Enum):
    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = -1, 0, 1, 2, 3, 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    if set_priority:
        raise NotImplementedError(
            "torch.nn.attention.sdpa_kernel(set_priority=True) is not modeled here: name the one kernel that is to run"
        )
    backends = set(backends) if isinstance(backends, list) else {backends}
    before = _memory.attention_kernels()
    allowed = (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)
    _memory.set_attention_kernels([backend in backends for backend in allowed])
    try:
        yield {}
    finally:
        _memory.set_attention_kernels(before)


WARN_FOR_UNFUSED_KERNELS = False


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.nn.attention", name)
