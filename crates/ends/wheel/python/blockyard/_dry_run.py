"""PyTorch programs, run with the PyTorch that is installed, without a GPU."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

from blockyard import _files, _native
from blockyard._answers import Answer, size

# The beginning of the command's own error texts.
_ERROR = "error: "

# The package's library that stands for CUDA's, and the extension that programs load.
_LIBRARIES = {"BLOCKYARD_STANDIN": "libblockyard_standin.so.1", "BLOCKYARD_EXTENSION": "lib_blockyard.so.1"}


def has_standin() -> bool:
    """Whether the package was built with the library that stands for CUDA's."""
    return pathlib.Path(__file__).with_name(_LIBRARIES["BLOCKYARD_STANDIN"]).is_file()


def set_environment() -> None:
    """Names the package's libraries, and the Python that runs programs, unless the environment names them."""
    for variable, name in _LIBRARIES.items():
        library = pathlib.Path(__file__).with_name(name)
        if library.is_file():
            os.environ.setdefault(variable, str(library))
    os.environ.setdefault("BLOCKYARD_PYTHON", sys.executable)


def dry_run(
    program: "str | os.PathLike[str]",
    args: Sequence[object] = (),
    *,
    gpu: str | Sequence[str] = "h200",
    devices: int = 1,
    steps: int | None = None,
    conf: str | None = None,
    total_memory: int | None = None,
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
    `conf` is PYTORCH_CUDA_ALLOC_CONF, `total_memory` the first GPU's bytes. `assume` names values of the device that are not known, by
    the line that reads them: `["train.py:88=0.3"]`. With `address_orders` the program runs under two further orders of the driver's addresses,
    without output, and the answer's `address_orders` says which numbers depend on them; without it the answer's `addresses` has what the run's
    requests alone give under eight orders. With `skip_init`
    parameters above 1 MiB on the host are not initialized, so that a large model takes no memory there. `snapshot=False` leaves out the stacks of PyTorch's
    history, of which each allocation has one. `python` is the Python that has PyTorch, else this one. The program's output is printed, unless `echo` is false.

    A program that fails has an answer too, with its `status` and `error`. BlockyardError is raised if the program cannot be started: PyTorch is not installed,
    or was built without CUDA. Ctrl-C is for the program first; then this function raises KeyboardInterrupt.
    """
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        report, file = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "snapshot.pickle")
        names = gpu if isinstance(gpu, str) else ",".join(gpu)
        options: list[object] = ["--quiet", "--json", report, "--gpu", names, "--devices", devices]
        options += ["--python", sys.executable if python is None else os.fspath(python)]
        given = {
            "--steps": steps,
            "--conf": conf,
            "--total-memory": total_memory,
            "--snapshot": file if snapshot else None,
        }
        for option, value in given.items():
            if value is not None:
                options += [option, value]
        if address_orders:
            options.append("--address-orders")
        if skip_init:
            options.append("--skip-init")
        for value in assume:
            options += ["--assume", value]
        command = [
            sys.executable,
            "-m",
            "blockyard",
            "dry-run",
            *map(str, options),
            "--",
            os.fspath(program),
            *map(str, args),
        ]
        errors = _run(command, echo)
        if not report.is_file():
            raise _native.BlockyardError(_cause(errors))
        if echo:
            # The program's own words after all.
            sys.stderr.writelines(line for line in errors.splitlines(keepends=True) if line.startswith(_ERROR))
        raw = json.loads(report.read_text())
        content = file.read_bytes() if file.is_file() else None
    return DryRun.of(raw, pathlib.Path(os.fspath(program)).name, content)


def _run(command: list[str], echo: bool) -> str:
    """Runs the command, passes on its output as it comes, and returns its standard error."""
    # The command gets a separate process group: in a notebook Ctrl-C reaches this process alone, in a terminal all processes; the group gets it once.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    errors: list[str] = []
    reader = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr if echo else None, errors))
    reader.start()
    try:
        with _interrupting(process):
            _pass_on(process.stdout, sys.stdout if echo else None, [])
            process.wait()
    finally:
        reader.join()
    return "".join(errors)


@contextlib.contextmanager
def _interrupting(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Hands Ctrl-C to the program, and waits until it ended."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise


def _pass_on(lines: IO[str] | None, out: IO[str] | None, kept: list[str]) -> None:
    for line in lines or ():
        kept.append(line)
        # What may be the command's own error is kept back: it is raised.
        if out is not None and not (out is sys.stderr and line.startswith(_ERROR)):
            out.write(line)
            out.flush()


def _cause(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    wrong = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    return "\n".join(wrong or lines) or "the command ended without a word"


@dataclasses.dataclass(frozen=True, repr=False)
class Line(Answer):
    """A line of a program: its file, and its number counted from 1."""

    file: str
    line: int

    @classmethod
    def of(cls, raw: Any) -> "Line | None":
        return None if raw is None else cls(raw, raw["file"], raw["line"])

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True, repr=False)
class PrintedLine(Answer):
    """A line that the program printed. If something was assumed before, the line is not `exact`, and `why` names the assumption."""

    text: str
    exact: bool
    why: str | None

    @classmethod
    def of(cls, raw: Any) -> "PrintedLine":
        return cls(raw, raw["text"], raw["exact"], raw["why"])

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, repr=False)
class DevicePeak(Answer):
    """The most bytes allocated and reserved on a device, and the bytes allocated at the end."""

    device: int
    allocated: int
    reserved: int
    allocated_at_end: int

    @classmethod
    def of(cls, raw: Any) -> "DevicePeak":
        return cls(raw, raw["device"], raw["allocated"], raw["reserved"], raw["allocated_at_end"])

    def __str__(self) -> str:
        return f"cuda:{self.device}: peak allocated {size(self.allocated)}, peak reserved {size(self.reserved)}"


@dataclasses.dataclass(frozen=True, repr=False)
class StepPeak(Answer):
    """The peaks of one device in step `number`, counted from 1: from the end of the step before to its end."""

    number: int
    device: int
    peak_allocated: int
    peak_reserved: int
    allocated: int

    @classmethod
    def of(cls, raw: Any) -> "StepPeak":
        return cls(raw, raw["number"], raw["device"], raw["peak_allocated"], raw["peak_reserved"], raw["allocated"])

    def __str__(self) -> str:
        return (
            f"step {self.number}: peak allocated {size(self.peak_allocated)}, peak reserved {size(self.peak_reserved)}"
        )


@dataclasses.dataclass(frozen=True, repr=False)
class PeakHolder(Answer):
    """The bytes of one holder at a step's peak."""

    what: str
    bytes: int

    @classmethod
    def of(cls, raw: Any) -> "PeakHolder":
        return cls(raw, raw["what"], raw["bytes"])

    def __str__(self) -> str:
        return f"{size(self.bytes)}: {self.what}"


@dataclasses.dataclass(frozen=True, repr=False)
class GpuFit(Answer):
    """Whether the program fits on a GPU of `total` bytes; None if the run ended before the answer was known.

    `at` is the line at which segments first exceeded the GPU, if the line is known.
    """

    name: str
    id: str
    total: int
    fits: bool | None
    at: Line | None

    @classmethod
    def of(cls, raw: Any) -> "GpuFit":
        return cls(raw, raw["name"], raw["id"], raw["total"], raw["fits"], Line.of(raw["at"]))

    def __str__(self) -> str:
        verdict = {True: "fits", False: "does not fit", None: "not known"}[self.fits]
        return f"{self.name} ({size(self.total)}): {verdict}" + (f", at {self.at}" if self.at else "")


@dataclasses.dataclass(frozen=True, repr=False)
class AddressRange(Answer):
    """The least and the most bytes over the orders of addresses for a device: its peaks, and the bytes allocated at the end."""

    device: int
    allocated: tuple[int, int]
    reserved: tuple[int, int]
    allocated_at_end: tuple[int, int]

    @classmethod
    def of(cls, raw: Any) -> "AddressRange":
        bounds = [(raw[name]["least"], raw[name]["most"]) for name in ("allocated", "reserved", "allocated_at_end")]
        return cls(raw, raw["device"], *bounds)

    def __str__(self) -> str:
        least, most = self.reserved
        return f"cuda:{self.device}: peak reserved " + (
            size(least) if least == most else f"from {size(least)} to {size(most)}"
        )


@dataclasses.dataclass(frozen=True, repr=False)
class AddressOrders(Answer):
    """Which numbers depend on the order of the driver's addresses; `lines` are the places in `DryRun.lines` of the lines that depend on it."""

    orders: list[str]
    equal: bool
    peaks: list[AddressRange]
    lines: list[int]
    ended_otherwise: list[str]

    @classmethod
    def of(cls, raw: Any) -> "AddressOrders | None":
        if raw is None:
            return None
        return cls(
            raw,
            raw["orders"],
            raw["equal"],
            [AddressRange.of(row) for row in raw["peaks"]],
            raw["lines"],
            raw["ended_otherwise"],
        )

    def __str__(self) -> str:
        if self.equal:
            return f"{len(self.orders)} orders of addresses give the same numbers"
        return "depends on the driver's addresses: " + "; ".join(map(str, self.peaks))


@dataclasses.dataclass(frozen=True, repr=False)
class ReplayedOrders(Answer):
    """What the allocator's requests of the run give under other orders of the driver's addresses, of which `orders` were tried beside the run's own.

    `equal` is whether all numbers were equal at each moment; where nothing was replayed it is None, and `why_not` says why.
    """

    orders: int
    equal: bool | None
    peaks: list[AddressRange]
    why_not: str | None

    @classmethod
    def of(cls, raw: Any) -> "ReplayedOrders | None":
        if raw is None:
            return None
        return cls(raw, raw["orders"], raw["equal"], [AddressRange.of(row) for row in raw["peaks"]], raw["why_not"])

    def __str__(self) -> str:
        if self.equal is None:
            return "not replayed under other orders of addresses" + (f": {self.why_not}" if self.why_not else "")
        if self.equal:
            return f"{self.orders} other orders of addresses give the same numbers"
        return "depends on the driver's addresses: " + "; ".join(map(str, self.peaks))


@dataclasses.dataclass(frozen=True, repr=False)
class DryRunNote(Answer):
    """An assumption, after which numbers are estimates. The file is empty if the line is not known."""

    kind: str
    text: str
    file: str
    line: int

    @classmethod
    def of(cls, raw: Any) -> "DryRunNote":
        return cls(raw, raw["kind"], raw["text"], raw["file"], raw["line"])

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, repr=False)
class ChildPeak(Answer):
    """The most bytes of a device that a process of the program took, and its allocator's peaks (`None` if they were not counted).

    No other number has these bytes, unless the program itself uses no GPU and each device has one such process.
    """

    process: int
    device: int
    bytes: int
    peak_allocated: int | None = None
    peak_reserved: int | None = None

    @classmethod
    def of(cls, raw: Any) -> "ChildPeak":
        return cls(
            raw, raw["process"], raw["device"], raw["bytes"], raw.get("peak_allocated"), raw.get("peak_reserved")
        )

    def __str__(self) -> str:
        return f"process {self.process}: {size(self.bytes)} of cuda:{self.device}"


