//! The memory when a trace begins, found by going back from the final segments.
//!
//! Going back, an allocation takes a block away, a completed free brings one back as pending, and a requested free makes it
//! allocated; segments and pages come and go the other way round. What is left at the first entry was there before it. Where a
//! trace and the segments contradict each other, what is left is counted and goes by the segments.

use std::collections::BTreeMap;

use blockyard_record::{BlockState, Bytes, PoolId, PoolKind, StackId, StreamId, TraceAction};

use super::{DeviceSnapshot, SnapshotSegment};

/// The only size of segments of the small pool, which no segment of the large pool has.
pub(super) const SMALL_SEGMENT: Bytes = Bytes::mib(2);

/// The memory that is left at the first entry, by address.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Segments that the driver gave whole.
    pub(super) segments: BTreeMap<u64, PastSegment>,
    /// Memory of expandable segments: where each piece ends and its stream. Pieces of one stream do not touch.
    pub(super) pages: BTreeMap<u64, (u64, StreamId)>,
    /// Blocks in use.
    pub(super) blocks: BTreeMap<u64, PastBlock>,
    /// For each allocation of the trace that lives to its end, in reverse order: its entry and its block's size.
    pub(super) sizes_at_end: Vec<(u32, Bytes)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PastSegment {
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
    pub(super) pool: PoolKind,
    pub(super) pool_id: PoolId,
    pub(super) stack: StackId,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PastBlock {
    pub(super) requested: Bytes,
    /// Its size, where the final segments show it.
    pub(super) size: Option<Bytes>,
    pub(super) is_pending: bool,
    pub(super) stack: StackId,
}

impl Past {
    pub(super) fn of(device: &DeviceSnapshot) -> Self {
        let mut past = Self::default();
        for segment in &device.segments {
            past.add_final(segment);
        }
        for index in (0..device.trace.len()).rev() {
            past.undo(device, index);
        }
        past
    }

    fn add_final(&mut self, segment: &SnapshotSegment) {
        let SnapshotSegment { addr, size, stream, pool, pool_id, stack, .. } = *segment;
        if size.is_zero() {
            return;
        }
        if segment.is_expandable {
            self.add_pages(addr, size, stream);
        } else {
            self.segments.insert(addr, PastSegment { size, stream, pool, pool_id, stack });
        }
        for block in segment.blocks.iter().filter(|block| block.state.is_active() && !block.size.is_zero()) {
            let requested = block.requested.unwrap_or(block.size).min(block.size);
            let is_pending = block.state == BlockState::PendingFree;
            let past = PastBlock { requested, size: Some(block.size), is_pending, stack: block.stack };
            self.blocks.insert(block.addr(), past);
        }
    }

    fn undo(&mut self, device: &DeviceSnapshot, index: usize) {
        let Some(entry) = device.trace.entry(index) else { return };
        let (addr, size) = (entry.addr, entry.size);
        match entry.action {
            TraceAction::Alloc => {
                let size = self.blocks.remove(&addr).and_then(|block| block.size);
                if let (Some(size), Ok(index)) = (size, u32::try_from(index)) {
                    self.sizes_at_end.push((index, size));
                }
            }
            TraceAction::FreeCompleted => {
                self.blocks.insert(
                    addr,
                    PastBlock { requested: size, size: None, is_pending: true, stack: StackId::EMPTY },
                );
            }
            TraceAction::FreeRequested => {
                let block =
                    PastBlock { requested: size, size: None, is_pending: false, stack: StackId::EMPTY };
                self.blocks.entry(addr).or_insert(block).is_pending = false;
            }
            TraceAction::SegmentAlloc => {
                self.segments.remove(&addr);
                self.remove_blocks(addr, size);
            }
            TraceAction::SegmentFree => {
                let pool = if size == SMALL_SEGMENT { PoolKind::Small } else { PoolKind::Large };
                let (stream, pool_id) = (entry.stream, PoolId::DEFAULT);
                // A segment that is still there at the end cannot have gone.
                // None ends behind the last address.
                let Some(end) = addr.checked_add(size.get()) else { return };
                let overlaps = self.segments.range(..end).next_back();
                if !size.is_zero()
                    && overlaps.is_none_or(|(base, other)| base.saturating_add(other.size.get()) <= addr)
                {
                    self.segments
                        .insert(addr, PastSegment { size, stream, pool, pool_id, stack: StackId::EMPTY });
                }
            }
            TraceAction::SegmentMap => {
                self.remove_pages(addr, size);
                self.remove_blocks(addr, size);
            }
            TraceAction::SegmentUnmap => self.add_pages(addr, size, entry.stream),
            TraceAction::Snapshot | TraceAction::OutOfMemory => {}
        }
    }

    /// Blocks of memory that was not there yet: their allocations are missing in the trace.
    fn remove_blocks(&mut self, addr: u64, size: Bytes) {
        let end = addr.saturating_add(size.get());
        while let Some((block, _)) = self.blocks.range(addr..end).next() {
            let block = *block;
            self.blocks.remove(&block);
        }
    }

    fn add_pages(&mut self, addr: u64, size: Bytes, stream: StreamId) {
        add_range(&mut self.pages, addr, addr.saturating_add(size.get()), stream);
    }

    fn remove_pages(&mut self, addr: u64, size: Bytes) {
        let end = addr.saturating_add(size.get());
        while let Some((start, (above, stream))) =
            self.pages.range(..end).next_back().map(|(start, piece)| (*start, *piece))
        {
            if above <= addr {
                break;
            }
            self.pages.remove(&start);
            if above > end {
                self.pages.insert(end, (above, stream));
            }
            if start < addr {
                self.pages.insert(start, (addr, stream));
            }
        }
    }
}

/// Adds a range to ranges that do not overlap. Ranges of one stream that touch become one range.
pub(super) fn add_range(ranges: &mut BTreeMap<u64, (u64, StreamId)>, addr: u64, end: u64, stream: StreamId) {
    let (mut start, mut end) = (addr, end);
    if start >= end {
        return;
    }
    while let Some((below, (above, of))) =
        ranges.range(..=end).next_back().map(|(below, piece)| (*below, *piece))
    {
        let touches = above >= start;
        let overlaps = above > start && below < end;
        if !touches || (of != stream && !overlaps) {
            // One of another stream may hide one of this stream that touches at the other side.
            if of != stream && below == end {
                let next = ranges.range(..end).next_back().map(|(below, piece)| (*below, *piece));
                if let Some((below, (above, of))) = next
                    && above >= start
                    && (of == stream || above > start)
                {
                    ranges.remove(&below);
                    start = start.min(below);
                    end = end.max(above);
                    continue;
                }
            }
            break;
        }
        ranges.remove(&below);
        start = start.min(below);
        end = end.max(above);
    }
    ranges.insert(start, (end, stream));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let stream = StreamId::new;
        let mut ranges = BTreeMap::new();
        for (start, end, of) in [(10, 20, 0), (30, 40, 0), (40, 50, 7), (20, 30, 0), (60, 70, 0), (65, 80, 0)]
        {
            add_range(&mut ranges, start, end, stream(of));
        }
        let found: Vec<_> = ranges.into_iter().collect();
        assert_eq!(found, [(10, (40, stream(0))), (40, (50, stream(7))), (60, (80, stream(0)))]);
    }
}
