//! Expandable segments: memory is mapped into reserved addresses page by page.
//!
//! A segment starts as one unmapped block. Mapping makes the low part of an unmapped block inactive.
//! Unmapping makes the whole pages inside an inactive block unmapped. In both cases the block is merged with
//! neighbors that have its new state.

use blockyard_device::{DeviceError, DeviceMemory};
use blockyard_record::{
    BlockState, Bytes, DeviceAddr, Event, EventSink, FailureCause, SegmentId, SegmentSnapshot,
};
use blockyard_rules::size;
use rustc_hash::FxHashMap;

use crate::block::{Block, BlockIndex};
use crate::request::AllocParams;
use crate::{AllocError, CachingAllocator};

/// The first address of an expandable segment, and the size of its pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpandableSegment {
    base: DeviceAddr,
    page: Bytes,
}

/// First address and page size by segment.
pub(crate) type ExpandableSegments = FxHashMap<SegmentId, ExpandableSegment>;

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// Adds an expandable segment of a snapshot. Its pages have the size that the settings give now.
    pub(crate) fn adopt_expandable(&mut self, segment: &SegmentSnapshot) {
        let page = size::page_size(segment.pool, &self.config);
        self.expandable_segments.insert(segment.id, ExpandableSegment { base: segment.addr, page });
        self.note_settings();
    }

    /// Maps pages for the request (`try_allocate_expandable_block`); `None` when the device has not enough
    /// memory.
    ///
    /// Pages that were mapped before a failure stay mapped and are cached.
    pub(crate) fn expand(&mut self, params: &AllocParams) -> Result<Option<BlockIndex>, AllocError> {
        let wanted = params.rounded;
        let mut candidate = match self.find_addresses(params) {
            Some(candidate) => candidate,
            None => match self.reserve_range(params)? {
                Some(candidate) => candidate,
                None => return Ok(None),
            },
        };
        let block = &self.blocks[candidate];
        if block.state == BlockState::Unmapped && !self.map(candidate, wanted.min(block.size))? {
            return Ok(None);
        }
        while self.blocks[candidate].size < wanted {
            let missing = wanted - self.blocks[candidate].size;
            // The addresses after the candidate are known to be free, and neighbors in the same state are
            // merged, so that an unmapped block follows.
            let Some(next) = self.blocks[candidate].next else {
                return Ok(None);
            };
            if !self.map(next, missing.min(self.blocks[next].size))? {
                return Ok(None);
            }
            candidate = next;
        }
        self.memory_pools[params.memory_pool].device_allocations += 1;
        self.take_from_pool(candidate);
        Ok(Some(candidate))
    }

    /// The lowest run of inactive and unmapped blocks of the stream that is long enough
    /// (`find_expandable_block`).
    fn find_addresses(&self, params: &AllocParams) -> Option<BlockIndex> {
        let mut unmapped = self.free_lists[params.list].unmapped.iter().map(|(_, index)| *index);
        let is_available = |index: BlockIndex| self.blocks[index].is_available();
        unmapped.find_map(|unmapped| {
            let start =
                self.blocks[unmapped].previous.filter(|previous| is_available(*previous)).unwrap_or(unmapped);
            let row = std::iter::successors(Some(start), |index| self.blocks[*index].next);
            let mut length = Bytes::ZERO;
            for index in row.take_while(|index| is_available(*index)) {
                length = length.saturating_add(self.blocks[index].size);
                if length >= params.rounded {
                    return Some(start);
                }
            }
            None
        })
    }

    fn reserve_range(&mut self, params: &AllocParams) -> Result<Option<BlockIndex>, AllocError> {
        let page = size::page_size(params.pool, &self.config);
        let total = self.device.total_memory();
        let reserve = self.config.address_reserve(total);
        let size = size::range_size(total, reserve, page);
        if size.is_zero() {
            // The device has no memory at all, so there are no addresses to reserve.
            self.sink.record(Event::SegmentFailed {
                size: self.segment_size(params),
                cause: FailureCause::Device,
            });
            return Ok(None);
        }
        let Some(memory) = self.device.virtual_memory() else {
            return Err(AllocError::NoVirtualMemory);
        };
        let addr = match memory.reserve(size) {
            Ok(addr) => addr,
            Err(DeviceError::OutOfMemory { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if self.config.release().gives_back_too_few_addresses() && params.rounded > size {
            memory.release(addr)?;
            self.sink.record(Event::SegmentFailed {
                size: self.segment_size(params),
                cause: FailureCause::Device,
            });
            return Ok(None);
        }
        let segment = self.new_segment_id();
        let id = self.blocks.new_id();
        let (stream, memory_pool, pool) = (params.stream, params.memory_pool, params.pool);
        let pool_id = self.memory_pools[memory_pool].id;
        let index =
            self.blocks.insert(Block::of_segment(id, segment, (addr, size), (params.list, pool), true));
        self.expandable_segments.insert(segment, ExpandableSegment { base: addr, page });
        self.note_settings();
        self.put_in_pool(index);
        self.sink.record(Event::RangeReserved { segment, block: id, addr, size, stream, pool_id, pool });
        Ok(Some(index))
    }

    /// Maps memory into the low part of an unmapped block: `wanted` bytes, in whole pages (`map_block`).
    /// Returns whether the device had enough memory.
    fn map(&mut self, index: BlockIndex, wanted: Bytes) -> Result<bool, AllocError> {
        let block = &self.blocks[index];
        let (id, addr, pool, memory_pool) =
            (block.id, block.addr, block.pool, self.free_lists[block.list].memory_pool);
        let Some(ExpandableSegment { page, .. }) = self.expandable_segments.get(&block.segment).copied()
        else {
            return Ok(false);
        };
        let size = size::round_up(wanted, page).min(block.size);
        let Some(memory) = self.device.virtual_memory() else {
            return Err(AllocError::NoVirtualMemory);
        };
        match memory.map(addr, size, page) {
            Ok(()) => {}
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sink.record(Event::SegmentFailed { size, cause: FailureCause::Device });
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.take_from_pool(index);
        let remainder = (size < self.blocks[index].size).then(|| {
            let remainder = self.cut_above(index, size);
            self.put_in_pool(remainder);
            self.blocks[remainder].id
        });
        self.blocks[index].state = BlockState::Inactive;
        self.reserved += size;
        self.counters.infrequent.mapped(pool, size);
        self.note_private_reserved(memory_pool, pool, size.signed());
        self.sink.record(Event::Mapped { block: id, size, remainder });
        self.merge_neighbors(index);
        self.put_in_pool(index);
        Ok(true)
    }

    /// Unmaps the whole pages inside a cached block (`unmap_block`).
    pub(crate) fn unmap(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        let block = &self.blocks[index];
        let (id, pool, memory_pool) = (block.id, block.pool, self.free_lists[block.list].memory_pool);
        let Some(ExpandableSegment { base, page }) = self.expandable_segments.get(&block.segment).copied()
        else {
            return Ok(());
        };
        let start = size::round_up(block.addr.offset_from(base), page);
        let end = block.addr.offset(block.size).offset_from(base);
        let end = Bytes::new(end.get() / page.get() * page.get());
        if start >= end {
            return Ok(());
        }
        let (addr, size) = (base.offset(start), end - start);
        let before_size = addr.offset_from(block.addr);
        let after_size = block.size - before_size - size;
        let Some(memory) = self.device.virtual_memory() else {
            return Err(AllocError::NoVirtualMemory);
        };
        memory.unmap(addr, size, page)?;
        self.take_from_pool(index);
        // In this order, as PyTorch makes them: in 2.12 the age of a block counts.
        let before = (!before_size.is_zero()).then(|| {
            let before = self.cut_below(index, before_size);
            self.put_in_pool(before);
            (self.blocks[before].id, before_size)
        });
        let after = (!after_size.is_zero()).then(|| {
            let kept = self.blocks[index].size - after_size;
            let after = self.cut_above(index, kept);
            self.put_in_pool(after);
            (self.blocks[after].id, after_size)
        });
        self.blocks[index].state = BlockState::Unmapped;
        self.reserved -= size;
        self.memory_pools[memory_pool].device_allocations -= 1;
        self.counters.infrequent.unmapped(pool, size);
        self.note_private_reserved(memory_pool, pool, size.signed().wrapping_neg());
        self.sink.record(Event::Unmapped { block: id, before, after });
        self.merge_neighbors(index);
        self.put_in_pool(index);
        if !self.blocks[index].is_split() {
            self.release_range(index)?;
        }
        Ok(())
    }

    fn release_range(&mut self, index: BlockIndex) -> Result<(), AllocError> {
        let block = &self.blocks[index];
        let (segment, addr) = (block.segment, block.addr);
        if let Some(memory) = self.device.virtual_memory() {
            memory.release(addr)?;
        }
        self.take_from_pool(index);
        self.blocks.remove(index);
        self.expandable_segments.remove(&segment);
        self.note_settings();
        self.sink.record(Event::RangeReleased { segment });
        Ok(())
    }

    /// Cuts the block after `size` bytes and returns the new block, which is the remainder.
    fn cut_above(&mut self, index: BlockIndex, size: Bytes) -> BlockIndex {
        let id = self.blocks.new_id();
        let old = &self.blocks[index];
        let next = old.next;
        let remainder = old.part(id, old.addr.offset(size), old.size - size);
        let remainder = Block { previous: Some(index), next, ..remainder };
        let remainder = self.blocks.insert(remainder);
        if let Some(next) = next {
            self.blocks[next].previous = Some(remainder);
        }
        let block = &mut self.blocks[index];
        block.size = size;
        block.next = Some(remainder);
        remainder
    }
}
