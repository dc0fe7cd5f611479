"""Blockyard's allocator inside PyTorch.

Call `enable()` before the first CUDA tensor. PyTorch refuses statistics, snapshots and recordings under an allocator that is
not its own; the functions here give them, with PyTorch's names and meanings.

    import blockyard_torch
    blockyard_torch.enable()
    with blockyard_torch.record("run.jsonl.gz"):
        train()
    print(blockyard_torch.memory_summary())
"""

import collections
import ctypes
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings

__all__ = [
    "BlockyardError",
    "Recording",
    "empty_cache",
    "enable",
    "is_enabled",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "raises_out_of_memory",
    "record",
    "record_memory_history",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "snapshot",
]

LIBRARY_NAME = "libblockyard_torch_plugin.so"
# The Python package `blockyard` has the same functions in its own library.
PACKAGE_LIBRARY_NAME = "_native.abi3.so"
LIBRARY_VARIABLE = "BLOCKYARD_TORCH_LIBRARY"

# The setters of PyTorch's object, and the function of the library that each gets.
_HOOKS = {
    "set_init_fn": "blockyard_init",
    "set_reset_fn": "blockyard_reset",
    "set_memory_fraction_fn": "blockyard_memory_fraction",
    "set_base_alloc_fn": "blockyard_base_alloc",
    "set_record_stream_fn": "blockyard_record_stream",
    "set_begin_allocate_to_pool": "blockyard_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "blockyard_end_allocate_to_pool",
    "set_release_pool": "blockyard_release_pool",
}

# Compiled against the installed PyTorch, since it throws an exception of PyTorch's.
_SOURCE_NAME = "blockyard_out_of_memory.cpp"
CACHE_VARIABLE = "BLOCKYARD_CACHE"

_library = None
_allocator = None
_raises_out_of_memory = False


class BlockyardError(RuntimeError):
    """The allocator could not do what was asked; the text says why."""


def enable(library=None):
    """Makes PyTorch allocate through Blockyard, for the rest of the process.

    `library` is the path of the shared library; without one, the environment variable BLOCKYARD_TORCH_LIBRARY, this folder and
    the build folders above it are searched. Settings are read from PYTORCH_CUDA_ALLOC_CONF, as PyTorch reads them.
    Returns the names of PyTorch's hooks that were set.

    A request that finds no memory raises torch.OutOfMemoryError, with PyTorch's text and one more sentence: the cause. That
    needs a small C++ function, which is compiled against the installed PyTorch the first time (some seconds, then cached). Where it
    cannot be compiled, `enable` warns, and a request that finds no memory ends the process with the same text.

    Raises BlockyardError when CUDA is in use already, the library is missing or the settings are bad.
    """
    global _allocator, _raises_out_of_memory
    import torch

    if _allocator is not None:
        raise BlockyardError("Blockyard is enabled already")
    if torch.cuda.is_initialized():
        raise BlockyardError(
            "CUDA is in use already: call blockyard_torch.enable() before the first CUDA tensor or torch.cuda call"
        )
    loaded, path = _load(library)
    _check(loaded.blockyard_follow_release(torch.__version__.encode()))
    _check(loaded.blockyard_check_settings())
    try:
        # Finds `blockyard_free` too, since the compiled function is linked with this library.
        path, malloc, _raises_out_of_memory = _throwing_library(path), "blockyard_malloc_or_throw", True
    except BlockyardError as error:
        malloc, _raises_out_of_memory = "blockyard_malloc_or_exit", False
        warnings.warn(
            f"torch.OutOfMemoryError cannot be raised under Blockyard: {error}. A request that finds no memory will end the "
            "process with its message.",
            RuntimeWarning,
            stacklevel=2,
        )
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, malloc, "blockyard_free")
    # The hooks are set before the switch, so that every allocation has them.
    hooks = []
    for setter, function in _HOOKS.items():
        set_hook = getattr(allocator.allocator(), setter, None)
        if set_hook is not None:
            set_hook(ctypes.cast(getattr(loaded, function), ctypes.c_void_p).value)
            hooks.append(setter)
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise BlockyardError(f"PyTorch does not take the allocator: {error}") from error
    _allocator = allocator
    return hooks


def is_enabled():
    """Whether `enable` was called."""
    return _allocator is not None


def raises_out_of_memory():
    """Whether a request that finds no memory raises torch.OutOfMemoryError; otherwise it ends the process with its message."""
    return _raises_out_of_memory


def memory_stats(device=None):
    """The dictionary of `torch.cuda.memory_stats`, with the keys of the installed PyTorch, sorted."""
    text = _text(_lib().blockyard_memory_stats(_index(device)))
    return collections.OrderedDict(sorted(json.loads(text).items()))


def memory_summary(device=None, abbreviated=False):
    """The text of `torch.cuda.memory_summary`."""
    return _text(_lib().blockyard_memory_summary(_index(device), int(bool(abbreviated))))


