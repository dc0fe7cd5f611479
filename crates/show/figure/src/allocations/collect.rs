//! Collects the allocations of a recording, in slices so that a page stays responsive.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, Event, PoolId, PoolKind, Recording,
    SegmentId, StreamId,
};
use rustc_hash::FxHashMap;

use super::gradients::gradients;
use super::index::IntervalIndex;
use super::{Allocations, GROUP, NEVER, ReservedRange, SizeClass, size_class};
use crate::conversions::step_u32;
use crate::rects::RECT_UNIT;

/// Makes the [`Allocations`] of a recording in slices.
#[derive(Debug)]
pub struct Collector {
    recording: Arc<Recording>,
    /// Whether the memory before the first event was taken in.
    has_begun: bool,
    event: usize,
    step: usize,
    blocks: FxHashMap<BlockId, Block>,
    segments: FxHashMap<SegmentId, SegmentPlaces>,
    /// Places of reserved memory that has no end yet, by address.
    open: BTreeMap<u64, usize>,
    made: Allocations,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    addr: u64,
    size: u64,
    segment: SegmentId,
    row: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct SegmentPlaces {
    addr: u64,
    stream: u16,
    pool: u16,
}

impl Collector {
    /// Begins with the memory before the first event.
    #[must_use]
    pub fn new(recording: Arc<Recording>) -> Self {
        let mut collector = Self {
            has_begun: false,
            event: 0,
            step: 0,
            blocks: FxHashMap::default(),
            segments: FxHashMap::default(),
            open: BTreeMap::new(),
            made: Allocations { moments: recording.step_count() + 1, ..Allocations::default() },
            recording,
        };
        collector.begin();
        collector.has_begun = true;
        collector
    }

    /// The recording that is read.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }

    /// How many events were read, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.event, self.recording.event_count())
    }

    /// Reads up to `events` more events. Returns whether there are more.
    pub fn advance(&mut self, events: usize) -> bool {
        let recording = self.recording.clone();
        let mut end = recording.step(self.step).map_or(usize::MAX, |step| step.end);
        let mut read = 0;
        for event in recording.events_from(self.event).take(events) {
            while self.event >= end {
                self.step += 1;
                end = recording.step(self.step).map_or(usize::MAX, |step| step.end);
            }
            self.take(&event);
            self.event += 1;
            read += 1;
        }
        // A damaged recording ends early.
        read == events && self.event < recording.event_count()
    }

    /// The allocations of the events that were read.
    #[must_use]
    pub fn finish(mut self) -> Allocations {
        let recording = self.recording.clone();
        let active = std::iter::once(recording.breakdown_before()).chain(recording.breakdowns_from(0));
        // 2^32 units are 2 TiB; larger sums are cut off at 2 TiB.
        let units = |bytes: Bytes| u32::try_from(bytes.get() / RECT_UNIT).unwrap_or(u32::MAX);
        self.made.active = active.map(|breakdown| units(breakdown.active())).collect();
        self.made.prepare();
        self.made.gradients = gradients(&self.made, &recording);
        self.made
    }

    /// All allocations of the recording, collected in one call.
    pub fn collect(recording: Arc<Recording>) -> Allocations {
        let mut collector = Self::new(recording);
        while collector.advance(usize::MAX) {}
        collector.finish()
    }

    fn begin(&mut self) {
        let snapshot = self.recording.initial_state().snapshot();
        let mut allocated: Vec<(BlockSnapshot, SegmentId)> = Vec::new();
        for segment in snapshot.segments {
            self.add_segment(segment.id, segment.addr, segment.stream, (segment.pool_id, segment.pool));
            for run in segment.mapped_runs() {
                self.reserve(run.addr.get(), run.size.get());
            }
            for block in segment.blocks {
                self.add_block(block.id, block.addr.get(), block.size.get(), segment.id);
                if block.state.is_active() {
                    allocated.push((block, segment.id));
                }
            }
        }
        // Rows are in the order of allocations; the memory before the first event is in the order of
        // addresses.
        allocated.sort_by_key(|(block, _)| block.allocation);
        for (block, _) in allocated {
            let Some(allocation) = block.allocation else { continue };
            self.allocate(block.id, allocation, block.requested);
            if block.state == BlockState::PendingFree {
                self.end_life(block.id, false);
            }
        }
    }

    /// The first moment at which the current step is complete; 0 for the memory before the first event.
    fn moment(&self) -> u32 {
        if self.has_begun { step_u32(self.step + 1) } else { 0 }
    }

