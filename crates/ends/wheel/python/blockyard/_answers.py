"""What questions are answered with: dataclasses that read as sentences.

Sizes are bytes, requests and steps are counted from 1. `to_dict()` is the answer as the command prints it with `--json`.

`cargo xtask update answers` writes this file from the types of crates/base/answers.
`_answer` says how JSON is read, and `_sentences` how answers read.
"""

import dataclasses
from typing import Any

from blockyard import _answer

__all__ = [
    "AddressOrders",
    "AddressRange",
    "AllocatorOutcome",
    "Autopsy",
    "Bound",
    "Certificate",
    "Change",
    "ChildPeak",
    "CodeFix",
    "ComparedAllocators",
    "DeviceOutside",
    "DevicePeak",
    "Diff",
    "DiffTerm",
    "DryRunNote",
    "Finding",
    "FirstOom",
    "Fit",
    "FitContradiction",
    "FitFailedRequest",
    "FitGrowth",
    "FitHolder",
    "FitLayout",
    "FitLayouts",
    "FitLayoutsOnGpu",
    "FitMap",
    "FitMapOnGpu",
    "FitOnGpu",
    "FitRank",
    "FitRow",
    "FitRun",
    "FitSetting",
    "FitSettings",
    "FitSettingsOnGpu",
    "FitSite",
    "FitTriedSetting",
    "Gap",
    "GapAtMoment",
    "GapOutcome",
    "GapParts",
    "GapRemedy",
    "GpuFit",
    "Growth",
    "GuardRow",
    "Holder",
    "HoldingLine",
    "Leaks",
    "Limit",
    "Line",
    "Moment",
    "Outcome",
    "PeakDiff",
    "PeakHolder",
    "PrintedLine",
    "ReplayedOrders",
    "Search",
    "StepPeak",
    "Summary",
    "Verdict",
    "WhatIf",
]


@dataclasses.dataclass(frozen=True, repr=False)
class Limit(_answer.Answer):
    """The limit that an answer is for: the most that may be reserved. Where a file implies only bounds of the limit, `low` and `high` differ, and the run is replayed at both."""

    low: int
    """The limit is at least this many bytes."""
    high: int
    """The limit is at most this many bytes."""
    source: str
    """How the limit is known."""
    by: str
    """What sets the limit."""
    others: int
    """The bytes of the device that others hold: other processes, and what is not PyTorch's in this one."""


@dataclasses.dataclass(frozen=True, repr=False)
class FirstOom(_answer.Answer):
    """A request that found no memory."""

    request: int
    """The request, counted from 1."""
    allocations_before: int
    """How many allocations came before the request."""
    size: int
    """The bytes that the request asked for."""
    message: str
    """PyTorch's text with the numbers of the replay, or a sentence where the file does not say how much memory the device has."""


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome(_answer.OutcomeBase):
    """A run under settings, and where it first differs from the run under its own settings. `fits` says whether the whole run fits, whatever the limit is; `depends_on_limit` whether the run goes out of memory at one bound of the limit only."""

    conf: str
    """The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them."""
    release: str
    """The release of PyTorch whose rules hold."""
    capacity: int
    """The bytes of the device."""
    limit: int | None
    """The most bytes that may be reserved, the lower bound where only bounds are known; null where only the device limits the run."""
    peak_allocated: int | None
    """The most bytes allocated at a time."""
    peak_reserved: int | None
    """The most bytes reserved at a time."""
    device_allocs: int | None
    """How many segments the device gave."""
    device_frees: int | None
    """How many segments went back to the device."""
    alloc_retries: int | None
    """How many requests found memory only after the cache was released."""
    ooms: int | None
    """How many requests failed."""
    ooms_at_high: int | None
    """How many requests failed at the upper bound of the limit."""
    peak_reserved_at_high: int | None
    """The most bytes reserved at a time at the upper bound of the limit."""
    first_oom: FirstOom | None
    """The first request that failed, or null."""
    timeline: list[list[int]]
    """Parts of the run, each as `[requests so far, most allocated, most reserved]`, of the memory after each request; absent unless asked for."""
    warnings: list[str]
    """What PyTorch warns about these settings; absent where PyTorch does not warn."""
    error: str | None
    """What is wrong, in a sentence."""
    first_difference: dict[str, Any] | None
    """The first request that leads to other events than under the run's own settings; null where every event is the same."""


