"""Streams in memory. There are no files here."""

from _io import BytesIO, StringIO, _IOBase as IOBase, _RawIOBase as RawIOBase, _BufferedIOBase as BufferedIOBase, _TextIOBase as TextIOBase
from _io import UnsupportedOperation

SEEK_SET, SEEK_CUR, SEEK_END = 0, 1, 2
DEFAULT_BUFFER_SIZE = 8192


class TextIOWrapper(TextIOBase):
    pass


def open(file, mode="r", *args, **kwargs):
    from _files import open as open_file
    return open_file(file, mode)
