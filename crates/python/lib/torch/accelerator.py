"""`torch.accelerator`: the GPU under its general name."""
import torch
from torch.cuda import (device_count, synchronize, memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved, memory_stats,
                        empty_cache, reset_peak_memory_stats, reset_accumulated_memory_stats, current_stream, set_device as set_device_index)


def is_available():
    return True


def current_accelerator(check_available=False):
    return torch.device("cuda")


def current_device_index():
    return torch.cuda.current_device()


set_device_idx, current_device_idx = set_device_index, current_device_index


class device_index(torch.cuda.device):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from torch import _names
    _names.refuse("torch.accelerator", name)