@dataclasses.dataclass(frozen=True, repr=False)
class WhatIf(_answer.Answer):
    """A run under other settings, beside the same run under its own settings."""

    requests: int
    """How many requests the run has."""
    limit: Limit | None
    """The limit of `settings`; null where nothing but the run's own device limits the run."""
    baseline: Outcome
    """The run under its own settings and its own limit."""
    settings: list[Outcome]
    """The run under each of the settings, in the order of the question."""
    notes: list[str]
    """What is not known, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class Search(_answer.SearchBase):
    """A run under all sensible settings and pairs of them. `front` has the outcomes themselves."""

    requests: int
    """How many requests the run has."""
    limit: Limit | None
    """The limit of the answer; null where nothing but the run's own device limits the run."""
    baseline: Outcome
    """The run under its own settings."""
    settings: list[Outcome]
    """Every setting that was tried."""
    front: list[Outcome]
    """Indices in `settings`: those that fit at both bounds of the limit, and that no other setting beats in both peak reserved and device calls, by ascending peak reserved."""
    best: str | None
    """The setting to take, as the verdict says: of single ones the first with which a run that goes out of memory fits, or the one that reserves least; where none of them helps, the setting of the front that reserves least; null where no setting is better than the run's own."""
    line: str | None
    """The line to copy for `best`, or null."""
    sentence: str
    """What `best` gains and costs."""
    notes: list[str]
    """What is not known, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class GapOutcome(_answer.Answer):
    """What a replay reserves and costs."""

    peak_reserved: int
    """The most bytes reserved at a time."""
    device_calls: int
    """How many segments the device gave and got back."""
    alloc_retries: int
    """How many requests found memory only after the cache was released."""


@dataclasses.dataclass(frozen=True, repr=False)
class Change(_answer.ChangeBase):
    """A change that was replayed. `value` has what is set or freed."""

    kind: str = dataclasses.field(metadata=_answer.WORD)
    """What the change is: `default_pool`, `one_stream`, `synchronize`, or an object with one field: `setting` with its text, `limit` with its bytes, `free_tensors` with `requests` and `bytes`."""
    proved: bool
    """Whether the request passes at both bounds of the limit."""
    depends_on_limit: bool
    """Whether the request passes at one bound of the limit and not at the other."""
    passes_at_lower_bound: bool
    """Whether the request passes at the lower bound of the limit."""
    sentence: str
    """The change and its result, in a sentence."""
    outcome: GapOutcome | None
    """The most bytes reserved up to the request, and the calls of the device up to it; null for other changes than settings, and where the request fails."""
    forecast: Any
    """What becomes of the run with the change if its iterations go on; null where the iterations before the failure do not explain it, and for changes of the requests."""
    rest: dict[str, Any] | None
    """What becomes of the iteration that failed with the change; null where there is a forecast, and where nothing shows what comes after the failure."""


@dataclasses.dataclass(frozen=True, repr=False)
class Autopsy(_answer.AutopsyBase):
    """Why a run went out of memory, and which changes let the request pass."""

    conf: str
    """The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them."""
    cause: str | None
    """Why the request failed; null where the run does not go out of memory."""
    limit: Limit | None
    """The limit of the answer; null where nothing but the run's own device limits a run that fits."""
    notes: list[str]
    """What is not known, in sentences."""
    sentence: str
    """The cause in a sentence."""
    request: dict[str, Any] | None
    """The request that failed."""
    outcome: GapOutcome | None
    """The most bytes reserved up to the request, and the calls of the device up to it."""
    memory: dict[str, Any] | None
    """What the memory was used for then."""
    cached_by: Any
    """The other stream or memory pool that keeps the most cached bytes, where that is the cause; null for other causes."""
    pinned_by: list[dict[str, Any]]
    """The segments whose free bytes could not serve the request, with the blocks that keep them."""
    changes: list[Change]
    """What lets the request pass, each proved by a replay; of every kind the smallest first."""
    in_vain: list[Change]
    """What was replayed too and does not help at every bound of the limit."""


@dataclasses.dataclass(frozen=True, repr=False)
class Finding(_answer.Answer):
    """A sentence of a verdict."""

    about: str
    """What the sentence is about."""
    text: str
    """The sentence."""
    request: int | None
    """The request that the sentence is about, counted from 1, or null."""
    line: str | None
    """The line of the program that the sentence is about, as in `held`; null in sentences that are not about growth."""
    moments: list[dict[str, Any]]
    """The moments that the sentence is about, in their order."""
    settings: list[str]
    """The settings that the sentence is about; each is a row of `what-if`."""
    release: str | None
    """The release of PyTorch that the sentence is about, as `--release` names it, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class HoldingLine(_answer.Answer):
    """The live bytes of one line of the program."""

    line: str
    """The line, with its function and its file; where no stack was recorded, the name of the tensor or the size of the block."""
    callers: list[str]
    """The lines that called this line, those first that hold most: a line of a helper function says little without them."""
    bytes: int
    """The bytes of the line's live blocks."""
    blocks: int
    """How many live blocks the line has."""
    first_request: int
    """The first request of the line that is live then, counted from 1; 0 where all blocks are from before the recording."""
    last_request: int
    """The last request of the line that is live then, counted from 1."""
    moments: list[dict[str, Any]]
    """The first and the last block of the line."""


@dataclasses.dataclass(frozen=True, repr=False)
class GapParts(_answer.Answer):
    """The bytes between requested and reserved. Each byte is in the first part whose words hold for it."""

    rounding: int
    """Bytes of live blocks that nobody asked for: rounding makes a block larger than its request."""
    pending: int
    """Bytes of blocks that were freed and that another stream still uses."""
    other_pools: int
    """Free bytes of other memory pools: those of programs and of CUDA graphs or, for a request in one of these, the default pool."""
    other_streams: int
    """Free bytes of other streams."""
    free_pieces: int
    """Free bytes in segments that have live or pending blocks too. In expandable segments, free bytes outside of whole free pages."""
    free_segments: int
    """Bytes of segments that are free as a whole, and of free whole pages in expandable segments."""


@dataclasses.dataclass(frozen=True, repr=False)
class GapAtMoment(_answer.Answer):
    """The gap at one moment: `requested` and all `parts` add up to `reserved`, to the byte."""

    request: int
    """The request, counted from 1; 0 for a snapshot without requests."""
    requested: int
    """The bytes that live tensors asked for."""
    reserved: int
    """The bytes of all segments."""
    parts: GapParts
    """The names of the bytes between the two."""
    stream: int
    """The stream whose own bytes are `free_pieces` and `free_segments`: that of the request, or the stream that reserves most where the request asks for no memory."""
    pool_id: list[int]
    """The memory pool whose own bytes are `free_pieces` and `free_segments`, found as `stream` is; `[0, 0]` is the default pool."""


