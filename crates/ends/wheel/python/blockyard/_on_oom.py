"""Files for a request of PyTorch that finds no memory: a memory snapshot, and a report about the snapshot."""

import os
import pathlib
import pickle
import subprocess
import sys
import threading

# The last entries of a trace are enough for the question why memory was gone, and a bounded trace costs a bounded amount of memory.
_ENTRIES = 100_000
_FILES = 3
# A report replays the run under some settings. A program that waits longer than this for its own error is worse than no report.
_REPORT_SECONDS = 300


def on_oom(folder, max_files=_FILES, max_entries=_ENTRIES, report=True):
    """From now on, each request that finds no memory leaves a snapshot and a report in `folder`: `rank0-1.pickle`, `rank0-1.html`.

    It works with PyTorch's own allocator, and under `blockyard.torch.enable()`, where files are written when the error ends the program or a
    thread. The history of memory is recorded from here on, its last `max_entries` entries, unless the program records one already. At
    most `max_files` failures are written by a process; files of earlier runs stay. With `report` false only snapshots are written.

    CUDA is initialized by this call, so it comes after `torch.multiprocessing` has started its processes by fork, if it does.

    The program's own error is never hidden: a fault while files are written is a line on standard error. On several ranks each one
    writes its own files.

    Raises ValueError for counts below 1, and OSError if the folder cannot be made.
    """
    import torch

    from blockyard import torch as plugin

    if max_files < 1 or max_entries < 1:
        raise ValueError("max_files and max_entries are at least 1")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    writer = _Writer(folder, max_files, report)
    if plugin.is_enabled():
        plugin.record_memory_history(max_entries=max_entries, stacks=True)
        writer.at_end_of_program(plugin.memory_snapshot, torch.OutOfMemoryError)
        return
    # Before CUDA is initialized there are no allocators to observe, and PyTorch crashes when it is asked for their histories.
    torch.cuda.init()
    if not _records_history(torch):
        torch.cuda.memory._record_memory_history(max_entries=max_entries)
    take = torch.cuda.memory._snapshot
    torch._C._cuda_attach_out_of_memory_observer(lambda device, size, total, free: writer.write(take))


def _records_history(torch):
    """Whether the program records a history already; releases that do not say count as not recording."""
    is_enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(is_enabled and is_enabled())


def _rank():
    """The number of this process among those of the program."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    return int(os.environ.get("RANK", "0"))


class _Writer:
    """Writes the files of a process."""

    def __init__(self, folder, max_files, report):
        self.folder, self.left, self.report = folder, max_files, report
        # A failure while a snapshot is taken must not begin another one.
        self.busy = threading.Lock()

    def write(self, take):
        if self.left < 1 or not self.busy.acquire(blocking=False):
            return
        try:
            path = self._write_snapshot(take())
            self.left -= 1
            _say(f"out of memory: {path} has the memory of that moment")
            if self.report:
                _write_report(path)
        except Exception as error:  # The program's own error goes on.
            _say(f"out of memory, and the snapshot was not written: {type(error).__name__}: {error}")
        finally:
            self.busy.release()

    def _write_snapshot(self, snapshot):
        rank, number = _rank(), 1
        while True:
            path = self.folder / f"rank{rank}-{number}.pickle"
            try:
                # A file that exists, of another failure or another run, is never overwritten.
                with open(path, "xb") as file:
                    pickle.dump(snapshot, file, protocol=4)
                return path
            except FileExistsError:
                number += 1

    def at_end_of_program(self, take, error_type):
        """Writes where an error of this type ends the program or a thread; existing hooks are called after that."""
        of_program, of_thread = sys.excepthook, threading.excepthook

        def program(kind, error, trace):
            if issubclass(kind, error_type):
                self.write(take)
            of_program(kind, error, trace)

        def thread(arguments):
            if arguments.exc_type is not None and issubclass(arguments.exc_type, error_type):
                self.write(take)
            of_thread(arguments)

        sys.excepthook, threading.excepthook = program, thread


def _write_report(path):
    out = path.with_suffix(".html")
    # Another process answers: the answer needs no state of the program, and a failure of the answer cannot end the program.
    command = [sys.executable, "-m", "blockyard", "report", str(path), "-o", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_REPORT_SECONDS, check=False)
    if out.exists():
        _say(f"out of memory: {out} says why")
    else:
        lines = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        _say(f"the report was not written: {lines[-1]}; `blockyard report {path}` tries again")


def _say(text):
    print(f"blockyard: {text}", file=sys.stderr, flush=True)
