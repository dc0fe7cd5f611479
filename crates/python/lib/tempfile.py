"""Names for files in memory."""

import _files

_number = 0


def _name(suffix, prefix):
    global _number
    _number += 1
    return f"/tmp/{prefix or 'tmp'}{_number:08d}{suffix or ''}"


def gettempdir():
    return "/tmp"


def mkdtemp(suffix=None, prefix=None, dir=None):
    name = _name(suffix, prefix)
    _files.make_folder(name)
    return name


class TemporaryDirectory:
    def __init__(self, suffix=None, prefix=None, dir=None, **kwargs):
        self.name = mkdtemp(suffix, prefix)

    def __enter__(self):
        return self.name

    def __exit__(self, *exc):
        self.cleanup()

    def cleanup(self):
        pass


def NamedTemporaryFile(mode="w+b", *args, suffix=None, prefix=None, **kwargs):
    return _files.open(_name(suffix, prefix), mode)


TemporaryFile = NamedTemporaryFile