def memory_allocated(device=None):
    """Bytes of blocks in use."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    """The most that `memory_allocated` was since the peaks were last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    """Bytes of all segments."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    """The most that `memory_reserved` was since the peaks were last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def empty_cache():
    """Gives all cached memory of all devices back. `torch.cuda.empty_cache` does the same, and hides errors."""
    _check(_lib().blockyard_empty_cache())


def reset_peak_memory_stats(device=None):
    """Sets every peak to its current value."""
    _check(_lib().blockyard_reset_peak_stats(_index(device)))


def reset_accumulated_memory_stats(device=None):
    """Sets all accumulated counts to zero."""
    _check(_lib().blockyard_reset_accumulated_stats(_index(device)))


def record_memory_history(enabled=True, max_entries=None, device=None, stacks=False):
    """Starts (or stops) recording events for the trace of `snapshot`: the last `max_entries` entries, or all.

    With `stacks` each allocation and free has the Python stack of its thread, at the cost of some microseconds; threads
    of backward have none.
    """
    library, index = _lib(), _index(device)
    if enabled:
        if max_entries is not None and max_entries < 1:
            raise ValueError("max_entries is at least 1")
        _check(library.blockyard_trace_start(index, max_entries or 0))
        _check(library.blockyard_trace_stacks(int(bool(stacks))))
    else:
        _check(library.blockyard_trace_stacks(0))
        _check(library.blockyard_trace_stop(index))


def memory_snapshot():
    """The dictionary of `torch.cuda.memory._snapshot`, with traces for devices whose history `record_memory_history` records."""
    return _snapshot_from(json.loads(_text(_lib().blockyard_snapshot())))


def snapshot(path):
    """Writes `memory_snapshot()` as a pickle that pytorch.org/memory_viz opens."""
    taken = memory_snapshot()
    with open(path, "wb") as file:
        # The viewer reads protocols up to 4.
        pickle.dump(taken, file, protocol=4)


def record(path, device=None, name=None):
    """Starts a recording of the device that Blockyard's page opens and `blockyard verify` replays; packed where `path` ends in `.gz`.

    As a context manager the recording ends with the `with` block; otherwise call `stop()` on the returned `Recording`.
    """
    return Recording(path, device, name)


class Recording:
    """A running recording. `mark` notes the statistics of a moment, for a replay to compare."""

    def __init__(self, path, device=None, name=None):
        self.path = os.fspath(path)
        self.name = name or os.path.basename(self.path).split(".")[0]
        self._device = _index(device)
        # An error is raised now and not after hours of training.
        with open(self.path, "ab"):
            pass
        _check(_lib().blockyard_record_start(self._device))
        self._is_running = True

    def mark(self, label):
        """Notes the statistics of this moment under that name, the end of an iteration for example."""
        _check(_lib().blockyard_record_mark(self._device, str(label).encode()))

    def stop(self):
        """Ends the recording and writes the file; a second call does nothing."""
        if not self._is_running:
            return
        self._is_running = False
        torch = sys.modules.get("torch")
        version = str(getattr(torch, "__version__", "")).encode()
        path, name = os.fsencode(self.path), self.name.encode()
        _check(_lib().blockyard_record_finish(self._device, path, name, version))

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        self.stop()


def _snapshot_from(taken):
    # One object for each word, as in PyTorch's own: the pickle names it once.
    words, no_frames = {}, []
    frames = [{"name": name, "filename": file, "line": line} for name, file, line in taken["frames"]]
    stacks = [[frames[frame] for frame in stack] for stack in taken["stacks"]]
    # Who made the blocks in use, as far as the traces go back.
    makers = {}
    for _, entries in taken["traces"]:
        makers.update((addr, stack) for action, addr, _, _, _, stack, _ in entries if action == "alloc")

    def word(text):
        return words.setdefault(text, text)

    def block(of):
        address, size, requested, state = of
        maker = makers.get(address) if state.startswith("active") else None
        return {
            "address": address,
            "size": size,
            "requested_size": requested,
            "state": word(state),
            "frames": stacks[maker] if maker else no_frames,
        }

    def segment(of):
        of["segment_type"] = word(of["segment_type"])
        of["segment_pool_id"] = tuple(of["segment_pool_id"])
        blocks = [block(each) for each in of.pop("blocks")]
        return {**of, "frames": no_frames, "blocks": blocks}

    def entry(of):
        action, addr, size, stream, micros, stack, pool = of
        return {
            "action": word(action),
            ("device_free" if action == "oom" else "addr"): addr,
            "size": size,
            "stream": stream,
            "time_us": micros,
            "compile_context": "N/A",
            "user_metadata": "",
            **({} if pool is None else {"pool_id": tuple(pool)}),
            "frames": stacks[stack] if stack else no_frames,
        }

    traces = {index: [entry(each) for each in entries] for index, entries in taken["traces"]}
    settings = taken["settings"]
    divisions = settings["roundup_power2_divisions"]
    settings["roundup_power2_divisions"] = {str(1 << at): value for at, value in enumerate(divisions)}
    return {
        "segments": [segment(each) for each in taken["segments"]],
        "device_traces": [traces.get(index, []) for index in range(max(traces, default=0) + 1)],
        "allocator_settings": settings,
        "external_annotations": [],
    }


