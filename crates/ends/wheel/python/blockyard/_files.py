"""Files, and questions about them."""

import builtins
import json
import os
import pickle
from typing import Any, Union

from blockyard import _command, _native
from blockyard._answers import (
    Autopsy,
    Bound,
    Certificate,
    ComparedAllocators,
    Diff,
    Holder,
    Leaks,
    Moment,
    Search,
    Summary,
    Verdict,
    WhatIf,
)
from blockyard._page import Content, Shown

# What `open` takes.
Source = Union[str, "os.PathLike[str]", bytes, dict[str, Any], list[Any]]


def open(source: Source) -> "Snapshot | Run":
    """Opens a file of PyTorch or Blockyard.

    `source` is the path of a file, its bytes, or the dictionary that `torch.cuda.memory._snapshot()` returns. A file is a memory snapshot
    (`torch.cuda.memory._dump_snapshot`: a pickle, also packed with gzip, zstd or zip, or the page that memory_viz writes), which
    gives a `Snapshot`; or a recording (`blockyard.torch.record`), which gives a `Run`.

    Raises BlockyardError if the file is neither, OSError if the file cannot be read.
    """
    if isinstance(source, bytes):
        if _native.is_recording_bytes(source):
            return Run(_native.run_of_recording(source))
        return Snapshot(_native.open_bytes(source), "snapshot")
    if isinstance(source, (dict, list)):
        return Snapshot(_native.open_bytes(pickle.dumps(source, protocol=4)), "snapshot")
    path = os.fspath(source)
    if _native.is_recording(path):
        with builtins.open(path, "rb") as file:
            return Run(_native.run_of_recording(file.read()))
    return Snapshot(_native.open_path(path), os.path.basename(path))


def play(workload: str, *, name: str = "workload", conf: str = "", capacity: int = 1 << 30) -> "Run":
    """The run of a workload's text, on a device of `capacity` bytes under the settings `conf`.

    >>> run = play("a = alloc 3 MiB\\nfree a")
    >>> run.what_if().baseline.peak_reserved
    20971520
    """
    return Run(_native.run_of_workload(workload, name, conf, capacity))


