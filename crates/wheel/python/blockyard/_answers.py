"""What questions are answered with: dataclasses that read as sentences.

Sizes are bytes, requests are counted from 0. `to_dict()` is the answer as the command prints it with `--json`.
"""

import dataclasses
from typing import Any


def size(count: int | None) -> str:
    """A size for people, rounded to two digits but never up to a whole number, as the command writes it.

    >>> size(2545942528)
    '2.37 GiB'
    >>> size(512)
    '512 B'
    """
    if count is None:
        return "an unknown size"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            cut, nearest = (count * 100) >> shift, (count * 100 + (1 << shift >> 1)) >> shift
            hundredths = nearest if nearest % 100 else cut
            text = f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
            return f"{text} {unit}"
    return f"{count} B"


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """What all answers have in common."""

    raw: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The answer as the command prints it with `--json`."""
        return self.raw

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


@dataclasses.dataclass(frozen=True, repr=False)
class Limit(Answer):
    """The limit that an answer is for, in bytes: given with the question (`source` is "given"), or implied by a file whose run went out
    of memory ("inferred"). Where the file implies only bounds, `low` and `high` differ, and the run is replayed at both."""

    low: int
    high: int
    source: str

    @classmethod
    def of(cls, raw: Any) -> "Limit | None":
        if raw is None:
            return None
        # Version 1 of the JSON had other names.
        low, high = raw.get("low", raw.get("lowest")), raw.get("high", raw.get("highest"))
        source = {"fraction": "inferred", "device": "inferred"}.get(raw["source"], raw["source"])
        return cls(raw, low, high, source)

    def __str__(self) -> str:
        if self.low == self.high:
            return size(self.low)
        # The highest is a byte less than what was refused, and the text has what was refused.
        high = self.high + 1 if (self.high + 1) % 512 == 0 else self.high
        return f"between {size(self.low)} and {size(high)}"


@dataclasses.dataclass(frozen=True, repr=False)
class FirstOom(Answer):
    """The first request that found no memory."""

    request: int
    allocations_before: int
    size: int
    message: str

    @classmethod
    def of(cls, raw: Any) -> "FirstOom | None":
        return None if raw is None else cls(raw, *(raw[name] for name in ("request", "allocations_before", "size", "message")))

    def __str__(self) -> str:
        return f"request {self.request}, {size(self.size)}, finds no memory"


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome(Answer):
    """What a run comes to under settings, a capacity and a limit.

    Where only bounds of the limit are known, `limit`, `ooms` and the peaks are those at the lower bound, and `ooms_at_high` and
    `peak_reserved_at_high` those at the upper one. `depends_on_limit` says whether the run goes out of memory at one of them only.
    """

    conf: str
    capacity: int
    limit: int | None
    peak_allocated: int | None
    peak_reserved: int | None
    device_allocs: int | None
    device_frees: int | None
    alloc_retries: int | None
    ooms: int | None
    first_oom: FirstOom | None
    error: str | None
    ooms_at_high: int | None = None
    peak_reserved_at_high: int | None = None

    @classmethod
    def of(cls, raw: Any) -> "Outcome":
        names = [field.name for field in dataclasses.fields(cls)][1:]
        values = {name: raw.get(name) for name in names}
        values["first_oom"] = FirstOom.of(raw.get("first_oom"))
        # Version 1 of the JSON knew no bounds.
        values["ooms_at_high"] = raw.get("ooms_at_high", raw.get("ooms"))
        values["peak_reserved_at_high"] = raw.get("peak_reserved_at_high", raw.get("peak_reserved"))
        return cls(raw, **values)

    @property
    def fits(self) -> bool:
        """Whether the whole run fits, whatever the limit is."""
        return self.error is None and self.ooms == 0 and self.ooms_at_high == 0

    @property
    def depends_on_limit(self) -> bool:
        """Whether the run goes out of memory at one bound of the limit and not at the other."""
        return bool(self.ooms) != bool(self.ooms_at_high)

    def __str__(self) -> str:
        conf = self.conf or "default settings"
        if self.error is not None:
            return f"{conf}: {self.error}"
        text = f"{conf}: peak reserved {size(self.peak_reserved)}, peak allocated {size(self.peak_allocated)}"
        if self.depends_on_limit:
            return f"{text}; whether it finds memory depends on the limit"
        return text if self.first_oom is None else f"{text}; {self.first_oom}"


@dataclasses.dataclass(frozen=True, repr=False)
class WhatIf(Answer):
    """A run under other settings, beside the same run under its own."""

    baseline: Outcome
    settings: list[Outcome]
    notes: list[str]
    limit: Limit | None = None

    @classmethod
    def of(cls, raw: Any) -> "WhatIf":
        settings = [Outcome.of(row) for row in raw["settings"]]
        return cls(raw, Outcome.of(raw["baseline"]), settings, raw["notes"], Limit.of(raw.get("limit")))

    def __str__(self) -> str:
        return "\n".join([*_under(self.limit), "own settings: " + str(self.baseline), *map(str, self.settings)])


@dataclasses.dataclass(frozen=True, repr=False)
class Search(Answer):
    """All sensible settings and pairs of them. `front` has those that fit, whatever the limit is, and that no other beats in both peak
    reserved and device calls."""

    baseline: Outcome
    settings: list[Outcome]
    front: list[Outcome]
    best: str | None
    line: str | None
    sentence: str
    notes: list[str]
    limit: Limit | None = None

    @classmethod
    def of(cls, raw: Any) -> "Search":
        settings = [Outcome.of(row) for row in raw["settings"]]
        front = [settings[index] for index in raw["front"]]
        names = ("best", "line", "sentence", "notes")
        values = {name: raw[name] for name in names} | {"limit": Limit.of(raw.get("limit"))}
        return cls(raw, Outcome.of(raw["baseline"]), settings, front, **values)

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"{self.sentence}\n{self.line}"


@dataclasses.dataclass(frozen=True, repr=False)
class Change(Answer):
    """A change that lets the request pass, proved by a replay, or that was tried in vain. It `depends_on_limit` where the request passes
    at one bound of the limit and not at the other."""

    kind: str
    value: object
    proved: bool
    sentence: str
    depends_on_limit: bool = False

    @classmethod
    def of(cls, raw: Any) -> "Change":
        names = ("kind", "value", "proved", "sentence")
        values = {name: raw[name] for name in names} | {"depends_on_limit": raw.get("depends_on_limit", False)}
        return cls(raw, **values)

    def __str__(self) -> str:
        return self.sentence


@dataclasses.dataclass(frozen=True, repr=False)
class Autopsy(Answer):
    """Why a run went out of memory; `cause` is None where the run does not."""

    cause: str | None
    sentence: str
    request: dict[str, Any] | None
    pinned_by: list[Any]
    changes: list[Change]
    in_vain: list[Change]
    notes: list[str]
    limit: Limit | None = None

    @classmethod
    def of(cls, raw: Any) -> "Autopsy":
        return cls(
            raw,
            raw["cause"],
            raw.get("sentence", "the run does not go out of memory"),
            raw.get("request"),
            raw.get("pinned_by", []),
            [Change.of(change) for change in raw.get("changes", [])],
            [Change.of(change) for change in raw.get("in_vain", [])],
            raw.get("notes", []),
            Limit.of(raw.get("limit")),
        )

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"helps: {change}" for change in self.changes)])


@dataclasses.dataclass(frozen=True, repr=False)
class Finding(Answer):
    """A sentence of a verdict: `about` is "happened", "grows", "sure", "passes", "fails" or "less"; `request` is the one that it is about,
    counted from 1, or None."""

    about: str
    text: str
    request: int | None

    @classmethod
    def of(cls, raw: Any) -> "Finding":
        return cls(raw, raw["about"], raw["text"], raw["request"])

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, repr=False)
class HoldingLine(Answer):
    """The live bytes of one line of the program, and how many blocks they are in."""

    line: str
    bytes: int
    blocks: int
    last_request: int

    @classmethod
    def of(cls, raw: Any) -> "HoldingLine":
        return cls(raw, raw["line"], raw["bytes"], raw["blocks"], raw["last_request"])

    def __str__(self) -> str:
        return f"{self.line}: {self.bytes} bytes in {self.blocks} blocks"


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(Answer):
    """What a run came to: `kind` is "fits", "leak" or "out_of_memory", `headline` says it in a sentence, `findings` say the rest in the
    order in which a reader asks. `held` are the lines that held the memory at the failure or at the peak, behind `moment` requests;
    `setting` is one that helps, or None."""

    kind: str
    headline: str
    cause: str | None
    findings: list[Finding]
    held: list[HoldingLine]
    moment: int
    setting: str | None

    @classmethod
    def of(cls, raw: Any) -> "Verdict":
        return cls(
            raw,
            raw["kind"],
            raw["headline"],
            raw["cause"],
            [Finding.of(finding) for finding in raw["findings"]],
            [HoldingLine.of(line) for line in raw["held"]],
            raw["moment"],
            raw["setting"],
        )

    def __str__(self) -> str:
        return "\n".join([self.headline, *(str(finding) for finding in self.findings)])


@dataclasses.dataclass(frozen=True, repr=False)
class Bound(Answer):
    """How good any allocator could be. `lower_bound` is the most that is ever live, `layout_peak` what a layout needs that knows all
    lifetimes, `peak_reserved` what the run's own settings take, up to the request that finds no memory where they do not fit."""

    requests: int
    lower_bound: int
    request: int
    layout_peak: int
    peak_reserved: int | None
    notes: list[str]

    @classmethod
    def of(cls, raw: Any) -> "Bound":
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __str__(self) -> str:
        text = (
            f"no allocator needs less than {size(self.lower_bound)}, live at request {self.request}; a planned layout needs "
            f"{size(self.layout_peak)}"
        )
        return text if self.peak_reserved is None else f"{text}; the run's own settings take {size(self.peak_reserved)}"


