"""Measurements in PyTorch while the program runs.

Peaks by iteration, who holds memory, and where segments first exceeded a GPU's memory.
"""

import json
import os
import pickle
import sys

from blockyard_dry_run import growth, holders, initial, loaded, places, ranks, values
from blockyard_dry_run.peaks import Peaks
from blockyard_dry_run.record import record

# Segments are a small part of all events; this many events with stacks are kept where PyTorch cannot leave the others
# out.
_MAX_EVENTS = 1_000_000
# The most events without stacks, from which the requests are read.
_MAX_REQUESTS = 200_000


class EndOfSteps(BaseException):
    """Ends the program after the iterations that were asked for.

    A program that catches `Exception` does not catch this exception.
    """


class EndOfStepsOfChild(SystemExit):
    """Ends a process that the program started, after the iterations that were asked for.

    The process ends as one that has finished its work.
    """


class Measured:
    """The measurements of one run."""

    def __init__(self, settings, is_child=False):
        self.settings = settings
        self.is_child = is_child
        self.process = os.getpid()
        self.peaks = Peaks()
        self.optimizer = None
        self.number = 0
        # Whether all iterations that were asked for were made.
        self.is_over = False
        self.holders = []
        # Calls of backward in which segments grew: bytes before, bytes after, the line.
        self.backward = []
        # The request that ran out of memory.
        self.failed = None
        self.growth = growth.Growth()
        # The exception that ended the program.
        self.exception = None

    def install(self):
        """Waits for the program to load PyTorch.

        A PyTorch that the dry run loads earlier would not see variables that the program sets. In a process that was
        copied, PyTorch may be loaded already.
        """
        once_loaded("torch", self._on_torch)
        ranks.install(once_loaded)

    def _on_torch(self, torch):
        values.follow(torch)
        initial.install()
        if not self.is_child and not self.settings["ends_at_oom"]:
            self.growth.install(torch)
        self.peaks.install(torch, is_by_step=self.settings["steps"] is not None)
        if self.settings["steps"] is not None:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(self._on_step)
        if self.settings["snapshot"] or self.settings["totals"] or self.settings["requests"]:
            # History can only be kept once the devices are known.
            torch.cuda._lazy_call(lambda: self._keep_history(torch))
        if self.settings["totals"]:
            self._watch_backward(torch)
        if self.settings["fraction"] is not None:
            torch.cuda._lazy_call(lambda: self._limit(torch))
        if self.settings["ends_at_oom"]:
            torch.cuda._lazy_call(lambda: torch._C._cuda_attach_out_of_memory_observer(self._on_oom))

    def _limit(self, torch):
        for device in range(torch.cuda.device_count()):
            torch.cuda.set_per_process_memory_fraction(self.settings["fraction"], device)

    def _on_oom(self, device, size, _total, _free):
        """Ends the process: how the program would handle the failure is not asked.

        PyTorch's allocator calls this function without its lock.
        """
        at = places.here()
        is_of_other_thread = at is None
        self.failed = {
            "device": device,
            "bytes": size,
            "at": at or places.of_main_thread(),
            "is_of_other_thread": is_of_other_thread,
        }
        sys.stdout.flush()
        os._exit(1)

    def _keep_history(self, torch):
        keep = torch.cuda.memory._record_memory_history
        if self.settings["snapshot"]:
            keep(stacks="python")
            return
        if not self.settings["totals"]:
            keep(stacks="python", context=None, max_entries=_MAX_REQUESTS)
            return
        rest = ["alloc", "free_requested", "free_completed", "snapshot"]
        try:
            keep(stacks="python", context="alloc", skip_actions=rest)
        except TypeError:
            # Before 2.11.
            keep(stacks="python", context="alloc", max_entries=_MAX_EVENTS)

    def _watch_backward(self, torch):
        """Notes the growth of segments in each call of backward, with the line that called it.

        Threads of backward run no Python, so that PyTorch's trace has no line of the program for them.
        """
        run_backward = torch.autograd._engine_run_backward

        def watched(*arguments, **options):
            before = self.peaks.most_reserved()
            try:
                return run_backward(*arguments, **options)
            finally:
                after = self.peaks.most_reserved()
                if after > before:
                    self.backward.append((before, after, places.here()))

        torch.autograd._engine_run_backward = watched

    def _on_step(self, optimizer, _arguments, _options):
        if self.optimizer is None:
            self.optimizer = optimizer
        if self.optimizer is not optimizer:
            return
        self.number += 1
        devices = self.peaks.end_step()
        if self.is_child:
            # Steps of several processes are not one list.
            if self.number >= self.settings["steps"]:
                self.is_over = True
                raise EndOfStepsOfChild
            return
        record({"kind": "step", "number": self.number, "devices": devices})
        if devices and self.number in (1, 2, self.settings["steps"]):
            # The first two as well, for programs that end before.
            self.holders = holders.holders(sys.modules["torch"], devices)
        if self.number >= self.settings["steps"]:
            self.is_over = True
            raise EndOfSteps

    def result(self, error=None):
        """The memory of the run, for the file of results; `error` is the exception's name that ended it."""
        values.stop()
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return {"devices": []}
        if self.peaks.stats is None:
            # It was loaded in a way that the finder did not see.
            self.peaks.install(torch, is_by_step=False)
            record(
                {
                    "kind": "remark",
                    "text": "PyTorch was loaded before the dry run could observe it: no steps were counted, and peaks "
                    "are those since the program's own reset",
                }
            )
        found = {"devices": self.peaks.whole(), "holders": self.holders, "conf": _conf()}
        if self.settings["ends_at_oom"]:
            found["files"] = places.own_files()
        if self.failed is not None:
            return {**found, "failed": self.failed, "error": "OutOfMemoryError", "error_at": self.failed["at"]}
        if self.settings["totals"]:
            found["crossings"] = self._crossings(cuda)
        found["is_growth_seen"] = self.growth.is_seen()
        found["growth"] = self.growth.finish(error, self.exception)
        if self.settings["snapshot"]:
            _write_snapshot(cuda, self.settings["snapshot"], found["growth"])
        elif self.settings["requests"] and not self.settings["totals"] and os.getpid() == self.process:
            cuda.memory._dump_snapshot(self.settings["requests"])
        return found

    def allocations(self):
        """How many allocations each device has had; nothing before PyTorch uses one."""
        return self.peaks.allocations() if self.settings["requests"] else []

    def _crossings(self, cuda):
        """For each number of bytes that segments exceeded: the bytes, and the line if it is known."""
        wanted = sorted(total for total in self.settings["totals"] if total < self.peaks.most_reserved())
        if not wanted:
            return []
        found = {}
        for trace in cuda.memory._snapshot()["device_traces"]:
            for total, entry in _first_above(trace, wanted).items():
                found.setdefault(total, entry)
        return [{"total": total, "at": self._place(total, found.get(total))} for total in wanted]

    def _place(self, total, entry):
        place = places.of_entry(entry["frames"]) if entry else None
        if place is None:
            inside = [at for before, after, at in self.backward if before <= total < after]
            place = inside[0] if inside else None
        return place


def _conf():
    """The settings of the allocator, by the option, the environment or the program itself."""
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _write_snapshot(cuda, path, kept):
    """Writes PyTorch's snapshot, with the objects that kept blocks under our own key."""
    if not kept["rows"]:
        cuda.memory._dump_snapshot(path)
        return
    snapshot = cuda.memory._snapshot()
    snapshot["blockyard_keepers"] = json.dumps(kept)
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)


def _first_above(trace, totals):
    """For each number of bytes, the first event after which the segments of the device are more."""
    found, reserved, left = {}, 0, list(totals)
    for entry in trace:
        if entry["action"] in ("segment_alloc", "segment_map"):
            reserved += entry["size"]
            while left and reserved > left[0]:
                found[left.pop(0)] = entry
        elif entry["action"] in ("segment_free", "segment_unmap"):
            reserved -= entry["size"]
    return found


def once_loaded(name, function):
    """Calls a function with a module once it is loaded."""

    def call(module):
        try:
            function(module)
        except Exception as fault:
            record({"kind": "remark", "text": f"steps and lines are not known: {type(fault).__name__}: {fault}"})

    loaded.once_loaded(name, call)