@dataclasses.dataclass(frozen=True, repr=False)
class GapRemedy(_answer.Answer):
    """A change that lowers the peak of reserved bytes."""

    kind: str
    """What the change is."""
    conf: str | None
    """For a setting: `PYTORCH_CUDA_ALLOC_CONF`; otherwise null."""
    size: int | None
    """For a preallocation: the bytes to ask for; otherwise null."""
    request: int | None
    """For a call of `empty_cache`: the request before which the call is made, counted from 1; otherwise null."""
    line: str | None
    """The line of the program that makes `request`, or null."""
    caller: str | None
    """The line that called the function of `line`, or null."""
    occurrence: int | None
    """How often this line, called there, has asked for memory after another line did, `request` included; null where no stacks were recorded."""
    outcome: GapOutcome
    """The numbers of the replay."""
    parts: GapParts
    """The parts of the gap at the peak of the replay: what is left of each."""
    sentence: str
    """The change and its result, in a sentence."""


@dataclasses.dataclass(frozen=True, repr=False)
class Gap(_answer.Answer):
    """The bytes that are reserved and that no live tensor asked for, and what takes them away."""

    at_peak: GapAtMoment
    """The gap after the request at which most bytes are reserved; of several, the one at which most bytes are allocated. For a snapshot without requests, the gap in the snapshot."""
    at_failure: GapAtMoment | None
    """The gap after the request that failed, where the allocator has given back what it could; null where no request failed."""
    own: GapOutcome | None
    """The numbers of the run itself, beside which those of `remedies` stand; null for a snapshot without requests. The peak of a run that failed includes the segment that was refused."""
    remedies: list[GapRemedy]
    """The changes that lower the peak of reserved bytes, each proved by a replay. They are looked for where the gap is at least 5 % of the reserved bytes."""


@dataclasses.dataclass(frozen=True, repr=False)
class CodeFix(_answer.Answer):
    """A change of the program's code that lowers the peak of allocated bytes. All numbers are estimates: the recorded requests, with other sizes and lifetimes, go through the allocator. `blockyard dry-run` of the changed program is the proof."""

    kind: str
    """What the change is."""
    sentence: str
    """The change and what it takes, in a sentence without a full stop."""
    lines: list[str]
    """The lines of the program that the change is about; empty where it is about the whole program."""
    bytes: int
    """The bytes that the change takes from the peak of allocated bytes."""
    peak_allocated: int
    """The peak of allocated bytes with the change. In a run that failed, the peak up to the request that failed, with that request, or up to the last request of `rest`."""
    peak_reserved: int
    """The peak of reserved bytes with the change, as `peak_allocated`."""
    passes: bool | None
    """Whether a replay with the change serves the request that failed; null where no request failed."""
    rest: dict[str, Any] | None
    """What becomes of the iteration that failed with the change; null where the request fails all the same, and where nothing shows what comes after it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(_answer.Answer):
    """The verdict about a run, in the order in which a reader asks."""

    conf: str
    """The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them."""
    kind: str
    """The verdict in a word."""
    headline: str
    """The verdict in a sentence."""
    cause: str | None
    """The cause of the autopsy; null where the run fits."""
    findings: list[Finding]
    """The sentences, in the order in which a reader asks."""
    held: list[HoldingLine]
    """The lines of the program that held live blocks at the failure, or at the peak of a run that fits, those first that held most."""
    moment: int
    """The request at the moment of `held`, counted from 1: the request that failed, or the one that reaches the peak; 0 where the run has no such request."""
    setting: str | None
    """Settings that help, or null."""
    forecast: Any
    """What becomes of a run that grows and has not failed, if its iterations go on: `finishes`, or an object with the field `fails` or `passes`; null for other runs, and where the last whole iterations are not equal."""
    gap: Gap | None
    """The bytes that are reserved and that no live tensor asked for; null where no request is replayed and no memory is known."""
    fixes: list[str]
    """At most three changes of a run that failed: of a setting, of the code and of the memory. First those after which no later iteration is known to fail, of these the one that costs least; a tensor to free is last. Empty where no request failed."""
    code_fixes: list[CodeFix]
    """The changes of the program's code that lower the peak of allocated bytes, at most one of each kind, the one that takes most first. All are estimates. Empty where no stacks of a training were recorded."""
    devices: list[dict[str, Any]]
    """The devices of the file, in its order; empty where it has one."""


@dataclasses.dataclass(frozen=True, repr=False)
class Bound(_answer.Answer):
    """How good any allocator could be."""

    requests: int
    """How many requests the run has."""
    limit: Limit | None
    """The limit of the run; null where nothing but the run's own device limits the run."""
    lower_bound: int
    """The most bytes that are ever live, each request rounded up to 512."""
    request: int
    """The request at which the bytes of `lower_bound` are live, counted from 1."""
    layout_peak: int
    """The bytes of a layout that knows all lifetimes beforehand."""
    peak_reserved: int | None
    """The most bytes that the run's own settings reserve, up to the request that finds no memory; null where they are wrong."""
    ooms: int | None
    """How many requests fail under the run's own settings; null where they are wrong."""
    ooms_at_high: int | None
    """How many requests fail at the upper bound of the limit; null where the settings are wrong."""
    notes: list[str]
    """What is to be known about the answer, in sentences."""
    layout: list[list[int]]
    """Each allocation of the layout as `[request, until, offset, size]`; absent unless asked for."""