@dataclasses.dataclass(frozen=True, repr=False)
class Growth(Answer):
    """A call site whose live bytes grow from step to step: `live` has them at each boundary, `growth` is the last over the first."""

    site: list[str]
    live: list[int]
    growth: int
    last_request: int

    @classmethod
    def of(cls, raw: Any) -> "Growth":
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __str__(self) -> str:
        return f"{size(self.growth)} more at {' < '.join(self.site) or 'no stack'}"


@dataclasses.dataclass(frozen=True, repr=False)
class Leaks(Answer):
    """What grows from step to step. `steps` says how the steps were found, `boundaries` are requests, `live` the live bytes at each."""

    steps: str
    boundaries: list[int]
    live: list[int]
    growing: list[Growth]
    notes: list[str]

    @classmethod
    def of(cls, raw: Any) -> "Leaks":
        growing = [Growth.of(growth) for growth in raw["growing"]]
        return cls(raw, raw["steps"], raw["boundaries"], raw["live"], growing, raw["notes"])

    def __bool__(self) -> bool:
        """Whether anything grows."""
        return bool(self.growing)

    def __str__(self) -> str:
        head = f"{len(self.boundaries)} steps: " + (
            f"{len(self.growing)} call sites grow" if self.growing else "nothing grows"
        )
        return "\n  ".join([head, *map(str, self.growing)])


