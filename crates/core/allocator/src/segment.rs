//! The chain of blocks of a segment: splits, merges, and the free lists.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, Event, EventSink, SegmentId};

use crate::CachingAllocator;
use crate::block::{Block, BlockIndex};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Moves the low `size` bytes to a new block and returns it; the old block keeps the remainder. Neither
    /// is put in a free list.
    pub(crate) fn cut_below(&mut self, index: BlockIndex, size: Bytes) -> BlockIndex {
        let id = self.blocks.new_id();
        let old = &self.blocks[index];
        let previous = old.previous;
        let front = Block { previous, next: Some(index), ..old.part(id, old.addr, size) };
        let front = self.blocks.insert(front);
        if let Some(previous) = previous {
            self.blocks[previous].next = Some(front);
        }
        let remainder = &mut self.blocks[index];
        remainder.previous = Some(front);
        remainder.addr = remainder.addr.offset(size);
        remainder.size -= size;
        front
    }

    /// Completes the free of a block and merges it with inactive neighbors, first with the lower one
    /// (`free_block`). `IS_RECORDED` says whether the sink gets the events.
    #[expect(clippy::inline_always, reason = "most frees complete at once")]
    #[inline(always)]
    pub(crate) fn complete_free<const IS_RECORDED: bool>(&mut self, index: BlockIndex) {
        // Single fields are loaded and stored, never the whole block: a wide load after narrow stores has to
        // wait for them.
        let (places, vacant) = self.blocks.places();
        let block = &places[index.place()];
        let Block { id, pool, is_expandable, list, previous, next, size: own, .. } = *block;
        let (mut addr, mut size, mut before, mut after) = (block.addr, own, previous, next);
        // All blocks of a segment have the same free list.
        let list = &mut self.free_lists[list];
        if IS_RECORDED {
            self.sink.record(Event::FreeCompleted { block: id });
        }
        let mut absorbed = 0_i64;
        let lower = &mut places[BlockIndex::place_of(previous)];
        if let (BlockState::Inactive, Some(lower_index)) = (lower.state, previous) {
            list.cached.remove(lower_index, lower.size, lower.addr);
            addr = lower.addr;
            size += lower.size;
            before = lower.previous;
            absorbed += 1;
            if IS_RECORDED {
                self.sink.record(Event::Merged { block: id, absorbed: lower.id });
            }
            lower.vacate(lower_index, vacant);
            places[BlockIndex::place_of(before)].next = Some(index);
        }
        let upper = &mut places[BlockIndex::place_of(next)];
        if let (BlockState::Inactive, Some(upper_index)) = (upper.state, next) {
            list.cached.remove(upper_index, upper.size, upper.addr);
            size += upper.size;
            after = upper.next;
            absorbed += 1;
            if IS_RECORDED {
                self.sink.record(Event::Merged { block: id, absorbed: upper.id });
            }
            upper.vacate(upper_index, vacant);
            places[BlockIndex::place_of(after)].previous = Some(index);
        }
        let block = &mut places[index.place()];
        block.state = BlockState::Inactive;
        block.addr = addr;
        block.size = size;
        block.previous = before;
        block.next = after;
        block.calls_when_freed = list.calls;
        let is_split = before.is_some() | after.is_some();
        list.cached.insert(index, size, addr, &self.blocks);
        if !is_expandable {
            // The absorbed blocks counted as inactive splits before. A block that is a whole segment again
            // does not count.
            let kept = if is_split { size.get() } else { 0 };
            let bytes = kept.wrapping_sub(size.get() - own.get()).cast_signed();
            self.counters.splits_changed(pool, i64::from(is_split) - absorbed, bytes);
        }
    }

    /// Merges the block with neighbors in the same state, first with the lower one.
    pub(crate) fn merge_neighbors(&mut self, index: BlockIndex) {
        let Block { previous, next, .. } = self.blocks[index];
        for neighbor in [previous, next].into_iter().flatten() {
            self.merge(index, neighbor);
        }
    }

    /// Merges the neighbor `other` into `index`, if both are inactive or both unmapped (`try_merge_blocks`).
    fn merge(&mut self, index: BlockIndex, other: BlockIndex) {
        if self.blocks[other].state != self.blocks[index].state || self.blocks[other].state.is_active() {
            return;
        }
        self.take_from_pool(other);
        let absorbed = self.blocks[other];
        let block = &mut self.blocks[index];
        if block.previous == Some(other) {
            block.addr = absorbed.addr;
            block.previous = absorbed.previous;
            if let Some(previous) = absorbed.previous {
                self.blocks[previous].next = Some(index);
            }
        } else {
            block.next = absorbed.next;
            if let Some(next) = absorbed.next {
                self.blocks[next].previous = Some(index);
            }
        }
        let block = &mut self.blocks[index];
        block.size += absorbed.size;
        let id = block.id;
        self.blocks.remove(other);
        self.sink.record(Event::Merged { block: id, absorbed: absorbed.id });
    }

    /// The id that the next new segment gets; each call takes one.
    pub(crate) fn new_segment_id(&mut self) -> SegmentId {
        loop {
            let segment = SegmentId::new(self.next_segment_id);
            // After 2^32 segments the numbers begin again. Expandable segments are looked up by their id, so
            // the id of a segment that still exists is skipped.
            self.next_segment_id = self.next_segment_id.wrapping_add(1);
            if !self.expandable_segments.contains_key(&segment) {
                return segment;
            }
        }
    }

    /// Puts an inactive or unmapped block into its free list.
    #[inline]
    pub(crate) fn put_in_pool(&mut self, index: BlockIndex) {
        let block = &mut self.blocks[index];
        let list = &mut self.free_lists[block.list];
        block.calls_when_freed = list.calls;
        let (size, addr) = (block.size, block.addr);
        if block.state == BlockState::Unmapped {
            list.unmapped.insert((addr, index));
        } else {
            list.cached.insert(index, size, addr, &self.blocks);
        }
    }

    pub(crate) fn take_from_pool(&mut self, index: BlockIndex) {
        let block = &self.blocks[index];
        let list = &mut self.free_lists[block.list];
        if block.state == BlockState::Unmapped {
            list.unmapped.remove(&(block.addr, index));
        } else {
            list.cached.remove(index, block.size, block.addr);
        }
    }
}
