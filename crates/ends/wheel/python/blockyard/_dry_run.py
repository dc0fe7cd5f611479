"""PyTorch programs, run with the PyTorch that is installed, without a GPU."""

import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Sequence

from blockyard import _command, _files, _native
from blockyard._answers import DryRunReport


def dry_run(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    gpu: str | Sequence[str] = "h200",
    devices: int = 1,
    steps: int | None = None,
    conf: str | None = None,
    total_memory: int | None = None,
    all_memory: bool = False,
    assume: Sequence[str] = (),
    address_orders: bool = False,
    skip_init: bool = False,
    snapshot: bool = True,
    python: "str | os.PathLike[str] | None" = None,
    echo: bool = True,
) -> "DryRun":
    """Runs a PyTorch program with the PyTorch that is installed, on a machine without a GPU, in a separate process, and returns its memory:
    a `DryRun`.

    `program` is a path, `args` are the words that it finds in `sys.argv` after its name. `gpu` is the GPU that the program sees, and further GPUs for
    which the answer says whether the program fits: `["h100", "rtx4090"]` or `"h100,rtx4090"`. After `steps` steps of its first optimizer the program ends.
    `conf` is PYTORCH_CUDA_ALLOC_CONF, `total_memory` the first GPU's bytes, of which the program may reserve those beside the CUDA context and libraries,
    or all with `all_memory`. `assume` names values of the device that are not known, by
    the line that reads them: `["train.py:88=0.3"]`. With `address_orders` the program runs under two further orders of the driver's addresses,
    without output, and the answer's `address_orders` says which numbers depend on them; without it the answer's `addresses` has what the run's
    requests alone give under eight orders. With `skip_init`
    parameters above 1 MiB on the host are not initialized, so that a large model takes no memory there. `snapshot=False` leaves out the stacks of PyTorch's
    history, of which each allocation has one. `python` is the Python that has PyTorch, else this one. The program's output is printed, unless `echo` is false.

    A program that fails has an answer too, with its `status` and `error`. BlockyardError is raised if the program cannot be started: PyTorch is not installed,
    or was built without CUDA. Ctrl-C is for the program first; then this function raises KeyboardInterrupt.
    """
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        file = pathlib.Path(folder, "snapshot.pickle")
        options = {
            "quiet": True,
            "gpu": _command.joined(gpu),
            "devices": devices,
            "python": python,
            "steps": steps,
            "conf": conf,
            "total_memory": total_memory,
            "all_memory": all_memory,
            "snapshot": file if snapshot else None,
            "address_orders": address_orders,
            "skip_init": skip_init,
            "assume": list(assume),
        }
        raw = _command.ask("dry-run", ["--", os.fspath(program), *args], options, echo)
        content = file.read_bytes() if file.is_file() else None
    return DryRun.of(raw, name=pathlib.Path(os.fspath(program)).name, content=content)


@dataclasses.dataclass(frozen=True, repr=False)
class DryRun(DryRunReport):
    """The memory of a program. The attributes are the fields of `blockyard dry-run --json`, in docs/dry-run-json.md."""

    name: str
    content: bytes | None = dataclasses.field(repr=False, compare=False)

    def snapshot(self) -> "_files.Snapshot":
        """PyTorch's own memory snapshot of the run, as `blockyard.open` gives it, with a stack for each allocation."""
        if self.content is None:
            raise _native.BlockyardError(
                "the run has no snapshot: `snapshot` was false, or the program did not use the GPU to its end"
            )
        return _files.Snapshot(_native.open_bytes(self.content), self.name)

    def __str__(self) -> str:
        ended = "ran to its end" if self.status == 0 else f"ended with status {self.status}"
        if self.error:
            ended += f" ({self.error}{f' at {self.error_at}' if self.error_at else ''})"
        parts = [f"{self.name} {ended}", *map(str, self.peaks), *map(str, self.children)]
        if not self.peaks:
            parts.append("the GPU was not used")
        if self.steady is not None:
            parts.append("the last two steps are equal" if self.steady else "the last two steps are not equal")
        if len(self.gpus) > 1:
            parts += map(str, self.gpus)
        if self.address_orders is not None:
            parts.append(str(self.address_orders))
        elif self.addresses is not None and self.addresses.equal is False:
            parts.append(str(self.addresses))
        if self.exact:
            parts.append("nothing was assumed")
        elif self.notes:
            parts.append(f"an estimate: {self.notes[0]}")
        return "; ".join(parts)