@dataclasses.dataclass(frozen=True, repr=False)
class AllocatorOutcome(Answer):
    """What one allocator comes to: fragmentation is in bytes at the peak, `failed` is the request that found no memory, counted from 1
    (None where all did). Where only bounds of the limit are known, the numbers are those at the lower one, and `failed_at_high` is
    the request that found none at the upper one."""

    name: str
    peak_reserved: int
    external_fragmentation: int
    internal_fragmentation: int
    device_calls: int | None
    failed: int | None
    nanos_per_request: float | None
    failed_at_high: int | None = None

    @classmethod
    def of(cls, raw: Any) -> "AllocatorOutcome":
        names = [field.name for field in dataclasses.fields(cls)][1:-1]
        values = {name: raw[name] for name in names} | {"failed_at_high": raw.get("failed_at_high", raw["failed"])}
        return cls(raw, **values)

    def __str__(self) -> str:
        text = f"{self.name}: peak reserved {size(self.peak_reserved)}, {self.device_calls} device calls"
        if (self.failed is None) != (self.failed_at_high is None):
            return f"{text}, whether it finds memory depends on the limit"
        return text if self.failed is None else f"{text}, request {self.failed} finds no memory"


@dataclasses.dataclass(frozen=True, repr=False)
class ComparedAllocators(Answer):
    """The same requests through other allocators, PyTorch's own first."""

    requests: int
    allocators: list[AllocatorOutcome]
    notes: list[str]
    limit: Limit | None = None

    @classmethod
    def of(cls, raw: Any) -> "ComparedAllocators":
        rows = [AllocatorOutcome.of(row) for row in raw["allocators"]]
        return cls(raw, raw["requests"], rows, raw["notes"], Limit.of(raw.get("limit")))

    def __str__(self) -> str:
        return "\n".join(map(str, self.allocators))


@dataclasses.dataclass(frozen=True, repr=False)
class DiffTerm(Answer):
    """What one call site adds to the change of a peak, in bytes, and how many of its allocations are live there before and after."""

    site: list[str]
    change: int
    count_before: int
    count_after: int

    @classmethod
    def of(cls, raw: Any) -> "DiffTerm":
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __str__(self) -> str:
        return f"{_change(self.change)}: {' < '.join(self.site) or 'no stack'}"


