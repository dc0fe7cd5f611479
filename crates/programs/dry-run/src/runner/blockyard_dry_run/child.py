"""Follows the values and peaks of processes that the program starts; each reports its peaks at its end.

A Python that the program starts finds `children/sitecustomize.py` on its path of modules. A copy of the program
(`fork`) has everything already.
"""

import atexit
import json
import os

from blockyard_dry_run import crash, ranks, torch_hooks
from blockyard_dry_run.record import record


def prepare(settings):
    """Makes the processes that this one starts follow their values and peaks."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "children")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder + os.pathsep + before if before else folder
    # Processes that the program starts report their own memory.
    os.environ["STANDIN_PROCESS"] = str(os.getpid())
    passed = {name: settings[name] for name in ("steps", "fraction", "ends_at_oom")}
    os.environ["BLOCKYARD_DRY_RUN_CHILDREN"] = json.dumps(passed)


class Child:
    """One process that the program started."""

    def __init__(self, settings):
        self.process = os.getpid()
        self.measured = torch_hooks.Measured(
            {"snapshot": None, "requests": None, "totals": [], **settings}, is_child=True
        )
        self.is_written = False

    def install(self):
        self.measured.install()
        atexit.register(self.finish)
        crash.before_end_at_once(self.finish)

    def finish(self):
        """Reports the peaks, once."""
        if self.is_written or os.getpid() != self.process:
            return
        self.is_written = True
        _count(self.measured)
        ranks.finish()


def _count(measured):
    """Reports the peaks of this process."""
    try:
        _write(measured.result())
    except Exception as fault:
        record(
            {"kind": "remark", "text": f"process {os.getpid()}, which the program started, was not counted: {fault}"}
        )


def _write(result):
    if result.get("failed") is not None:
        record({"kind": "child_failed", **result["failed"]})
    for device, stats in enumerate(result["devices"]):
        if stats.get("reserved_bytes.all.peak", 0) > 0:
            record(
                {
                    "kind": "child_counted",
                    "process": os.getpid(),
                    "device": device,
                    "peak_allocated": stats["allocated_bytes.all.peak"],
                    "peak_reserved": stats["reserved_bytes.all.peak"],
                    "allocated": stats["allocated_bytes.all.current"],
                    "has_run_out": stats.get("num_ooms", 0) > 0,
                }
            )


def follow():
    """Follows this process, if the program started it."""
    program = os.environ.get("STANDIN_PROCESS")
    settings = os.environ.get("BLOCKYARD_DRY_RUN_CHILDREN")
    if settings is None or program in (None, str(os.getpid())):
        return
    Child(json.loads(settings)).install()


def watch_copies(measured):
    """Makes each copy of this process, as `multiprocessing` makes them, report its peaks at its end.

    Such a copy forgets what was registered for the end, and ends by `os._exit` after its finalizers.
    """

    def on_util(util):
        def copied(_measured):
            util.Finalize(None, _count, args=(measured,), exitpriority=-1000)

        util.register_after_fork(measured, copied)

    torch_hooks.once_loaded("multiprocessing.util", on_util)
