//! The memory of the pool: blocks in address order, and mapped granules.

use std::collections::BTreeMap;

use blockyard_device::{DeviceError, DeviceMemory, VirtualMemory};
use blockyard_record::{
    AllocationId, BlockId, BlockState, Bytes, DeviceAddr, Event, EventSink, FailureCause, PoolId, PoolKind,
    SegmentId, StreamId,
};
use blockyard_rules::size::{self, MALLOC_ASYNC_GRANULE};

use super::MallocAsyncAllocator;
use crate::AllocError;

/// The largest range of addresses, for any size of device, because each granule takes an entry.
pub(super) const MAX_RANGE: Bytes = Bytes::gib(16 << 10);

/// A part of a range: allocated, inactive or unmapped.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) id: BlockId,
    pub(super) size: Bytes,
    pub(super) requested: Bytes,
    pub(super) state: BlockState,
    pub(super) allocation: Option<AllocationId>,
    /// The stream for which the block was allocated last.
    pub(super) stream: StreamId,
    /// Other streams that used the block since it was allocated, ascending.
    pub(super) streams: Vec<StreamId>,
}

/// The ranges of the pool, their blocks without gaps, and the mapped granules.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) ranges: BTreeMap<DeviceAddr, (SegmentId, Bytes)>,
    pub(super) blocks: BTreeMap<DeviceAddr, Block>,
    /// How many live blocks touch each mapped granule.
    pub(super) granules: BTreeMap<DeviceAddr, u32>,
    /// The number of the next block id.
    next_id: u32,
}

impl Memory {
    fn new_id(&mut self) -> BlockId {
        let id = BlockId::new(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        id
    }

    /// The start of the block that covers the address.
    fn block_at(&self, addr: DeviceAddr) -> Option<DeviceAddr> {
        self.blocks.range(..=addr).next_back().map(|(start, _)| *start)
    }

    /// The granules that the addresses touch.
    fn touched(&self, addr: DeviceAddr, size: Bytes) -> impl Iterator<Item = DeviceAddr> + use<> {
        let base = self.ranges.range(..=addr).next_back().map_or(addr, |(base, _)| *base);
        let granule = MALLOC_ASYNC_GRANULE.get();
        let first = addr.offset_from(base).get() / granule;
        let last = addr.offset(size).offset_from(base).get().div_ceil(granule);
        (first..last).map(move |index| base.offset(Bytes::new(index * granule)))
    }

    /// Counts a live block in each granule that it touches.
    fn use_granules(&mut self, addr: DeviceAddr, size: Bytes) {
        for granule in self.touched(addr, size) {
            *self.granules.entry(granule).or_insert(0) += 1;
        }
    }

    /// Stops counting a live block in each granule that the block touches.
    pub(super) fn stop_using_granules(&mut self, addr: DeviceAddr, size: Bytes) {
        for granule in self.touched(addr, size) {
            if let Some(users) = self.granules.get_mut(&granule) {
                debug_assert!(*users > 0, "each live block was counted in its granules once");
                *users = users.saturating_sub(1);
            }
        }
    }

    /// Moves the low `size` bytes to a new block; the old block keeps the remainder. Returns the ids of the
    /// old and of the new block.
    fn cut_below(&mut self, start: DeviceAddr, size: Bytes) -> Option<(BlockId, BlockId)> {
        let id = self.new_id();
        let mut remainder = self.blocks.remove(&start)?;
        let below = Block { id, size, requested: Bytes::ZERO, ..remainder.clone() };
        remainder.size -= size;
        let old = remainder.id;
        self.blocks.insert(start.offset(size), remainder);
        self.blocks.insert(start, below);
        Some((old, id))
    }

    /// The old block keeps the low `size` bytes; a new block, whose id is returned, is the remainder.
    fn cut_above(&mut self, start: DeviceAddr, size: Bytes) -> Option<BlockId> {
        let id = self.new_id();
        let block = self.blocks.get_mut(&start)?;
        let remainder = Block { id, size: block.size - size, requested: Bytes::ZERO, ..block.clone() };
        block.size = size;
        self.blocks.insert(start.offset(size), remainder);
        Some(id)
    }
}

impl<D: DeviceMemory, S: EventSink> MallocAsyncAllocator<D, S> {
    fn virtual_memory(&mut self) -> Result<&mut dyn VirtualMemory, AllocError> {
        self.device.virtual_memory().ok_or(AllocError::MallocAsyncNeedsVirtualMemory)
    }

