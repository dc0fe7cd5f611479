"""Files of arrays, in numpy's own format, and texts of numbers."""

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
    import ast

    header = ast.literal_eval(data[10 : 10 + size].decode("latin1"))
    if header["fortran_order"] or header["descr"] == "|O":
        refuse("load of this file", "save a copy in the order of C")
    kind, shape = of(header["descr"]), header["shape"]
    values = struct.unpack_from(f"<{product(shape)}{_char(kind)}", data, 10 + size)
    return filled(shape, kind, list(values))


def save(file, arr, allow_pickle=True):
    arr = asarray(arr)
    if hasattr(file, "write"):
        _write(file, arr)
        return
    name = os.fspath(file)
    data_of(arr)  # Before the file is made.
    with open(name if name.endswith(".npy") else name + ".npy", "wb") as opened:
        _write(opened, arr)


def _save_several(file, arrays, named, is_compressed):
    import io
    import zipfile

    named = {**{f"arr_{i}": one for i, one in enumerate(arrays)}, **named}
    name = file if hasattr(file, "write") else os.fspath(file)
    if isinstance(name, str) and not name.endswith(".npz"):
        name += ".npz"
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED) as archive:
        for key, one in named.items():
            stream = io.BytesIO()
            _write(stream, asarray(one))
            archive.writestr(key + ".npy", stream.getvalue())


def savez(file, *args, **kwds):
    _save_several(file, args, kwds, False)


def savez_compressed(file, *args, **kwds):
    _save_several(file, args, kwds, True)


class NpzFile(dict):
    """The arrays of a file by their names."""

    files = property(lambda self: list(self))

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def load(file, mmap_mode=None, allow_pickle=False):
    if mmap_mode is not None:
        refuse("load with mmap_mode=", "leave the argument out")
    if hasattr(file, "read"):
        data = file.read()
    else:
        with open(file, "rb") as opened:
            data = opened.read()
    if data[:2] == b"PK":
        import io
        import zipfile

        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return NpzFile((name.removesuffix(".npy"), _parse(archive.read(name))) for name in archive.namelist())
    return _parse(data)


def savetxt(fname, X, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# "):
    X = asarray(X)
    if not isinstance(fmt, str) or footer or X.ndim > 2:
        refuse("savetxt with a list of formats or a footer", "write the lines yourself")
    X = X.reshape(-1, 1) if X.ndim < 2 else X
    rows = [delimiter.join(fmt % value for value in row) for row in X.tolist()]
    text = "".join(line + newline for line in ([comments + header] if header else []) + rows)
    if hasattr(fname, "write"):
        fname.write(text)
        return
    with open(fname, "w") as file:
        file.write(text)


def loadtxt(fname, dtype=float, comments="#", delimiter=None, skiprows=0, usecols=None, unpack=False, ndmin=0):
    if unpack or ndmin:
        refuse("loadtxt with unpack= or ndmin=", "use .T or reshape")
    if hasattr(fname, "read") or isinstance(fname, list):
        lines = list(fname)
    else:
        with open(fname) as file:
            lines = list(file)
    rows = [line.split(comments)[0].strip() for line in lines[skiprows:]]
    rows = [[part.strip() for part in row.split(delimiter)] for row in rows if row]
    if usecols is not None:
        columns = (usecols,) if isinstance(usecols, int) else usecols
        rows = [[row[i] for i in columns] for row in rows]
    kind = of(dtype)
    read = float if kind.kind == "f" else int if kind.kind in "iu" else str
    made = asarray([[read(part) for part in row] for row in rows], kind)
    return made.squeeze() if made.size else made


def genfromtxt(*args, **kwargs):
    refuse("genfromtxt", "use numpy.loadtxt")


def frombuffer(buffer, dtype=F8, count=-1, offset=0):
    kind = of(dtype)
    data = bytes(buffer)[offset:]
    if count < 0 and len(data) % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    count = len(data) // kind.itemsize if count < 0 else count
    made = filled((count,), kind, list(struct.unpack_from(f"<{count}{_char(kind)}", data)))
    made._is_writeable = False
    return made


offer(globals(), ("data_of", "savez", "savez_compressed"))