@dataclasses.dataclass(frozen=True, repr=False)
class PeakDiff(Answer):
    """How a peak changed. The terms add up to `change`."""

    before: int
    after: int
    change: int
    terms: list[DiffTerm]

    @classmethod
    def of(cls, raw: Any) -> "PeakDiff":
        return cls(raw, raw["before"], raw["after"], raw["change"], [DiffTerm.of(term) for term in raw["terms"]])

    def __str__(self) -> str:
        if self.change == 0:
            return f"the same as before, {size(self.after)}"
        return f"{_change(self.change)} than before, {size(self.after)} instead of {size(self.before)}"


@dataclasses.dataclass(frozen=True, repr=False)
class Diff(Answer):
    """What changed from one run to another; true where a peak did."""

    allocated: PeakDiff
    reserved: PeakDiff
    alignment: dict[str, Any]
    notes: list[str]
    limit: Limit | None = None

    @classmethod
    def of(cls, raw: Any) -> "Diff":
        peaks = PeakDiff.of(raw["allocated"]), PeakDiff.of(raw["reserved"])
        return cls(raw, *peaks, raw["alignment"], raw["notes"], Limit.of(raw.get("limit")))

    def __bool__(self) -> bool:
        """Whether a peak is another one."""
        return bool(self.allocated.change or self.reserved.change)

    def __str__(self) -> str:
        return f"peak allocated {self.allocated}; peak reserved {self.reserved}"


def _under(limit: Limit | None) -> list[str]:
    return [f"under the limit that the file implies: {limit}"] if limit is not None and limit.source == "inferred" else []


def _change(change: int) -> str:
    return f"{size(abs(change))} {'more' if change >= 0 else 'less'}"


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate(Answer):
    """What Blockyard's allocator decides about each placement of a snapshot's trace, beside what PyTorch did."""

    sentence: str
    placements: int
    identical: int
    is_complete: bool
    first_difference: dict[str, Any] | None
    reasons: list[str]
    notes: list[str]

    @classmethod
    def of(cls, raw: Any) -> "Certificate":
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __bool__(self) -> bool:
        """Whether every placement, and everything else, is identical."""
        return self.is_complete

    def __str__(self) -> str:
        return "; ".join([self.sentence, *self.reasons])


@dataclasses.dataclass(frozen=True, repr=False)
class Holder(Answer):
    """The live bytes of one call site."""

    bytes: int
    blocks: int
    frames: list[dict[str, Any]]
    names: list[str]
    """The first texts that the program gave to its tensors with `torch.cuda.memory._annotate_tensor`."""

    @classmethod
    def of(cls, raw: Any) -> "Holder":
        return cls(raw, raw["bytes"], raw["blocks"], raw["frames"], raw["names"])

    @property
    def stack(self) -> str:
        """The stack as a text, a line a frame, innermost first."""
        return "\n".join(f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in self.frames)

    def __str__(self) -> str:
        where = self.stack.splitlines()[0] if self.frames else "no stack"
        return f"{size(self.bytes)} in {self.blocks} blocks: {where}"


@dataclasses.dataclass(frozen=True, repr=False)
class Moment(Answer):
    """The memory of a device after `event` events of its trace, in bytes.

    allocated is requested and rounding; reserved is allocated, pending and cached.
    """

    name: str
    event: int
    allocated: int
    reserved: int
    requested: int
    rounding: int
    pending: int
    cached: int
    top: list[Holder]

    @classmethod
    def of(cls, raw: Any) -> "Moment":
        names = [field.name for field in dataclasses.fields(cls)][1:-1]
        return cls(raw, **{name: raw[name] for name in names}, top=[Holder.of(holder) for holder in raw["top"]])

    def __str__(self) -> str:
        lines = [f"{self.name}: {size(self.allocated)} allocated of {size(self.reserved)} reserved", *map(str, self.top)]
        return "\n  ".join(lines)


@dataclasses.dataclass(frozen=True, repr=False)
class Summary(Answer):
    """What the trace and the segments of a device come to."""

    index: int
    events: int
    allocations: int
    peak_allocated: int
    peak_allocated_event: int
    peak_reserved: int
    peak_reserved_event: int
    segments: int
    reserved: int
    allocated: int
    ooms: int
    notes: list[str]

    @classmethod
    def of(cls, raw: Any) -> "Summary":
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __str__(self) -> str:
        return (
            f"device {self.index}: {self.events} events, peak allocated {size(self.peak_allocated)}, peak reserved "
            f"{size(self.peak_reserved)}, {self.ooms} out of memory"
        )