@dataclasses.dataclass(frozen=True, repr=False)
class Growth(_answer.Answer):
    """A call site whose live bytes never fall from one iteration to the next, and grow in more than half of them."""

    site: list[str]
    """The call site, innermost frame first."""
    live: list[int]
    """The live bytes of the site at each boundary."""
    growth: int
    """More bytes at the last boundary than at the second."""
    first_request: int
    """The first request of the site after the second boundary whose bytes are live at the end, counted from 1; 0 where no request is known."""
    last_request: int
    """The last request of the site whose bytes are live at the end, counted from 1."""


@dataclasses.dataclass(frozen=True, repr=False)
class Leaks(_answer.LeaksBase):
    """What grows from iteration to iteration. True where anything grows."""

    sentence: str
    """How many iterations there are, how they were found, and how many call sites grow, in a sentence."""
    steps: str
    """How the iterations were found."""
    boundaries: list[int]
    """The requests after which iterations end, counted from 1."""
    live: list[int]
    """The live bytes at each boundary."""
    growing: list[Growth]
    """The call sites that grow."""
    notes: list[str]
    """What is not known, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class AllocatorOutcome(_answer.Answer):
    """The requests of a run through one allocator, up to the one that found no memory. Where only bounds of the limit are known, the numbers are those at the lower bound."""

    name: str
    """The name of the allocator."""
    peak_reserved: int
    """The most bytes reserved at a time."""
    external_fragmentation: int
    """The reserved bytes that serve no request, at the moment when most bytes are reserved."""
    internal_fragmentation: int
    """The bytes that requests got and did not ask for, at the moment when most bytes are reserved."""
    device_calls: int | None
    """Calls of the device; null where the model does not count them."""
    failed: int | None
    """The request that found no memory, counted from 1; null where every request found memory."""
    failed_at_high: int | None
    """The request that found no memory at the upper bound of the limit, counted from 1, or null."""
    nanos_per_request: float | None
    """Host time of a request in nanoseconds, of one run; null where no time was asked for, or where the run is too short for a clock."""


@dataclasses.dataclass(frozen=True, repr=False)
class ComparedAllocators(_answer.Answer):
    """The same requests through other allocators."""

    requests: int
    """How many requests the run has."""
    limit: Limit | None
    """The limit of the answer; null where nothing but the run's own device limits the run."""
    allocators: list[AllocatorOutcome]
    """The allocators, PyTorch's first."""
    notes: list[str]
    """What is not known, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class DiffTerm(_answer.Answer):
    """A part of the change of a peak."""

    site: list[str]
    """The call site, innermost frame first; or `cached` or `pending`, for bytes in nobody's hands."""
    change: int
    """More bytes (or less) at the peak of the second run."""
    count_before: int
    """How many allocations of the site are live at the peak of the first run."""
    count_after: int
    """How many allocations of the site are live at the peak of the second run."""


@dataclasses.dataclass(frozen=True, repr=False)
class PeakDiff(_answer.Answer):
    """The change of a peak as a sum."""

    before: int
    """The peak of the first run, in bytes."""
    after: int
    """The peak of the second run, in bytes."""
    change: int
    """`after` minus `before`."""
    request_before: int
    """The request at which the first run has its peak, counted from 1."""
    request_after: int
    """The request at which the second run has its peak, counted from 1."""
    terms: list[DiffTerm]
    """What the change consists of, the largest first; the terms add up to `change`."""