def _lib():
    if _library is None:
        raise BlockyardError("call blockyard_torch.enable() first")
    return _library


def _load(library):
    global _library
    path = _find(library)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise BlockyardError(f"{path} cannot be loaded: {error}") from error
    text, number = ctypes.c_void_p, ctypes.c_int
    loaded.blockyard_last_error.restype = ctypes.c_char_p
    loaded.blockyard_last_error.argtypes = []
    for name, result, arguments in [
        ("free_text", None, [text]),
        ("follow_release", number, [ctypes.c_char_p]),
        ("check_settings", number, []),
        ("memory_stats", text, [number]),
        ("memory_summary", text, [number, number]),
        ("empty_cache", number, []),
        ("reset_peak_stats", number, [number]),
        ("reset_accumulated_stats", number, [number]),
        ("trace_start", number, [number, ctypes.c_size_t]),
        ("trace_stop", number, [number]),
        ("trace_stacks", number, [number]),
        ("snapshot", text, []),
        ("record_start", number, [number]),
        ("record_mark", number, [number, ctypes.c_char_p]),
        ("record_finish", number, [number, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p]),
    ]:
        function = getattr(loaded, "blockyard_" + name)
        function.restype, function.argtypes = result, arguments
    _library = loaded
    return loaded, path


def _find(library):
    if library is None:
        library = os.environ.get(LIBRARY_VARIABLE)
    if library is not None:
        path = os.path.abspath(os.fspath(library))
        if not os.path.exists(path):
            raise BlockyardError(f"there is no library at {path}")
        return path
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
    folders = [here, os.path.join(root, "target", "release"), os.path.join(root, "target", "debug")]
    for path in [os.path.join(here, PACKAGE_LIBRARY_NAME), *(os.path.join(folder, LIBRARY_NAME) for folder in folders)]:
        if os.path.exists(path):
            return path
    raise BlockyardError(
        f"{LIBRARY_NAME} is in none of {', '.join(folders)}: build it with "
        f"`cargo build --release -p blockyard-torch-plugin`, or name it with {LIBRARY_VARIABLE}"
    )


def _throwing_library(path):
    """The library of the function that throws, compiled if it is not in the cache."""
    import torch

    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), _SOURCE_NAME)
    root = os.path.dirname(os.path.abspath(torch.__file__))
    headers, libraries = os.path.join(root, "include"), os.path.join(root, "lib")
    if not os.path.exists(os.path.join(headers, "c10", "util", "Exception.h")):
        raise BlockyardError(f"PyTorch's C++ headers are not in {headers}")
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC"]
    # Since 2.7 PyTorch is always built with the newer ABI of C++ strings.
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(getattr(torch._C, '_GLIBCXX_USE_CXX11_ABI', True))}")
    with open(source, "rb") as file:
        text = file.read()
    parts = [text, torch.__version__.encode(), os.fsencode(root), os.fsencode(path), " ".join(flags).encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    folder = os.environ.get(CACHE_VARIABLE) or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "blockyard"
    )
    made = os.path.join(folder, f"out-of-memory-{key}.so")
    if os.path.exists(made):
        return made
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        raise BlockyardError("there is no C++ compiler (c++, g++ or clang++ on PATH, or the variable CXX)")
    try:
        os.makedirs(folder, exist_ok=True)
        # First written under a separate name: other processes of the same training compile at the same time.
        handle, partial = tempfile.mkstemp(suffix=".so", dir=folder)
        os.close(handle)
    except OSError as error:
        raise BlockyardError(
            f"nothing can be written to {folder} ({error}); set {CACHE_VARIABLE} to a folder"
        ) from error
    linked = [path, "-L", libraries, "-lc10", f"-Wl,-rpath,{libraries}"]
    command = [*compiler.split(), *flags, "-isystem", headers, source, *linked, "-o", partial]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if ran.returncode != 0:
            raise BlockyardError(f"{compiler} failed: {(ran.stderr or ran.stdout).strip()[-1000:]}")
        os.replace(partial, made)
    except OSError as error:
        raise BlockyardError(f"{compiler} cannot be run: {error}") from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return made


def _index(device):
    torch = sys.modules.get("torch")
    if device is None:
        return torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return _index(None) if index is None else index


def _check(result):
    if result != 0:
        raise BlockyardError(_library.blockyard_last_error().decode())


def _text(pointer):
    if not pointer:
        raise BlockyardError(_library.blockyard_last_error().decode())
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        _library.blockyard_free_text(pointer)
