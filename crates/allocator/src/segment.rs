//! A segment's chain of blocks: splits, merges, and where free blocks wait.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, Event, EventSink, SegmentId};

use crate::CachingAllocator;
use crate::block::{Block, BlockIndex};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Cuts the low `size` bytes off as a new block; the old block keeps the rest and becomes cached.
    pub(crate) fn split(&mut self, index: BlockIndex, size: Bytes) -> BlockIndex {
        let front = self.cut_below(index, size);
        self.put_in_pool(index);
        let (block, front_id) = (self.blocks[index].id, self.blocks[front].id);
        self.sink.record(Event::Split { block, front: front_id, size });
        front
    }

    /// Moves the low `size` bytes to a new block, which it returns; the old block keeps the rest. Neither is put in a pool.
    pub(crate) fn cut_below(&mut self, index: BlockIndex, size: Bytes) -> BlockIndex {
        let id = self.blocks.mint();
        let old = &self.blocks[index];
        let previous = old.previous;
        let front = Block { previous, next: Some(index), ..old.part(id, old.addr, size) };
        let front = self.blocks.insert(front);
        if let Some(previous) = previous {
            self.blocks[previous].next = Some(front);
        }
        let rest = &mut self.blocks[index];
        rest.previous = Some(front);
        rest.addr = rest.addr.offset(size);
        rest.size -= size;
        front
    }

    /// Makes a block reusable and merges it with inactive neighbors (`free_block`).
    pub(crate) fn complete_free(&mut self, index: BlockIndex) {
        let block = &mut self.blocks[index];
        let (id, pool) = (block.id, block.pool);
        block.state = BlockState::Inactive;
        self.sink.record(Event::FreeCompleted { block: id });
        let (absorbed_count, absorbed_bytes) = self.merge_neighbors(index);
        self.put_in_pool(index);
        let block = &self.blocks[index];
        let (count, bytes) = if block.is_split() { (1, block.size.signed()) } else { (0, 0) };
        if !block.is_expandable {
            self.counters.rests_changed(pool, count - absorbed_count, bytes - absorbed_bytes);
        }
    }

    /// Takes over neighbors of the same kind, first the lower one; returns how many and how many bytes.
    pub(crate) fn merge_neighbors(&mut self, index: BlockIndex) -> (i64, i64) {
        let block = &self.blocks[index];
        let (previous, next) = (block.previous, block.next);
        let absorbed =
            [previous, next].map(|neighbor| neighbor.and_then(|neighbor| self.merge(index, neighbor)));
        absorbed.into_iter().flatten().fold((0, 0), |(count, bytes), size| (count + 1, bytes + size.signed()))
    }

    /// Lets `index` take over its neighbor `other`, if both are cached or both unmapped; returns the bytes gained (`try_merge_blocks`).
    pub(crate) fn merge(&mut self, index: BlockIndex, other: BlockIndex) -> Option<Bytes> {
        if self.blocks[other].state != self.blocks[index].state || self.blocks[other].state.is_active() {
            return None;
        }
        self.take_from_pool(other);
        let gone = self.blocks[other];
        let block = &mut self.blocks[index];
        if block.previous == Some(other) {
            block.addr = gone.addr;
            block.previous = gone.previous;
            if let Some(previous) = gone.previous {
                self.blocks[previous].next = Some(index);
            }
        } else {
            block.next = gone.next;
            if let Some(next) = gone.next {
                self.blocks[next].previous = Some(index);
            }
        }
        let block = &mut self.blocks[index];
        block.size += gone.size;
        let id = block.id;
        self.blocks.remove(other);
        self.sink.record(Event::Merged { block: id, absorbed: gone.id });
        Some(gone.size)
    }

    pub(crate) fn mint_segment(&mut self) -> SegmentId {
        let segment = SegmentId::new(self.segments);
        self.segments = self.segments.wrapping_add(1);
        segment
    }

    /// Puts an inactive or unmapped block where it can be found.
    pub(crate) fn put_in_pool(&mut self, index: BlockIndex) {
        let block = &mut self.blocks[index];
        let set = &mut self.free_sets[block.set];
        block.calls_when_freed = self.pools[set.owner].half(block.pool).calls;
        if block.state == BlockState::Unmapped {
            set.unmapped.insert((block.addr, index));
        } else {
            set.cached.insert(index, &self.blocks);
        }
    }

    pub(crate) fn take_from_pool(&mut self, index: BlockIndex) {
        let block = &self.blocks[index];
        let set = &mut self.free_sets[block.set];
        if block.state == BlockState::Unmapped {
            set.unmapped.remove(&(block.addr, index));
        } else {
            set.cached.remove(index, block);
        }
    }
}