@dataclasses.dataclass(frozen=True, repr=False)
class Diff(_answer.DiffBase):
    """What changed from one run to another, or from one step of a run to another. True where a peak changed."""

    before: str
    """The name of the first run."""
    limit: Limit | None
    """The limit of the second run, or null."""
    limit_before: Limit | None
    """The limit of the first run, or null."""
    alignment: dict[str, Any]
    """The allocations of both, in order, by size, call site and whether they are on the default stream."""
    allocated: PeakDiff
    """The change of the most bytes allocated."""
    reserved: PeakDiff
    """The change of the most bytes reserved."""
    notes: list[str]
    """What is not known, in sentences."""
    steps: list[int]
    """The two steps, counted from 1; absent where two runs are compared."""


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate(_answer.CertificateBase):
    """What our allocator decides about each placement of a snapshot's trace, beside what PyTorch did. True where every placement, and everything else, is identical."""

    sentence: str
    """The certificate in a sentence."""
    release: str
    """The release of PyTorch whose rules the allocator followed."""
    placements: int
    """The allocations of the trace."""
    identical: int
    """How many of these allocations our allocator puts at the same address."""
    is_complete: bool
    """Whether frees, segments and the final blocks are the same too."""
    first_difference: dict[str, Any] | None
    """The first difference, or null."""
    reasons: list[str]
    """Why the replay may differ, or why nothing was compared."""
    notes: list[str]
    """What was inferred, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class Holder(_answer.HolderBase):
    """The live bytes of one stack. `stack` is the stack as a text, a line a frame."""

    bytes: int
    """The live bytes of the stack."""
    blocks: int
    """How many blocks have these bytes."""
    names: list[str]
    """The first texts that the program gave to its tensors with `torch.cuda.memory._annotate_tensor`."""
    frames: list[dict[str, Any]]
    """The stack, innermost frame first."""


@dataclasses.dataclass(frozen=True, repr=False)
class Moment(_answer.Answer):
    """The memory of a device after some events of its trace, in bytes. `allocated` is `requested` and `rounding`; `reserved` is `allocated`, `pending` and `cached`."""

    name: str
    """The moment in words."""
    event: int
    """After this many events of the trace."""
    request: int
    """After this request, counted from 1 as in the other answers; 0 before the first one."""
    allocated: int
    """Bytes of allocated blocks."""
    reserved: int
    """Bytes of all segments."""
    requested: int
    """Bytes that callers asked for."""
    rounding: int
    """Allocated minus requested bytes."""
    pending: int
    """Bytes that were freed while another stream used them."""
    cached: int
    """Bytes that are cached."""
    top: list[Holder]
    """The stacks that hold most bytes, most first."""


@dataclasses.dataclass(frozen=True, repr=False)
class Summary(_answer.Answer):
    """One device of a snapshot, or host memory."""

    index: int
    """The index of the device; 0 for host memory."""
    events: int
    """The entries of the trace."""
    allocations: int
    """The entries that hand out memory."""
    streams: int
    """Different streams in the trace."""
    elapsed_us: int
    """Microseconds from the first entry to the last."""
    peak_allocated: int
    """The most bytes allocated at a time."""
    peak_allocated_event: int
    """After how many events most bytes were allocated for the first time."""
    peak_allocated_request: int
    """The request after which these bytes were allocated, counted from 1; 0 before the first one."""
    peak_reserved: int
    """The most bytes reserved at a time."""
    peak_reserved_event: int
    """After how many events most bytes were reserved for the first time."""
    peak_reserved_request: int
    """The request after which these bytes were reserved, counted from 1; 0 before the first one."""
    peaks_are_exact: bool
    """Whether the sizes of all blocks are certain; if not, `peak_allocated` is the least that it can have been."""
    segments: int
    """Segments when the snapshot was taken."""
    reserved: int
    """Bytes reserved when the snapshot was taken."""
    allocated: int
    """Bytes allocated when the snapshot was taken."""
    ooms: int
    """Requests that ran out of memory."""
    oom_events: list[dict[str, Any]]
    """Each request that ran out of memory; null where the device's trace cannot be read."""
    open_sizes: int
    """How many blocks have a size that the snapshot does not imply."""
    notes: list[str]
    """What is open and what did not fit, in sentences."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitCall(_answer.Answer):
    """The call of `blockyard fit`, and the runs that the call took."""

    version: int
    """1; the version grows when a field changes its meaning or goes."""
    program: str
    """The program, as the command line names it."""
    arguments: list[str]
    """The program's arguments, as the command line has them."""
    steps: int
    """After how many steps of its first optimizer each run ends."""
    torch: str
    """PyTorch's version."""
    kept: str
    """The file of kept runs."""
    runs: int
    """How many runs were made."""
    known: int
    """How many runs were known from earlier calls."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitConditions(_answer.Answer):
    """A GPU, and how much of the GPU a program may reserve. `gpu` is the GPU's short name."""

    gpu: str = dataclasses.field(metadata=_answer.ID)
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitHolder(_answer.Answer):
    """Bytes of one holder."""

    what: str
    """The name of the holder."""
    bytes: int
    """The bytes of the holder."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitFailedRequest(_answer.Answer):
    """A request that ran out of memory."""

    bytes: int
    """The bytes that the allocator wanted for the request."""
    at: str | None
    """The line of the program, as `train.py:26`, or null."""
    is_of_other_thread: bool
    """Whether the request came from a thread without a line of the program, so that `at` is the line that waited for the thread."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitContradiction(_answer.Answer):
    """Two neighbors among the probes that contradict that memory grows with the value."""

    kind: str
    """Which number contradicts."""
    value: int
    """The smaller value."""
    larger: int
    """The larger value."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitGrowth(_answer.Answer):
    """A rule by which bytes grow: they are `base + slope * value + square * value * value`."""

    kind: str
    """The form of the rule."""
    base: float
    """The bytes of the value 0."""
    slope: float
    """The bytes for each unit of the value."""
    square: float
    """The bytes for each unit of the value's square."""
    values: list[int]
    """The values that follow the rule."""
    residual: int
    """By how many bytes the rule is off at most, at these values."""
    exact: bool
    """Whether the rule is met to the byte."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitPeaks(_answer.Answer):
    """A run of the program. The peaks of a run that ran out of memory are those until then. `outside` has the bytes by holder."""

    outside: dict[str, int] = dataclasses.field(metadata=_answer.BY_HOLDER)
    """The non-PyTorch memory of the device with the largest peak reserved, by holder: an estimate that is in no other number."""
    outside_unknown: list[str]
    """Sentences about non-PyTorch memory that was not recorded, or not on this GPU."""
    fits: bool
    """Whether no request ran out of memory."""
    peak_allocated: int
    """The most bytes allocated at a time."""
    peak_reserved: int
    """The most bytes reserved at a time."""
    exact: bool
    """Whether nothing was assumed in the run."""
    failed: FitFailedRequest | None
    """The request that ran out of memory, or null."""
    steps: int
    """How many steps of its first optimizer the run made."""
    steady: bool | None
    """Whether the last two steps were equal; null for fewer than two steps."""
    sites: list[FitHolder]
    """The lines of the program that hold the peak allocated, those first that hold most; empty where the run does not fit."""
    notes: list[str]
    """The assumptions, in sentences."""
    remarks: list[str]
    """Sentences that a person should read and that make no number an estimate."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitRun(FitPeaks):
    """A run of the program with one value. Where the program does not fit, the peaks are those until it ran out. `outside` has the bytes that nvidia-smi would show beside the peak reserved, by holder."""

    value: int
    """The value of the option."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitRank(FitPeaks):
    """The run of a rank. `outside` has the bytes by holder."""

    rank: int
    """The number of the rank."""
    holders: list[FitHolder]
    """Who holds the peak of the last step."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitSite(_answer.Answer):
    """A line of the program. `growth` is the rule in a word: "constant", "linear" or "quadratic"."""

    what: str
    """The line of the program."""
    bytes: int
    """The bytes that the line holds at the peak allocated of the largest value."""
    growth: str | None = dataclasses.field(metadata=_answer.KIND)
    """How the bytes grow with the value; null where no rule was found."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitTriedSetting(_answer.Answer):
    """Settings that were tried with a value that does not fit without them."""

    variable: str
    """The variable of the environment."""
    conf: str
    """The text of the variable."""
    value: int
    """The value that was tried."""
    fits: bool
    """Whether the value fits with the setting."""
    largest: int | None
    """The largest value that fits; null where no search was made."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitOnGpu(FitConditions):
    """The largest value of an option that fits a GPU."""

    largest: int | None
    """The largest value that fits and whose next one does not; null where no value fits, or the search ended before."""
    safe: int | None
    """A value whose run leaves `reserve` bytes of `limit` free, nearly the largest such value; null where no run did."""
    reserve: int | None
    """The bytes that a safe value leaves free: 5 % of `limit`."""
    next: FitRun | None
    """The run of the next value, which runs out of memory; of the lowest value where none fits; null where the highest fits."""
    exact: bool
    """Whether nothing was assumed in the runs of `largest` and `next`."""
    needs: FitRun | None
    """The run of the next value on a GPU without an end, or null."""
    probes: list[FitRun]
    """The runs under the limit, by value."""
    contradictions: list[FitContradiction]
    """Neighbors among the probes that contradict that memory grows with the value."""
    growth: FitGrowth | None
    """How the peak allocated grows with the value; null where no rule was found."""
    sites: list[FitSite]
    """The lines that hold most at the largest value, up to 12."""
    holders: list[FitHolder]
    """Who holds the peak of the last step of the largest value; null where no value fits."""
    advice: list[FitHolder]
    """The bytes at the largest value that changes of the program are about; null where no value fits."""
    settings: list[FitTriedSetting]
    """Settings that were tried with the next value."""
    failed_at: int | None
    """The value whose run ended the search, or null."""
    error: str | None
    """Why the run ended the search, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(FitOnGpu, FitCall):
    """The largest value of an option that fits. The answer is about the first GPU, whose short name is `gpu`."""

    vary: dict[str, Any]
    """The option or variable whose values are searched."""
    others: list[FitOnGpu]
    """The answers about further GPUs."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitRow(_answer.Answer):
    """The largest value for one value of another option, under one setting or for one layout: a row has `value`, `conf` or `layout`."""

    value: int | None
    """The value of the other option. Absent in rows of settings and layouts."""
    conf: str | None
    """The settings. Absent in other rows."""
    layout: dict[str, int] | None
    """The layout: how many ranks each dimension has, by name. Absent in other rows."""
    largest: int | None
    """The largest value that fits and whose next one does not; null where no value fits, or the search ended before."""
    next: FitRun | None
    """The run of the next value, which runs out of memory; of the lowest value where none fits; null where the highest fits."""
    exact: bool
    """Whether nothing was assumed in the runs of `largest` and `next`."""
    probes: list[FitRun]
    """The runs under the limit, in the order in which they were made."""
    contradictions: list[FitContradiction]
    """Neighbors among the probes that contradict that memory grows with the value."""
    failed_at: int | None
    """The value whose run ended the search, or null."""
    error: str | None
    """Why the run ended the search, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitMapOnGpu(FitConditions):
    """The rows of a map on a GPU."""

    rows: list[FitRow]
    """The rows of the map."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitMap(FitMapOnGpu, FitCall):
    """The largest value of an option, by another option, by settings or by layouts. The answer is about the first GPU, whose short name is `gpu`."""

    vary: dict[str, Any]
    """The option or variable whose largest value is searched."""
    by: Any
    """What the rows differ in. `kind` is `option` or `variable`, with the fields of `vary`, or `settings` with a `list` of texts, or `layouts` with a `list` of layouts and the number of `ranks`."""
    others: list[FitMapOnGpu]
    """The answers about further GPUs."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitSetting(_answer.Answer):
    """Settings, and what their replay says. `fits` is None where `error` says why no replay was made."""

    conf: str
    """`PYTORCH_CUDA_ALLOC_CONF`."""
    fits: bool | None
    """Whether all requests find memory."""
    peak_allocated: int | None
    """The most bytes allocated at a time."""
    peak_reserved: int | None
    """The most bytes reserved at a time."""
    first_oom: dict[str, Any] | None
    """The first request that found no memory, or null."""
    warnings: list[str]
    """What PyTorch warns about these settings."""
    error: str | None
    """What is wrong, in a sentence; absent where the requests were replayed."""
    run: FitRun | None
    """A run of the program under these settings and the limit, whose `value` is 0; null where none was made."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitSettingsOnGpu(FitConditions):
    """Which settings of the allocator a program fits a GPU under: replays of the requests of one run."""

    requests: int
    """How many requests were replayed."""
    best: str | None
    """The settings that fit with the least peak reserved; null where none fit."""
    settings: list[FitSetting]
    """The settings, the program's own first."""
    notes: list[str]
    """What is not known, in sentences."""
    error: str | None
    """Why a run ended the question, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitSettings(FitSettingsOnGpu, FitCall):
    """Which settings of the allocator a program fits under. The answer is about the first GPU, whose short name is `gpu`."""

    others: list[FitSettingsOnGpu]
    """The answers about further GPUs."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayout(_answer.Answer):
    """A layout of ranks. The fields but `layout` are null where the program failed or was not run; where it was not run, `error` is null too."""

    layout: dict[str, int]
    """How many ranks each dimension has, by name."""
    fits: bool | None
    """Whether all ranks that ran fit."""
    peak_allocated: int | None
    """The most bytes allocated at a time in a rank, in the run that decides."""
    peak_reserved: int | None
    """The most bytes reserved at a time in a rank, in the run that decides."""
    exact: bool | None
    """Whether nothing was assumed in the run that decides."""
    ranks: list[FitRank]
    """The ranks that ran on a GPU without an end."""
    under_limit: list[FitRank]
    """The ranks of the run under the limit; null where there was no such run."""
    error: str | None
    """Why the program failed, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayoutsOnGpu(FitConditions):
    """Which layouts of ranks fit a kind of GPU."""

    ranks: int
    """How many ranks each layout has."""
    mesh: list[str]
    """The names of the dimensions."""
    best: dict[str, int] | None
    """The layout that fits with the least peak reserved, by dimension; null where none fits."""
    layouts: list[FitLayout]
    """The layouts of ranks."""
    error: str | None
    """Why the question ended before its end, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayouts(FitLayoutsOnGpu, FitCall):
    """Which layouts of ranks fit. The answer is about the first GPU, whose short name is `gpu`."""

    others: list[FitLayoutsOnGpu]
    """The answers about further GPUs."""