class Questions:
    """Questions about the requests of a run. Every answer comes from replaying the requests."""

    def _requests(self) -> _native.RunData:
        raise NotImplementedError

    def ask(self, question: str, *options: object) -> dict[str, Any]:
        """The answer to a question of the command, with the command's options, as a dictionary.

        Questions: `verdict`, `what-if`, `search`, `autopsy`, `bound`, `compare-allocators`, `leaks`. docs/questions-examples.md has an example of each.
        """
        answer: dict[str, Any] = json.loads(self._requests().ask(question, [str(option) for option in options]))
        return answer

    def _ask(self, question: str, **options: object) -> dict[str, Any]:
        return self.ask(question, *_command.words_of(options))

    def what_if(
        self, *confs: str, limit: int | None = None, capacity: int | None = None, release: str | None = None
    ) -> WhatIf:
        """The outcome of the run under each of the settings; `limit` is the most that may be reserved, in bytes, and `release` the
        release of PyTorch whose rules hold, in place of the run's own.

        >>> play("a = alloc 3 MiB\\nb = alloc 30 MiB").what_if("expandable_segments:True").settings[0].peak_reserved
        41943040
        >>> run = play("pool p\\na = alloc 600 MiB\\nfree a\\nenter p\\nb = alloc 700 MiB\\nleave p")
        >>> [run.what_if(release=release).settings[0].fits for release in ("2.12", "2.13")]
        [False, True]
        """
        return WhatIf.of(self._ask("what-if", conf=[*confs], limit=limit, total_memory=capacity, release=release))

    def search(self, *, limit: int | None = None, capacity: int | None = None, release: str | None = None) -> Search:
        """The outcome of the run under all sensible settings and pairs of them."""
        return Search.of(self._ask("search", limit=limit, total_memory=capacity, release=release))

    def bound(self) -> Bound:
        """How good any allocator could be: the live bytes at their peak, and a layout that knows all lifetimes.

        >>> play("a = alloc 3 MiB\\nfree a\\nb = alloc 5 MiB").bound()
        <Bound: no allocator needs less than 5 MiB, live at request 3; a planned layout needs 5 MiB; the run's own settings take 20 MiB>
        """
        return Bound.of(self._ask("bound"))

    def leaks(self) -> Leaks:
        """What grows from iteration to iteration, by call site; true if something grows."""
        return Leaks.of(self._ask("leaks"))

    def compare_allocators(
        self, *, limit: int | None = None, capacity: int | None = None, release: str | None = None
    ) -> ComparedAllocators:
        """What other allocators would have reserved for the same requests."""
        return ComparedAllocators.of(
            self._ask("compare-allocators", limit=limit, total_memory=capacity, release=release)
        )

    def diff(self, after: "Questions") -> Diff:
        """What changed from this run to another: terms by call site that add up to the change of each peak.

        >>> play("a = alloc 3 MiB", name="before").diff(play("a = alloc 3 MiB\\nb = alloc 30 MiB"))
        <Diff: peak allocated 30 MiB more than before, 33 MiB instead of 3 MiB; peak reserved 30 MiB more than before, 50 MiB instead of 20 MiB>
        """
        return Diff.from_json(self._requests().diff(after._requests()))

    def diff_steps(self, first: int, second: int) -> Diff:
        """What changed from one step of this run to another; steps are counted from 1, as `leaks` finds them.

        >>> text = 'repeat 2 as i {\\n  step "training step {i}"\\n  x[i] = alloc 4 MiB\\n}'
        >>> play(text).diff_steps(1, 2).allocated.change
        4194304
        """
        return Diff.from_json(self._requests().diff_steps(first, second))

    def verdict(
        self,
        *,
        conf: str | None = None,
        limit: int | None = None,
        capacity: int | None = None,
        release: str | None = None,
    ) -> Verdict:
        """The verdict on the run: whether it went out of memory, why, what held the memory, and what helps.

        >>> play("a = alloc 3 MiB\\nb = alloc 30 MiB").verdict().headline
        'it fits: at most 33 MiB are allocated, and 50 MiB reserved'
        """
        return Verdict.of(self._ask("verdict", conf=conf, limit=limit, total_memory=capacity, release=release))

    def autopsy(
        self,
        *,
        conf: str | None = None,
        limit: int | None = None,
        capacity: int | None = None,
        release: str | None = None,
    ) -> Autopsy:
        """Why the run goes out of memory, and the smallest changes that would let the request pass."""
        return Autopsy.of(self._ask("autopsy", conf=conf, limit=limit, total_memory=capacity, release=release))


class Run(Questions, Shown):
    """The requests of one run."""

    def __init__(self, data: _native.RunData) -> None:
        self._data = data

    def _requests(self) -> _native.RunData:
        return self._data

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._data.name

    @property
    def conf(self) -> str:
        """`PYTORCH_CUDA_ALLOC_CONF` of the run."""
        return self._data.conf

    @property
    def capacity(self) -> int:
        """All bytes of the device."""
        return self._data.capacity

    @property
    def requests(self) -> int:
        """How many requests the run has."""
        return self._data.requests

    @property
    def notes(self) -> list[str]:
        """What is not known about the run, in sentences."""
        return self._data.notes

    def _content(self) -> Content:
        content = self._data.content()
        if content is None:
            raise _native.BlockyardError("the run is a part of a snapshot: export the snapshot")
        # By the end of its name a text is taken for a workload.
        end = ".jsonl" if _native.is_recording_bytes(content) else ".workload"
        return self.name + end, content, None

    def _report(self, arguments: _native.ReportArguments) -> str:
        return _native.report(self.name, self._content()[1], arguments)

    def __repr__(self) -> str:
        return f"<blockyard.Run {self.name}: {self.requests} requests under {self.conf or 'default settings'}>"


