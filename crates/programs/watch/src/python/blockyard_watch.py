"""Attaches the watching library to PyTorch's allocator once CUDA is initialized, and tells it where steps end.

Nothing here may raise into the program: a fault is said once, on standard error.
"""

import atexit
import ctypes
import functools
import importlib
import json
import os
import pickle
import sys
import sysconfig
import time

from blockyard_loaded import once_loaded

# Seconds between two questions to the driver for its free memory, and how many times as long as a question took.
_PAUSE = 0.5
_REST = 1000
# After so many failed requests no further snapshot is sent: a program may go on after each.
_MAX_OOMS = 3
# The bytes of the allocation that shows whether events are understood; the library knows the number.
_TRIED = 1536


def install():
    """Attaches once the program has loaded PyTorch."""
    if "BLOCKYARD_WATCH_SOCKET" in os.environ and _watch is None:
        once_loaded("torch", _on_torch)
        once_loaded("torch.distributed.debug", lambda _module: _debug("add_rank"))
        once_loaded("torch.distributed.debug._debug_handlers", lambda module: _debug("add_page", module))


def step():
    """Ends a step, in a program that has no optimizer of PyTorch's."""
    if _watch is not None:
        _watch.end_step()


def _say(text):
    print(f"blockyard watch: {text}", file=sys.stderr, flush=True)


def _quiet(function):
    """A function whose faults are said and not raised."""

    @functools.wraps(function)
    def called(*arguments, **options):
        try:
            return function(*arguments, **options)
        except Exception as fault:
            _say(f"{type(fault).__name__}: {fault}")

    return called


@_quiet
def _debug(name, *arguments):
    """Calls a function of a file beside this one, which wants that part of PyTorch. A process that ran already has no
    path to it."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    try:
        module = importlib.import_module("blockyard_watch_debug")
    finally:
        sys.path.remove(here)
    getattr(module, name)(*arguments)


class Watch:
    """The watching of this process."""

    def __init__(self, torch):
        self.torch = torch
        self.library = None
        self.process = os.getpid()
        self.optimizer = None
        self.steps = 0
        self.ooms = 0
        self.is_checked = "BLOCKYARD_WATCH_CHECK" in os.environ
        self.memory = None
        self.next_question = 0.0

    @_quiet
    def attach(self):
        """Attaches to the allocator. CUDA is initialized."""
        torch = self.torch
        if torch.cuda.get_allocator_backend() != "native":
            return _say("not watched: another allocator than PyTorch's own is in use")
        library = ctypes.CDLL(os.environ["BLOCKYARD_WATCH_LIBRARY"])
        for name in ("start", "begin", "stacks"):
            getattr(library, "blockyard_watch_" + name).restype = ctypes.c_char_p
        library.blockyard_watch_begin.argtypes = [ctypes.c_uint64]
        library.blockyard_watch_stacks_from.argtypes = [ctypes.c_uint64]
        library.blockyard_watch_snapshot.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        library.blockyard_watch_step.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
        library.blockyard_watch_out_of_memory.argtypes = [ctypes.c_size_t, ctypes.c_uint64]
        here, stacks = sys._getframe(), library.blockyard_watch_stacks
        # Frames of a Python without a lock are others.
        minor = 0 if sysconfig.get_config_var("Py_GIL_DISABLED") else sys.version_info[1]
        file, name = here.f_code.co_filename.encode(), here.f_code.co_name.encode()
        # Whether Python's frames are understood is tried on this line.
        known = stacks(minor, file, name, here.f_lineno)
        devices = range(torch.cuda.device_count())
        hello = {
            "pid": os.getpid(),
            "rank": os.environ.get("RANK"),
            "torch": torch.__version__,
            "devices": [torch.cuda.get_device_name(device) for device in devices],
            "no_stacks": known.decode() if known else None,
        }
        fault = library.blockyard_watch_start(os.environ["BLOCKYARD_WATCH_SOCKET"].encode(), json.dumps(hello).encode())
        if not fault:
            addr = 0
            try:
                addr = torch.cuda.caching_allocator_alloc(_TRIED)
                torch.cuda.caching_allocator_delete(addr)
            finally:
                fault = library.blockyard_watch_begin(addr)
        if fault:
            return _say(f"not watched: {fault.decode()}")
        # A dry run is all host: its time says nothing.
        if "BLOCKYARD_WATCH_ALL_LINES" in os.environ or "blockyard_dry_run" in sys.modules:
            library.blockyard_watch_stacks_from(0)
        self.library = library
        self.send_snapshot()
        atexit.register(library.blockyard_watch_finish)
        torch._C._cuda_attach_out_of_memory_observer(self.on_oom)
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(self.on_step)

    def send_snapshot(self):
        """Sends PyTorch's snapshot, from which the stream goes on."""
        self.library.blockyard_watch_hold()
        text = None
        try:
            snapshot = self.torch.cuda.memory._snapshot()
            snapshot["device_traces"] = []
            text = pickle.dumps(snapshot, protocol=4)
        finally:
            self.library.blockyard_watch_snapshot(text, len(text or b""))

    def on_step(self, optimizer, _arguments, _options):
        if self.optimizer is None:
            self.optimizer = optimizer
        if self.optimizer is optimizer:
            self.end_step()

    @_quiet
    def end_step(self):
        if self.library is None or os.getpid() != self.process:
            return
        self.steps += 1
        memory = self.device_memory()
        wants = self.library.blockyard_watch_step(self.steps, memory, len(memory) // 3)
        if wants or self.is_checked:
            self.send_snapshot()

    def device_memory(self):
        """For each device the bytes that PyTorch can reserve, all its bytes, and the limit of a fraction or 0."""
        cuda, now = self.torch.cuda, time.monotonic()
        if now >= self.next_question:
            numbers = []
            for device in range(cuda.device_count()):
                # A device that the program does not use has no context, and asking for its memory would make one.
                reserved = cuda.memory_reserved(device)
                free, total = cuda.mem_get_info(device) if reserved > 0 else (0, 0)
                numbers += [free + reserved, total, self.limit(device, total)]
            self.memory = (ctypes.c_uint64 * len(numbers))(*numbers)
            took = time.monotonic() - now
            self.next_question = now + max(_PAUSE, _REST * took)
        return self.memory

    def limit(self, device, total):
        fraction = getattr(self.torch.cuda.memory, "get_per_process_memory_fraction", lambda _device: 1.0)(device)
        return int(total * fraction) if fraction < 1 else 0

    @_quiet
    def on_oom(self, device, size, _total, _free):
        """PyTorch's allocator calls this function without its lock."""
        self.ooms += 1
        if self.ooms <= _MAX_OOMS and os.getpid() == self.process:
            self.send_snapshot()
            self.library.blockyard_watch_out_of_memory(device, size)


_watch = None


@_quiet
def _on_torch(torch):
    global _watch
    _watch = Watch(torch)
    torch.cuda._lazy_call(_watch.attach)
