"""Runs one program on this Python, from the job that the command or the page gives to the outcome that they read."""

import builtins
import gc
import io
import linecache
import os
import sys
import types

import _host

_LIBRARY = os.path.dirname(os.path.abspath(__file__))
# Packages that are taken where they are not installed.
_FALLBACKS = os.path.join(os.path.dirname(_LIBRARY), "fallbacks")


class Program:
    """The program that runs: its file, as tracebacks show it, and the folder of its own modules."""

    def __init__(self, file, folder):
        self.file, self.folder = file, folder

    def is_own(self, path):
        """Whether code of this file is the program's own, and neither Python's nor this package's."""
        if path == self.file:
            return True
        return self.folder is not None and path.startswith(self.folder + os.sep) and "site-packages" not in path


class _Output(io.TextIOWrapper):
    """Standard output, which notes after each piece of text what the run had done by then."""

    def __init__(self, buffer):
        super().__init__(buffer, encoding="utf-8", errors="surrogateescape", line_buffering=True)
        self._bytes = 0

    def write(self, text):
        count = super().write(text)
        self._bytes += len(text.encode("utf-8", "surrogateescape"))
        _host.note_printed(self._bytes)
        return count


def _install(program):
    """Gives Python what a program meets here: our packages, a clock that only the program moves, unknown numbers."""
    import _patches
    import _refused

    sys.meta_path.insert(0, _refused.TorchPackages)
    sys.meta_path.append(_refused.Finder)
    _patches.install(program)


def _import_torch():
    import _patches
    import torch  # noqa: F401

    _patches.install_for_torch()


def _begin(job):
    """Begins the run of a job; returns the program and the parts of the job that only this side reads."""
    file = _host.file_of(job)
    source, arguments, folder, readable, seconds, memory = _host.begin(file, job)
    program = Program(file, os.path.abspath(folder) if folder is not None else None)
    _install(program)
    _import_torch()
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    sys.argv = [file, *arguments]
    return program, source, (readable, seconds, memory)


_NEW, _new = 150, None


def _execute(program, source):
    """Runs the program; returns its module, the exception that ended it or `None`, and the search for keepers."""
    import _growth
    import _rewritten

    main = types.ModuleType("__main__")
    growth = _growth.begin(program)
    main.__file__ = program.file
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    try:
        tree = _rewritten.rewritten(source, program.file)
    except BaseException as error:
        return main, error, growth
    # Objects that exist now are older than the program: the garbage collector leaves them alone.
    gc.collect()
    gc.freeze()
    # The program's `import torch` leaves new containers in PyTorch, which count for the first collection. How many is inferred
    # from the moments of an H200's collections.
    global _new
    _new = [[] for _ in range(_NEW)]
    _host.watch_collections(_host)
    try:
        exec(compile(tree, program.file, "exec", dont_inherit=True), main.__dict__)
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        return main, error, growth
    finally:
        _host.leave_collections()
        _note_depending(source)
    return main, None, growth


def _note_depending(source):
    """Notes the lines that print what depends on a branch that is assumed."""
    import _rewritten

    lines = _host.assumed_lines()
    for line, branch in sorted(_rewritten.depending(source, lines).items()) if lines else ():
        _host.note_at(line, f"whether and what this line prints depends on line {branch}, where a branch is assumed")


def _outcome(program, main, error, growth):
    """The outcome of the run in bytes, while the program still holds what it holds at its end."""
    import _reasons
    import _tracebacks

    if "torch._numpy_arrays" in sys.modules:
        sys.modules["torch._numpy_arrays"].check_pairs()
    status, text = _tracebacks.describe(error, program)
    try:
        cause = _reasons.cause(program, main, error)
        names = _reasons.names_at_end(program, main, error)
        kept = growth.text(error)
    except MemoryError:
        # The program still has all memory that it may have.
        cause, names, kept = None, {}, ""
    return status, _host.end(status, text, cause, names, kept)


def _confine(run, readable, outcome_file, seconds, memory):
    """Confines this process, or ends it with the reason in the file `refused`."""
    try:
        _host.confine(readable, outcome_file.fileno(), seconds, memory)
    except RuntimeError as error:
        with open(os.path.join(run, "refused"), "w", encoding="utf-8") as file:
            file.write(str(error))
        os._exit(1)