    fn take(&mut self, event: &Event) {
        match *event {
            Event::SegmentAllocated { segment, block, addr, size, stream, pool_id, pool, .. } => {
                self.add_segment(segment, addr, stream, (pool_id, pool));
                self.add_block(block, addr.get(), size.get(), segment);
                self.reserve(addr.get(), size.get());
            }
            Event::RangeReserved { segment, block, addr, size, stream, pool_id, pool } => {
                self.add_segment(segment, addr, stream, (pool_id, pool));
                self.add_block(block, addr.get(), size.get(), segment);
            }
            Event::SegmentReleased { segment, .. } => {
                if let Some(places) = self.segments.remove(&segment) {
                    self.unreserve(places.addr, None);
                }
            }
            Event::RangeReleased { segment } => {
                self.segments.remove(&segment);
            }
            Event::Mapped { block, size, remainder } => self.map(block, size.get(), remainder),
            Event::Unmapped { block, before, after } => self.unmap(block, before, after),
            Event::Split { block, front, size } => self.split(block, front, size.get()),
            Event::Merged { block, absorbed } => self.merge(block, absorbed),
            Event::Allocated { block, allocation, requested, .. } => {
                self.allocate(block, allocation, requested);
            }
            Event::FreeRequested { block, .. } => self.end_life(block, false),
            Event::FreeCompleted { block } => self.end_life(block, true),
            Event::SegmentFailed { .. }
            | Event::StreamRecorded { .. }
            | Event::RetryStarted
            | Event::StreamsSynchronized
            | Event::OutOfMemory { .. }
            | Event::SnapshotTaken { .. }
            | Event::PeakReset
            | Event::AccumulatedReset
            | Event::FractionSet { .. } => {}
        }
    }

    fn add_segment(&mut self, id: SegmentId, addr: DeviceAddr, stream: StreamId, pool: (PoolId, PoolKind)) {
        let stream = place_of(&mut self.made.streams, stream);
        let pool = place_of(&mut self.made.pools, pool);
        self.segments.insert(id, SegmentPlaces { addr: addr.get(), stream, pool });
    }

    fn add_block(&mut self, id: BlockId, addr: u64, size: u64, segment: SegmentId) {
        self.blocks.insert(id, Block { addr, size, segment, row: None });
    }

    fn reserve(&mut self, addr: u64, size: u64) {
        let start = self.moment();
        self.open.insert(addr, self.made.reserved.len());
        self.made.reserved.push(ReservedRange { addr, size, start, end: NEVER });
    }

    /// Ends reserved memory: with `size`, the `size` bytes from `addr` on, whichever ranges they are part of;
    /// without it, the range that begins at `addr`.
    fn unreserve(&mut self, addr: u64, size: Option<u64>) {
        let moment = self.moment();
        let to = size.map(|size| addr.saturating_add(size));
        let found: Vec<usize> = match to {
            None => self.open.remove(&addr).into_iter().collect(),
            Some(to) => {
                let places: Vec<(u64, usize)> = self
                    .open
                    .range(..to)
                    .rev()
                    .map(|(addr, place)| (*addr, *place))
                    .take_while(|(_, place)| {
                        let reserved = self.made.reserved.get(*place);
                        reserved.is_some_and(|reserved| reserved.addr.saturating_add(reserved.size) > addr)
                    })
                    .collect();
                for (addr, _) in &places {
                    self.open.remove(addr);
                }
                places.into_iter().map(|(_, place)| place).collect()
            }
        };
        for place in found {
            let Some(reserved) = self.made.reserved.get_mut(place) else { continue };
            reserved.end = moment;
            let whole = *reserved;
            let Some(to) = to else { continue };
            // Memory that stays mapped below and above the ended part goes on as separate ranges.
            let end = whole.addr.saturating_add(whole.size);
            for (low, high) in [(whole.addr, addr), (to, end)] {
                if let Some(size) = high.checked_sub(low).filter(|size| *size > 0) {
                    self.open.insert(low, self.made.reserved.len());
                    self.made.reserved.push(ReservedRange { addr: low, size, start: moment, end: NEVER });
                }
            }
        }
    }

    fn map(&mut self, block: BlockId, size: u64, remainder: Option<BlockId>) {
        let Some(found) = self.blocks.get_mut(&block) else { return };
        let whole = *found;
        found.size = size;
        if let Some(remainder) = remainder {
            let left = whole.size.saturating_sub(size);
            self.add_block(remainder, whole.addr.saturating_add(size), left, whole.segment);
        }
        self.reserve(whole.addr, size);
    }

    fn unmap(&mut self, block: BlockId, before: Option<(BlockId, Bytes)>, after: Option<(BlockId, Bytes)>) {
        let Some(found) = self.blocks.get(&block).copied() else { return };
        let part = |part: Option<(BlockId, Bytes)>| part.map_or(0, |(_, size)| size.get());
        let addr = found.addr.saturating_add(part(before));
        let size = found.size.saturating_sub(part(before)).saturating_sub(part(after));
        if let Some((id, size)) = before {
            self.add_block(id, found.addr, size.get(), found.segment);
        }
        if let Some((id, above)) = after {
            self.add_block(id, addr.saturating_add(size), above.get(), found.segment);
        }
        self.add_block(block, addr, size, found.segment);
        self.unreserve(addr, Some(size));
    }

