//! The breakdowns of a recording in several resolutions.

use std::ops::Range;

use blockyard_record::{
    Breakdown, Bytes, Event, MemoryAtFailure, OomCause, OomLimit, OomRequest, PoolId, Recording, StepOutcome,
};

use crate::conversions::{bytes_f64, floor_count, step_u32};
use crate::timeline::view::TimelineView;

/// A limit of more than this many times the highest curve would press the curves together.
const MAX_LIMIT_RATIO: f64 = 2.5;

/// How many entries of one resolution make one of the next.
pub(super) const FAN: usize = 16;

/// The breakdowns of a recording in several resolutions, built once, so that drawing a timeline costs pixels
/// and not steps.
#[derive(Clone, Debug)]
pub struct Series {
    steps: usize,
    /// `levels[0]` holds one entry for `FAN` moments, each further level one for `FAN` of the level below.
    /// Single moments are read from the recording.
    levels: Vec<Vec<Extent>>,
    peaks: Vec<PeakChange>,
    limits: Vec<(u32, Option<Bytes>)>,
    /// The limit that the first failed request shows, where no memory fraction is known.
    implied_limit: Option<OomLimit>,
    /// The first requests that failed.
    failed: Vec<FailedRequest>,
    facts: SeriesFacts,
}

/// A request that found no memory, and the memory at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedRequest {
    pub(crate) step: u32,
    pub(crate) requested: Bytes,
    /// The segment that the request needed.
    pub(crate) segment_size: Bytes,
    /// The reserved bytes below the request: all, or those before the cached end of the expandable segment
    /// that has to grow.
    pub(crate) foot: Bytes,
    /// Whether an expandable segment has to grow for the request.
    pub(crate) is_growth: bool,
    /// The cached bytes that the request may use and the largest block among them, where those bytes would
    /// have been enough in one block.
    pub(crate) in_pieces: Option<(Bytes, Bytes)>,
}

impl FailedRequest {
    /// The bytes that would be reserved with the segment.
    pub(crate) fn top(&self) -> Bytes {
        self.foot.saturating_add(self.segment_size)
    }
}

/// A figure shows the size of a failed request for at most this many requests.
pub(super) const MAX_FAILED: usize = 3;

/// Which things occur anywhere in a run, so that a figure of any part of the run keeps room for the same
/// words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(super) struct SeriesFacts {
    pub(super) has_rounding: bool,
    pub(super) has_pending: bool,
    pub(super) has_failures: bool,
    pub(super) has_time_spans: bool,
    pub(super) has_times: bool,
    /// Whether a pixel may cover several moments.
    pub(super) is_long: bool,
}

/// The lowest and highest values of the class borders over a range of moments.
///
/// The borders are requested, allocated, active and reserved. They never cross, so that their highest values
/// do not cross either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) low: [Bytes; 4],
    pub(crate) high: [Bytes; 4],
}

impl Extent {
    fn of(breakdown: &Breakdown) -> Self {
        let borders = [breakdown.requested, breakdown.allocated(), breakdown.active(), breakdown.reserved()];
        Self { low: borders, high: borders }
    }

    fn include(&mut self, other: &Self) {
        for index in 0..4 {
            self.low[index] = self.low[index].min(other.low[index]);
            self.high[index] = self.high[index].max(other.high[index]);
        }
    }
}

/// In a run of at most this many steps, each step has a separate pixel in any figure.
const SHORT: usize = 200;

/// The first step that ran out of memory.
fn first_failure(recording: &Recording) -> Option<usize> {
    let is_oom = |outcome: &StepOutcome| matches!(outcome, StepOutcome::OutOfMemory(_));
    let found = recording.failed_steps().iter().find(|(_, outcome)| is_oom(outcome));
    found.and_then(|(step, _)| usize::try_from(*step).ok())
}