@dataclasses.dataclass(frozen=True, repr=False)
class Line(_answer.Answer):
    """A line of the program."""

    file: str
    """The file of the line."""
    line: int
    """The line, counted from 1."""


@dataclasses.dataclass(frozen=True, repr=False)
class PrintedLine(_answer.Answer):
    """A line that the program printed."""

    text: str
    """The text of the line, without its end."""
    exact: bool
    """Whether the line was printed before the first note, and before numbers depended on the driver's addresses."""
    why: str | None
    """The first note that was said before the line was printed, else which numbers depend on the driver's addresses, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class DevicePeak(_answer.Answer):
    """The peaks of a device."""

    device: int
    """The index of the device."""
    allocated: int
    """The most bytes allocated at a time."""
    reserved: int
    """The most bytes reserved at a time."""
    allocated_at_end: int
    """The bytes allocated at the end."""


@dataclasses.dataclass(frozen=True, repr=False)
class StepPeak(_answer.Answer):
    """A step of the program on a device."""

    number: int
    """The step, counted from 1."""
    device: int
    """The index of the device."""
    peak_allocated: int
    """The most bytes allocated at a time in the step."""
    peak_reserved: int
    """The most bytes reserved at a time in the step."""
    allocated: int
    """The bytes allocated at the step's end."""