    fn split(&mut self, block: BlockId, front: BlockId, size: u64) {
        let Some(found) = self.blocks.get_mut(&block) else { return };
        let (addr, segment) = (found.addr, found.segment);
        found.addr = addr.saturating_add(size);
        found.size = found.size.saturating_sub(size);
        self.add_block(front, addr, size, segment);
    }

    fn merge(&mut self, block: BlockId, absorbed: BlockId) {
        let Some(other) = self.blocks.remove(&absorbed) else { return };
        if let Some(found) = self.blocks.get_mut(&block) {
            found.addr = found.addr.min(other.addr);
            found.size = found.size.saturating_add(other.size);
        }
    }

    fn allocate(&mut self, id: BlockId, allocation: AllocationId, requested: Bytes) {
        let start = self.moment();
        let Some(block) = self.blocks.get_mut(&id) else { return };
        let Some(places) = self.segments.get(&block.segment) else { return };
        let made = &mut self.made;
        block.row = u32::try_from(made.ids.len()).ok();
        made.ids.push(allocation);
        made.addrs.push(block.addr);
        made.sizes.push(block.size);
        made.requested.push(requested.get());
        made.starts.push(start);
        made.frees.push(NEVER);
        made.ends.push(NEVER);
        made.segments.push(block.segment);
        made.stream_indices.push(places.stream);
        made.pool_indices.push(places.pool);
    }

    fn end_life(&mut self, id: BlockId, is_completed: bool) {
        let moment = self.moment();
        let Some(block) = self.blocks.get_mut(&id) else { return };
        let Some(row) = block.row.map(|row| row as usize) else { return };
        if let Some(freed) = self.made.frees.get_mut(row) {
            *freed = moment.min(*freed);
        }
        if is_completed {
            block.row = None;
            if let Some(end) = self.made.ends.get_mut(row) {
                *end = moment;
            }
        }
    }
}

/// The index of the value in the list; a new value is added to the list.
fn place_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> u16 {
    let place = list.iter().position(|known| *known == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    });
    // A file with more streams is refused (`FieldError::StreamCount` of the crate `pytorch`), and there are
    // fewer pools.
    debug_assert!(u16::try_from(place).is_ok(), "more than 65,536 streams or pools");
    u16::try_from(place).unwrap_or(u16::MAX)
}

impl Allocations {
    /// Builds the indices by which questions about a moment are answered without a pass over all rows.
    fn prepare(&mut self) {
        let classes = self.sizes.iter().map(|size| size_class(*size) + 1).max().unwrap_or(0);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); classes];
        for (row, size) in self.sizes.iter().enumerate() {
            if let Some(class) = rows.get_mut(size_class(*size)) {
                class.push(step_u32(row));
            }
        }
        let of = |column: &[u32], rows: &[u32]| -> Vec<u32> {
            rows.iter().filter_map(|row| column.get(*row as usize).copied()).collect()
        };
        let class = |rows: Vec<u32>| {
            let mut ends = of(&self.ends, &rows);
            let index = IntervalIndex::new(of(&self.starts, &rows), ends.clone());
            ends.sort_unstable();
            SizeClass { rows, index, ends }
        };
        self.classes = rows.into_iter().map(class).collect();
        self.reserved.sort_by_key(|reserved| reserved.start);
        self.reserved_index = IntervalIndex::new(
            self.reserved.iter().map(|reserved| reserved.start).collect(),
            self.reserved.iter().map(|reserved| reserved.end).collect(),
        );
        self.busiest = busiest_levels(&self.active);
    }
}

/// For each group of moments the moment with the most active bytes; each further level has the same for
/// groups of the level before. Of equal moments the first is taken.
fn busiest_levels(active: &[u32]) -> Vec<Vec<u32>> {
    let value = |moment: u32| active.get(moment as usize).copied().unwrap_or(0);
    let best = |moments: &[u32]| {
        // Strictly more, so that the first of equal moments is kept.
        moments.iter().copied().reduce(|best, moment| if value(moment) > value(best) { moment } else { best })
    };
    let mut level: Vec<u32> = (0..step_u32(active.len())).collect();
    let mut levels = Vec::new();
    while level.len() > GROUP {
        level = level.chunks(GROUP).filter_map(best).collect();
        levels.push(level.clone());
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_most_of_a_range_is_found_by_groups(
            active in prop::collection::vec(0_u32..1000, 1..5000),
            range in (0_usize..5000, 0_usize..5000),
        ) {
            let (from, to) = (range.0.min(range.1), range.0.max(range.1));
            let within = active.iter().take(to).skip(from).copied().max().unwrap_or(0);
            let mut allocations = Allocations { moments: active.len(), active, ..Allocations::default() };
            allocations.busiest = busiest_levels(&allocations.active);
            prop_assert_eq!(allocations.most_units(from, to), within);
        }
    }
}
