//! The effect of each event on a state.

use super::{BlockEntry, MemoryState, SegmentEntry, StateError};
use crate::{AllocationId, BlockId, BlockState, Bytes, DeviceAddr, SegmentId};

impl MemoryState {
    pub(super) fn add_segment(
        &mut self,
        block: BlockId,
        addr: DeviceAddr,
        mut entry: SegmentEntry,
    ) -> Result<(), StateError> {
        let end = addr.offset(entry.size);
        let below = self.segments.range(..end).next_back();
        if below.is_some_and(|(other, found)| other.offset(found.size) > addr) {
            return Err(StateError::Overlap(entry.id));
        }
        entry.first = self.insert(BlockEntry {
            id: block,
            segment: addr,
            addr,
            size: entry.size,
            requested: Bytes::ZERO,
            state: if entry.is_expandable { BlockState::Unmapped } else { BlockState::Inactive },
            allocation: None,
            streams: Vec::new(),
            previous: None,
            next: None,
        })?;
        self.segment_addrs.insert(entry.id, addr);
        self.segments.insert(addr, entry);
        Ok(())
    }

    pub(super) fn remove_segment(
        &mut self,
        id: SegmentId,
        state: BlockState,
    ) -> Result<SegmentEntry, StateError> {
        let addr = self.segment_addrs.remove(&id).ok_or(StateError::UnknownSegment(id))?;
        let segment = self.segments.remove(&addr).ok_or(StateError::UnknownSegment(id))?;
        let block = self.slots.get(segment.first as usize).ok_or(StateError::UnknownSegment(id))?;
        let block_id = block.id;
        if block.state != state || block.next.is_some() {
            return Err(StateError::Unfitting(block_id));
        }
        self.remove(block_id);
        Ok(segment)
    }

    pub(super) fn is_expandable(&self, block: &BlockEntry) -> bool {
        self.segments.get(&block.segment).is_some_and(|segment| segment.is_expandable)
    }

    pub(super) fn map(
        &mut self,
        id: BlockId,
        size: Bytes,
        remainder: Option<BlockId>,
    ) -> Result<(), StateError> {
        let block = self.find(id)?;
        let fits = if remainder.is_some() { size < block.size } else { size == block.size };
        if block.state != BlockState::Unmapped || size.is_zero() || !fits {
            return Err(StateError::Unfitting(id));
        }
        let pool = self.pool_of(block);
        if let Some(remainder) = remainder {
            self.cut_above(id, remainder, size, BlockState::Unmapped)?;
        }
        self.find_mut(id)?.state = BlockState::Inactive;
        self.stats.mapped(pool, size);
        Ok(())
    }

    pub(super) fn unmap(
        &mut self,
        id: BlockId,
        before: Option<(BlockId, Bytes)>,
        after: Option<(BlockId, Bytes)>,
    ) -> Result<(), StateError> {
        let block = self.find(id)?;
        let pool = self.pool_of(block);
        let leftover = |part: Option<(BlockId, Bytes)>| part.map_or(Bytes::ZERO, |(_, size)| size);
        let leftovers = leftover(before).saturating_add(leftover(after));
        if block.state != BlockState::Inactive || leftovers >= block.size || !self.is_expandable(block) {
            return Err(StateError::Unfitting(id));
        }
        // Blocks come in the order of their numbers: an allocator makes either of the two first.
        let is_after_first = before.zip(after).is_some_and(|((before, _), (after, _))| after < before);
        if let Some((before, size)) = before.filter(|_| !is_after_first) {
            self.cut_below(id, before, size)?;
        }
        if let Some((after, size)) = after {
            let kept = self.find(id)?.size.checked_sub(size).ok_or(StateError::Unfitting(id))?;
            self.cut_above(id, after, kept, BlockState::Inactive)?;
        }
        if let Some((before, size)) = before.filter(|_| is_after_first) {
            self.cut_below(id, before, size)?;
        }
        let block = self.find_mut(id)?;
        block.state = BlockState::Unmapped;
        let size = block.size;
        self.stats.unmapped(pool, size);
        Ok(())
    }

    /// Keeps the low `size` bytes of the block; the new block `above` is the remainder.
    pub(super) fn cut_above(
        &mut self,
        id: BlockId,
        above: BlockId,
        size: Bytes,
        state: BlockState,
    ) -> Result<(), StateError> {
        let slot = self.slot(id)?;
        let old = self.find(id)?.clone();
        let remainder = old.size.checked_sub(size).ok_or(StateError::Unfitting(id))?;
        let above_slot = self.insert(BlockEntry {
            id: above,
            addr: old.addr.offset(size),
            size: remainder,
            requested: Bytes::ZERO,
            state,
            streams: Vec::new(),
            previous: Some(slot),
            ..old
        })?;
        if let Some(next) = old.next.and_then(|slot| self.slots.get_mut(slot as usize)) {
            next.previous = Some(above_slot);
        }
        let block = self.find_mut(id)?;
        block.size = size;
        block.next = Some(above_slot);
        Ok(())
    }

    /// Moves the low `size` bytes of the block to the new block `below`.
    pub(super) fn cut_below(&mut self, id: BlockId, below: BlockId, size: Bytes) -> Result<(), StateError> {
        let slot = self.slot(id)?;
        let old = self.find(id)?.clone();
        let left = old.size.checked_sub(size).ok_or(StateError::Unfitting(id))?;
        let below_slot = self.insert(BlockEntry {
            id: below,
            size,
            requested: Bytes::ZERO,
            next: Some(slot),
            streams: Vec::new(),
            ..old
        })?;
        let remainder = self.find_mut(id)?;
        remainder.addr = old.addr.offset(size);
        remainder.size = left;
        remainder.previous = Some(below_slot);
        match old.previous.and_then(|slot| self.slots.get_mut(slot as usize)) {
            Some(previous) => previous.next = Some(below_slot),
            None => {
                if let Some(segment) = self.segments.get_mut(&old.segment) {
                    segment.first = below_slot;
                }
            }
        }
        Ok(())
    }

