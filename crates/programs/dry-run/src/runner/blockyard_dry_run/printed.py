"""Lists what the program prints in the run's report, between the notes of the library for CUDA."""

import codecs
import io
import os
import sys

from blockyard_dry_run.record import record


class _Listed(io.RawIOBase):
    """A file that passes on what is written to it, and lists it."""

    def __init__(self, descriptor, encoding, allocations):
        self.descriptor = descriptor
        self.allocations = allocations
        self.decoder = codecs.getincrementaldecoder(encoding)("replace")

    def writable(self):
        return True

    def fileno(self):
        return self.descriptor

    def isatty(self):
        return os.isatty(self.descriptor)

    def write(self, data):
        written = os.write(self.descriptor, data)
        text = self.decoder.decode(bytes(data[:written]))
        if text:
            record({"kind": "printed", "text": text, "allocations": self.allocations()})
        return written


def list_lines(allocations):
    """Makes standard output a file that lists its lines.

    Lines are written at once, so that they are in order with the notes. `allocations` returns how many allocations each
    device has had.
    """
    before = sys.stdout
    if before is None:
        return
    before.flush()
    raw = _Listed(before.fileno(), before.encoding, allocations)
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=before.encoding, errors=before.errors, line_buffering=True
    )
