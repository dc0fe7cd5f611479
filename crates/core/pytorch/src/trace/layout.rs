//! Segments and blocks as a trace says they are, and the events that lead from one entry to the next.
//!
//! Only the geometry decides: a block that begins or ends inside of free space splits it, and free
//! neighbors merge. Where an entry does not fit, the memory it names is made fit and that is counted.

use std::collections::BTreeMap;

use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, Event, EventSink, PoolId, PoolKind,
    Recorder, SegmentId, SegmentSnapshot, Snapshot, StreamId, next_u32,
};

/// How many entries of each kind did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Blocks that were allocated again, or whose memory went away, without a free.
    pub missing_frees: usize,
    /// Frees of blocks that were not in use.
    pub unmatched_frees: usize,
    /// Allocations in memory that no segment has; they are left out.
    pub allocations_outside: usize,
    /// Segments and pages that were added over existing ones, or that were removed without having existed.
    pub segments: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    id: SegmentId,
    pub(crate) end: u64,
    pub(crate) pool: PoolKind,
    pub(crate) is_expandable: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    id: BlockId,
    end: u64,
    state: BlockState,
}

impl Block {
    /// The bytes from `addr`, which lies in the block, to the block's end.
    fn size_from(&self, addr: u64) -> u64 {
        self.end.saturating_sub(addr)
    }
}

/// A new segment or range of addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSegment {
    pub(crate) addr: u64,
    pub(crate) size: Bytes,
    pub(crate) stream: StreamId,
    pub(crate) pool_id: PoolId,
    pub(crate) pool: PoolKind,
}

/// The memory of one device at one entry.
pub(crate) struct TraceMemory {
    pub(crate) recorder: Recorder,
    segments: BTreeMap<u64, Segment>,
    /// The blocks of all segments by address, without gaps inside of a segment.
    blocks: BTreeMap<u64, Block>,
    /// The number of the next segment.
    next_segment_id: u32,
    /// The number of the next block.
    next_block_id: u32,
    /// The number of the next allocation.
    next_allocation_id: u32,
    pub(crate) misfits: Misfits,
}

impl TraceMemory {
    /// The memory of the snapshot, whose identities are counted from 0 without gaps.
    pub(crate) fn new(recorder: Recorder, start: &Snapshot) -> Self {
        let mut layout = Self {
            recorder,
            segments: BTreeMap::new(),
            blocks: BTreeMap::new(),
            next_segment_id: 0,
            next_block_id: 0,
            next_allocation_id: 0,
            misfits: Misfits::default(),
        };
        for segment in &start.segments {
            let SegmentSnapshot { id, addr, size, pool, is_expandable, .. } = *segment;
            let end = addr.get().saturating_add(size.get());
            layout.segments.insert(addr.get(), Segment { id, end, pool, is_expandable });
            next_u32(&mut layout.next_segment_id);
            for block in &segment.blocks {
                let BlockSnapshot { id, addr, size, state, .. } = *block;
                let end = addr.get().saturating_add(size.get());
                layout.blocks.insert(addr.get(), Block { id, end, state });
                next_u32(&mut layout.next_block_id);
                if block.allocation.is_some() {
                    next_u32(&mut layout.next_allocation_id);
                }
            }
        }
        layout
    }

    /// The number of the next allocation.
    pub(crate) fn next_allocation(&self) -> AllocationId {
        AllocationId::new(self.next_allocation_id)
    }

    fn new_block(&mut self) -> BlockId {
        BlockId::new(next_u32(&mut self.next_block_id))
    }

    fn new_segment(&mut self) -> SegmentId {
        SegmentId::new(next_u32(&mut self.next_segment_id))
    }

    fn record(&mut self, event: Event) {
        self.recorder.record(event);
    }

    fn segment_at(&self, addr: u64) -> Option<(u64, Segment)> {
        let (base, segment) = self.segments.range(..=addr).next_back()?;
        (addr < segment.end).then_some((*base, *segment))
    }

    fn block_at(&self, addr: u64) -> Option<(u64, Block)> {
        // Most blocks are asked for by their beginning, which a search of a range takes several times as long
        // to find.
        if let Some(block) = self.blocks.get(&addr) {
            return Some((addr, *block)).filter(|(_, block)| addr < block.end);
        }
        let (start, block) = self.blocks.range(..=addr).next_back()?;
        (addr < block.end).then_some((*start, *block))
    }

    /// Where the allocated or pending block begins that has this address.
    pub(crate) fn active_start(&self, addr: u64) -> Option<u64> {
        self.block_at(addr).filter(|(_, block)| block.state.is_active()).map(|(start, _)| start)
    }

    /// The free space from `addr` on for an allocation there, and its segment. Blocks in the way are freed.
    pub(crate) fn make_room(&mut self, addr: u64, least: u64) -> Option<(u64, Segment)> {
        let (_, segment) = self.segment_at(addr)?;
        if addr.saturating_add(least) > segment.end {
            return None;
        }
        loop {
            let (start, block) = self.block_at(addr)?;
            match block.state {
                BlockState::Unmapped => return None,
                BlockState::Inactive if block.size_from(addr) >= least => {
                    return Some((block.size_from(addr), segment));
                }
                BlockState::Inactive => {
                    // The next block is in the way, or has no memory.
                    let (next, after) = self.block_at(block.end).filter(|(next, _)| *next < segment.end)?;
                    if !after.state.is_active() {
                        return None;
                    }
                    self.free_now(next);
                }
                BlockState::Allocated | BlockState::PendingFree => self.free_now(start),
            }
        }
    }

