"""Modes that change no memory, and numbers that are known."""

from _refused import Missing as _Missing

import torch


def is_deterministic(*args):
    return False


are_deterministic_algorithms_enabled = is_deterministic


sym_int, sym_float = int, float


def get_num_interop_threads():
    return 8


def get_deterministic_debug_mode():
    return 0


is_deterministic_algorithms_warn_only_enabled = is_vulkan_available = is_anomaly_enabled = is_deterministic
is_autocast_cpu_enabled = is_autocast_ipu_enabled = is_autocast_xla_enabled = is_warn_always_enabled = is_deterministic


def is_autocast_cache_enabled():
    return True


is_anomaly_check_nan_enabled = compiled_with_cxx11_abi = is_autocast_cache_enabled


def set_anomaly_enabled(mode, check_nan=True):
    pass


set_warn_always = set_flush_denormal = set_anomaly_enabled


def get_autocast_cpu_dtype():
    return torch.bfloat16


set_autocast_enabled, set_autocast_dtype, set_autocast_gpu_dtype, set_autocast_cache_enabled = (
    _Missing(f"torch.set_autocast_{name}", 'use `with torch.autocast("cuda")`')
    for name in ("enabled", "dtype", "gpu_dtype", "cache_enabled")
)


def get_device_module(device=None):
    return torch.cuda


def cond(pred, true_fn, false_fn, operands=()):
    torch._torch_memory.note_estimate(
        "torch.cond", "both branches of torch.cond are traced by a compiler; one runs here"
    )
    return (true_fn if pred else false_fn)(*operands)
