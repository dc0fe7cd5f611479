"""What questions are answered with: dataclasses that read as sentences.

Sizes are bytes, requests and steps are counted from 1. `to_dict()` is the answer as the command prints it with `--json`.

`cargo xtask update answers` writes this file from the types of crates/base/answers; sentences are in `_sentences`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from blockyard import _sentences
from blockyard._sentences import Answer as Answer
from blockyard._sentences import size as size

T = TypeVar("T")


def _unless_none(of: Callable[[Any], T], raw: Any) -> T | None:
    return None if raw is None else of(raw)


def _by_holder(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["what"]: row["bytes"] for row in rows}


@dataclasses.dataclass(frozen=True, repr=False)
class Limit(_sentences.LimitSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Limit":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("low"),
            read.get("high"),
            read.get("source"),
            read.get("by"),
            read.get("others"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FirstOom(_sentences.FirstOomSentence):
    """A request that found no memory."""

    request: int
    """The request, counted from 1."""
    allocations_before: int
    """How many allocations came before the request."""
    size: int
    """The bytes that the request asked for."""
    message: str
    """PyTorch's text with the numbers of the replay, or a sentence where the file does not say how much memory the device has."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FirstOom":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("request"),
            read.get("allocations_before"),
            read.get("size"),
            read.get("message"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome(_sentences.OutcomeSentence):
    """A run under settings, and where it first differs from the run under its own settings. `fits` says whether the whole run fits, whatever the limit is; `depends_on_limit` whether the run goes out of memory at one bound of the limit only."""

    conf: str
    """The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them."""
    release: str
    """The release of PyTorch whose rules hold; empty in a document that was written before rows had a release."""
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
    """Parts of the run, each as `[requests so far, most allocated, most reserved]`; absent unless asked for."""
    warnings: list[str]
    """What PyTorch warns about these settings; absent where PyTorch does not warn."""
    error: str | None
    """What is wrong, in a sentence."""
    first_difference: dict[str, Any] | None
    """The first request that leads to other events than under the run's own settings; null where every event is the same."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Outcome":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("conf"),
            read.get("release"),
            read.get("capacity"),
            read.get("limit"),
            read.get("peak_allocated"),
            read.get("peak_reserved"),
            read.get("device_allocs"),
            read.get("device_frees"),
            read.get("alloc_retries"),
            read.get("ooms"),
            read.get("ooms_at_high"),
            read.get("peak_reserved_at_high"),
            _unless_none(FirstOom.of, read.get("first_oom")),
            read.get("timeline") or [],
            read.get("warnings") or [],
            read.get("error"),
            read.get("first_difference"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class WhatIf(_sentences.WhatIfSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "WhatIf":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("requests"),
            _unless_none(Limit.of, read.get("limit")),
            Outcome.of(read["baseline"]),
            [Outcome.of(row) for row in read.get("settings") or []],
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Search(_sentences.SearchSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Search":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("requests"),
            _unless_none(Limit.of, read.get("limit")),
            Outcome.of(read["baseline"]),
            [Outcome.of(row) for row in read.get("settings") or []],
            [Outcome.of(read["settings"][index]) for index in read["front"]],
            read.get("best"),
            read.get("line"),
            read.get("sentence"),
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Change(_sentences.ChangeSentence):
    """A change that was replayed."""

    kind: str
    """What the change is about."""
    value: Any
    """What is set or freed: a text for `setting`, bytes for `limit`, requests and their bytes for `free_tensors`, else null."""
    proved: bool
    """Whether the request passes at both bounds of the limit."""
    depends_on_limit: bool
    """Whether the request passes at one bound of the limit and not at the other."""
    sentence: str
    """The change and its result, in a sentence."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Change":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("kind"),
            read.get("value"),
            read.get("proved"),
            read.get("depends_on_limit"),
            read.get("sentence"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Autopsy(_sentences.AutopsySentence):
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
    memory: dict[str, Any] | None
    """What the memory was used for then."""
    pinned_by: list[dict[str, Any]]
    """The segments whose free bytes could not serve the request, with the blocks that keep them."""
    changes: list[Change]
    """What lets the request pass, each proved by a replay; of every kind the smallest first."""
    in_vain: list[Change]
    """What was replayed too and does not help at every bound of the limit."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Autopsy":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("conf"),
            read.get("cause"),
            _unless_none(Limit.of, read.get("limit")),
            read.get("notes") or [],
            read.get("sentence"),
            read.get("request"),
            read.get("memory"),
            read.get("pinned_by") or [],
            [Change.of(row) for row in read.get("changes") or []],
            [Change.of(row) for row in read.get("in_vain") or []],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Finding(_sentences.FindingSentence):
    """A sentence of a verdict."""

    about: str
    """What the sentence is about."""
    text: str
    """The sentence."""
    request: int | None
    """The request that the sentence is about, counted from 1, or null."""
    moments: list[dict[str, Any]]
    """The moments that the sentence is about, in their order."""
    settings: list[str]
    """The settings that the sentence is about; each is a row of `what-if`."""
    release: str | None
    """The release of PyTorch that the sentence is about, as `--release` names it, or null."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Finding":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("about"),
            read.get("text"),
            read.get("request"),
            read.get("moments") or [],
            read.get("settings") or [],
            read.get("release"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class HoldingLine(_sentences.HoldingLineSentence):
    """The live bytes of one line of the program."""

    line: str
    """The line, with its function and its file."""
    bytes: int
    """The bytes of the line's live blocks."""
    blocks: int
    """How many live blocks the line has."""
    last_request: int
    """The last request of the line that is live then, counted from 1."""
    moments: list[dict[str, Any]]
    """The first and the last block of the line."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "HoldingLine":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("line"),
            read.get("bytes"),
            read.get("blocks"),
            read.get("last_request"),
            read.get("moments") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(_sentences.VerdictSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Verdict":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("conf"),
            read.get("kind"),
            read.get("headline"),
            read.get("cause"),
            [Finding.of(row) for row in read.get("findings") or []],
            [HoldingLine.of(row) for row in read.get("held") or []],
            read.get("moment"),
            read.get("setting"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Bound(_sentences.BoundSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Bound":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("requests"),
            _unless_none(Limit.of, read.get("limit")),
            read.get("lower_bound"),
            read.get("request"),
            read.get("layout_peak"),
            read.get("peak_reserved"),
            read.get("ooms"),
            read.get("ooms_at_high"),
            read.get("notes") or [],
            read.get("layout") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Growth(_sentences.GrowthSentence):
    """A call site whose live bytes never fall from one iteration to the next, and grow in more than half of them."""

    site: list[str]
    """The call site, innermost frame first."""
    live: list[int]
    """The live bytes of the site at each boundary."""
    growth: int
    """More bytes at the last boundary than after the first iteration."""
    first_request: int
    """The first request of the site after the second boundary whose bytes are live at the end, counted from 1; 0 where no request is known."""
    last_request: int
    """The last request of the site whose bytes are live at the end, counted from 1."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Growth":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("site") or [],
            read.get("live") or [],
            read.get("growth"),
            read.get("first_request"),
            read.get("last_request"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Leaks(_sentences.LeaksSentence):
    """What grows from iteration to iteration. True where anything grows."""

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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Leaks":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("steps"),
            read.get("boundaries") or [],
            read.get("live") or [],
            [Growth.of(row) for row in read.get("growing") or []],
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class AllocatorOutcome(_sentences.AllocatorOutcomeSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "AllocatorOutcome":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("name"),
            read.get("peak_reserved"),
            read.get("external_fragmentation"),
            read.get("internal_fragmentation"),
            read.get("device_calls"),
            read.get("failed"),
            read.get("failed_at_high"),
            read.get("nanos_per_request"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class ComparedAllocators(_sentences.ComparedAllocatorsSentence):
    """The same requests through other allocators."""

    requests: int
    """How many requests the run has."""
    limit: Limit | None
    """The limit of the answer; null where nothing but the run's own device limits the run."""
    allocators: list[AllocatorOutcome]
    """The allocators, PyTorch's first."""
    notes: list[str]
    """What is not known, in sentences."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "ComparedAllocators":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("requests"),
            _unless_none(Limit.of, read.get("limit")),
            [AllocatorOutcome.of(row) for row in read.get("allocators") or []],
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class DiffTerm(_sentences.DiffTermSentence):
    """A part of the change of a peak."""

    site: list[str]
    """The call site, innermost frame first; or `cached` or `pending`, for bytes in nobody's hands."""
    change: int
    """More bytes (or less) at the peak of the second run."""
    count_before: int
    """How many allocations of the site are live at the peak of the first run."""
    count_after: int
    """How many allocations of the site are live at the peak of the second run."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "DiffTerm":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("site") or [],
            read.get("change"),
            read.get("count_before"),
            read.get("count_after"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class PeakDiff(_sentences.PeakDiffSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "PeakDiff":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("before"),
            read.get("after"),
            read.get("change"),
            read.get("request_before"),
            read.get("request_after"),
            [DiffTerm.of(row) for row in read.get("terms") or []],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Diff(_sentences.DiffSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Diff":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("before"),
            _unless_none(Limit.of, read.get("limit")),
            _unless_none(Limit.of, read.get("limit_before")),
            read.get("alignment"),
            PeakDiff.of(read["allocated"]),
            PeakDiff.of(read["reserved"]),
            read.get("notes") or [],
            read.get("steps") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate(_sentences.CertificateSentence):
    """What our allocator decides about each placement of a snapshot's trace, beside what PyTorch did. True where every placement, and everything else, is identical."""

    sentence: str
    """The certificate in a sentence. Documents written before this field was added lack it."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Certificate":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("sentence"),
            read.get("release"),
            read.get("placements"),
            read.get("identical"),
            read.get("is_complete"),
            read.get("first_difference"),
            read.get("reasons") or [],
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Holder(_sentences.HolderSentence):
    """The live bytes of one stack. `stack` is the stack as a text, a line a frame."""

    bytes: int
    """The live bytes of the stack."""
    blocks: int
    """How many blocks have these bytes."""
    names: list[str]
    """The first texts that the program gave to its tensors with `torch.cuda.memory._annotate_tensor`."""
    frames: list[dict[str, Any]]
    """The stack, innermost frame first."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Holder":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("bytes"),
            read.get("blocks"),
            read.get("names") or [],
            read.get("frames") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Moment(_sentences.MomentSentence):
    """The memory of a device after some events of its trace, in bytes. `allocated` is `requested` and `rounding`; `reserved` is `allocated`, `pending` and `cached`."""

    name: str
    """The moment in words."""
    event: int
    """After this many events of the trace."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Moment":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("name"),
            read.get("event"),
            read.get("allocated"),
            read.get("reserved"),
            read.get("requested"),
            read.get("rounding"),
            read.get("pending"),
            read.get("cached"),
            [Holder.of(row) for row in read.get("top") or []],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Summary(_sentences.SummarySentence):
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
    peak_reserved: int
    """The most bytes reserved at a time."""
    peak_reserved_event: int
    """After how many events most bytes were reserved for the first time."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Summary":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("index"),
            read.get("events"),
            read.get("allocations"),
            read.get("streams"),
            read.get("elapsed_us"),
            read.get("peak_allocated"),
            read.get("peak_allocated_event"),
            read.get("peak_reserved"),
            read.get("peak_reserved_event"),
            read.get("peaks_are_exact"),
            read.get("segments"),
            read.get("reserved"),
            read.get("allocated"),
            read.get("ooms"),
            read.get("oom_events") or [],
            read.get("open_sizes"),
            read.get("notes") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitHolder(_sentences.FitHolderSentence):
    """Bytes of one holder."""

    what: str
    """The name of the holder."""
    bytes: int
    """The bytes of the holder."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitHolder":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("what"),
            read.get("bytes"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitFailedRequest(_sentences.FitFailedRequestSentence):
    """A request that ran out of memory."""

    is_below: bool
    """Whether the request came from a thread without a line of the program, so that `at` is the line that waited for the thread."""
    bytes: int
    """The bytes that the allocator wanted for the request."""
    at: str | None
    """The line of the program, as `train.py:26`, or null."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitFailedRequest":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("is_below"),
            read.get("bytes"),
            read.get("at"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitContradiction(_sentences.FitContradictionSentence):
    """Two neighbors among the probes that contradict that memory grows with the value."""

    kind: str
    """Which number contradicts."""
    value: int
    """The smaller value."""
    larger: int
    """The larger value."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitContradiction":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("kind"),
            read.get("value"),
            read.get("larger"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitGrowth(_sentences.FitGrowthSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitGrowth":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("kind"),
            read.get("base"),
            read.get("slope"),
            read.get("square"),
            read.get("values") or [],
            read.get("residual"),
            read.get("exact"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitRun(_sentences.FitRunSentence):
    """A run of the program with one value. Where the program does not fit, the peaks are those until it ran out. `outside` has the bytes that nvidia-smi would show beside the peak reserved, by holder."""

    outside: dict[str, int]
    """The non-PyTorch memory of the device with the largest peak reserved, by holder: an estimate that is in no other number."""
    outside_unknown: list[str]
    """Sentences about non-PyTorch memory that was not recorded, or not on this GPU."""
    value: int
    """The value of the option."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitRun":
        read = cls.newest(raw)
        return cls(
            raw,
            _by_holder(read["outside"]),
            read.get("outside_unknown") or [],
            read.get("value"),
            read.get("fits"),
            read.get("peak_allocated"),
            read.get("peak_reserved"),
            read.get("exact"),
            _unless_none(FitFailedRequest.of, read.get("failed")),
            read.get("steps"),
            read.get("steady"),
            [FitHolder.of(row) for row in read.get("sites") or []],
            read.get("notes") or [],
            read.get("remarks") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitRank(_sentences.FitRankSentence):
    """The run of a rank. `outside` has the bytes by holder."""

    outside: dict[str, int]
    """The non-PyTorch memory of the device with the largest peak reserved, by holder: an estimate that is in no other number."""
    outside_unknown: list[str]
    """Sentences about non-PyTorch memory that was not recorded, or not on this GPU."""
    rank: int
    """The number of the rank."""
    holders: list[FitHolder]
    """Who holds the peak of the last step."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitRank":
        read = cls.newest(raw)
        return cls(
            raw,
            _by_holder(read["outside"]),
            read.get("outside_unknown") or [],
            read.get("rank"),
            [FitHolder.of(row) for row in read.get("holders") or []],
            read.get("fits"),
            read.get("peak_allocated"),
            read.get("peak_reserved"),
            read.get("exact"),
            _unless_none(FitFailedRequest.of, read.get("failed")),
            read.get("steps"),
            read.get("steady"),
            [FitHolder.of(row) for row in read.get("sites") or []],
            read.get("notes") or [],
            read.get("remarks") or [],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitSite(_sentences.FitSiteSentence):
    """A line of the program. `growth` is the rule in a word: "constant", "linear" or "quadratic"."""

    what: str
    """The line of the program."""
    bytes: int
    """The bytes that the line holds at the peak allocated of the largest value."""
    growth: str | None
    """How the bytes grow with the value; null where no rule was found."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitSite":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("what"),
            read.get("bytes"),
            read["growth"] and read["growth"]["kind"],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitTriedSetting(_sentences.FitTriedSettingSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitTriedSetting":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("variable"),
            read.get("conf"),
            read.get("value"),
            read.get("fits"),
            read.get("largest"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitOnGpu(_sentences.FitOnGpuSentence):
    """The largest value of an option that fits a GPU. `gpu` is the GPU's short name."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
    largest: int | None
    """The largest value that fits and whose next one does not; null where no value fits, or the search ended before."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitOnGpu":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("largest"),
            _unless_none(FitRun.of, read.get("next")),
            read.get("exact"),
            _unless_none(FitRun.of, read.get("needs")),
            [FitRun.of(row) for row in read.get("probes") or []],
            [FitContradiction.of(row) for row in read.get("contradictions") or []],
            _unless_none(FitGrowth.of, read.get("growth")),
            [FitSite.of(row) for row in read.get("sites") or []],
            [FitHolder.of(row) for row in read.get("holders") or []],
            [FitHolder.of(row) for row in read.get("advice") or []],
            [FitTriedSetting.of(row) for row in read.get("settings") or []],
            read.get("failed_at"),
            read.get("error"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(_sentences.FitSentence):
    """The largest value of an option that fits. The answer is about the first GPU, whose short name is `gpu`."""

    vary: dict[str, Any]
    """The option or variable whose values are searched."""
    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
    largest: int | None
    """The largest value that fits and whose next one does not; null where no value fits, or the search ended before."""
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
    others: list[FitOnGpu]
    """The answers about further GPUs."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "Fit":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("vary"),
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("largest"),
            _unless_none(FitRun.of, read.get("next")),
            read.get("exact"),
            _unless_none(FitRun.of, read.get("needs")),
            [FitRun.of(row) for row in read.get("probes") or []],
            [FitContradiction.of(row) for row in read.get("contradictions") or []],
            _unless_none(FitGrowth.of, read.get("growth")),
            [FitSite.of(row) for row in read.get("sites") or []],
            [FitHolder.of(row) for row in read.get("holders") or []],
            [FitHolder.of(row) for row in read.get("advice") or []],
            [FitTriedSetting.of(row) for row in read.get("settings") or []],
            read.get("failed_at"),
            read.get("error"),
            [FitOnGpu.of(row) for row in read.get("others") or []],
            read.get("version"),
            read.get("program"),
            read.get("arguments") or [],
            read.get("steps"),
            read.get("torch"),
            read.get("kept"),
            read.get("runs"),
            read.get("known"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitRow(_sentences.FitRowSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitRow":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("value"),
            read.get("conf"),
            read.get("layout"),
            read.get("largest"),
            _unless_none(FitRun.of, read.get("next")),
            read.get("exact"),
            [FitRun.of(row) for row in read.get("probes") or []],
            [FitContradiction.of(row) for row in read.get("contradictions") or []],
            read.get("failed_at"),
            read.get("error"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitMapOnGpu(_sentences.FitMapOnGpuSentence):
    """The rows of a map on a GPU. `gpu` is the GPU's short name."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
    rows: list[FitRow]
    """The rows of the map."""

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitMapOnGpu":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            [FitRow.of(row) for row in read.get("rows") or []],
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitMap(_sentences.FitMapSentence):
    """The largest value of an option, by another option, by settings or by layouts. The rows are those of the first GPU, whose short name is `gpu`."""

    vary: dict[str, Any]
    """The option or variable whose largest value is searched."""
    by: Any
    """What the rows differ in. `kind` is `option` or `variable`, with the fields of `vary`, or `settings` with a `list` of texts, or `layouts` with a `list` of layouts and the number of `ranks`."""
    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
    rows: list[FitRow]
    """The rows of the map."""
    others: list[FitMapOnGpu]
    """The answers about further GPUs."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitMap":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("vary"),
            read.get("by"),
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            [FitRow.of(row) for row in read.get("rows") or []],
            [FitMapOnGpu.of(row) for row in read.get("others") or []],
            read.get("version"),
            read.get("program"),
            read.get("arguments") or [],
            read.get("steps"),
            read.get("torch"),
            read.get("kept"),
            read.get("runs"),
            read.get("known"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitSetting(_sentences.FitSettingSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitSetting":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("conf"),
            read.get("fits"),
            read.get("peak_allocated"),
            read.get("peak_reserved"),
            read.get("first_oom"),
            read.get("warnings") or [],
            read.get("error"),
            _unless_none(FitRun.of, read.get("run")),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitSettingsOnGpu(_sentences.FitSettingsOnGpuSentence):
    """Which settings of the allocator a program fits a GPU under: replays of the requests of one run. `gpu` is the GPU's short name."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitSettingsOnGpu":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("requests"),
            read.get("best"),
            [FitSetting.of(row) for row in read.get("settings") or []],
            read.get("notes") or [],
            read.get("error"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitSettings(_sentences.FitSettingsSentence):
    """Which settings of the allocator a program fits under. The answer is about the first GPU, whose short name is `gpu`."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
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
    others: list[FitSettingsOnGpu]
    """The answers about further GPUs."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitSettings":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("requests"),
            read.get("best"),
            [FitSetting.of(row) for row in read.get("settings") or []],
            read.get("notes") or [],
            read.get("error"),
            [FitSettingsOnGpu.of(row) for row in read.get("others") or []],
            read.get("version"),
            read.get("program"),
            read.get("arguments") or [],
            read.get("steps"),
            read.get("torch"),
            read.get("kept"),
            read.get("runs"),
            read.get("known"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayout(_sentences.FitLayoutSentence):
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitLayout":
        read = cls.newest(raw)
        return cls(
            raw,
            read.get("layout"),
            read.get("fits"),
            read.get("peak_allocated"),
            read.get("peak_reserved"),
            read.get("exact"),
            [FitRank.of(row) for row in read.get("ranks") or []],
            [FitRank.of(row) for row in read.get("under_limit") or []],
            read.get("error"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayoutsOnGpu(_sentences.FitLayoutsOnGpuSentence):
    """Which layouts of ranks fit a kind of GPU. `gpu` is the GPU's short name."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitLayoutsOnGpu":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("ranks"),
            read.get("mesh") or [],
            read.get("best"),
            [FitLayout.of(row) for row in read.get("layouts") or []],
            read.get("error"),
        )


@dataclasses.dataclass(frozen=True, repr=False)
class FitLayouts(_sentences.FitLayoutsSentence):
    """Which layouts of ranks fit. The answer is about the first GPU, whose short name is `gpu`."""

    gpu: str
    """The GPU on which the program has to fit."""
    limit: int
    """The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside` is taken off."""
    fraction: float | None
    """The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without `--limit`."""
    conf: str | None
    """`PYTORCH_CUDA_ALLOC_CONF`; null for the environment's."""
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
    others: list[FitLayoutsOnGpu]
    """The answers about further GPUs."""
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

    @classmethod
    def of(cls, raw: dict[str, Any]) -> "FitLayouts":
        read = cls.newest(raw)
        return cls(
            raw,
            read["gpu"]["id"],
            read.get("limit"),
            read.get("fraction"),
            read.get("conf"),
            read.get("ranks"),
            read.get("mesh") or [],
            read.get("best"),
            [FitLayout.of(row) for row in read.get("layouts") or []],
            read.get("error"),
            [FitLayoutsOnGpu.of(row) for row in read.get("others") or []],
            read.get("version"),
            read.get("program"),
            read.get("arguments") or [],
            read.get("steps"),
            read.get("torch"),
            read.get("kept"),
            read.get("runs"),
            read.get("known"),
        )
