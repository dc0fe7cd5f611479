"""The rules of the Python that made the recordings, 3.12.3, where another Python has other rules: for tests that compare with them."""

import dis
import gc
import sys
import types
import weakref

_KEPT = weakref.WeakKeyDictionary()
_close = types.GeneratorType.close


def _is_inside_try(generator):
    code, place = generator.gi_code, generator.gi_frame.f_lasti
    for entry in dis._parse_exception_table(code):
        is_here = entry.start <= place < entry.end and entry.depth == 0
        if is_here and dis.opname[code.co_code[entry.target]] != "CALL_INTRINSIC_1":
            return True
    return False


def _close_and_keep(self):
    """`close`; a generator that is closed at a `yield` outside of `try` keeps its variables until it dies."""
    if self.gi_suspended and self.gi_yieldfrom is None and not _is_inside_try(self):
        _KEPT[self] = list(self.gi_frame.f_locals.values())
    return _close(self)


def install():
    gc.set_threshold(700, 10, 10)
    if sys.version_info >= (3, 11) and sys.version_info[:3] != (3, 12, 3):
        import ctypes

        gc.get_referents(types.GeneratorType.__dict__)[0]["close"] = _close_and_keep
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(types.GeneratorType))