class Memory(Questions, Shown):
    """The memory of a device: of one, or of the first of a snapshot."""

    def _device(self) -> "Device":
        raise NotImplementedError

    def _requests(self) -> _native.RunData:
        device = self._device()
        if device.index is None:
            raise _native.BlockyardError("not replayed: host (pinned) memory has another allocator than a GPU")
        return device._snapshot._all_runs()[device._place]

    def _describe(self, moment: str | None, top: int) -> str:
        device = self._device()
        return device._data.describe(device._place, moment, top)

    @property
    def summary(self) -> Summary:
        """The events, peaks and segments of the device."""
        return Summary.from_json(self._describe(None, 0))

    def at(self, moment: int | str | None = None, top: int = 10) -> Moment:
        """The memory at a moment: a number of events, "request:5", "peak", "oom", or None for the failure if the run failed, else the peak.

        `top` is how many call sites the answer names.
        """
        raw: dict[str, Any] = json.loads(self._describe(None if moment is None else str(moment), top))["at"]
        return Moment.of(raw)

    def top(self, count: int = 10, moment: int | str | None = "peak") -> list[Holder]:
        """The call sites that hold most bytes at a moment, most first."""
        return self.at(moment, count).top

    def verify(self) -> Certificate:
        """Whether Blockyard's allocator decides each placement as PyTorch did: a `Certificate`, true if all are identical."""
        device = self._device()
        return Certificate.from_json(device._data.certify(device._place))

    @property
    def events(self) -> _native.Table:
        """The trace, an entry a row, as an Arrow table: `polars.DataFrame(device.events)`.

        Columns: `action` (PyTorch's word), `address`, `size`, `stream`, `time_us` (null where it is not known), `stack` (a line a
        frame, innermost first; null where there is none).
        """
        device = self._device()
        return device._data.events(device._place)

    @property
    def allocations(self) -> _native.Table:
        """The allocations as an Arrow table, those from before the trace first.

        Columns: `address`, `size` (as requested), `stream`, `allocated_at` and `freed_at` (rows of `events`; null for before and after
        the trace), `stack`.
        """
        device = self._device()
        return device._data.allocations(device._place)


class Snapshot(Memory):
    """A memory snapshot of PyTorch. A question about the snapshot is a question about its first device."""

    def __init__(self, data: _native.SnapshotData, name: str) -> None:
        self._data, self.name = data, name
        self._runs: list[_native.RunData] | None = None
        self.devices = [Device(self, place, index) for place, index in enumerate(data.devices)]
        # Host (pinned) memory, where the program recorded it; see docs/python.md.
        self.host = None if data.host is None else Device(self, data.host, None)

    def _device(self) -> "Device":
        if not self.devices:
            raise _native.BlockyardError("the snapshot has no device with memory or events")
        return self.devices[0]

    def _all_runs(self) -> list[_native.RunData]:
        if self._runs is None:
            self._runs = self._data.runs(self.name)
        return self._runs

    @property
    def conf(self) -> str:
        """The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them."""
        return self._data.conf

    @property
    def notes(self) -> list[str]:
        """The parts of the file that were passed over, in sentences."""
        return self._data.notes

    def _content(self) -> Content:
        return _pickle_name(self.name), self._data.pickle(), None

    def _report(self, arguments: _native.ReportArguments) -> str:
        return self._data.report(self.name, None, arguments)

    def _one_device(self) -> str | None:
        return self._device()._name()

    def __repr__(self) -> str:
        return f"<blockyard.Snapshot {self.name}: {len(self.devices)} devices>"


class Device(Memory):
    """One device of a snapshot, or its host memory, whose `index` is None.

    Another allocator than a GPU's hands out host memory, so questions about other settings raise BlockyardError there.
    """

    def __init__(self, snapshot: Snapshot, place: int, index: int | None) -> None:
        self._snapshot, self._data, self._place, self.index = snapshot, snapshot._data, place, index

    def _device(self) -> "Device":
        return self

    def _name(self) -> str:
        return "host" if self.index is None else str(self.index)

    def _content(self) -> Content:
        return _pickle_name(self._snapshot.name), self._data.pickle(), self._name()

    def _report(self, arguments: _native.ReportArguments) -> str:
        return self._data.report(self._snapshot.name, self._name(), arguments)

    def __repr__(self) -> str:
        return f"<blockyard.Device {'host' if self.index is None else f'cuda:{self.index}'}>"


def _pickle_name(name: str) -> str:
    return name.split(".")[0] + ".pickle"
