"""What Python's own modules do otherwise here: a clock that only the program moves, and functions that know unknown numbers."""

import functools
import os
import sys

import _host


class _Environment(type(os.environ)):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        _host.environment_changed(key, value)


def _install_environment():
    os.environ.__class__ = _Environment
    # The settings of the run are those of the job.
    for name in [name for name in os.environ if "PYTORCH" in name or "CUBLAS" in name]:
        del os.environ[name]


def _install_time():
    import time

    def time_ns():
        return int(_host.time() * 1e9)

    def perf_counter_ns():
        return int(_host.clock() * 1e9)

    def sleep(seconds):
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        _host.sleep(float(seconds))

    # `monotonic` stays real: Python's queues and event loops wait by it.
    time.time, time.time_ns, time.sleep = _host.time, time_ns, sleep
    time.perf_counter = time.process_time = _host.clock
    time.perf_counter_ns = time.process_time_ns = perf_counter_ns


def _install_random():
    import random

    # A program that sets no seed draws the same numbers in each run.
    random.seed(0)


def _install_streams():
    import io

    class BytesIO(io.BytesIO):
        """A stream whose bytes, and their number, are not known once `torch.save` has written a state into it."""

        has_state = is_at_end = False

        def seek(self, offset, whence=0):
            self.is_at_end = whence == 2
            return self.tell() if self.has_state and self.is_at_end else super().seek(offset, whence)

        def tell(self):
            if not (self.has_state and self.is_at_end):
                return super().tell()
            import torch

            return torch.UnknownNumber(torch.int64)

        def _refuse(self, *arguments):
            if self.has_state:
                raise NotImplementedError(
                    "the bytes of a saved state are not made here; tell() prints their number as ?"
                )

        def read(self, size=-1):
            return self._refuse() or super().read(size)

        def getvalue(self):
            return self._refuse() or super().getvalue()

        def getbuffer(self):
            return _Bytes(self) if self.has_state else super().getbuffer()

    class _Bytes:
        nbytes = property(lambda self: self.stream.tell())

        def __init__(self, stream):
            self.stream = stream
            stream.is_at_end = True

        def __len__(self):
            self.stream._refuse()

    io.BytesIO = BytesIO


def _install_threads():
    import threading

    start = threading.Thread.start

    def start_here(self):
        """A thread of the program runs to its end when it starts, since one thread alone uses the GPU."""
        executors = sys.modules.get("concurrent.futures.thread")
        if executors is not None and getattr(self, "_target", None) is executors._worker:
            return _run_executor(executors, self)
        if not _PROGRAM.is_own(sys._getframe(1).f_code.co_filename):
            return start(self)
        if self._started.is_set():
            raise RuntimeError("threads can only be started once")
        _refuse_in_pool()
        _host.note("a thread runs to its end when it starts: threads do not take turns here")
        self._started.set()
        try:
            self.run()
        except SystemExit:
            pass
        except BaseException:
            threading.excepthook(threading.ExceptHookArgs([*sys.exc_info(), self]))
        finally:
            _end_thread(self)

    threading.Thread.start = start_here


def _refuse_in_pool():
    """Another thread than that of `use_mem_pool` would not allocate from the pool."""
    memory = sys.modules.get("torch.cuda.memory")
    if memory is not None and memory._open_pools:
        raise NotImplementedError("a thread that starts inside torch.cuda.use_mem_pool is not modeled here")


def _run_executor(executors, thread):
    """The first thread of an executor: from now on, executors do their work when it is submitted."""
    import queue

    _host.note("an executor does its work when it is submitted: threads do not take turns here")

    def submit(self, function, /, *args, **kwargs):
        _refuse_in_pool()
        future = executors._base.Future()
        executors._WorkItem(future, function, args, kwargs).run()
        return future

    executors.ThreadPoolExecutor.submit = submit
    work = thread._args[1]
    thread._started.set()
    while True:
        try:
            work.get_nowait().run()
        except queue.Empty:
            break
    _end_thread(thread)


def _end_thread(thread):
    """Marks a thread that never had one of the system's as ended."""
    import threading

    handle = getattr(thread, "_handle", None)
    if handle is not None:
        handle._set_done()
    elif thread._tstate_lock is None:
        thread._is_stopped = True
    threading._dangling.discard(thread)


_PROGRAM = None


def install(program):
    global _PROGRAM
    _PROGRAM = program
    _host.patch()
    _host.asserted = _asserted
    _install_environment()
    _install_time()
    _install_random()
    _install_streams()
    if sys.platform != "emscripten":
        _install_threads()


def _asserted():
    """What the value that the program computes now has to be, as true or false, so that no `AssertionError` is raised next;
    `None` where none can be."""
    frame = sys._getframe(1)
    while frame is not None and not _PROGRAM.is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else _asserted_at(frame.f_code, frame.f_lasti)


@functools.lru_cache(256)
def _asserted_at(code, place):
    import dis

    steps = [
        step for step in dis.get_instructions(code) if step.offset >= place and step.opname not in ("CACHE", "TO_BOOL")
    ]
    # A jump asks for the truth of a value itself, or the instruction before it does.
    steps = steps if steps[0].opname.startswith("POP_JUMP") else [step for step in steps if step.offset > place]
    if not steps or not steps[0].opname.startswith("POP_JUMP") or "NONE" in steps[0].opname:
        return None
    jump, if_true = steps[0], "IF_TRUE" in steps[0].opname
    if _raises_assertion(steps[1:]):
        return if_true
    return not if_true if _raises_assertion([step for step in steps if step.offset >= jump.argval]) else None


def _raises_assertion(steps):
    """Whether an `AssertionError` is made first; a chain of comparisons gives its last operand back before."""
    names = (step for step in steps if step.opname not in ("NOT_TAKEN", "EXTENDED_ARG", "POP_TOP"))
    step = next(names, None)
    if step is not None and step.opname == "JUMP_FORWARD":
        step = next((other for other in steps if other.offset >= step.argval), None)
    return step is not None and (
        step.opname == "LOAD_ASSERTION_ERROR" or (step.opname == "LOAD_COMMON_CONSTANT" and step.arg == 0)
    )


# Functions of `math` that give an unknown number of an unknown number.
_FUNCTIONS = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p pow sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
    "gamma lgamma fabs degrees radians copysign fmod hypot atan2"
)


def install_for_torch():
    """What needs `torch` to be imported: `math`, `json` and `collections` know unknown numbers."""
    import math

    from torch._unknown import install_counters

    for name in _FUNCTIONS.split():
        if hasattr(math, name):
            setattr(math, name, _knowing(getattr(math, name)))
    for name, answer in (("isnan", False), ("isinf", False), ("isfinite", True)):
        setattr(math, name, _knowing(getattr(math, name), answer))
    install_counters()


def _knowing(function, answer=None):
    from _torch import TensorBase
    from torch._unknown import UnknownNumber

    @functools.wraps(function)
    def call(*arguments):
        for argument in arguments:
            if isinstance(argument, TensorBase):
                argument = float(argument)
            if type(argument) is UnknownNumber:
                if answer is None:
                    return UnknownNumber(argument.dtype)
                _host.note("a number on the GPU is assumed to be finite")
                return answer
        return function(*arguments)

    return call
