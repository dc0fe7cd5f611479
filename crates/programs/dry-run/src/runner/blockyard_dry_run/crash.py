"""A process that crashes, or that ends at once, still writes its memory, if that is possible."""

import ctypes
import os
import signal

from blockyard_dry_run.record import record

_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
# Seconds after which a process that cannot write its memory is ended.
_PATIENCE = 10
_kept = []


def before_end_at_once(finish):
    """Calls `finish` before `os._exit`, which skips Python's functions for the end of a process."""
    end = os._exit

    def _exit(status):
        finish()
        end(status)

    os._exit = _exit


def watch(finish, further=()):
    """Calls `finish` where a signal is about to end the process: one of a crash, or one of `further`.

    Python's own handlers run between two operations of the interpreter, and no operation follows a crash. So this is a
    handler of C, which calls Python. That call may fail, or wait without an end: an alarm ends the process then.
    """
    libc = ctypes.CDLL(None)
    process = os.getpid()
    default = ctypes.c_void_p(0)

    def crashed(number):
        libc.signal(number, default)
        if os.getpid() == process:
            libc.signal(int(signal.SIGALRM), default)
            libc.alarm(_PATIENCE)
            # Before anything else: the alarm would hide which signal it was.
            record({"kind": "signal", "number": number})
            try:
                finish()
            finally:
                libc.alarm(0)
        libc.raise_signal(number)

    libc.raise_signal = getattr(libc, "raise")
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal.restype = ctypes.c_void_p
    # Installs a handler for one signal alone: where the handler itself cannot run, as while Python ends, the next
    # signal ends the process.
    install = libc.__sysv_signal
    install.argtypes, install.restype = libc.signal.argtypes, libc.signal.restype
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(crashed)
    _kept.append(handler)
    for number in (*_SIGNALS, *further):
        install(int(number), ctypes.cast(handler, ctypes.c_void_p))