@dataclasses.dataclass(frozen=True, repr=False)
class DeviceOutside(Answer):
    """The memory that nvidia-smi would show for a device beside the peak reserved, an estimate: bytes by holder, and sentences about memory that was
    not recorded."""

    device: int
    parts: dict[str, int]
    unknown: list[str]

    @classmethod
    def of(cls, raw: Any) -> "DeviceOutside":
        return cls(raw, raw["device"], {row["what"]: row["bytes"] for row in raw["parts"]}, raw["unknown"])

    def __str__(self) -> str:
        return f"cuda:{self.device}: {size(sum(self.parts.values()))} beside PyTorch's memory"


@dataclasses.dataclass(frozen=True, repr=False)
class DryRun(Answer):
    """The memory of a program. The attributes are the fields of `blockyard dry-run --json`, in docs/dry-run-json.md."""

    name: str
    exact: bool
    status: int
    error: str | None
    error_at: Line | None
    is_cut: bool
    lines: list[PrintedLine]
    peaks: list[DevicePeak]
    outside: list[DeviceOutside]
    steps: list[StepPeak]
    steady: bool | None
    holders: list[PeakHolder]
    gpus: list[GpuFit]
    notes: list[DryRunNote]
    remarks: list[str]
    children: list[ChildPeak]
    addresses: ReplayedOrders | None
    address_orders: AddressOrders | None
    version: int
    content: bytes | None = dataclasses.field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Any, name: str, content: bytes | None) -> "DryRun":
        return cls(
            raw,
            name,
            raw["exact"],
            raw["status"],
            raw["error"],
            Line.of(raw["error_at"]),
            raw["is_cut"],
            [PrintedLine.of(row) for row in raw["lines"]],
            [DevicePeak.of(row) for row in raw["peaks"]],
            [DeviceOutside.of(row) for row in raw["outside"]],
            [StepPeak.of(row) for row in raw["steps"]],
            raw["steady"],
            [PeakHolder.of(row) for row in raw["holders"]],
            [GpuFit.of(row) for row in raw["gpus"]],
            [DryRunNote.of(row) for row in raw["notes"]],
            raw["remarks"],
            [ChildPeak.of(row) for row in raw["children"]],
            ReplayedOrders.of(raw["addresses"]),
            AddressOrders.of(raw["address_orders"]),
            raw["version"],
            content,
        )

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
