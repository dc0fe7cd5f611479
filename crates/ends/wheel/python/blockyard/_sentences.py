"""How answers read: a sentence for each, or some lines.

What the command says in whole sentences comes with the JSON: headlines, causes, changes, reasons. The sentences here are
of numbers alone.
"""

from collections.abc import Mapping, Sequence

from blockyard import _answers as of
from blockyard import _native
from blockyard._answer import Answer, size


def sentence(answer: Answer) -> str:
    """The answer as a person reads it."""
    match answer:
        case of.Limit():
            return _native.limit_text(answer.low, answer.high)
        case of.FirstOom():
            return f"request {answer.request}, {size(answer.size)}, finds no memory"
        case of.Outcome():
            return _outcome(answer)
        case of.WhatIf():
            limit = answer.limit
            is_inferred = limit is not None and limit.source == "inferred"
            under = [f"under the limit that the file implies: {limit}"] if is_inferred else []
            return "\n".join([*under, f"own settings: {answer.baseline}", *map(str, answer.settings)])
        case of.Search():
            return answer.sentence if answer.line is None else f"{answer.sentence}\n{answer.line}"
        case of.Autopsy():
            return "\n".join([answer.sentence, *(f"helps: {change}" for change in answer.changes)])
        case of.HoldingLine():
            return f"{size(answer.bytes)} in {_native.counted(answer.blocks, 'block')}: {answer.line}"
        case of.GapAtMoment():
            return f"{size(answer.reserved)} reserved for {size(answer.requested)} requested"
        case of.GapOutcome():
            calls = _native.counted(answer.device_calls, "call")
            return f"peak reserved {size(answer.peak_reserved)}, {calls} of the device"
        case of.Gap():
            return "\n".join(map(str, [answer.at_peak, *answer.remedies]))
        case of.Verdict():
            return "\n".join([answer.headline, *map(str, answer.findings)])
        case of.Bound():
            own = "" if answer.peak_reserved is None else f"; the run's own settings take {size(answer.peak_reserved)}"
            needed = f"no allocator needs less than {size(answer.lower_bound)}, live at request {answer.request}"
            return f"{needed}; a planned layout needs {size(answer.layout_peak)}{own}"
        case of.Growth():
            return f"{size(answer.growth)} more at {_site(answer.site)}"
        case of.Leaks():
            return "\n  ".join([answer.sentence, *map(str, answer.growing)])
        case of.AllocatorOutcome():
            calls = "" if answer.device_calls is None else f", {_native.counted(answer.device_calls, 'device call')}"
            text = f"{answer.name}: peak reserved {size(answer.peak_reserved)}{calls}"
            if (answer.failed is None) != (answer.failed_at_high is None):
                return f"{text}, whether it finds memory depends on the limit"
            return text if answer.failed is None else f"{text}, request {answer.failed} finds no memory"
        case of.ComparedAllocators():
            return "\n".join(map(str, answer.allocators))
        case of.DiffTerm():
            return f"{_change(answer.change)}: {_site(answer.site)}"
        case of.PeakDiff():
            if answer.change == 0:
                return f"the same as before, {size(answer.after)}"
            return f"{_change(answer.change)} than before, {size(answer.after)} instead of {size(answer.before)}"
        case of.Diff():
            return f"peak allocated {answer.allocated}; peak reserved {answer.reserved}"
        case of.Certificate():
            return "; ".join([answer.sentence, *answer.reasons])
        case of.Holder():
            where = answer.stack.splitlines()[0] if answer.frames else "no stack"
            return f"{size(answer.bytes)} in {_native.counted(answer.blocks, 'block')}: {where}"
        case of.Moment():
            head = f"{answer.name}: {size(answer.allocated)} allocated of {size(answer.reserved)} reserved"
            return "\n  ".join([head, *map(str, answer.top)])
        case of.Summary():
            return f"device {answer.index}: {answer.events} events, {_peaks(answer)}, {answer.ooms} out of memory"
        case of.FitHolder() | of.PeakHolder():
            return f"{size(answer.bytes)}: {answer.what}"
        case of.FitFailedRequest():
            return size(answer.bytes) + (f" at {answer.at}" if answer.at else "")
        case of.FitContradiction():
            if answer.kind == "fits":
                return f"{answer.value} does not fit and {answer.larger} fits"
            return f"the peak {answer.kind} of {answer.larger} is lower than that of {answer.value}"
        case of.FitGrowth():
            return f"{answer.kind}, " + ("exactly" if answer.exact else f"within {size(answer.residual)}")
        case of.FitRun():
            return f"{answer.value}: {_fits(answer.fits)}, peak reserved {size(answer.peak_reserved)}"
        case of.FitRank():
            return f"rank {answer.rank}: {_fits(answer.fits)}, peak reserved {size(answer.peak_reserved)}"
        case of.FitSite():
            return f"{size(answer.bytes)}: {answer.what}" + (f" ({answer.growth})" if answer.growth else "")
        case of.FitTriedSetting():
            return f"{answer.variable}={answer.conf}: {answer.value} {_fits(answer.fits)}"
        case of.FitOnGpu():
            if answer.error is not None:
                return f"the run of {answer.failed_at} failed: {answer.error}"
            return f"the largest that fits {size(answer.limit)} of {answer.gpu} is {answer.largest}"
        case of.FitRow():
            other = _layout(answer.layout or {}) or (answer.conf if answer.value is None else answer.value)
            return f"{other}: {answer.largest if answer.error is None else answer.error}"
        case of.FitMapOnGpu():
            return ", ".join(map(str, answer.rows))
        case of.FitSetting():
            return f"{answer.conf or 'no settings'}: {answer.error if answer.fits is None else _fits(answer.fits)}"
        case of.FitSettingsOnGpu():
            return ", ".join(map(str, answer.settings))
        case of.FitLayout():
            peak = f"peak reserved {size(answer.peak_reserved)}"
            return f"{_layout(answer.layout)}: {peak if answer.error is None else answer.error}"
        case of.FitLayoutsOnGpu():
            fits = sum(layout.fits is True for layout in answer.layouts)
            return f"{fits} of {len(answer.layouts)} layouts fit; the best is {answer.best}"
        case of.Line():
            return f"{answer.file}:{answer.line}"
        case of.DevicePeak():
            peaks = f"peak allocated {size(answer.allocated)}, peak reserved {size(answer.reserved)}"
            return f"cuda:{answer.device}: {peaks}"
        case of.StepPeak():
            return f"step {answer.number}: {_peaks(answer)}"
        case of.GpuFit():
            verdict = {True: "fits", False: "does not fit", None: "not known"}[answer.fits]
            return f"{answer.name} ({size(answer.total)}): {verdict}" + (f", at {answer.at}" if answer.at else "")
        case of.AddressRange():
            least, most = answer.reserved
            peak = size(least) if least == most else f"from {size(least)} to {size(most)}"
            return f"cuda:{answer.device}: peak reserved {peak}"
        case of.AddressOrders():
            same = f"{len(answer.orders)} orders of addresses give the same numbers"
            return same if answer.equal else _by_address(answer.peaks)
        case of.ReplayedOrders():
            if answer.equal is None:
                why = f": {answer.why_not}" if answer.why_not else ""
                return f"not replayed under other orders of addresses{why}"
            same = f"{answer.orders} other orders of addresses give the same numbers"
            return same if answer.equal else _by_address(answer.peaks)
        case of.ChildPeak():
            return f"process {answer.process}: {size(answer.bytes)} of cuda:{answer.device}"
        case of.DeviceOutside():
            return f"cuda:{answer.device}: {size(sum(answer.parts.values()))} beside PyTorch's memory"
        case of.GuardRow():
            return f"{answer.change or 0:+,}  {'everything else' if answer.at is None else answer.at}"
    return str(answer.raw.get("sentence", answer.raw.get("text", answer.raw)))


def _outcome(outcome: of.Outcome) -> str:
    conf = outcome.conf or "default settings"
    if outcome.error is not None:
        return f"{conf}: {outcome.error}"
    text = f"{conf}: peak reserved {size(outcome.peak_reserved)}, peak allocated {size(outcome.peak_allocated)}"
    if outcome.depends_on_limit:
        return f"{text}; whether it finds memory depends on the limit"
    return text if outcome.first_oom is None else f"{text}; {outcome.first_oom}"


def _change(count: int) -> str:
    return f"{size(abs(count))} {'more' if count >= 0 else 'less'}"


def _peaks(answer: of.Summary | of.StepPeak) -> str:
    return f"peak allocated {size(answer.peak_allocated)}, peak reserved {size(answer.peak_reserved)}"


def _site(frames: Sequence[str]) -> str:
    return " < ".join(frames) or "no stack"


def _fits(fits: bool) -> str:
    return "fits" if fits else "runs out"


def _layout(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}" for name, count in sizes.items())


def _by_address(peaks: Sequence[of.AddressRange]) -> str:
    return "depends on the driver's addresses: " + "; ".join(map(str, peaks))