@dataclasses.dataclass(frozen=True, repr=False)
class PeakHolder(_answer.Answer):
    """The bytes of one holder."""

    what: str
    """The name of the holder."""
    bytes: int
    """The bytes of the holder."""


@dataclasses.dataclass(frozen=True, repr=False)
class GpuFit(_answer.Answer):
    """Whether the program fits on a GPU."""

    name: str
    """The name of the GPU."""
    id: str
    """The short name of the GPU."""
    total: int
    """All bytes of the GPU."""
    fits: bool | None
    """Whether the program fits; null where the run ended too early to say."""
    at: Line | None
    """Where the program exceeds the GPU, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class AddressRange(_answer.Answer):
    """The peaks of a device over several runs. Each is the least and the most of all runs."""

    device: int
    """The index of the device."""
    allocated: tuple[int, int] = dataclasses.field(metadata=_answer.BOUNDS)
    """The most bytes allocated at a time."""
    reserved: tuple[int, int] = dataclasses.field(metadata=_answer.BOUNDS)
    """The most bytes reserved at a time."""
    allocated_at_end: tuple[int, int] = dataclasses.field(metadata=_answer.BOUNDS)
    """The bytes allocated at the end."""


@dataclasses.dataclass(frozen=True, repr=False)
class AddressOrders(_answer.Answer):
    """Runs under several orders of addresses."""

    orders: list[str]
    """The names of the orders."""
    equal: bool
    """Whether all numbers and lines are equal."""
    peaks: list[AddressRange]
    """The peaks of each device."""
    lines: list[int]
    """The lines whose text depends on the order, counted from 0 in `lines`."""
    ended_otherwise: list[str]
    """The orders under which the program ended otherwise."""


@dataclasses.dataclass(frozen=True, repr=False)
class ReplayedOrders(_answer.Answer):
    """What the requests of a run give under other orders of addresses, replayed by an allocator that follows PyTorch's."""

    orders: int
    """How many orders were tried beside that of the run; 0 where nothing was replayed."""
    equal: bool | None
    """Whether all numbers were equal at each moment; null where nothing was replayed."""
    peaks: list[AddressRange]
    """The peaks of each device."""
    why_not: str | None
    """Why nothing was replayed, or null."""


@dataclasses.dataclass(frozen=True, repr=False)
class DryRunNote(_answer.Answer):
    """An assumption."""

    kind: str
    """`read` for a value that a kernel would have computed, `function` for a function of which only the name is known, or `estimate`."""
    text: str
    """The assumption, in a sentence."""
    file: str
    """The file of the program; empty where it is not known."""
    line: int
    """The line, counted from 1; 0 where it is not known."""


@dataclasses.dataclass(frozen=True, repr=False)
class ChildPeak(_answer.Answer):
    """A process that the program started, on a device."""

    process: int
    """The number of the process."""
    device: int
    """The index of the device."""
    bytes: int
    """The most bytes that the process took."""
    peak_allocated: int | None
    """The most bytes allocated at a time; null where the process ended before it was counted."""
    peak_reserved: int | None
    """The most bytes reserved at a time; null where the process ended before it was counted."""


