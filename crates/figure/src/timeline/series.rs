//! The breakdowns of a recording in several resolutions.

use blockyard_record::{Breakdown, Bytes, Event, Recording};

use crate::numbers::step_u32;

/// How many entries of one resolution make one of the next.
pub(super) const FAN: usize = 16;

/// The breakdowns of a recording in several resolutions, built once, so that drawing a timeline costs pixels and not steps.
#[derive(Clone, Debug)]
pub struct Series {
    steps: usize,
    // `levels[0]` holds one entry for `FAN` moments, each further level one for `FAN` of the level below. Single moments
    // are read from the recording.
    levels: Vec<Vec<Extent>>,
    peaks: Vec<PeakChange>,
    limits: Vec<(u32, Option<Bytes>)>,
}

/// The lowest and highest values of the class borders over a range of moments.
///
/// The borders are requested, allocated, active and reserved. They never cross, so that their highest values do not cross
/// either.
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
        Self {
            steps: recording.step_count(),
            levels: levels(recording),
            peaks: peaks(recording, &resets),
            limits,
        }
    }

    /// How many steps the recording has.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps
    }

    /// The lowest and highest values over the moments from `from` on and before `to`, at most one after the last step.
    pub(crate) fn extent(&self, recording: &Recording, from: usize, to: usize) -> Extent {
        let to = to.min(self.steps + 1);
        let from = from.min(to.saturating_sub(1));
        // The moments up to the first whole entry and after the last one are read in order: each alone would decode those before it.
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

    /// The highest value of a border and the first moment that has it.
    pub(crate) fn highest(&self, recording: &Recording, border: usize) -> (Bytes, usize) {
        let high = |from: usize, to: usize| self.extent(recording, from, to).high[border];
        let highest = high(0, self.steps + 1);
        let (mut from, mut to) = (0, self.steps + 1);
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if high(from, middle) == highest { to = middle } else { from = middle }
        }
        (highest, from)
    }

    /// The first moments at which the most bytes are allocated and the most reserved, as numbers of complete steps.
    #[must_use]
    pub fn peak_steps(&self, recording: &Recording) -> (usize, usize) {
        (self.highest(recording, 1).1, self.highest(recording, 3).1)
    }

    /// The most bytes allocated and the most reserved, over the whole recording.
    #[must_use]
    pub fn peaks(&self) -> (Bytes, Bytes) {
        self.peaks_at(self.step_count())
    }

    /// The most bytes that are allocated at any moment, and the most that are reserved.
    #[must_use]
    pub fn peak_bytes(&self, recording: &Recording) -> (Bytes, Bytes) {
        (self.highest(recording, 1).0, self.highest(recording, 3).0)
    }

    /// The running peaks of allocated and reserved bytes at a moment.
    pub(crate) fn peaks_at(&self, moment: usize) -> (Bytes, Bytes) {
        let after = self.peaks.partition_point(|change| change.moment as usize <= moment);
        let change =
            after.checked_sub(1).and_then(|index| self.peaks.get(index)).copied().unwrap_or_default();
        (change.allocated, change.reserved)
    }

    /// The limit that the memory fraction sets at a moment.
    pub(crate) fn limit_at(&self, moment: usize) -> Option<Bytes> {
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

/// Widens the extent by the moments from `from` on and before `to`, but for the one before the first step.
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
        BlockId, BlockSnapshot, BlockState, DeviceAddr, PoolId, PoolKind, Recorder, RunInfo, SegmentId,
        SegmentSnapshot, Snapshot, StepOutcome, StreamId,
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