    /// Reserves addresses for at least `size` bytes. Returns whether the device had enough addresses.
    ///
    /// Differs: how many addresses the driver reserves is not known. Here it is twice the memory of the
    /// device, so that holes do not use up the addresses.
    pub(super) fn reserve_range(&mut self, size: Bytes) -> Result<bool, AllocError> {
        let total = self.device.total_memory();
        let twice = total.saturating_add(total).min(MAX_RANGE);
        let size = size::round_up(twice.max(size), MALLOC_ASYNC_GRANULE);
        let addr = match self.virtual_memory()?.reserve(size) {
            Ok(addr) => addr,
            Err(DeviceError::OutOfMemory { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let segment = SegmentId::new(crate::block::table_number(self.memory.ranges.len()));
        let id = self.memory.new_id();
        self.memory.ranges.insert(addr, (segment, size));
        self.memory.blocks.insert(
            addr,
            Block {
                id,
                size,
                requested: Bytes::ZERO,
                state: BlockState::Unmapped,
                allocation: None,
                stream: StreamId::DEFAULT,
                streams: Vec::new(),
            },
        );
        self.free.add_range(addr, size);
        self.sink.record(Event::RangeReserved {
            segment,
            block: id,
            addr,
            size,
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
            pool: PoolKind::Large,
        });
        Ok(true)
    }

    /// Makes one inactive, mapped block of exactly these free addresses. Returns whether the device had
    /// enough memory.
    ///
    /// Granules without live blocks are mapped at the new addresses before the device allocates more, so that
    /// the pool grows only when the granules with live blocks do.
    pub(super) fn make_block(&mut self, addr: DeviceAddr, size: Bytes) -> Result<bool, AllocError> {
        let touched: Vec<DeviceAddr> = self.memory.touched(addr, size).collect();
        let missing: Vec<DeviceAddr> = {
            let granules = &self.memory.granules;
            touched.iter().filter(|granule| !granules.contains_key(*granule)).copied().collect()
        };
        if !missing.is_empty() {
            let is_idle = |(granule, users): &(&DeviceAddr, &u32)| {
                **users == 0 && touched.binary_search(granule).is_err()
            };
            let idle: Vec<DeviceAddr> = self
                .memory
                .granules
                .iter()
                .filter(is_idle)
                .map(|(granule, _)| *granule)
                .take(missing.len())
                .collect();
            // New granules are mapped first: if the device fails, no granule has moved.
            let (new, moved_to) = missing.split_at(missing.len() - idle.len());
            if !self.map_all(new)? {
                return Ok(false);
            }
            self.unmap_all(&idle)?;
            if !self.map_all(moved_to)? {
                return Ok(false);
            }
        }
        let Some(start) = self.memory.block_at(addr) else {
            return Ok(false);
        };
        if start < addr {
            self.split(start, addr.offset_from(start));
        }
        if self.memory.blocks.get(&addr).is_some_and(|block| block.size > size) {
            self.split(addr, size);
        }
        self.memory.use_granules(addr, size);
        Ok(true)
    }

    /// Maps these granules. Returns whether the device had enough memory.
    fn map_all(&mut self, granules: &[DeviceAddr]) -> Result<bool, AllocError> {
        for run in runs(granules) {
            if !self.map(run.0, run.1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn unmap_all(&mut self, granules: &[DeviceAddr]) -> Result<(), AllocError> {
        // A run may continue from one range into the next, which has other blocks.
        for (addr, size) in runs(granules) {
            let mut addr = addr;
            let end = addr.offset(size);
            while addr < end {
                let block = self.memory.block_at(addr);
                let block_end =
                    block.and_then(|start| Some(start.offset(self.memory.blocks.get(&start)?.size)));
                let stop = block_end.map_or(end, |block_end| block_end.min(end));
                if stop <= addr {
                    break;
                }
                self.unmap(addr, stop.offset_from(addr))?;
                addr = stop;
            }
        }
        Ok(())
    }

    /// Maps whole granules, which are part of one unmapped block.
    fn map(&mut self, addr: DeviceAddr, size: Bytes) -> Result<bool, AllocError> {
        match self.virtual_memory()?.map(addr, size, MALLOC_ASYNC_GRANULE) {
            Ok(()) => {}
            Err(DeviceError::OutOfMemory { .. }) => {
                self.sink.record(Event::SegmentFailed { size, cause: FailureCause::Device });
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(start) = self.memory.block_at(addr).filter(|start| *start < addr) {
            self.split(start, addr.offset_from(start));
        }
        let whole = self.memory.blocks.get(&addr).map_or(size, |block| block.size);
        let remainder = if whole > size { self.memory.cut_above(addr, size) } else { None };
        let Some(block) = self.memory.blocks.get_mut(&addr) else {
            return Ok(false);
        };
        block.state = BlockState::Inactive;
        let id = block.id;
        for granule in self.memory.touched(addr, size) {
            self.memory.granules.insert(granule, 0);
        }
        self.stats.mapped(PoolKind::Large, size);
        self.sink.record(Event::Mapped { block: id, size, remainder });
        self.merge_around(addr);
        Ok(true)
    }

    /// Unmaps whole granules, which are part of one inactive block.
    fn unmap(&mut self, addr: DeviceAddr, size: Bytes) -> Result<(), AllocError> {
        self.virtual_memory()?.unmap(addr, size, MALLOC_ASYNC_GRANULE)?;
        let Some(start) = self.memory.block_at(addr) else {
            return Ok(());
        };
        let before_size = addr.offset_from(start);
        let whole = self.memory.blocks.get(&start).map_or(Bytes::ZERO, |block| block.size);
        let after_size = whole.saturating_sub(before_size).saturating_sub(size);
        let after = if after_size.is_zero() {
            None
        } else {
            self.memory.cut_above(start, before_size + size).map(|id| (id, after_size))
        };
        let before = if before_size.is_zero() {
            None
        } else {
            self.memory.cut_below(start, before_size).map(|(_, id)| (id, before_size))
        };
        let Some(block) = self.memory.blocks.get_mut(&addr) else {
            return Ok(());
        };
        block.state = BlockState::Unmapped;
        let id = block.id;
        for granule in self.memory.touched(addr, size) {
            self.memory.granules.remove(&granule);
        }
        self.stats.unmapped(PoolKind::Large, size);
        self.sink.record(Event::Unmapped { block: id, before, after });
        self.merge_around(addr);
        Ok(())
    }

    /// Splits the block at `start`; the front is a new block of `size` bytes.
    fn split(&mut self, start: DeviceAddr, size: Bytes) {
        if let Some((block, front)) = self.memory.cut_below(start, size) {
            self.sink.record(Event::Split { block, front, size });
        }
    }

    /// Merges the block with neighbors in the same state and range, first with the lower one.
    pub(super) fn merge_around(&mut self, addr: DeviceAddr) {
        let Some(mut block) = self.memory.blocks.get(&addr).cloned() else {
            return;
        };
        let can_merge = |other: &Block| other.state == block.state && !other.state.is_active();
        let memory = &self.memory;
        let below = memory.blocks.range(..addr).next_back();
        let below = below.filter(|(_, other)| can_merge(other) && !memory.ranges.contains_key(&addr));
        let below = below.map(|(start, _)| *start);
        let end = addr.offset(block.size);
        let above = memory.blocks.get(&end);
        let has_above = above.is_some_and(can_merge) && !memory.ranges.contains_key(&end);
        let mut start = addr;
        if let Some(below) = below
            && let Some(absorbed) = self.memory.blocks.remove(&below)
        {
            self.memory.blocks.remove(&addr);
            start = below;
            block.size += absorbed.size;
            self.sink.record(Event::Merged { block: block.id, absorbed: absorbed.id });
        }
        if has_above && let Some(absorbed) = self.memory.blocks.remove(&end) {
            block.size += absorbed.size;
            self.sink.record(Event::Merged { block: block.id, absorbed: absorbed.id });
        }
        self.memory.blocks.insert(start, block);
    }
}

/// Runs of adjacent granules, each as its start and its size.
fn runs(granules: &[DeviceAddr]) -> Vec<(DeviceAddr, Bytes)> {
    let mut runs: Vec<(DeviceAddr, Bytes)> = Vec::new();
    for granule in granules {
        match runs.last_mut() {
            Some((start, size)) if start.offset(*size) == *granule => *size += MALLOC_ASYNC_GRANULE,
            _ => runs.push((*granule, MALLOC_ASYNC_GRANULE)),
        }
    }
    runs
}
