"""Files of arrays, in numpy's own format."""

import ast
import os
import struct

from numpy._array import filled
from numpy._making import asarray
from numpy._near import are_special
from numpy._offers import offer, refuse
from numpy._shapes import product
from numpy._types import F8, of

_CHARS = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}  # fmt: skip
_MAGIC = b"\x93NUMPY"


def _char(kind):
    char = _CHARS.get(f"{kind.kind}{kind.itemsize}")
    if char is None:
        refuse(f"save of {kind}", "save numbers")
    return char


def data_of(array):
    """The bytes of the elements in the order of C."""
    values = array._read()
    if values is None or are_special(values):
        raise ValueError(
            "numpy cannot write numbers that lie on the GPU or are random: they are not computed here; use torch.save"
        )
    return struct.pack(f"<{len(values)}{_char(array.dtype)}", *values)


def _write(file, array):
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }}"
    data = data_of(array)
    length = len(_MAGIC) + 4 + len(header) + 1
    header += " " * (-length % 64) + "\n"
    file.write(_MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") + data)


def _parse(data):
    if data[:6] != _MAGIC or data[6] != 1:
        refuse("load of this file", "use a file that numpy.save wrote")
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + size].decode("latin1"))
    if header["fortran_order"]:
        refuse("load of this file", "save a copy in the order of C")
    kind, shape = of(header["descr"]), header["shape"]
    values = struct.unpack_from(f"<{product(shape)}{_char(kind)}", data, 10 + size)
    return filled(shape, kind, list(values))


def save(file, arr):
    arr = asarray(arr)
    if hasattr(file, "write"):
        _write(file, arr)
        return
    name = os.fspath(file)
    data_of(arr)  # Before the file is made.
    with open(name if name.endswith(".npy") else name + ".npy", "wb") as opened:
        _write(opened, arr)


def load(file, *, allow_pickle=False):
    if hasattr(file, "read"):
        data = file.read()
    else:
        with open(file, "rb") as opened:
            data = opened.read()
    return _parse(data)


def frombuffer(buffer, dtype=F8, count=-1, offset=0):
    kind = of(dtype)
    data = bytes(buffer)[offset:]
    if count < 0 and len(data) % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    count = len(data) // kind.itemsize if count < 0 else count
    made = filled((count,), kind, list(struct.unpack_from(f"<{count}{_char(kind)}", data)))
    made._is_writeable = False
    return made


offer(globals(), ("data_of"))
