"""As much of an operating system as a program finds here: an environment, and no files."""

import sys
from os import path

name, sep, linesep, curdir, devnull = "posix", "/", "\n", ".", "/dev/null"
error = OSError


class _Environ(dict):
    def __setitem__(self, key, value):
        if not isinstance(value, str):
            raise TypeError(f"str expected, not {type(value).__name__}")
        super().__setitem__(key, value)
        from _host import environment_changed
        environment_changed(key, value)

    def setdefault(self, key, value):
        if key not in self:
            self[key] = value
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value


environ = _Environ()


def getenv(key, default=None):
    return environ.get(key, default)


def putenv(key, value):
    environ[key] = value


def cpu_count():
    return 8


def getpid():
    return 1


def getcwd():
    return "/"


def urandom(n):
    import random
    return random.randbytes(n)


def makedirs(name, mode=0o777, exist_ok=False):
    pass


mkdir = makedirs


def _refuse(what):
    def refuse(*args, **kwargs):
        raise OSError(f"{what} is not modeled: a program here has no files and starts no processes")
    return refuse


listdir, remove, unlink, rename, system, popen, walk, stat, scandir, kill, fork = map(
    _refuse, ("os.listdir", "os.remove", "os.unlink", "os.rename", "os.system", "os.popen", "os.walk", "os.stat", "os.scandir", "os.kill", "os.fork"))


def fspath(value):
    return value if isinstance(value, (str, bytes)) else value.__fspath__()


class PathLike:
    pass
