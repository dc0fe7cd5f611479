"""The module that the interpreter imports before a program: standard output, and modules that programs use without an import."""

import builtins
import gc
import sys
import time

import _collector
from _host import is_folder as _is_folder
from _host import read_module as _read_module
from _host import write as _write

for _name in ("collect", "enable", "disable", "isenabled", "get_threshold", "set_threshold", "get_count"):
    setattr(gc, _name, getattr(_collector, _name))


class _Stream:
    encoding, errors, closed, mode = "utf-8", "strict", False, "w"

    def __init__(self, name):
        self.name = f"<{name}>"

    def write(self, text):
        return _write(text)

    def writelines(self, lines):
        for line in lines:
            _write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def reconfigure(self, **settings):
        pass

    def fileno(self):
        return 1


class _Late:
    """A function of a module that is imported when it is first called."""

    def __init__(self, module, name):
        self.__name__, self._module = name, module

    def __call__(self, *args, **kwargs):
        return getattr(__import__(self._module), self.__name__)(*args, **kwargs)


for _name in ("gmtime", "localtime", "strftime", "asctime", "ctime", "mktime", "struct_time"):
    setattr(time, _name, _Late("_calendar", _name))
builtins.open = _Late("_files", "open")


class _Beside:
    """Modules of the program's own, in files beside the program."""

    def __init__(self, file=None, text=""):
        self._file, self._text = file, text

    @staticmethod
    def find_spec(name, path=None, target=None):
        place = name.replace(".", "/")
        kind = type(sys.__spec__)
        for file, is_package in ((place + "/__init__.py", True), (place + ".py", False)):
            found = _read_module(file)
            if found is not None:
                return kind(name, _Beside(*found), origin=found[0], is_package=is_package)
        return kind(name, _Beside(), is_package=True) if _is_folder(place) else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if self._file is not None:
            module.__file__ = self._file
            exec(compile(self._text, self._file, "exec"), module.__dict__)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        from _refused import Finder

        return Finder.find_spec(name, path, target)


sys.meta_path += [_Beside, _Finder]

sys.stdout = sys.__stdout__ = _Stream("stdout")
sys.stderr = sys.__stderr__ = _Stream("stderr")
