"""The functions of `torch.cuda` about memory."""

import collections
import contextlib

import _torch_memory as _native

__all__ = [
    "memory_stats",
    "memory_summary",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
    "empty_cache",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
    "set_per_process_memory_fraction",
    "get_per_process_memory_fraction",
    "mem_get_info",
    "host_memory_stats",
    "memory_snapshot",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "memory_usage",
    "get_allocator_backend",
    "MemPool",
    "use_mem_pool",
    "memory_stats_as_nested_dict",
    "host_memory_stats_as_nested_dict",
    "reset_peak_host_memory_stats",
    "reset_accumulated_host_memory_stats",
    "caching_allocator_enable",
]


def memory_stats(device=None):
    return _flattened(memory_stats_as_nested_dict(device))


def _flattened(stats):
    result = []

    # As in PyTorch, the function calls itself: each call leaves a cycle of references with all numbers, which counts for
    # Python's garbage collector.
    def add(prefix, value):
        if isinstance(value, dict):
            if prefix:
                prefix += "."
            for name, each in value.items():
                add(prefix + name, each)
        else:
            result.append((prefix, value))

    add("", stats)
    result.sort()
    return collections.OrderedDict(result)


def _stat(name, device):
    """One of all statistics, which PyTorch reads and then flattens for each."""
    value = _native.stat(name, device)
    _flattened(_nested(_native.stats(device, is_marked=False)))
    return value


def memory_stats_as_nested_dict(device=None):
    return _nested(_native.stats(device))


def host_memory_stats_as_nested_dict():
    return _nested(_native.host_stats())


def reset_peak_host_memory_stats():
    from _host import note

    note("peaks of the host's pinned memory are not reset here")


reset_accumulated_host_memory_stats = reset_peak_host_memory_stats


def caching_allocator_enable(value=True):
    if not value:
        raise NotImplementedError(
            "torch.cuda.caching_allocator_enable(False) is not modeled here: only the caching allocator is modeled"
        )


def _nested(stats):
    result = {}
    for name, value in stats.items():
        parts, at = name.split("."), result
        for part in parts[:-1]:
            at = at.setdefault(part, {})
        at[parts[-1]] = value
    return result


def memory_allocated(device=None):
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device=None):
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device=None):
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device=None):
    return _stat("reserved_bytes.all.peak", device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_summary(device=None, abbreviated=False):
    return _native.summary(device, bool(abbreviated))


def empty_cache():
    _native.empty_cache()


def reset_peak_memory_stats(device=None):
    _native.reset_peak(device)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    _native.reset_accumulated(device)


_fractions = {}


def set_per_process_memory_fraction(fraction, device=None):
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    # The allocator keeps the limit in whole bytes.
    total = _native.properties(device)[1]
    _fractions[_native.device_index(device)] = int(fraction * total) / total
    _native.set_fraction(float(fraction), device)


def get_per_process_memory_fraction(device=None):
    return _fractions.get(_native.device_index(device), 1.0)


def mem_get_info(device=None):
    from _host import note

    total = _native.properties(device)[1]
    if non_pytorch := _native.non_pytorch_bytes():
        note(
            f"mem_get_info counts {non_pytorch // 2**20} MiB for the CUDA context and libraries from the start, as recorded on an H100"
        )
    else:
        note("mem_get_info counts the memory that this program reserved; a real GPU also holds the CUDA context")
    return total - non_pytorch - memory_reserved(device), total


def memory_usage(device=None):
    return 0


def host_memory_stats():
    return collections.OrderedDict(sorted(_native.host_stats().items()))


_has_history = False


def memory_snapshot(mempool_id=None, include_traces=True):
    if _has_history:
        raise NotImplementedError(
            "torch.cuda.memory_snapshot after _record_memory_history is not modeled in programs: its blocks would have "
            "stacks; leave the recording out, or `blockyard dry-run PROGRAM` runs the program with PyTorch's own code"
        )
    pool = (0, 0) if mempool_id is None else (mempool_id[0], mempool_id[1])
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in pool):
        raise RuntimeError("mempool_id elements must be integers")
    if not isinstance(include_traces, bool):
        raise RuntimeError("include_traces must be a boolean")
    # No pool has another number.
    return _native.snapshot(*pool) if all(0 <= number < 2**32 for number in pool) else []


def get_allocator_backend():
    return "native"


_raw = {}


def caching_allocator_alloc(size, device=None, stream=None):
    import torch

    held = torch._torch.storage_tensor(size, torch.device("cuda", _native.device_index(device)))
    _raw[held.data_ptr()] = held
    return held.data_ptr()


def caching_allocator_delete(mem_ptr):
    _raw.pop(mem_ptr, None)


class MemPool:
    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        if allocator is not None:
            raise NotImplementedError(
                "torch.cuda.MemPool with its own allocator is not modeled here: leave the allocator out"
            )
        self._device = _native.device_index(None)
        self._pool = _native.create_pool(None, bool(no_split), bool(use_on_oom))

    @property
    def id(self):
        return (0, self._pool)

    def use_count(self):
        return _native.pool_use_count(self._device, self._pool)

    def snapshot(self, include_traces=True):
        return memory_snapshot(self.id, include_traces=include_traces)

    def __del__(self):
        if hasattr(self, "_pool"):
            _native.destroy_pool(self._device, self._pool)


# The memory pools whose scopes are open.
_open_pools = []


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    index = _native.device_index(device)
    if index != pool._device:
        raise NotImplementedError(
            "torch.cuda.use_mem_pool on another device than the current one at MemPool() is not modeled here: make a "
            "pool for each device"
        )
    _native.begin_pool(index, pool._pool)
    _open_pools.append(pool._pool)
    try:
        yield
    finally:
        _open_pools.remove(pool._pool)
        _native.end_pool(index, pool._pool)


def _record_memory_history(enabled="all", *args, **kwargs):
    global _has_history
    _has_history = _has_history or bool(enabled)


def _snapshot(device=None):
    # A program stores it and draws it elsewhere.
    from _host import note

    note("the snapshot is empty here: the figure shows the memory, and the command's --record keeps the whole run")
    return {"segments": [], "device_traces": [], "allocator_settings": {}, "external_annotations": []}


def _dump_snapshot(filename="dump_snapshot.pickle"):
    from _host import note

    note("a snapshot is not written here: --record keeps the whole run")
