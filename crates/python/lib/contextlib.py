"""Tools for `with`."""

import sys
from abc import ABC, abstractmethod
from functools import wraps


class AbstractContextManager(ABC):
    def __enter__(self):
        return self

    @abstractmethod
    def __exit__(self, exc_type, exc_value, traceback):
        return None


class ContextDecorator:
    def _recreate_cm(self):
        return self

    def __call__(self, func):
        @wraps(func)
        def inner(*args, **kwds):
            with self._recreate_cm():
                return func(*args, **kwds)

        return inner


class _GeneratorContextManager(ContextDecorator):
    def __init__(self, func, args, kwds):
        self.gen = func(*args, **kwds)
        self.func, self.args, self.kwds = func, args, kwds

    def _recreate_cm(self):
        return self.__class__(self.func, self.args, self.kwds)

    def __enter__(self):
        # The arguments live in the generator's frame from here on.
        del self.args, self.kwds, self.func
        try:
            return next(self.gen)
        except StopIteration:
            raise RuntimeError("generator didn't yield") from None

    def __exit__(self, typ, value, traceback):
        if typ is None:
            try:
                next(self.gen)
            except StopIteration:
                return False
            self.gen.close()
            raise RuntimeError("generator didn't stop")
        if value is None:
            value = typ()
        try:
            self.gen.throw(value)
        except StopIteration as exc:
            return exc is not value
        except RuntimeError as exc:
            if exc is value:
                exc.__traceback__ = traceback
                return False
            if isinstance(value, StopIteration) and exc.__cause__ is value:
                value.__traceback__ = traceback
                return False
            raise
        except BaseException as exc:
            if exc is not value:
                raise
            exc.__traceback__ = traceback
            return False
        self.gen.close()
        raise RuntimeError("generator didn't stop after throw()")


def contextmanager(func):
    @wraps(func)
    def helper(*args, **kwds):
        return _GeneratorContextManager(func, args, kwds)

    return helper


class closing:
    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        return self.thing

    def __exit__(self, *exc_info):
        self.thing.close()


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *excinfo):
        pass


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        pass

    def __exit__(self, exctype, excinst, exctb):
        return exctype is not None and issubclass(exctype, self._exceptions)


class redirect_stdout:
    _stream = "stdout"

    def __init__(self, new_target):
        self._new_target = new_target
        self._old_targets = []

    def __enter__(self):
        self._old_targets.append(getattr(sys, self._stream))
        setattr(sys, self._stream, self._new_target)
        return self._new_target

    def __exit__(self, exctype, excinst, exctb):
        setattr(sys, self._stream, self._old_targets.pop())


class redirect_stderr(redirect_stdout):
    _stream = "stderr"


class ExitStack:
    def __init__(self):
        self._callbacks = []

    def enter_context(self, cm):
        result = type(cm).__enter__(cm)
        self.push(cm)
        return result

    def push(self, exit):
        if hasattr(type(exit), "__exit__"):
            manager = exit
            self._callbacks.append(lambda *details: type(manager).__exit__(manager, *details))
        else:
            self._callbacks.append(exit)
        return exit

    def callback(self, callback, /, *args, **kwds):
        self._callbacks.append(lambda *details: (callback(*args, **kwds), False)[1])
        return callback

    def pop_all(self):
        other = type(self)()
        other._callbacks, self._callbacks = self._callbacks, []
        return other

    def close(self):
        self.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, *details):
        pending = details[1]
        suppressed = False
        while self._callbacks:
            callback = self._callbacks.pop()
            try:
                if callback(*details):
                    suppressed, pending, details = True, None, (None, None, None)
            except BaseException as exc:
                pending, suppressed, details = exc, False, (type(exc), exc, exc.__traceback__)
        if pending is not None and pending is not details[1]:
            raise pending
        if pending is not None and details[1] is pending and not suppressed:
            return False
        return suppressed