@dataclasses.dataclass(frozen=True, repr=False)
class DeviceOutside(_answer.Answer):
    """The memory of a device beside the segments. `parts` has the bytes by holder."""

    device: int
    """The index of the device."""
    parts: dict[str, int] = dataclasses.field(metadata=_answer.BY_HOLDER)
    """The holders with their bytes."""
    unknown: list[str]
    """Sentences about memory that is taken and was not recorded."""


@dataclasses.dataclass(frozen=True, repr=False)
class DryRunReport(_answer.Answer):
    """The report of `blockyard dry-run --json`."""

    outside: list[DeviceOutside]
    """The non-PyTorch memory of each device: an estimate that is in no other number."""
    version: int
    """1; the version grows when a field changes its meaning or goes."""
    exact: bool
    """Whether nothing was assumed, and no number depends on the addresses that a driver gives segments, as far as other orders were tried: see `addresses`."""
    status: int
    """The program's exit status."""
    error: str | None
    """The name of the exception or signal that ended the program, or null."""
    error_at: Line | None
    """The line that raised the exception, or null."""
    is_cut: bool
    """Whether the process ended before its memory was counted."""
    lines: list[PrintedLine]
    """What the program printed on standard output."""
    peaks: list[DevicePeak]
    """The peaks of each device."""
    steps: list[StepPeak]
    """By step and device; empty without `--steps`."""
    steady: bool | None
    """Whether the last two steps were equal; null for fewer than two steps."""
    holders: list[PeakHolder]
    """The holders of the peak of the last measured step, all devices together; empty without `--steps`."""
    keepers: list[dict[str, Any]]
    """The objects of the program that keep more tensors from iteration to iteration, by descending growth; empty where nothing grows, and with further GPUs or `--address-orders`."""
    gpus: list[GpuFit]
    """Whether the program fits on each GPU of `--gpu`, in the order of the option."""
    notes: list[DryRunNote]
    """The assumptions; empty where nothing was assumed."""
    remarks: list[str]
    """Sentences that a person should read and that make no number an estimate."""
    children: list[ChildPeak]
    """The processes that the program started, by device. Their bytes are in no other field, unless the program itself uses no GPU and each device has one such process."""
    addresses: ReplayedOrders | None
    """What the allocator's requests of this run give under other orders of addresses; null beside `address_orders`."""
    address_orders: AddressOrders | None
    """The runs under other orders of addresses; null without `--address-orders`."""


@dataclasses.dataclass(frozen=True, repr=False)
class GuardRow(_answer.Answer):
    """The change of one line."""

    at: str | None
    """The line; null for everything else, the last row."""
    function: str | None
    """The function; null for everything else."""
    code: str | None
    """The text of the line; null for everything else."""
    before: int | None
    """The baseline's bytes."""
    after: int | None
    """The run's bytes."""
    change: int | None
    """`after` minus `before`."""
    most_before: int | None
    """The most that the line held before, where the baseline does not list it; else null."""


@dataclasses.dataclass(frozen=True, repr=False)
class GuardReport(_answer.Answer):
    """A program, compared with its entry."""

    program: str
    """The program, from the folder of the file."""
    arguments: list[str]
    """The program's arguments."""
    gpu: str
    """The short name of the GPU."""
    steps: int | None
    """After how many steps of its first optimizer the run ends; null where it runs to its end."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
    budget: int | None
    """The most bytes that may be reserved; null without a budget."""
    tolerance: str
    """How much more than the baseline the peaks may be, as the file writes it."""
    passed: bool
    """Whether the program passes. With `--update` a growth passes."""
    failures: list[str] = dataclasses.field(metadata=_answer.KINDS)
    """Why the program fails, or would fail without `--update`."""
    text: str
    """The report for people."""
    estimate: bool
    """Whether something was assumed in the run or in the baseline's."""
    other_torch: bool
    """Whether the baseline was made with another version of PyTorch."""
    lower: bool
    """Whether a peak fell by more than the tolerance."""
    peak_allocated: int
    """The most bytes allocated at a time in the run."""
    peak_reserved: int
    """The most bytes reserved at a time in the run."""
    peak_by_step: list[int]
    """The peak allocated of each step of the run."""
    holders: list[dict[str, Any]]
    """All lines that hold something at the peak allocated, most first."""
    baseline: dict[str, Any] | None
    """The baseline; null where the file has none."""
    rows: list[GuardRow]
    """The change of the peak allocated as a sum: a row for each line that changed, and one for everything else. Empty without a baseline."""
    steps_changed: list[dict[str, Any]]
    """The steps whose peak changed."""


@dataclasses.dataclass(frozen=True, repr=False)
class ProgramReport(_answer.Answer):
    """The report of `blockyard python --json`. The document has no version: no field has changed its meaning."""

    stdout: str
    """What the program printed on standard output."""
    status: int
    """The exit status: 0, the argument of `sys.exit`, or 1 after an exception."""
    traceback: str | None
    """The traceback of an exception that the program did not catch, or null."""
    notes: list[dict[str, Any]]
    """Remarks about the program, in their order."""
    estimated: list[dict[str, Any]]
    """Operators whose allocations are unverified estimates."""
    keepers: list[dict[str, Any]]
    """The objects of the program that keep more tensors from iteration to iteration, by descending growth."""
    devices: list[dict[str, Any]]
    """The devices, by ascending index."""
