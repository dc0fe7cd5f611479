"""The limits of a run: seconds, and bytes of the host's memory."""

import signal
import sys

import _host

_INTERVAL = 0.1


def _used():
    """The bytes of memory that this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


class Limits:
    """Stops the program when its time is over or its memory is used up."""

    def __init__(self, seconds, memory):
        self._seconds, self._memory, self._left = seconds, memory, seconds

    def __enter__(self):
        if self._memory is not None:
            import resource

            # One request beyond the limit fails at once; the alarm finds what grows slowly.
            most = self._memory + (1 << 30)
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        if self._seconds is not None or self._memory is not None:
            signal.signal(signal.SIGALRM, self._look)
            signal.setitimer(signal.ITIMER_REAL, _INTERVAL, _INTERVAL)
        return self

    def __exit__(self, *exception):
        if self._seconds is not None or self._memory is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _look(self, number, frame):
        if self._left is not None:
            self._left -= _INTERVAL
            if self._left <= 0:
                raise SystemExit(_host.stop_text(f"after {int(self._seconds)} s, as long as one run may take"))
        if self._memory is not None and _used() > self._memory:
            raise SystemExit(_memory_text(self._memory))


def _memory_text(memory):
    amount = f"{memory / (1 << 30):g} GiB" if memory % (1 << 20) == 0 else f"{memory} bytes"
    return _host.stop_text(f"because its own data takes more than {amount} of this computer's memory")


def explained(error, memory):
    """The exception that ended the program; one that says the limit in the place of Python's own `MemoryError`."""
    if type(error) is MemoryError and not error.args and memory is not None:
        return SystemExit(_memory_text(memory))
    return error
