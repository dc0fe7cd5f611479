"""The part of a dry run that is in the program's own process: starts the program, and writes its memory.

The settings are an object: `out` (where the result goes), `snapshot` (a path or null), `requests` (a path for a
snapshot without stacks, or null), `steps` (after how many steps of the first optimizer the program ends, or null),
`totals` (bytes of the GPUs that the run is compared with), `lines` (whether printed lines are listed), `fraction` (the
share of each device that may be reserved, or null), `ends_at_oom` (whether the first request that runs out of memory
ends the process).
"""

import atexit
import builtins
import contextlib
import json
import os
import signal
import sys
import types

from blockyard_dry_run import child, crash, places, printed, ranks, torch_hooks


class Run:
    """One run of a program: how it ended, and what is written about it."""

    def __init__(self, settings):
        self.settings = settings
        self.process = os.getpid()
        self.error = None
        self.error_at = None
        # The status with which the program ended, once it has ended by itself.
        self.status = None
        self.is_written = False
        self.measured = torch_hooks.Measured(settings)

    def finish(self):
        """Writes the result, once; a fault here must not hide how the program ended."""
        if self.is_written or os.getpid() != self.process:
            return
        self.is_written = True
        # A second Ctrl-C does not end the count. Only the main thread can set this.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        found = {"error": self.error, "error_at": self.error_at, "ended_with": self.status}
        try:
            found.update(self.measured.result(self.error))
        except Exception as fault:
            found["fault"] = f"{type(fault).__name__}: {fault}"
        with open(self.settings["out"], "w") as file:
            json.dump(found, file)
        ranks.finish()

    def caught(self, error):
        """Prints an exception that ended the program as Python does, without the lines of this file.

        Returns the exit status.
        """
        trace = error.__traceback__
        while trace is not None and places.is_ours(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        self.error = type(error).__name__
        self.error_at = places.of_traceback(trace)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def run_program(settings, arguments, ended=None):
    """Runs the program `arguments[0]` with its arguments, and ends the process.

    `ended` is called with the exit status, before the process ends by itself.
    """
    run = Run(settings)
    child.prepare(settings)
    sys.argv = arguments
    path = arguments[0]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    # The command that waits for this process ignores Ctrl-C, which the program handles.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Registered first, so that it is called last.
    atexit.register(run.finish)
    crash.before_end_at_once(run.finish)
    # After another rank failed, this rank gets the signal to end.
    crash.watch(run.finish, [signal.SIGTERM] if ranks.running() else [])
    if settings["lines"]:
        printed.list_lines(run.measured.allocations)
    run.measured.install()
    child.watch_copies(run.measured)
    status = 0
    try:
        execute(run, path)
    except SystemExit as exit:
        status = exit.code
    except BaseException as error:
        # The end of the steps may come as another exception, where a library catches all of them.
        if not run.measured.is_over:
            status = run.caught(error)
        # As Python keeps it for debuggers: what the exception holds is alive until the end.
        run.measured.exception = error
    run.status = _number(status)
    if ended is not None:
        ended(run.status)
    sys.exit(status)


def _number(status):
    """The exit status that Python makes of the argument of `sys.exit`."""
    return 0 if status is None else status & 0xFF if isinstance(status, int) else 1


def execute(run, path):
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins
    # The module and its code live until the process ends.
    run.modules = (sys.modules["__main__"], module)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)
