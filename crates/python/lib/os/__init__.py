"""The operating system that a program finds: an environment, and the files of `_files`."""

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
    import _files

    _files.make_folder(name)


mkdir = makedirs


def listdir(path="."):
    import _files

    return _files.names_in(path)


def remove(path):
    import _files

    _files.remove(path)


unlink = remove


def rename(src, dst):
    import shutil

    shutil.move(src, dst)


replace = rename


def walk(top, **kwargs):
    import _files

    if _files.is_folder(top):
        names = _files.names_in(top)
        yield (
            str(top),
            [n for n in names if _files.is_folder(path.join(top, n))],
            [n for n in names if _files.is_file(path.join(top, n))],
        )


def chdir(path):
    pass


def getlogin():
    return "user"


class terminal_size(tuple):
    columns, lines = property(lambda self: self[0]), property(lambda self: self[1])


def get_terminal_size(fd=1):
    return terminal_size((80, 24))


def unsetenv(key):
    environ.pop(key, None)


def uname():
    from types import SimpleNamespace

    return SimpleNamespace(sysname="Linux", nodename="localhost", release="", version="", machine="x86_64")


def sched_getaffinity(pid):
    return set(range(8))


def _refuse(what):
    def refuse(*args, **kwargs):
        raise OSError(f"{what} is not modeled: a program here has no files and starts no processes")

    return refuse


system, stat, scandir, kill, fork = map(_refuse, ("os.system", "os.stat", "os.scandir", "os.kill", "os.fork"))


def popen(command, mode="r", buffering=-1):
    if command.strip() != "stty size":
        _refuse("os.popen")()
    # How large the terminal is, in the answer's form.
    from io import StringIO

    return StringIO("24 80\n")


def fspath(value):
    return value if isinstance(value, (str, bytes)) else value.__fspath__()


class PathLike:
    pass