def main(run):
    """Runs the job in the folder `run`, natively; the process ends with the program's status."""
    with open(os.path.join(run, "job"), "rb") as file:
        job = file.read()
    if "BLOCKYARD_RECORDED_PYTHON" in os.environ:
        del os.environ["BLOCKYARD_RECORDED_PYTHON"]
        import _recorded_python

        _recorded_python.install()
    if not sys.stdout.isatty():
        sys.stdout = sys.__stdout__ = _Output(sys.stdout.detach())
    program, source, (readable, seconds, memory) = _begin(job)
    if program.folder is not None:
        sys.path.insert(1, program.folder)
    sys.path.append(_FALLBACKS)
    # Opened before the program begins: a confined program opens no file to write.
    outcome_file = open(os.path.join(run, "outcome"), "wb", buffering=0)
    import _growth  # noqa: F401
    import _limits
    import _reasons

    if (step := _host.referrers_at()) is not None:
        _reasons.report_at(program, step, _host.note_referrers)
    with _limits.Limits(seconds, memory):
        if readable is not None:
            _confine(run, readable, outcome_file, seconds, memory)
        module, error, growth = _execute(program, source)
        error = _limits.explained(error, memory)
    _reasons.report_at_end(program, module, error)
    status, outcome = _outcome(program, module, error, growth)
    outcome_file.write(outcome)
    outcome_file.close()
    # What the program still holds dies now, and its `__del__` may print.
    del error
    module.__dict__.clear()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # Nobody reads the output any more.
    # Python's own end would free what the extension holds in another order.
    os._exit(status & 0xFF)


class _PageOutput(io.TextIOBase):
    """Output of a program in the page: a message has several pieces where the program prints much."""

    encoding = "utf-8"
    # Seconds: on average at most one message is sent in this time, and this many may be sent at once.
    _PAUSE, _AT_ONCE = 0.04, 50

    def __init__(self, send, now):
        self._send_message, self._now, self._pieces, self._spent = send, now, [], 0.0

    def writable(self):
        return True

    def write(self, text):
        steps = _host.page_steps()
        if self._pieces and self._pieces[-1][1] == steps:
            self._pieces[-1] = (self._pieces[-1][0] + text, steps)
        else:
            self._pieces.append((text, steps))
        if text.endswith(("\n", "\r")) and self._spent <= self._now():
            self.send()
        return len(text)

    def send(self):
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._send_message(_host.page_printed(pieces))
        self._spent = max(self._spent, self._now() - self._AT_ONCE * self._PAUSE) + self._PAUSE


def prepare_page():
    """Makes Python ready for one message of the page; returns the function that runs it.

    The page calls this before it has a message. The function gets the message, and a function for each reply, both in
    bytes.
    """
    import time

    # The browser's clock, before the program's takes its place.
    now = time.monotonic
    program = Program("program.py", None)
    _install(program)
    _import_torch()
    import _growth  # noqa: F401
    import _reasons  # noqa: F401
    import _tracebacks  # noqa: F401

    sys.path.append(_FALLBACKS)
    gc.set_threshold(700, 10, 10)
    return lambda message, send: _run_in_page(program, now, message, send)


def _run_in_page(program, now, message, send):
    import _reasons
    import _tracebacks

    job, failed = _host.page_begin(program.file, message)
    if job is None:
        send(failed)
        return
    sys.modules["torch"]._take_release()
    source, arguments, referrers_at = job
    linecache.cache[program.file] = (len(source), None, source.splitlines(True), program.file)
    sys.argv = [program.file, *arguments]
    output = _PageOutput(send if referrers_at is None else lambda reply: None, now)
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = output
    if referrers_at is not None:
        _reasons.report_at(program, referrers_at, lambda *found: send(_host.page_referrers(*found)))
    main, error, growth = _execute(program, source)
    _reasons.report_at_end(program, main, error)
    status, text = _tracebacks.describe(error, program)
    cause = _reasons.cause(program, main, error)
    names = _reasons.names_at_end(program, main, error)
    reply = _host.page_end(status, text, cause, names, growth.text(error))
    output.send()
    send(reply)