    /// Frees a block whose free is missing in the trace.
    fn free_now(&mut self, addr: u64) {
        self.misfits.missing_frees += 1;
        if self.blocks.get(&addr).is_some_and(|block| block.state == BlockState::Allocated) {
            self.request_free(addr);
        }
        self.complete_free(addr);
    }

    /// Allocates `size` bytes at `addr`, which [`Layout::make_room`] found free.
    pub(crate) fn allocate(&mut self, addr: u64, size: u64, requested: Bytes) {
        self.cut_front(addr);
        let Some(block) = self.blocks.get(&addr).copied() else { return };
        let mut taken = block;
        if size < block.size_from(addr) {
            let middle = addr.saturating_add(size);
            let front = self.new_block();
            self.record(Event::Split { block: block.id, front, size: Bytes::new(size) });
            self.blocks.insert(middle, block);
            taken = Block { id: front, end: middle, ..block };
        }
        let allocation = AllocationId::new(next_u32(&mut self.next_allocation_id));
        let event = Event::Allocated { block: taken.id, allocation, requested, is_oversize: false };
        self.record(event);
        self.blocks.insert(addr, Block { state: BlockState::Allocated, ..taken });
    }

    /// Makes a block begin at `addr`; the part in front of it keeps its state.
    fn cut_front(&mut self, addr: u64) {
        let Some((start, block)) = self.block_at(addr).filter(|(start, _)| *start < addr) else { return };
        let front = self.new_block();
        self.record(Event::Split { block: block.id, front, size: Bytes::new(addr.saturating_sub(start)) });
        self.blocks.insert(start, Block { id: front, end: addr, ..block });
        self.blocks.insert(addr, block);
    }

    /// Requests the free of the allocated block at `addr`; returns false if no allocated block begins there.
    pub(crate) fn request_free(&mut self, addr: u64) -> bool {
        let Some(block) = self.blocks.get_mut(&addr).filter(|block| block.state == BlockState::Allocated)
        else {
            return false;
        };
        block.state = BlockState::PendingFree;
        let block = block.id;
        self.record(Event::FreeRequested { block, is_oversize: false });
        true
    }

    /// Completes the free of the block at `addr`; returns false if no block with a pending free begins there.
    pub(crate) fn complete_free(&mut self, addr: u64) -> bool {
        let Some(block) = self.blocks.get_mut(&addr).filter(|block| block.state == BlockState::PendingFree)
        else {
            return false;
        };
        block.state = BlockState::Inactive;
        let id = block.id;
        self.record(Event::FreeCompleted { block: id });
        self.merge(addr);
        true
    }

    /// Merges the block with neighbors in the same state.
    fn merge(&mut self, addr: u64) {
        let Some(block) = self.blocks.get(&addr).copied() else { return };
        let Some((base, segment)) = self.segment_at(addr) else { return };
        let (mut start, mut end) = (addr, block.end);
        let below = self.blocks.range(..addr).next_back().map(|(start, block)| (*start, *block));
        if let Some((below, other)) =
            below.filter(|(below, other)| *below >= base && other.state == block.state)
        {
            self.record(Event::Merged { block: block.id, absorbed: other.id });
            self.blocks.remove(&addr);
            start = below;
        }
        let above = self.blocks.get(&end).copied().filter(|_| end < segment.end);
        if let Some(other) = above.filter(|other| other.state == block.state) {
            self.record(Event::Merged { block: block.id, absorbed: other.id });
            self.blocks.remove(&end);
            end = other.end;
        }
        self.blocks.insert(start, Block { end, ..block });
    }

    /// The device allocated a segment.
    pub(crate) fn add_segment(&mut self, new: NewSegment) {
        let NewSegment { addr, size, stream, pool_id, pool } = new;
        let Some(end) = addr.checked_add(size.get()).filter(|_| !size.is_zero()) else {
            self.misfits.segments += 1;
            return;
        };
        while let Some(base) = self.overlapping(addr, end) {
            self.misfits.segments += 1;
            self.remove_segment(base);
            if self.segments.contains_key(&base) {
                // A segment that cannot be removed stays, and the new segment is left out.
                return;
            }
        }
        let (segment, block) = (self.new_segment(), self.new_block());
        let device_addr = DeviceAddr::new(addr);
        self.record(Event::SegmentAllocated {
            segment,
            block,
            addr: device_addr,
            size,
            stream,
            pool_id,
            pool,
            is_oversize: false,
        });
        self.segments.insert(addr, Segment { id: segment, end, pool, is_expandable: false });
        self.blocks.insert(addr, Block { id: block, end, state: BlockState::Inactive });
    }

