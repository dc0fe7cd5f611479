//! A segment's chain of blocks: splits, merges, and where free blocks wait.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockState, Bytes, Event, EventSink, SegmentId};

use crate::CachingAllocator;
use crate::block::{Block, BlockIndex};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
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

    /// Makes a block reusable and merges it with cached neighbors, first the lower one (`free_block`).
    #[inline]
    pub(crate) fn complete_free(&mut self, index: BlockIndex) {
        let mut block = self.blocks[index];
        let id = block.id;
        self.sink.record(Event::FreeCompleted { block: id });
        // Blocks of one segment have one free set.
        let set = &mut self.free_sets[block.set];
        let own = block.size;
        let mut absorbed = 0;
        if let Some(lower) = block.previous {
            let other = &self.blocks[lower];
            if other.state == BlockState::Inactive {
                let (other_id, other_size, previous) = (other.id, other.size, other.previous);
                block.addr = other.addr;
                block.size += other_size;
                block.previous = previous;
                set.cached.remove(lower, other_size, block.addr);
                if let Some(previous) = previous {
                    self.blocks[previous].next = Some(index);
                }
                self.blocks.remove(lower);
                absorbed += 1;
                self.sink.record(Event::Merged { block: id, absorbed: other_id });
            }
        }
        if let Some(upper) = block.next {
            let other = &self.blocks[upper];
            if other.state == BlockState::Inactive {
                let (other_id, other_size, other_addr, next) = (other.id, other.size, other.addr, other.next);
                block.size += other_size;
                block.next = next;
                set.cached.remove(upper, other_size, other_addr);
                if let Some(next) = next {
                    self.blocks[next].previous = Some(index);
                }
                self.blocks.remove(upper);
                absorbed += 1;
                self.sink.record(Event::Merged { block: id, absorbed: other_id });
            }
        }
        block.state = BlockState::Inactive;
        block.calls_when_freed = set.calls;
        self.blocks[index] = block;
        set.cached.insert(index, block.size, block.addr, &self.blocks);
        if !block.is_expandable {
            if block.is_split() {
                self.counters.rest_grown(block.pool, absorbed, own);
            } else {
                self.counters.rests_lost(block.pool, absorbed, block.size - own);
            }
        }
    }

    /// Takes over neighbors of the same kind, first the lower one.
    pub(crate) fn merge_neighbors(&mut self, index: BlockIndex) {
        let Block { previous, next, .. } = self.blocks[index];
        for neighbor in [previous, next].into_iter().flatten() {
            self.merge(index, neighbor);
        }
    }

    /// Lets `index` take over its neighbor `other`, if both are cached or both unmapped (`try_merge_blocks`).
    fn merge(&mut self, index: BlockIndex, other: BlockIndex) {
        if self.blocks[other].state != self.blocks[index].state || self.blocks[other].state.is_active() {
            return;
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
    }

    pub(crate) fn mint_segment(&mut self) -> SegmentId {
        let segment = SegmentId::new(self.segments);
        self.segments = self.segments.wrapping_add(1);
        segment
    }

    /// Puts an inactive or unmapped block where it can be found.
    #[inline]
    pub(crate) fn put_in_pool(&mut self, index: BlockIndex) {
        let block = &mut self.blocks[index];
        let set = &mut self.free_sets[block.set];
        block.calls_when_freed = set.calls;
        let (size, addr) = (block.size, block.addr);
        if block.state == BlockState::Unmapped {
            set.unmapped.insert((addr, index));
        } else {
            set.cached.insert(index, size, addr, &self.blocks);
        }
    }

    pub(crate) fn take_from_pool(&mut self, index: BlockIndex) {
        let block = &self.blocks[index];
        let set = &mut self.free_sets[block.set];
        if block.state == BlockState::Unmapped {
            set.unmapped.remove(&(block.addr, index));
        } else {
            set.cached.remove(index, block.size, block.addr);
        }
    }
}
