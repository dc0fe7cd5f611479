"""Streams in memory. Files are those of `_files`, which are in memory too."""

from _io import BytesIO, StringIO, UnsupportedOperation
from _io import _BufferedIOBase as BufferedIOBase
from _io import _IOBase as IOBase
from _io import _RawIOBase as RawIOBase
from _io import _TextIOBase as TextIOBase

SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2
DEFAULT_BUFFER_SIZE = 8192


class TextIOWrapper(TextIOBase):
    pass


def open(file, mode="r", *args, **kwargs):
    from _files import open as open_file

    return open_file(file, mode)