    pub(super) fn split(&mut self, id: BlockId, front: BlockId, size: Bytes) -> Result<(), StateError> {
        let block = self.find(id)?;
        if block.state.is_active() || size >= block.size || size.is_zero() {
            return Err(StateError::Unfitting(id));
        }
        let (pool, was_whole, is_expandable) =
            (self.pool_of(block), block.is_whole(), self.is_expandable(block));
        let remainder = block.size.checked_sub(size).ok_or(StateError::Unfitting(id))?;
        self.cut_below(id, front, size)?;
        if is_expandable {
            // PyTorch counts inactive splits only in segments that the driver allocated whole.
        } else if was_whole {
            self.stats.inactive_split_changed(pool, 1, remainder.signed());
        } else {
            self.stats.inactive_split_changed(pool, 0, size.signed().saturating_neg());
        }
        self.fresh_front = Some(front);
        Ok(())
    }

    pub(super) fn allocate(
        &mut self,
        id: BlockId,
        allocation: AllocationId,
        requested: Bytes,
        is_oversize: bool,
    ) -> Result<(), StateError> {
        let is_fresh = self.fresh_front.take() == Some(id);
        let block = self.find_mut(id)?;
        if block.state != BlockState::Inactive || requested > block.size {
            return Err(StateError::Unfitting(id));
        }
        block.state = BlockState::Allocated;
        block.requested = requested;
        block.allocation = Some(allocation);
        let (size, is_whole) = (block.size, block.is_whole());
        let block = self.find(id)?;
        let (pool, is_expandable) = (self.pool_of(block), self.is_expandable(block));
        if !is_fresh && !is_whole && !is_expandable {
            self.stats.inactive_split_changed(pool, -1, size.signed().saturating_neg());
        }
        self.requested = self.requested.saturating_add(requested);
        self.stats.allocated(pool, size, requested, is_oversize);
        Ok(())
    }

    pub(super) fn request_free(&mut self, id: BlockId, is_oversize: bool) -> Result<(), StateError> {
        let block = self.find_mut(id)?;
        if block.state != BlockState::Allocated {
            return Err(StateError::Unfitting(id));
        }
        block.state = BlockState::PendingFree;
        let (size, requested) = (block.size, block.requested);
        let pool = self.pool_of(self.find(id)?);
        self.requested = self.requested.saturating_sub(requested);
        self.stats.free_requested(pool, size, is_oversize);
        Ok(())
    }

    /// Completes the free of a block. The effect of the merges that follow on `inactive_split` is counted
    /// here already, because PyTorch changes this statistic once, by the net effect.
    pub(super) fn complete_free(&mut self, id: BlockId) -> Result<(), StateError> {
        let block = self.find(id)?;
        if block.state != BlockState::PendingFree {
            return Err(StateError::Unfitting(id));
        }
        let (size, requested, pool) = (block.size, block.requested, self.pool_of(block));
        let neighbor = |slot: Option<u32>| slot.and_then(|slot| self.slots.get(slot as usize));
        let (mut absorbed, mut absorbed_bytes, mut is_split) = (0_i64, 0_i64, false);
        for (near, far) in [
            (neighbor(block.previous), neighbor(block.previous).and_then(|block| block.previous)),
            (neighbor(block.next), neighbor(block.next).and_then(|block| block.next)),
        ] {
            match near {
                Some(near) if near.state == BlockState::Inactive => {
                    absorbed = absorbed.saturating_add(1);
                    absorbed_bytes = near.size.signed().saturating_add(absorbed_bytes);
                    is_split |= far.is_some();
                }
                Some(_) => is_split = true,
                None => {}
            }
        }
        let enlarged = size.signed().saturating_add(absorbed_bytes);
        if !self.is_expandable(block) {
            self.stats.inactive_split_changed(
                pool,
                i64::from(is_split).saturating_sub(absorbed),
                if is_split { enlarged } else { 0 }.saturating_sub(absorbed_bytes),
            );
        }
        self.stats.free_completed(pool, size, requested);
        let block = self.find_mut(id)?;
        block.state = BlockState::Inactive;
        block.allocation = None;
        block.streams = Vec::new();
        Ok(())
    }

    pub(super) fn merge(&mut self, id: BlockId, absorbed: BlockId) -> Result<(), StateError> {
        let slot = self.slot(id)?;
        let gone_slot = self.slot(absorbed)?;
        let gone = self.find(absorbed)?.clone();
        let block = self.find(id)?;
        if block.state.is_active() || gone.state != block.state {
            return Err(StateError::Unfitting(absorbed));
        }
        if block.previous == Some(gone_slot) {
            let block = self.find_mut(id)?;
            block.addr = gone.addr;
            block.size = block.size.saturating_add(gone.size);
            block.previous = gone.previous;
            match gone.previous.and_then(|slot| self.slots.get_mut(slot as usize)) {
                Some(previous) => previous.next = Some(slot),
                None => {
                    if let Some(segment) = self.segments.get_mut(&gone.segment) {
                        segment.first = slot;
                    }
                }
            }
        } else if block.next == Some(gone_slot) {
            let block = self.find_mut(id)?;
            block.size = block.size.saturating_add(gone.size);
            block.next = gone.next;
            if let Some(next) = gone.next.and_then(|slot| self.slots.get_mut(slot as usize)) {
                next.previous = Some(slot);
            }
        } else {
            return Err(StateError::Unfitting(absorbed));
        }
        self.remove(absorbed);
        Ok(())
    }
}
