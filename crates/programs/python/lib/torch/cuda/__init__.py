"""`torch.cuda`: the GPU's memory, streams and properties."""

import collections as _collections

import torch
import _torch_memory as _native
from torch import AcceleratorError, OutOfMemoryError
from torch.cuda import memory, amp
from torch.cuda.memory import *
from torch.cuda.memory import (
    MemPool,
    use_mem_pool,
    memory_stats,
    memory_allocated,
    caching_allocator_alloc,
    caching_allocator_delete,
)

default_generators = ()
has_magma = has_half = True


def is_available():
    return _native.device_count() > 0


def is_initialized():
    return True


def init():
    pass


def device_count():
    return _native.device_count()


def current_device():
    return _native.current_device()


def set_device(device):
    _native.set_device(device)


class device:
    def __init__(self, device):
        self.idx = None if device is None else _native.device_index(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = _native.set_device(self.idx)

    def __exit__(self, *exc):
        if self.idx is not None:
            _native.set_device(self.prev_idx)
        return False


class device_of(device):
    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else None)


class _DeviceProperties:
    def __init__(self, values):
        (
            self.name,
            self.total_memory,
            self.multi_processor_count,
            self.max_threads_per_multi_processor,
            self.major,
            self.minor,
        ) = values
        self.warp_size, self.is_integrated, self.is_multi_gpu_board = 32, 0, 0
        self.gcnArchName = self.name
        self.L2_cache_size = 60 << 20
        self.uuid = "00000000-0000-0000-0000-000000000000"

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1 << 20)}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def get_device_properties(device=None):
    return _DeviceProperties(_native.properties(device))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list():
    return ["sm_80", "sm_90"]


def is_bf16_supported(including_emulation=True):
    return True


def synchronize(device=None):
    _native.synchronize(device)


def ipc_collect():
    pass


def utilization(device=None):
    from _host import note

    note("the utilization of a GPU is not modeled: 0")
    return 0


def manual_seed(seed):
    pass


manual_seed_all = manual_seed


def seed():
    pass


seed_all = seed


def get_rng_state(device="cuda"):
    return torch.empty(16, dtype=torch.uint8)


def set_rng_state(new_state, device="cuda"):
    pass


get_rng_state_all = get_rng_state
set_rng_state_all = set_rng_state


class Stream:
    def __init__(self, device=None, priority=0, **kwargs):
        self.device_index = _native.device_index(device)
        self.cuda_stream = _native.create_stream() if "handle" not in kwargs else kwargs["handle"]
        self.stream_id = self.cuda_stream
        self.priority = priority

    @property
    def device(self):
        return torch.device("cuda", self.device_index)

    def synchronize(self):
        _native.synchronize_stream(self.device_index, self.cuda_stream)

    def wait_stream(self, stream):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self):
        return True

    def __enter__(self):
        self._context = stream(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc):
        self._context.__exit__(*exc)

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.cuda_stream, self.device_index) == (
            other.cuda_stream,
            other.device_index,
        )

    def __hash__(self):
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self):
        return f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


ExternalStream = Stream


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self._timing, self._time, self._stream = enable_timing, None, None

    def record(self, stream=None):
        import time

        self._time, self._stream = time.perf_counter(), stream

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def elapsed_time(self, end_event):
        from torch._tensor import UnknownNumber
        from _host import note

        note("times of a GPU are not modeled")
        return UnknownNumber(torch.float64)

    def synchronize(self):
        if self._stream is not None:
            self._stream.synchronize()
        elif self._time is not None:
            current_stream().synchronize()


class stream:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.device_before = _native.set_device(self.stream.device_index)
            self.before = _native.set_stream(self.stream.device_index, self.stream.cuda_stream)

    def __exit__(self, *exc):
        if self.stream is not None:
            _native.set_stream(self.stream.device_index, self.before)
            _native.set_device(self.device_before)


StreamContext = stream


def current_stream(device=None):
    return Stream(device, handle=_native.current_stream(device))


def default_stream(device=None):
    return Stream(device, handle=0)


def set_stream(stream):
    _native.set_stream(stream.device_index, stream.cuda_stream)


class nvtx:
    @staticmethod
    def range_push(message):
        return 0

    @staticmethod
    def range_pop():
        return 0

    @staticmethod
    def mark(message):
        pass

    @staticmethod
    def range_start(message):
        return 0

    @staticmethod
    def range_end(range_id):
        pass

    class range:
        def __init__(self, message, *args):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *exc):
            pass

        def __call__(self, function):
            return function


def initial_seed():
    return torch.initial_seed()


def is_current_stream_capturing():
    return False


def is_tf32_supported():
    return get_device_capability()[0] >= 8


def can_device_access_peer(device, peer_device):
    return _native.device_index(device) != _native.device_index(peer_device)


_sync_debug_mode = 0


def set_sync_debug_mode(debug_mode):
    global _sync_debug_mode
    _sync_debug_mode = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)


def get_sync_debug_mode():
    return _sync_debug_mode


CudaError = RuntimeError


class DeferredCudaCallError(Exception):
    pass


def check_error(res):
    if res != 0:
        raise CudaError(res)


def current_blas_handle():
    return 0


def get_gencode_flags():
    return " ".join(f"-gencode compute=compute_{arch[3:]},code={arch}" for arch in get_arch_list())


class random:
    """The generators of the GPU, whose numbers are not known."""


class streams:
    Event, ExternalStream, Stream, torch, annotations = Event, ExternalStream, Stream, torch, None


for _name in (
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
):
    if _name in globals():
        setattr(random, _name, staticmethod(globals()[_name]))


class graphs:
    """Graphs of kernels, which are not modeled."""

    is_current_stream_capturing = staticmethod(is_current_stream_capturing)


from _refused import Missing as _Missing

for _name in ("CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"):
    setattr(graphs, _name, _Missing(f"torch.cuda.graphs.{_name}", "run the work without a graph"))


import sys as _sys

for _name in ("random", "streams", "graphs", "nvtx"):
    _sys.modules[f"torch.cuda.{_name}"] = globals()[_name]


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    from torch import _names, _types

    if name in _types._TYPE_NAMES:
        globals().update(_types._types_of_tensors("cuda", "torch.cuda"))
        return globals()[name]
    _names.refuse("torch.cuda", name)