/// The last request among these events that ran out of memory, and the free bytes of the device then.
pub(crate) fn refused_request(recording: &Recording, events: Range<usize>) -> Option<(OomRequest, Bytes)> {
    events.rev().find_map(|index| match recording.event(index)? {
        Event::OutOfMemory { requested, rounded, segment_size, stream, device_free, .. } => Some((
            OomRequest { size: requested, rounded, segment_size, stream, pool_id: PoolId::DEFAULT },
            device_free,
        )),
        _ => None,
    })
}

/// The running peaks from a moment on.
#[derive(Clone, Copy, Debug, Default)]
struct PeakChange {
    moment: u32,
    allocated: Bytes,
    reserved: Bytes,
}

impl Series {
    /// The series of the recording.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        let mut resets = Vec::new();
        let mut limits = Vec::new();
        for (index, event) in recording.events_from(0).enumerate() {
            let moment = || recording.step_of_event(index).map(|step| step_u32(step + 1));
            match event {
                Event::PeakReset => resets.extend(moment()),
                Event::FractionSet { limit } => limits.extend(moment().map(|moment| (moment, limit))),
                _ => {}
            }
        }
        let mut made = Self {
            steps: recording.step_count(),
            levels: levels(recording),
            peaks: peaks(recording, &resets),
            limits,
            implied_limit: None,
            failed: Vec::new(),
            facts: SeriesFacts::default(),
        };
        made.implied_limit = made.limit_of_the_first_failure(recording);
        made.failed = made.failed_requests(recording);
        made.facts = made.facts_of(recording);
        made
    }

    fn facts_of(&self, recording: &Recording) -> SeriesFacts {
        let mut facts = SeriesFacts {
            has_failures: first_failure(recording).is_some(),
            has_time_spans: recording.markers().iter().any(|marker| marker.end_step.is_some()),
            has_times: recording.time_us(0).is_some(),
            is_long: self.steps > SHORT,
            ..SeriesFacts::default()
        };
        let moments = std::iter::once(recording.breakdown_before()).chain(recording.breakdowns_from(0));
        for breakdown in moments {
            facts.has_rounding |= !breakdown.rounding.is_zero();
            facts.has_pending |= !breakdown.pending.is_zero();
            if facts.has_rounding && facts.has_pending {
                break;
            }
        }
        facts
    }

    /// The limit that the first failed request shows: the bytes reserved before the request are at most the
    /// limit, and the bytes with the refused segment are beyond the limit. `None` where the file names the
    /// limit, where the whole device is the limit, and where more was reserved at another moment.
    fn limit_of_the_first_failure(&self, recording: &Recording) -> Option<OomLimit> {
        let step = first_failure(recording)?;
        if self.limit_at(step + 1).is_some() {
            return None;
        }
        let bounds = recording.step(step)?;
        let (request, device_free) = refused_request(recording, bounds.start..bounds.end)?;
        let segment_size = request.segment_size;
        let reserved = recording.breakdown_after(step)?.reserved();
        let most_before = self.extent(recording, 0, step + 1).high[3].max(reserved);
        let limit = if device_free < segment_size {
            // The device had no more: others hold the remaining memory.
            OomLimit::known(reserved.saturating_add(device_free), Bytes::ZERO)
        } else {
            let refused = reserved.saturating_add(segment_size).saturating_sub(Bytes::new(1));
            OomLimit { lowest: most_before, highest: refused.max(most_before), used_by_others: Bytes::ZERO }
        };
        let is_whole_device = recording.known_capacity().is_some_and(|capacity| capacity <= limit.highest);
        let most = self.extent(recording, 0, self.steps + 1).high[3];
        (!is_whole_device && most <= limit.highest).then_some(limit)
    }

    /// The most that the process may reserve at a moment: the limit that its memory fraction sets, or else
    /// the limit that its first failed request shows. `None` where nothing but the device limits the process.
    pub fn process_limit(&self, moment: usize) -> Option<OomLimit> {
        self.limit_at(moment).map(|limit| OomLimit::known(limit, Bytes::ZERO)).or(self.implied_limit)
    }

    /// The first requests that failed, as far as the recording says how large they were.
    fn failed_requests(&self, recording: &Recording) -> Vec<FailedRequest> {
        let is_oom = |outcome: &StepOutcome| matches!(outcome, StepOutcome::OutOfMemory(_));
        let failed = recording.failed_steps().iter().filter(|(_, outcome)| is_oom(outcome));
        failed.take(MAX_FAILED).filter_map(|(step, _)| self.failed_request(recording, *step)).collect()
    }

    fn failed_request(&self, recording: &Recording, step: u32) -> Option<FailedRequest> {
        let at = usize::try_from(step).ok()?;
        let bounds = recording.step(at)?;
        let (request, device_free) = refused_request(recording, bounds.start..bounds.end)?;
        let snapshot = recording.state_at(bounds.end).ok()?.snapshot();
        let memory = MemoryAtFailure::of(&snapshot, &request);
        let limit = self.process_limit(at + 1);
        let limit = limit.or_else(|| Some(OomLimit::known(recording.known_capacity()?, Bytes::ZERO)));
        let is_fragmented =
            |limit: &OomLimit| OomCause::of(&request, &memory, *limit) == OomCause::FragmentationByLiveBlocks;
        let grows_at = request.cached_where_segment_grows(&snapshot, device_free);
        Some(FailedRequest {
            step,
            requested: request.size,
            segment_size: if grows_at.is_some() { request.rounded } else { request.segment_size },
            foot: recording.breakdown_after(at)?.reserved().saturating_sub(grows_at.unwrap_or_default()),
            is_growth: grows_at.is_some(),
            in_pieces: limit.filter(is_fragmented).map(|_| (memory.cached_here, memory.largest_cached_here)),
        })
    }

    /// The first requests that failed, by their steps.
    pub(crate) fn failed(&self) -> &[FailedRequest] {
        &self.failed
    }

    /// The most bytes that a figure of a part of the run shows: the bytes reserved there, and a capacity, a
    /// limit and a failed request that are not so far above them that they would press the curves together.
    pub(crate) fn bytes_in_sight(&self, recording: &Recording, view: &TimelineView, highest: Bytes) -> Bytes {
        let within = |factor: f64| move |bytes: &Bytes| bytes_f64(*bytes) <= bytes_f64(highest) * factor;
        let last = floor_count((view.last_step.ceil() - 1.0).max(0.0));
        let peak = self.peaks_at(last).1;
        let limit = self.process_limit(last).map(|limit| limit.highest);
        let is_seen = |failed: &&FailedRequest| {
            (view.first_step..=view.last_step).contains(&(f64::from(failed.step) + 1.0))
        };
        let failed = self.failed.iter().filter(is_seen).map(FailedRequest::top).max();
        let near = [highest, peak].into_iter().chain(recording.known_capacity()).filter(within(1.5));
        // The reader looks for a limit that refused a request, and for the request.
        let sought = limit.into_iter().chain(failed).filter(within(MAX_LIMIT_RATIO));
        near.chain(sought).max().unwrap_or(highest)
    }

    /// The bytes at the top of stacked allocations, of which at most `active` are active in the shown part.
    pub fn stack_top(&self, recording: &Recording, view: &TimelineView, active: Bytes) -> Bytes {
        let (from, to) = (floor_count(view.first_step.max(0.0)), floor_count(view.last_step.ceil().max(1.0)));
        let highest = self.extent(recording, from, to).high[3].max(active);
        self.bytes_in_sight(recording, view, highest)
    }

    pub(super) fn facts(&self) -> SeriesFacts {
        self.facts
    }

    /// How many steps the recording has.
    pub fn step_count(&self) -> usize {
        self.steps
    }

    /// The lowest and highest values over the moments from `from` on and before `to`, at most one after the
    /// last step.
    pub(crate) fn extent(&self, recording: &Recording, from: usize, to: usize) -> Extent {
        let to = to.min(self.steps + 1);
        let from = from.min(to.saturating_sub(1));
        // The moments up to the first whole entry and after the last one are read in order: reading a single
        // moment would decode the moments before it again.
        let head = from.next_multiple_of(FAN).min(to);
        let first = self.levels.first().and_then(|level| level.get(from / FAN));
        let mut extent = match first.filter(|_| from.is_multiple_of(FAN) && from.saturating_add(FAN) <= to) {
            // No moment needs to be decoded.
            Some(entry) => *entry,
            None => moment(recording, from),
        };
        include_moments(&mut extent, recording, from + 1, head);
        let (mut at, mut level) = (head, 0_usize);
        // Goes to coarser levels while whole entries fit, then back to finer levels.
        let mut width = FAN;
        while at.saturating_add(FAN) <= to {
            let coarser = width.saturating_mul(FAN);
            if at.is_multiple_of(coarser) && at.saturating_add(coarser) <= to {
                (level, width) = (level + 1, coarser);
            } else if at.saturating_add(width) > to {
                (level, width) = (level.saturating_sub(1), width / FAN);
            } else {
                if let Some(entry) = self.levels.get(level).and_then(|level| level.get(at / width)) {
                    extent.include(entry);
                }
                at += width;
            }
        }
        include_moments(&mut extent, recording, at, to);
        extent
    }

    /// The highest value of a border after at most `last` steps, and the first moment that has it.
    pub(crate) fn highest(
        &self,
        recording: &Recording,
        border: usize,
        last: Option<usize>,
    ) -> (Bytes, usize) {
        let high = |from: usize, to: usize| self.extent(recording, from, to).high[border];
        let (mut from, mut to) = (0, last.unwrap_or(self.steps).min(self.steps) + 1);
        let highest = high(from, to);
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if high(from, middle) == highest { to = middle } else { from = middle }
        }
        (highest, from)
    }

    /// The first moments at which the most bytes are allocated and the most reserved, as numbers of complete
    /// steps.
    pub fn peak_steps(&self, recording: &Recording) -> (usize, usize) {
        (self.highest(recording, 1, None).1, self.highest(recording, 3, None).1)
    }

    /// The most bytes allocated and the most reserved, as the running peaks have them at the end of the
    /// recording.
    pub fn peaks(&self) -> (Bytes, Bytes) {
        self.peaks_at(self.step_count())
    }

    /// The most bytes that are allocated at any moment, and the most that are reserved.
    pub fn peak_bytes(&self, recording: &Recording) -> (Bytes, Bytes) {
        (self.highest(recording, 1, None).0, self.highest(recording, 3, None).0)
    }

    /// The running peaks of allocated and reserved bytes at a moment.
    pub(crate) fn peaks_at(&self, moment: usize) -> (Bytes, Bytes) {
        let after = self.peaks.partition_point(|change| change.moment as usize <= moment);
        let change =
            after.checked_sub(1).and_then(|index| self.peaks.get(index)).copied().unwrap_or_default();
        (change.allocated, change.reserved)
    }

    /// The limit that the memory fraction sets at a moment.
    fn limit_at(&self, moment: usize) -> Option<Bytes> {
        let after = self.limits.partition_point(|(from, _)| *from as usize <= moment);
        after.checked_sub(1).and_then(|index| self.limits.get(index)).and_then(|(_, limit)| *limit)
    }
}

