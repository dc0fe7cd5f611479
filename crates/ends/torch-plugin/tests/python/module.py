"""Drives blockyard_torch.py over the shared library, with a stand-in for torch and (by LD_LIBRARY_PATH) for the CUDA driver.

Usage: module.py LIBRARY FOLDER
"""

import ctypes
import json
import os
import pickle
import pickletools
import runpy
import sys
import threading
import types

LIBRARY, FOLDER = sys.argv[1], sys.argv[2]
MIB = 1 << 20


class Inner:
    """PyTorch's object: takes addresses of hooks."""

    def __init__(self, alloc, free):
        self.alloc, self.free, self.hooks = alloc, free, {}

    def __getattr__(self, name):
        if name.startswith("set_"):
            return lambda address: self.hooks.__setitem__(name, address)
        raise AttributeError(name)


class CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        pointer, size, number = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
        alloc, free = getattr(library, alloc), getattr(library, free)
        alloc.restype, alloc.argtypes = pointer, [size, number, pointer]
        free.restype, free.argtypes = None, [pointer, size, number, pointer]
        self._inner = Inner(alloc, free)

    def allocator(self):
        return self._inner


class Switch:
    is_initialized, current = False, None


def change(allocator):
    if Switch.current is not None:
        raise RuntimeError("Can't swap an already initialized allocator")
    Switch.current = allocator.allocator()


torch = types.ModuleType("torch")
# Nothing of PyTorch lies there, so nothing is compiled: out_of_memory.py is about that.
torch.__version__, torch.__file__ = os.environ.get("TORCH_VERSION", "2.11.0") + "+stand-in", os.path.join(FOLDER, "torch", "__init__.py")
torch._C = types.SimpleNamespace()
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: Switch.is_initialized,
    current_device=lambda: 0,
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=change
    ),
)
sys.modules["torch"] = torch
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import blockyard_torch as by  # noqa: E402


def raises(act, *words):
    try:
        act()
    except by.BlockyardError as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError(f"no error with {words}")


def path(name):
    return os.path.join(FOLDER, name)


# Errors before anything works.
raises(by.memory_stats, "enable() first")
raises(lambda: by.enable("/nowhere/at/all.so"), "no library at /nowhere/at/all.so")
Switch.is_initialized = True
raises(lambda: by.enable(LIBRARY), "before the first CUDA tensor")
Switch.is_initialized = False
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:1"
raises(lambda: by.enable(LIBRARY), "PYTORCH_CUDA_ALLOC_CONF", "must be >= 20")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[3] if len(sys.argv) > 3 else ""
# The one that counts second is not looked at.
os.environ["PYTORCH_ALLOC_CONF"] = "nonsense"

assert not by.is_enabled()
hooks = by.enable(LIBRARY)
assert by.is_enabled() and len(hooks) == 8, hooks
assert all(Switch.current.hooks.values()), Switch.current.hooks
raises(lambda: by.enable(LIBRARY), "already")
assert by.memory_allocated() == 0 and len(by.memory_stats()) == int(os.environ.get("STATISTICS", "122"))
raises(lambda: by.memory_summary(-1), "no CUDA device -1")


def hook(name, *arguments):
    return ctypes.CFUNCTYPE(None, *arguments)(Switch.current.hooks[name])


alloc, free = Switch.current.alloc, Switch.current.free
hook("set_init_fn", ctypes.c_int)(1)
record_stream = hook("set_record_stream_fn", ctypes.c_void_p, ctypes.c_void_p)
reset = hook("set_reset_fn")

# The whole run is recorded, from the first allocation on.
by.record_memory_history()
run = by.record(path("run.jsonl.gz"))
raises(lambda: by.record(path("other.jsonl")), "being recorded already")
live = [alloc(size, 0, None) for size in (1000, 3 * MIB, 15 * MIB, 512, 7 * MIB)]
assert all(live) and alloc(0, 0, None) is None
run.mark("five")
record_stream(live[1], None)
for at in (0, 2):
    free(live[at], 0, 0, None)
# Not from here, as memory of another process.
record_stream(12345, None)
live[2] = None
reset()
# A trace has no word for a cache that is empty already.
by.empty_cache()
live[0] = alloc(5000, 0, None)
run.mark("again")
stats = by.memory_stats()
by.reset_peak_memory_stats()
assert by.max_memory_allocated() == by.memory_allocated() <= stats["allocated_bytes.all.peak"]
assert by.max_memory_reserved() == by.memory_reserved() > 0
run.stop()
run.stop()
raises(lambda: run.mark("late"), "not being recorded")

# A recording that begins while memory is in use.
with by.record(path("late.jsonl")) as late:
    block = alloc(2 * MIB, 0, None)
    free(block, 0, 0, None)
    late.mark("end")
    free(live[4], 0, 0, None)
    live[4] = alloc(6 * MIB, 0, None)
