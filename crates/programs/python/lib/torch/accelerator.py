"""`torch.accelerator`: the GPU under its general name."""

import torch
from torch.cuda import (
    current_stream,
    device_count,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    synchronize,
)
from torch.cuda import set_device as set_device_index


def is_available():
    return True


def current_accelerator(check_available=False):
    return torch.device("cuda")


def current_device_index():
    return torch.cuda.current_device()


set_device_idx, current_device_idx = set_device_index, current_device_index


class device_index(torch.cuda.device):
    pass


def get_device_capability(device=None):
    types = [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.bool,
    ]
    return {"supported_dtypes": set(types)}


def get_memory_info(device=None):
    return torch.cuda.mem_get_info(device)


def set_stream(stream):
    torch.cuda.set_stream(stream)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names

    _names.refuse("torch.accelerator", name)
