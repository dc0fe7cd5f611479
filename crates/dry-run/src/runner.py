"""Runs a program as `python PROGRAM ARGUMENTS` does, and writes what PyTorch's allocator counted: `runner.py OUT SNAPSHOT PROGRAM ...`."""

import importlib.abc
import importlib.util
import json
import signal
import sys
import types


def counted():
    """The statistics of each device that the program used."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    return [dict(cuda.memory_stats(device)) for device in range(cuda.device_count())]


class Following(importlib.abc.MetaPathFinder):
    """Values of the device are followed from the moment when PyTorch is imported."""

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                follow(module)

            spec.loader.exec_module = exec_module
        return spec


def follow(torch):
    """Has the stand-in follow values. Where that fails, it makes more values unknown, and nothing wrong."""
    import ctypes
    import os

    try:
        library = ctypes.PyDLL("libblockyard_standin.so")
        library.blockyard_values_helper.restype = ctypes.c_char_p
        helper = {}
        exec(compile(library.blockyard_values_helper(), "<blockyard>", "exec"), helper)
        helper["follow"](library, os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
        finish.library = library
    except Exception as fault:
        if os.environ.get("STANDIN_DEBUG"):
            raise
        finish.fault = f"values are not followed: {type(fault).__name__}: {fault}"


def finish(out, snapshot, error):
    """Writes the result; a fault here must not hide how the program ended."""
    found = {"error": error, "devices": []}
    if getattr(finish, "library", None):
        finish.library.blockyard_values_stop()
    try:
        found["devices"] = counted()
        torch = sys.modules.get("torch")
        if snapshot and found["devices"]:
            torch.cuda.memory._dump_snapshot(snapshot)
    except Exception as fault:
        found["fault"] = f"{type(fault).__name__}: {fault}"
    with open(out, "w") as file:
        json.dump(found, file)


def main():
    out, snapshot = sys.argv[1:3]
    sys.argv = sys.argv[3:]
    path = sys.argv[0]
    import os

    sys.path[0] = os.path.dirname(os.path.abspath(path))
    # The command that waits for this process ignores Ctrl-C, which is for the program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.meta_path.insert(0, Following())
    if snapshot:
        import torch

        torch.cuda.memory._record_memory_history(stacks="python")
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__
    own = sys.modules["__main__"]
    sys.modules["__main__"] = module
    status, error = 0, None
    try:
        exec(code, module.__dict__)
    except SystemExit as exit:
        status = exit.code
    except BaseException as caught:
        import traceback

        error = type(caught).__name__
        status = 130 if isinstance(caught, KeyboardInterrupt) else 1
        # Without the line of this file.
        traceback.print_exception(type(caught), caught, caught.__traceback__.tb_next)
    finally:
        sys.stdout.flush()
        finish(out, snapshot, error)
    sys.modules["__main__"] = own
    sys.exit(status)


main()
