"""Runs out of memory under blockyard_torch.py, with a stand-in for torch and (by LD_LIBRARY_PATH) for the CUDA driver.

Usage: out_of_memory.py LIBRARY FOLDER PART    (throw, exit or broken)
"""

import ctypes
import os
import shutil
import subprocess
import sys
import types
import warnings

LIBRARY, FOLDER, PART = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20

# A PyTorch of two files: the header, and the library that calls and catches.
root = os.path.join(FOLDER, "torch")
os.makedirs(os.path.join(root, "lib"), exist_ok=True)
if not os.path.exists(os.path.join(root, "include")):
    os.symlink(os.path.join(HERE, "stand_in", "include"), os.path.join(root, "include"))
c10_path = os.path.join(root, "lib", "libc10.so")
compile_c10 = ["c++", "-std=c++17", "-shared", "-fPIC", "-I", os.path.join(root, "include")]
subprocess.run([*compile_c10, os.path.join(HERE, "stand_in", "c10.cpp"), "-o", c10_path], check=True)
c10 = ctypes.CDLL(c10_path)


class CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        self.library, self.names = ctypes.CDLL(path), (alloc, free)
        self.alloc, self.free = getattr(self.library, alloc), getattr(self.library, free)
        self.free.restype = None
        self.free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

    def allocator(self):
        return types.SimpleNamespace()


current = []
torch = types.ModuleType("torch")
torch.__version__, torch.__file__ = "2.11.0+stand-in", os.path.join(root, "__init__.py")
torch._C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: False,
    current_device=lambda: 0,
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=CUDAPluggableAllocator, change_current_allocator=current.append
    ),
)
sys.modules["torch"] = torch
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import blockyard_torch as by  # noqa: E402

os.environ["BLOCKYARD_CACHE"] = os.path.join(FOLDER, "cache-" + PART)
# What an earlier run compiled from another source would be counted too.
shutil.rmtree(os.environ["BLOCKYARD_CACHE"], ignore_errors=True)
if PART == "exit":
    os.environ["PATH"] = FOLDER
if PART == "broken":
    os.environ["CXX"] = "false"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    by.enable(LIBRARY)
allocator = current[0]


def allocate(size):
    """What PyTorch's side sees: 0 and the address, 1 and the text of an out of memory, 2 and that of another error."""
    memory, text = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
    kind = c10.call(allocator.alloc, ctypes.c_ssize_t(size), ctypes.byref(memory), text, ctypes.c_size_t(len(text)))
    return kind, memory.value if kind == 0 else text.value.decode()


if PART == "throw":
    assert not caught and by.raises_out_of_memory(), [str(warning.message) for warning in caught]
    assert len(os.listdir(os.environ["BLOCKYARD_CACHE"])) == 1
    assert allocate(0) == (0, None)
    # Ten blocks of 96 MiB fill the device of 1 GiB but for 64 MiB.
    blocks = [allocate(96 * MIB)[1] for _ in range(10)]
    assert all(blocks)
    for turn in range(3):
        kind, text = allocate(128 * MIB)
        assert kind == 1 and text.startswith("CUDA out of memory. Tried to allocate 128.00 MiB."), text
        assert text.endswith(
            "\nBlockyard: 960 MiB are allocated and 128 MiB more are asked for, and at most 1 GiB may be reserved: "
            "no allocator could serve it."
        ), text
        assert by.memory_stats()["num_ooms"] == turn + 1
    # A caller that catches it frees something and goes on.
    for block in blocks[:2]:
        allocator.free(block, 96 * MIB, 0, None)
    kind, block = allocate(128 * MIB)
    assert kind == 0 and block
    assert allocate(-1) == (2, "a request of -1 bytes")
    kind, text = allocate(1 << 60)
    assert kind == 1 and "more than 1EB" in text, text
    # Holes: every second block of a segment is freed.
    for block in [block, *blocks[2:]]:
        allocator.free(block, 0, 0, None)
    by.empty_cache()
    parts = [allocate(8 * MIB)[1] for _ in range(100)]
    for part in parts[::2]:
        allocator.free(part, 8 * MIB, 0, None)
    kind, text = allocate(300 * MIB)
    assert kind == 1 and "are cached for this stream, but in 100 separate blocks, the largest 8 MiB" in text, text
    print("done as it should be")
else:
    (warning,) = caught
    words = {"exit": "there is no C++ compiler", "broken": "false failed"}[PART]
    assert issubclass(warning.category, RuntimeWarning) and words in str(warning.message), warning.message
    assert not by.raises_out_of_memory() and allocator.names[0] == "blockyard_malloc_or_exit"
    assert allocate(512)[1]
    print("before", flush=True)
    allocate(2048 * MIB)
    print("after: not reached")
