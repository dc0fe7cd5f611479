"""What answers have in common, and how they read as sentences.

The classes of the answers themselves are in `_answers`, which is written from the types of the command's JSON; each of them inherits
its sentence from a class here.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from blockyard import _native

if TYPE_CHECKING:
    from blockyard._answers import (
        Change,
        DiffTerm,
        Finding,
        FirstOom,
        FitLayout,
        FitRow,
        FitSetting,
        Growth,
        Holder,
        Limit,
        Outcome,
        PeakDiff,
    )


def size(count: int | None) -> str:
    """A size for people, rounded to two digits but never up to a whole number, as the command writes it.

    >>> size(2545942528)
    '2.37 GiB'
    >>> size(512)
    '512 B'
    """
    return "an unknown size" if count is None else _native.size_text(count)


def change(count: int) -> str:
    """A change of a size for people.

    >>> change(-512)
    '512 B less'
    """
    return f"{size(abs(count))} {'more' if count >= 0 else 'less'}"


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """What all answers have in common."""

    raw: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @staticmethod
    def newest(raw: Any) -> Any:
        """JSON of any version with the names of the newest one."""
        return raw

    def to_dict(self) -> dict[str, Any]:
        """The answer as the command prints it with `--json`."""
        return self.raw

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


class LimitSentence(Answer):
    low: int
    high: int

    @staticmethod
    def newest(raw: Any) -> Any:
        if "low" in raw:
            return raw
        # Version 1 had other names.
        source = {"fraction": "inferred", "device": "inferred"}.get(raw["source"], raw["source"])
        return {**raw, "low": raw["lowest"], "high": raw["highest"], "source": source}

    def __str__(self) -> str:
        return _native.limit_text(self.low, self.high)


class FirstOomSentence(Answer):
    request: int
    size: int

    def __str__(self) -> str:
        return f"request {self.request}, {size(self.size)}, finds no memory"


class OutcomeSentence(Answer):
    conf: str
    error: str | None
    ooms: int | None
    ooms_at_high: int | None
    peak_reserved: int | None
    peak_allocated: int | None
    first_oom: "FirstOom | None"

    @staticmethod
    def newest(raw: Any) -> Any:
        # Version 1 knew no bounds.
        return {"ooms_at_high": raw.get("ooms"), "peak_reserved_at_high": raw.get("peak_reserved"), **raw}

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


class WhatIfSentence(Answer):
    baseline: "Outcome"
    settings: "list[Outcome]"
    limit: "Limit | None"

    def __str__(self) -> str:
        limit = self.limit
        is_inferred = limit is not None and limit.source == "inferred"
        under = [f"under the limit that the file implies: {limit}"] if is_inferred else []
        return "\n".join([*under, "own settings: " + str(self.baseline), *map(str, self.settings)])


class SearchSentence(Answer):
    line: str | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence if self.line is None else f"{self.sentence}\n{self.line}"


class ChangeSentence(Answer):
    sentence: str

    @staticmethod
    def newest(raw: Any) -> Any:
        # Version 1 knew no bounds.
        return {"depends_on_limit": False, **raw}

    def __str__(self) -> str:
        return self.sentence


class AutopsySentence(Answer):
    sentence: str
    changes: "list[Change]"

    @staticmethod
    def newest(raw: Any) -> Any:
        return {"sentence": "the run does not go out of memory", **raw}

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"helps: {change}" for change in self.changes)])


class FindingSentence(Answer):
    text: str

    def __str__(self) -> str:
        return self.text


class HoldingLineSentence(Answer):
    line: str
    bytes: int
    blocks: int

    def __str__(self) -> str:
        return f"{self.line}: {self.bytes} bytes in {self.blocks} blocks"


class VerdictSentence(Answer):
    headline: str
    findings: "list[Finding]"

    def __str__(self) -> str:
        return "\n".join([self.headline, *(str(finding) for finding in self.findings)])


class BoundSentence(Answer):
    lower_bound: int
    request: int
    layout_peak: int
    peak_reserved: int | None

    def __str__(self) -> str:
        text = (
            f"no allocator needs less than {size(self.lower_bound)}, live at request {self.request}; a planned layout needs "
            f"{size(self.layout_peak)}"
        )
        return text if self.peak_reserved is None else f"{text}; the run's own settings take {size(self.peak_reserved)}"


class GrowthSentence(Answer):
    site: list[str]
    growth: int

    def __str__(self) -> str:
        return f"{size(self.growth)} more at {' < '.join(self.site) or 'no stack'}"


class LeaksSentence(Answer):
    boundaries: list[int]
    growing: "list[Growth]"

    def __bool__(self) -> bool:
        """Whether anything grows."""
        return bool(self.growing)

    def __str__(self) -> str:
        head = f"{len(self.boundaries)} steps: " + (
            f"{len(self.growing)} call sites grow" if self.growing else "nothing grows"
        )
        return "\n  ".join([head, *map(str, self.growing)])


class AllocatorOutcomeSentence(Answer):
    name: str
    peak_reserved: int
    device_calls: int | None
    failed: int | None
    failed_at_high: int | None

    @staticmethod
    def newest(raw: Any) -> Any:
        # Version 1 knew no bounds.
        return {"failed_at_high": raw.get("failed"), **raw}

    def __str__(self) -> str:
        text = f"{self.name}: peak reserved {size(self.peak_reserved)}, {self.device_calls} device calls"
        if (self.failed is None) != (self.failed_at_high is None):
            return f"{text}, whether it finds memory depends on the limit"
        return text if self.failed is None else f"{text}, request {self.failed} finds no memory"


class ComparedAllocatorsSentence(Answer):
    allocators: list[Any]

    def __str__(self) -> str:
        return "\n".join(map(str, self.allocators))


class DiffTermSentence(Answer):
    site: list[str]
    change: int

    def __str__(self) -> str:
        return f"{change(self.change)}: {' < '.join(self.site) or 'no stack'}"


class PeakDiffSentence(Answer):
    before: int
    after: int
    change: int
    terms: "list[DiffTerm]"

    def __str__(self) -> str:
        if self.change == 0:
            return f"the same as before, {size(self.after)}"
        return f"{change(self.change)} than before, {size(self.after)} instead of {size(self.before)}"


class DiffSentence(Answer):
    allocated: "PeakDiff"
    reserved: "PeakDiff"

    def __bool__(self) -> bool:
        """Whether a peak is another one."""
        return bool(self.allocated.change or self.reserved.change)

    def __str__(self) -> str:
        return f"peak allocated {self.allocated}; peak reserved {self.reserved}"


class CertificateSentence(Answer):
    sentence: str
    is_complete: bool
    reasons: list[str]

    def __bool__(self) -> bool:
        """Whether every placement, and everything else, is identical."""
        return self.is_complete

    def __str__(self) -> str:
        return "; ".join([self.sentence, *self.reasons])


class HolderSentence(Answer):
    bytes: int
    blocks: int
    frames: list[dict[str, Any]]

    @property
    def stack(self) -> str:
        """The stack as a text, a line a frame, innermost first."""
        return "\n".join(f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in self.frames)

    def __str__(self) -> str:
        where = self.stack.splitlines()[0] if self.frames else "no stack"
        return f"{size(self.bytes)} in {self.blocks} blocks: {where}"


class MomentSentence(Answer):
    name: str
    allocated: int
    reserved: int
    top: "list[Holder]"

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {size(self.allocated)} allocated of {size(self.reserved)} reserved",
            *map(str, self.top),
        ]
        return "\n  ".join(lines)


class SummarySentence(Answer):
    index: int
    events: int
    peak_allocated: int
    peak_reserved: int
    ooms: int

    def __str__(self) -> str:
        return (
            f"device {self.index}: {self.events} events, peak allocated {size(self.peak_allocated)}, peak reserved "
            f"{size(self.peak_reserved)}, {self.ooms} out of memory"
        )


class FitHolderSentence(Answer):
    what: str
    bytes: int

    def __str__(self) -> str:
        return f"{size(self.bytes)}: {self.what}"


class FitFailedRequestSentence(Answer):
    bytes: int
    at: str | None

    def __str__(self) -> str:
        return f"{size(self.bytes)}" + (f" at {self.at}" if self.at else "")


class FitContradictionSentence(Answer):
    kind: str
    value: int
    larger: int

    def __str__(self) -> str:
        if self.kind == "fits":
            return f"{self.value} does not fit and {self.larger} fits"
        return f"the peak {self.kind} of {self.larger} is lower than that of {self.value}"


class FitGrowthSentence(Answer):
    kind: str
    residual: int
    exact: bool

    def __str__(self) -> str:
        return f"{self.kind}, " + ("exactly" if self.exact else f"within {size(self.residual)}")


class FitRunSentence(Answer):
    value: int
    fits: bool
    peak_reserved: int

    def __str__(self) -> str:
        return f"{self.value}: {'fits' if self.fits else 'runs out'}, peak reserved {size(self.peak_reserved)}"


class FitRankSentence(Answer):
    rank: int
    fits: bool
    peak_reserved: int

    def __str__(self) -> str:
        return f"rank {self.rank}: {'fits' if self.fits else 'runs out'}, peak reserved {size(self.peak_reserved)}"


class FitSiteSentence(Answer):
    what: str
    bytes: int
    growth: str | None

    def __str__(self) -> str:
        return f"{size(self.bytes)}: {self.what}" + (f" ({self.growth})" if self.growth else "")


class FitTriedSettingSentence(Answer):
    variable: str
    conf: str
    value: int
    fits: bool

    def __str__(self) -> str:
        return f"{self.variable}={self.conf}: {self.value} {'fits' if self.fits else 'runs out'}"


class FitOnGpuSentence(Answer):
    gpu: str
    limit: int
    largest: int | None
    failed_at: int | None
    error: str | None

    def __str__(self) -> str:
        if self.error is not None:
            return f"the run of {self.failed_at} failed: {self.error}"
        return f"the largest that fits {size(self.limit)} of {self.gpu} is {self.largest}"


class FitSentence(FitOnGpuSentence):
    pass


class FitRowSentence(Answer):
    value: int | None
    conf: str | None
    layout: dict[str, int] | None
    largest: int | None
    error: str | None

    def __str__(self) -> str:
        layout = " ".join(f"{name}={count}" for name, count in (self.layout or {}).items())
        other = layout or (self.conf if self.value is None else self.value)
        return f"{other}: {self.largest if self.error is None else self.error}"


class FitMapOnGpuSentence(Answer):
    rows: "list[FitRow]"

    def __str__(self) -> str:
        return ", ".join(map(str, self.rows))


class FitMapSentence(FitMapOnGpuSentence):
    pass


class FitSettingSentence(Answer):
    conf: str
    fits: bool | None
    error: str | None

    def __str__(self) -> str:
        verdict = self.error if self.fits is None else "fits" if self.fits else "runs out"
        return f"{self.conf or 'no settings'}: {verdict}"


class FitSettingsOnGpuSentence(Answer):
    settings: "list[FitSetting]"

    def __str__(self) -> str:
        return ", ".join(map(str, self.settings))


class FitSettingsSentence(FitSettingsOnGpuSentence):
    pass


class FitLayoutSentence(Answer):
    layout: dict[str, int]
    peak_reserved: int | None
    error: str | None

    def __str__(self) -> str:
        named = " ".join(f"{name}={count}" for name, count in self.layout.items())
        return f"{named}: peak reserved {size(self.peak_reserved)}" if self.error is None else f"{named}: {self.error}"


class FitLayoutsOnGpuSentence(Answer):
    best: dict[str, int] | None
    layouts: "list[FitLayout]"

    def __str__(self) -> str:
        fits = sum(layout.fits is True for layout in self.layouts)
        return f"{fits} of {len(self.layouts)} layouts fit; the best is {self.best}"


class FitLayoutsSentence(FitLayoutsOnGpuSentence):
    pass