/// The breakdown after `moment` steps.
fn moment(recording: &Recording, moment: usize) -> Extent {
    let breakdown = match moment.checked_sub(1) {
        Some(step) => recording.breakdown_after(step).unwrap_or_default(),
        None => recording.breakdown_before(),
    };
    Extent::of(&breakdown)
}

/// Widens the extent by the moments from `from` on and before `to`, except the moment before the first step.
fn include_moments(extent: &mut Extent, recording: &Recording, from: usize, to: usize) {
    let from = from.max(1);
    for breakdown in recording.breakdowns_from(from - 1).take(to.saturating_sub(from)) {
        extent.include(&Extent::of(&breakdown));
    }
}

fn levels(recording: &Recording) -> Vec<Vec<Extent>> {
    let mut levels: Vec<Vec<Extent>> = Vec::new();
    let joined = |entries: &[Extent]| {
        entries.iter().copied().reduce(|mut all, entry| {
            all.include(&entry);
            all
        })
    };
    let moments = std::iter::once(recording.breakdown_before()).chain(recording.breakdowns_from(0));
    // Only full entries are stored: a query never needs an entry that reaches beyond the end.
    let (mut first, mut entry) = (Vec::new(), Vec::with_capacity(FAN));
    for breakdown in moments {
        entry.push(Extent::of(&breakdown));
        if entry.len() == FAN {
            first.extend(joined(&entry));
            entry.clear();
        }
    }
    levels.push(first);
    while let Some(last) = levels.last().filter(|level| level.len() >= FAN) {
        let next = last.chunks_exact(FAN).filter_map(joined).collect();
        levels.push(next);
    }
    levels
}

