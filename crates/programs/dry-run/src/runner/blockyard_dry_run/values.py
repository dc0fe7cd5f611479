"""Makes the stand-in follow the values of the device, from the moment when PyTorch is loaded."""

import ctypes
import os

from blockyard_dry_run.record import record

_LIBRARY = []


def follow(torch):
    """Starts following values. Where that fails, more values are unknown, and none is wrong."""
    if not hasattr(torch, "ops"):
        # Something else by this name, without operators.
        return
    try:
        # Found on the library path, where it was loaded from.
        library = ctypes.PyDLL("libblockyard_standin.so")
        library.blockyard_values_helper.restype = ctypes.c_char_p
        helper = {}
        exec(compile(library.blockyard_values_helper(), "<blockyard>", "exec"), helper)
        path = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
        if helper["follow"](library, path):
            _LIBRARY.append(library)
            return
        fault = "this PyTorch's operators cannot be observed"
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    record({"kind": "remark", "text": f"values of the device are not followed: {fault}"})


def library():
    """The stand-in, where it follows the operators of PyTorch; None elsewhere."""
    return _LIBRARY[-1] if _LIBRARY else None


def stop():
    """Stops following values: later operators are not the program's, and Python may end soon."""
    while _LIBRARY:
        library = _LIBRARY.pop()
        library.blockyard_values_stop()
        # Without Python's lock, which threads of backward may wait for.
        ctypes.CDLL(library._name, handle=library._handle).blockyard_python_ends()
