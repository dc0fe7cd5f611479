"""Loads modules once, and runs each program in a copy of this process.

A job is a line of JSON on standard input: `job` (a number), `settings` and `arguments` (as `run_program` takes them),
`environment` (further variables), `output` (a path, or null) and `folder` (a path, or null). Each job is answered on
standard output by `{"job", "pid"}` once it runs, and by `{"job", "ended"}` with the status of `waitpid`. `{"fault"}`
says why no job can run.
"""

import ast
import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import sys
from pathlib import Path

# Seconds between two looks at the copies.
_PAUSE = 0.01


_status = None
_exit = os._exit


def end_with(status):
    """Notes the status with which the program of this copy ended.

    The process ends with this status, once all functions that were registered for the end were called.
    """
    global _status
    _status = status


def _end_at_once():
    """Ends the process before Python takes all objects apart, which would copy each page of the loaded modules."""
    if _status is None:
        return
    for stream in (sys.stdout, sys.stderr):
        # A program may have closed it.
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)
    _exit(_status)


def _run_first_imports(file):
    """Runs the imports with which a program begins, up to its first other statement or its first own module.

    What follows may set variables that other modules read while they are loaded.
    """
    own = Path(file).parent
    for statement in ast.parse(Path(file).read_bytes()).body:
        match statement:
            case ast.Expr(ast.Constant()):
                continue
            case ast.Import(names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(str(module), _, 0):
                modules = [module]
            case _:
                return
        tops = [own / module.partition(".")[0] for module in modules]
        if any(top.is_dir() or top.with_suffix(".py").exists() for top in tops):
            return
        exec(compile(ast.Module([statement], []), file, "exec"), {})


def serve(modules, program):
    """Serves jobs until standard input ends. Returns in a copy alone, with its job.

    `program` is the file whose first imports are loaded, or None. An import that fails ends them: the copy says why.
    """
    # Registered before all functions of the modules and the program, so that it is called last.
    atexit.register(_end_at_once)
    answers = os.dup(1)
    # Standard output is for answers: the modules' own output must not be among them.
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def answer(line):
        os.write(answers, (json.dumps(line) + "\n").encode())

    try:
        for name in modules:
            importlib.import_module(name)
        if program is not None:
            with contextlib.suppress(Exception):
                _run_first_imports(program)
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if cuda is not None and cuda.is_initialized():
            raise RuntimeError("these modules use the GPU while they are loaded, so that no copy can be made")
    except Exception as fault:
        answer({"fault": f"{type(fault).__name__}: {fault}"})
        os._exit(1)
    if program is None:
        # With the objects of a program's own imports, Python collects garbage when it does so in a process of its own.
        gc.collect()
        gc.freeze()
    running, text = {}, b""
    while True:
        ready, _, _ = select.select([0], [], [], _PAUSE if running else None)
        if ready:
            part = os.read(0, 1 << 16)
            if not part:
                break
            *lines, text = (text + part).split(b"\n")
            for line in lines:
                job = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    os.close(answers)
                    return job
                running[pid] = job["job"]
                answer({"job": job["job"], "pid": pid})
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            answer({"job": running.pop(pid), "ended": status})
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def become(job):
    """Makes this copy the process of its job."""
    os.environ.update(job["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    if job["output"] is not None:
        output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
    if job["folder"] is not None:
        os.chdir(job["folder"])