    fn overlapping(&self, addr: u64, end: u64) -> Option<u64> {
        let (base, segment) = self.segments.range(..end).next_back()?;
        (segment.end > addr).then_some(*base)
    }

    /// A segment was released; a release of an unknown segment does not fit and is counted.
    pub(crate) fn release_segment(&mut self, addr: u64) {
        match self.segments.get(&addr) {
            Some(segment) if !segment.is_expandable => self.remove_segment(addr),
            _ => self.misfits.segments += 1,
        }
    }

    fn remove_segment(&mut self, base: u64) {
        let Some(segment) = self.segments.get(&base).copied() else { return };
        self.free_all(base, segment.end);
        if segment.is_expandable {
            self.unmap(base, Bytes::new(segment.end.saturating_sub(base)));
            return;
        }
        self.record(Event::SegmentReleased { segment: segment.id, is_oversize: false });
        self.segments.remove(&base);
        self.blocks.remove(&base);
    }

    fn free_all(&mut self, from: u64, end: u64) {
        let mut addr = from;
        while addr < end {
            let Some((start, block)) = self.blocks.range(addr..end).next() else { break };
            let (start, block) = (*start, *block);
            // Freeing may merge the block with its neighbors.
            addr = block.end;
            if block.state.is_active() {
                self.free_now(start);
            }
        }
    }

    /// Memory was mapped into pages. `range` is the range of addresses that they belong to, which is reserved
    /// if it is not yet.
    pub(crate) fn map(&mut self, addr: u64, size: Bytes, range: NewSegment) {
        let Some(end) = addr.checked_add(size.get()).filter(|end| *end > addr) else {
            self.misfits.segments += 1;
            return;
        };
        if self.segment_at(addr).is_none_or(|(_, segment)| !segment.is_expandable) && !self.reserve(range) {
            self.misfits.segments += 1;
            return;
        }
        let mut at = addr;
        while at < end {
            let Some((_, block)) = self.block_at(at) else { break };
            if block.state != BlockState::Unmapped {
                self.misfits.segments += 1;
                at = block.end;
                continue;
            }
            self.cut_front(at);
            let whole = Bytes::new(block.size_from(at));
            let mapped = whole.min(Bytes::new(end.saturating_sub(at)));
            let remainder = (mapped < whole).then(|| self.new_block());
            self.record(Event::Mapped { block: block.id, size: mapped, remainder });
            let middle = at.saturating_add(mapped.get());
            self.blocks.insert(at, Block { id: block.id, end: middle, state: BlockState::Inactive });
            if let Some(remainder) = remainder {
                self.blocks.insert(middle, Block { id: remainder, ..block });
            }
            self.merge(at);
            at = middle;
        }
    }

    fn reserve(&mut self, range: NewSegment) -> bool {
        let NewSegment { addr, size, stream, pool_id, pool } = range;
        let Some(end) = addr.checked_add(size.get()).filter(|end| self.overlapping(addr, *end).is_none())
        else {
            return false;
        };
        let (segment, block) = (self.new_segment(), self.new_block());
        let device_addr = DeviceAddr::new(addr);
        self.record(Event::RangeReserved { segment, block, addr: device_addr, size, stream, pool_id, pool });
        self.segments.insert(addr, Segment { id: segment, end, pool, is_expandable: true });
        self.blocks.insert(addr, Block { id: block, end, state: BlockState::Unmapped });
        true
    }

    /// Memory was unmapped from pages.
    pub(crate) fn unmap(&mut self, addr: u64, size: Bytes) {
        let end = addr.saturating_add(size.get());
        let Some((base, segment)) = self.segment_at(addr).filter(|(_, segment)| segment.is_expandable) else {
            self.misfits.segments += 1;
            return;
        };
        let end = end.min(segment.end);
        if let Some((start, block)) = self.block_at(addr)
            && block.state.is_active()
        {
            self.free_now(start);
        }
        self.free_all(addr, end);
        let mut at = addr;
        while at < end {
            let Some((start, block)) = self.block_at(at) else { break };
            if block.state != BlockState::Inactive {
                at = block.end;
                continue;
            }
            // The part above is cut off first, and new blocks are numbered in the order in which they come.
            let after = (end < block.end).then(|| (self.new_block(), Bytes::new(block.size_from(end))));
            let before = (start < at).then(|| (self.new_block(), Bytes::new(at.saturating_sub(start))));
            self.record(Event::Unmapped { block: block.id, before, after });
            if let Some((id, _)) = before {
                self.blocks.insert(start, Block { id, end: at, ..block });
            }
            if let Some((id, _)) = after {
                self.blocks.insert(end, Block { id, ..block });
            }
            let middle = block.end.min(end);
            self.blocks.insert(at, Block { id: block.id, end: middle, state: BlockState::Unmapped });
            self.merge(at);
            at = middle;
        }
        let is_empty = self
            .blocks
            .get(&base)
            .is_some_and(|block| block.state == BlockState::Unmapped && block.end == segment.end);
        if is_empty {
            self.record(Event::RangeReleased { segment: segment.id });
            self.segments.remove(&base);
            self.blocks.remove(&base);
        }
    }
}