fn peaks(recording: &Recording, resets: &[u32]) -> Vec<PeakChange> {
    let before = recording.breakdown_before();
    let mut now = PeakChange { moment: 0, allocated: before.allocated(), reserved: before.reserved() };
    let mut changes = vec![now];
    let mut resets = resets.iter().copied().peekable();
    for (step, breakdown) in recording.breakdowns_from(0).enumerate() {
        let at = step_u32(step + 1);
        let mut next = PeakChange { moment: at, ..now };
        while resets.next_if(|reset| *reset <= at).is_some() {
            next = PeakChange { moment: at, ..PeakChange::default() };
        }
        next.allocated = next.allocated.max(breakdown.allocated());
        next.reserved = next.reserved.max(breakdown.reserved());
        if (next.allocated, next.reserved) != (now.allocated, now.reserved) {
            changes.push(next);
            now = next;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use blockyard_record::{
        BlockId, BlockSnapshot, BlockState, DeviceAddr, PoolKind, Recorder, RunInfo, SegmentId,
        SegmentSnapshot, Snapshot, StreamId,
    };

    use super::*;

    /// A run that begins with 20 MiB of cached memory, in which nothing happens.
    fn with_memory_before(steps: usize) -> Recording {
        let addr = DeviceAddr::new(1 << 30);
        let block = BlockSnapshot {
            id: BlockId::new(0),
            addr,
            size: Bytes::mib(20),
            requested: Bytes::ZERO,
            state: BlockState::Inactive,
            allocation: None,
            streams: Vec::new(),
        };
        let segment = SegmentSnapshot {
            id: SegmentId::new(0),
            addr,
            size: Bytes::mib(20),
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
            pool: PoolKind::Large,
            is_expandable: false,
            blocks: vec![block],
        };
        let mut recorder =
            Recorder::new(RunInfo { capacity: Bytes::gib(1), max_split_size: -1, ..RunInfo::default() });
        recorder.begin_with(&Snapshot { segments: vec![segment] }).unwrap();
        for _ in 0..steps {
            recorder.finish_step(StepOutcome::Done);
        }
        recorder.finish().unwrap()
    }

    #[test]
    fn what_was_there_before_the_first_step_is_part_of_the_first_entry() {
        let recording = with_memory_before(100);
        let series = Series::new(&recording);
        for (from, to) in [(0, 1), (0, 16), (0, 101), (3, 40), (16, 32), (48, 64)] {
            let extent = series.extent(&recording, from, to);
            assert_eq!((extent.low[3], extent.high[3]), (Bytes::mib(20), Bytes::mib(20)), "{from} to {to}");
        }
    }
}
