"""Threads: one runs from its start to its end when it is started."""


class Thread:
    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
        self.name, self.daemon, self._target, self._args, self._kwargs = (
            name or "Thread-1",
            bool(daemon),
            target,
            args,
            kwargs or {},
        )
        self.ident = None

    def start(self):
        from _host import note

        note("a thread runs to its end when it starts: threads do not take turns here")
        if self.ident is not None:
            raise RuntimeError("threads can only be started once")
        self.ident = 2
        self.run()

    def run(self):
        try:
            if self._target is not None:
                self._target(*self._args, **self._kwargs)
        finally:
            del self._target, self._args, self._kwargs

    def join(self, timeout=None):
        if self.ident is None:
            raise RuntimeError("cannot join thread before it is started")

    def is_alive(self):
        return False


class _Main(Thread):
    def __init__(self):
        super().__init__(name="MainThread")
        self.ident = 1


_main = _Main()


def current_thread():
    return _main


main_thread = current_thread


def get_ident():
    return 1


get_native_id = get_ident


def active_count():
    return 1


class Lock:
    def __init__(self):
        self._count = 0

    def acquire(self, blocking=True, timeout=-1):
        if self._count:
            if not blocking or timeout >= 0:
                return False
            raise RuntimeError("the program waits for a lock that nothing will release: threads do not take turns here")
        self._count += 1
        return True

    def release(self):
        if not self._count:
            raise RuntimeError("release unlocked lock")
        self._count -= 1

    def locked(self):
        return self._count > 0

    __enter__ = acquire

    def __exit__(self, *exc):
        self.release()


class RLock(Lock):
    def acquire(self, blocking=True, timeout=-1):
        self._count += 1
        return True

    __enter__ = acquire


class Semaphore(Lock):
    def __init__(self, value=1):
        super().__init__()

    acquire = __enter__ = RLock.acquire


BoundedSemaphore = Semaphore


class Event:
    def __init__(self):
        self._is_set = False

    def is_set(self):
        return self._is_set

    def set(self):
        self._is_set = True

    def clear(self):
        self._is_set = False

    def wait(self, timeout=None):
        if not self._is_set and timeout is None:
            raise RuntimeError("the program waits for an event that nothing will set: threads do not take turns here")
        return self._is_set


class Condition(RLock):
    def wait(self, timeout=None):
        return True

    def notify(self, n=1):
        pass

    notify_all = notify


class local:
    pass


class Timer(Thread):
    def __init__(self, interval, function, args=None, kwargs=None):
        super().__init__(target=function, args=args or (), kwargs=kwargs)

    def start(self):
        pass

    def cancel(self):
        pass
