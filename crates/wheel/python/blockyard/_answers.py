"""What questions are answered with: dataclasses that read as sentences.

Sizes are bytes, requests are counted from 0. `to_dict()` is the answer as the command prints it with `--json`.
"""

import dataclasses


def size(count):
    """A size for people, cut off after two digits, as the command writes it.

    >>> size(2545942528)
    '2.37 GiB'
    >>> size(512)
    '512 B'
    """
    if count is None:
        return "an unknown size"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            hundredths = (count * 100) >> shift
            text = f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
            return f"{text} {unit}"
    return f"{count} B"


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """What all answers have in common."""

    raw: dict = dataclasses.field(repr=False, compare=False)

    def to_dict(self):
        """The answer as the command prints it with `--json`."""
        return self.raw

    def __repr__(self):
        return f"<{type(self).__name__}: {self}>"


@dataclasses.dataclass(frozen=True, repr=False)
class FirstOom(Answer):
    """The first request that found no memory."""

    request: int
    allocations_before: int
    size: int
    message: str

    @classmethod
    def of(cls, raw):
        return raw and cls(raw, raw["request"], raw["allocations_before"], raw["size"], raw["message"])

    def __str__(self):
        return f"request {self.request}, {size(self.size)}, finds no memory"


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome(Answer):
    """What a run comes to under settings, a capacity and a limit."""

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

    @classmethod
    def of(cls, raw):
        names = [field.name for field in dataclasses.fields(cls)][1:]
        values = {name: raw.get(name) for name in names}
        values["first_oom"] = FirstOom.of(raw.get("first_oom"))
        return cls(raw, **values)

    def __str__(self):
        conf = self.conf or "default settings"
        if self.error is not None:
            return f"{conf}: {self.error}"
        text = f"{conf}: peak reserved {size(self.peak_reserved)}, peak allocated {size(self.peak_allocated)}"
        return text if self.first_oom is None else f"{text}; {self.first_oom}"


@dataclasses.dataclass(frozen=True, repr=False)
class WhatIf(Answer):
    """A run under other settings, beside the same run under its own."""

    baseline: Outcome
    settings: list
    notes: list

    @classmethod
    def of(cls, raw):
        settings = [Outcome.of(row) for row in raw["settings"]]
        return cls(raw, Outcome.of(raw["baseline"]), settings, raw["notes"])

    def __str__(self):
        return "\n".join(["as recorded: " + str(self.baseline), *map(str, self.settings)])


@dataclasses.dataclass(frozen=True, repr=False)
class Search(Answer):
    """All sensible settings and pairs of them. `front` has those that no other beats in both peak reserved and device calls."""

    baseline: Outcome
    settings: list
    front: list
    best: str | None
    line: str | None
    sentence: str
    notes: list

    @classmethod
    def of(cls, raw):
        settings = [Outcome.of(row) for row in raw["settings"]]
        front = [settings[index] for index in raw["front"]]
        rest = (raw[name] for name in ("best", "line", "sentence", "notes"))
        return cls(raw, Outcome.of(raw["baseline"]), settings, front, *rest)

    def __str__(self):
        return self.sentence if self.line is None else f"{self.sentence}\n{self.line}"


@dataclasses.dataclass(frozen=True, repr=False)
class Change(Answer):
    """A change that lets the request pass, proved by a replay, or that was tried in vain."""

    kind: str
    value: object
    proved: bool
    sentence: str

    @classmethod
    def of(cls, raw):
        return cls(raw, raw["kind"], raw["value"], raw["proved"], raw["sentence"])

    def __str__(self):
        return self.sentence


@dataclasses.dataclass(frozen=True, repr=False)
class Autopsy(Answer):
    """Why a run went out of memory; `cause` is None where the run does not."""

    cause: str | None
    sentence: str
    request: dict | None
    pinned_by: list
    changes: list
    in_vain: list
    notes: list

    @classmethod
    def of(cls, raw):
        return cls(
            raw,
            raw["cause"],
            raw.get("sentence", "the run does not go out of memory"),
            raw.get("request"),
            raw.get("pinned_by", []),
            [Change.of(change) for change in raw.get("changes", [])],
            [Change.of(change) for change in raw.get("in_vain", [])],
            raw.get("notes", []),
        )

    def __str__(self):
        return "\n".join([self.sentence, *(f"helps: {change}" for change in self.changes)])


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate(Answer):
    """What Blockyard's allocator decides about each placement of a snapshot's trace, beside what PyTorch did."""

    sentence: str
    placements: int
    identical: int
    is_complete: bool
    first_difference: dict | None
    reasons: list
    notes: list

    @classmethod
    def of(cls, raw):
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __bool__(self):
        """Whether every placement, and everything else, is identical."""
        return self.is_complete

    def __str__(self):
        return "; ".join([self.sentence, *self.reasons])


@dataclasses.dataclass(frozen=True, repr=False)
class Holder(Answer):
    """The live bytes of one call site."""

    bytes: int
    blocks: int
    frames: list

    @classmethod
    def of(cls, raw):
        return cls(raw, raw["bytes"], raw["blocks"], raw["frames"])

    @property
    def stack(self):
        """The stack as a text, a line a frame, innermost first."""
        return "\n".join(f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in self.frames)

    def __str__(self):
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
    top: list

    @classmethod
    def of(cls, raw):
        names = [field.name for field in dataclasses.fields(cls)][1:-1]
        return cls(raw, *(raw[name] for name in names), [Holder.of(holder) for holder in raw["top"]])

    def __str__(self):
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
    notes: list

    @classmethod
    def of(cls, raw):
        return cls(raw, *(raw[field.name] for field in dataclasses.fields(cls)[1:]))

    def __str__(self):
        return (
            f"device {self.index}: {self.events} events, peak allocated {size(self.peak_allocated)}, peak reserved "
            f"{size(self.peak_reserved)}, {self.ooms} out of memory"
        )