try:
    by.record(os.path.join(FOLDER, "missing", "run.jsonl"))
except FileNotFoundError:
    pass
else:
    raise AssertionError("a folder that is not there")

taken = by.memory_snapshot()
by.snapshot(path("snapshot.pickle"))
with open(path("snapshot.pickle"), "rb") as file:
    data = file.read()
assert pickle.loads(data) == taken
VIEWER = """PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE
EMPTY_DICT EMPTY_LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 LIST DICT APPEND APPENDS SETITEM SETITEMS BINPUT LONG_BINPUT
BINGET LONG_BINGET MEMOIZE""".split()
unknown = {code.name for code, _, _ in pickletools.genops(data)} - set(VIEWER)
assert not unknown, unknown
assert sum(segment["total_size"] for segment in taken["segments"]) == by.memory_reserved()
assert sum(segment["allocated_size"] for segment in taken["segments"]) == by.memory_allocated()
for segment in taken["segments"]:
    assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
# Backward from the segments, as the viewer goes.
now = {b["address"] for s in taken["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
for entry in reversed(taken["device_traces"][0]):
    if entry["action"] == "alloc":
        now.remove(entry["addr"])
    elif entry["action"] == "free_requested":
        assert entry["addr"] not in now
        now.add(entry["addr"])
assert not now, now

# Stacks of Python, where they are wanted.
assert not any(entry["frames"] for entry in taken["device_traces"][0])
is_old = torch.__version__.startswith("2.11")
assert all(entry.get("pool_id") == (None if is_old else (0, 0)) for entry in taken["device_traces"][0])
assert ("max_cached_size" in taken["allocator_settings"]) != is_old


def inner():
    return alloc(MIB, 0, None)


def outer():
    return inner()


by.record_memory_history(stacks=True)
kept = outer()
free(alloc(100, 0, None), 0, 0, None)
with_stacks = by.memory_snapshot()
free(kept, 0, 0, None)
entries = [entry for entry in with_stacks["device_traces"][0] if entry["action"] == "alloc"]
names = [[frame["name"] for frame in entry["frames"]] for entry in entries]
assert names == [["inner", "outer", "<module>"], ["<module>"]], names
lines = [frame["line"] for frame in entries[0]["frames"]]
assert lines[0] == inner.__code__.co_firstlineno + 1 and lines[1] == outer.__code__.co_firstlineno + 1, lines
assert entries[0]["frames"][0]["filename"] == __file__
(block,) = [b for s in with_stacks["segments"] for b in s["blocks"] if b["address"] == kept]
assert [frame["name"] for frame in block["frames"]] == ["inner", "outer", "<module>"]

# Threads that wait for Python's lock and for the allocator's.
by.record_memory_history(stacks=True)
threads = [
    threading.Thread(target=lambda: [free(alloc(size, 0, None), 0, 0, None) for size in range(1, 300)])
    for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
entries = by.memory_snapshot()["device_traces"][0]
assert sum(entry["action"] == "alloc" for entry in entries) == 4 * 299
assert all(entry["frames"][0]["name"] in ("<listcomp>", "<lambda>") for entry in entries if entry["action"] == "alloc")

by.record_memory_history(max_entries=4)
for _ in range(5):
    free(alloc(100, 0, None), 0, 0, None)
assert len(by.memory_snapshot()["device_traces"][0]) == 4
by.record_memory_history(False)
assert by.memory_snapshot()["device_traces"][0] == []
raises(lambda: by.record_memory_history(device=7), "CUDA device 7", "no CUDA device 7")

for pointer in live:
    if pointer is not None:
        free(pointer, 0, 0, None)
by.empty_cache()
assert by.memory_allocated() == 0 and by.memory_reserved() == 0, by.memory_summary()
by.reset_accumulated_memory_stats()
assert by.memory_stats()["allocation.all.allocated"] == 0
assert "cudaMalloc retries: 0" in by.memory_summary() and by.memory_summary(abbreviated=True).count("\n") == 29

viewer = os.environ.get("BLOCKYARD_MEMORY_VIZ")
if viewer is not None:
    # PyTorch's own `torch/cuda/_memory_viz.py`, where somebody has it.
    viz = runpy.run_path(viewer)
    text = viz["trace"](taken)
    assert "cudaMalloc" in text or "segment_map" in text, text
    assert viz["segsum"](taken) and viz["trace_plot"](taken) and viz["segment_plot"](taken)
    keep = lambda lines, flamegraph_script=None: lines  # noqa: E731
    assert "active_allocated" in viz["segments"](taken, format_flamegraph=keep)
    assert "inactive" in viz["memory"](taken, format_flamegraph=keep)
    print("the viewer's functions read it")

with open(path("stats.json"), "w") as file:
    json.dump(stats, file)
print("done as it should be")
