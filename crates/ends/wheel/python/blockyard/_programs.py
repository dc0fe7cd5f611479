"""PyTorch programs, run without PyTorch and without a GPU."""

import dataclasses
import os
import sys

from blockyard import _command, _native
from blockyard._answers import ProgramReport
from blockyard._files import Snapshot
from blockyard._page import Content, Shown


def run(
    program: "str | os.PathLike[str]",
    *arguments: object,
    gpu: str = "h200",
    devices: int = 1,
    conf: str = "",
    total_memory: int | None = None,
    time_limit: int = 600,
    echo: bool = True,
) -> "Program":
    """Runs a PyTorch program in a process of this Python, without PyTorch and without a GPU, and returns its result: a `Program`.

    `program` is a path, `arguments` are the words that it finds in `sys.argv` after its name. `gpu` is the GPU that it sees (h200; h100, a100, a100-40g,
    l4, t4, rtx4090 with derived numbers), `conf` is PYTORCH_CUDA_ALLOC_CONF, `total_memory` the device's bytes. The program's output is printed, unless `echo`
    is false. After `time_limit` seconds it is stopped; Ctrl-C comes back at once and leaves the program to that limit.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.py"
    >>> _ = path.write_text("import torch\\nx = torch.empty(3 * 2**18, device='cuda')\\nprint(torch.cuda.memory_reserved())\\n")
    >>> done = run(path)
    20971520
    >>> done.status, done.snapshot.summary.peak_allocated
    (0, 3145728)
    """
    _command.set_environment()

    def write(text: str) -> None:
        if echo:
            sys.stdout.write(text)

    path = os.fspath(program)
    conditions = (gpu, devices, conf, total_memory, time_limit)
    summary, snapshot = _native.run_program(path, [*map(str, arguments)], sys.executable, conditions, write)
    return Program.from_json(summary, snapshot=Snapshot(snapshot, os.path.basename(path)))


@dataclasses.dataclass(frozen=True, repr=False)
class Program(ProgramReport, Shown):
    """The result of a program: its output, its end, and the memory of its devices as a `Snapshot`.

    `notes` are remarks, `estimated` are the operators whose allocations are unverified estimates, both with the line of the program.
    """

    snapshot: Snapshot

    def _content(self) -> Content:
        return self.snapshot._content()

    def _one_device(self) -> str | None:
        return self.snapshot._one_device()

    def __str__(self) -> str:
        ended = "ran to its end" if self.status == 0 else f"ended with status {self.status}"
        parts = [f"{self.snapshot.name} {ended}"]
        if self.snapshot.devices:
            parts.append(str(self.snapshot.summary))
        if self.estimated:
            parts.append(f"{len(self.estimated)} operators are estimated")
        if self.traceback:
            parts.append(self.traceback.strip().splitlines()[-1])
        return "; ".join(parts)
