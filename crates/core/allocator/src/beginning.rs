//! An allocator that begins with the memory of a snapshot, in the middle of a run.

use blockyard_device::DeviceMemory;
use blockyard_record::{
    BlockSnapshot, BlockState, Bytes, EventSink, PoolId, SegmentSnapshot, Snapshot, Stats,
};
use blockyard_rules::AllocatorConfig;

use crate::block::{Block, BlockIndex};
use crate::counters::Counters;
use crate::free_list::FreeListIndex;
use crate::memory_pool::{MemoryPool, MemoryPoolIndex};
use crate::{AllocError, Allocation, CachingAllocator, Corruption};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// An allocator with the segments of the snapshot, which the device must have allocated before. Also
    /// returns the live allocations, by ascending address.
    ///
    /// Ids are those of the snapshot, and new ids follow the largest. The sink gets no events for the memory
    /// of the snapshot. Pending frees wait for all work that their streams have on the device at this moment.
    /// Statistics are those of [`Stats::beginning_with`]. A memory pool other than the default one counts as
    /// used by its owner. For garbage collection, all cached blocks have the same age.
    ///
    /// # Errors
    ///
    /// [`AllocError::Beginning`] for a snapshot that no allocator can be in, [`AllocError::Device`] when the
    /// device fails to record an event.
    pub fn beginning_with(
        device: D,
        config: AllocatorConfig,
        sink: S,
        snapshot: &Snapshot,
    ) -> Result<(Self, Vec<Allocation>), AllocError> {
        let mut allocator = Self::new(device, config, sink);
        let mut live = Vec::new();
        for segment in &snapshot.segments {
            allocator.adopt_segment(segment, &mut live)?;
        }
        let stats = Stats::beginning_with(snapshot, allocator.config.max_split_size_signed());
        allocator.counters = Counters::beginning_with(&stats);
        allocator.check().map_err(AllocError::Beginning)?;
        Ok((allocator, live))
    }

    fn adopt_segment(
        &mut self,
        segment: &SegmentSnapshot,
        live: &mut Vec<Allocation>,
    ) -> Result<(), AllocError> {
        let end = segment.blocks.iter().try_fold(segment.addr, |end, block| {
            (block.addr == end && !block.size.is_zero()).then(|| end.offset(block.size))
        });
        if end != Some(segment.addr.offset(segment.size)) || segment.blocks.is_empty() {
            return Err(AllocError::Beginning(Corruption::Coverage(segment.id)));
        }
        let memory_pool = self.memory_pool_of(segment.pool_id);
        // Statistics are signed numbers of 64 bits, and no device has more memory than they count.
        let most = Bytes::new(i64::MAX.unsigned_abs());
        let reserved = self.reserved.checked_add(segment.mapped()).filter(|reserved| *reserved <= most);
        self.reserved = reserved.ok_or(AllocError::Beginning(Corruption::TooLarge(segment.id)))?;
        self.memory_pools[memory_pool].device_allocations += 1;
        self.skip_segments(segment.id);
        let list = self.free_list(memory_pool, segment.pool, segment.stream);
        if segment.is_expandable {
            self.adopt_expandable(segment);
        }
        let mut previous = None;
        for block in &segment.blocks {
            let index = self.adopt_block(segment, block, list, previous);
            previous = Some(index);
            match block.state {
                BlockState::Allocated => {
                    let id = block.allocation;
                    let id = id.ok_or(AllocError::Beginning(Corruption::NoAllocation(block.addr)))?;
                    live.push(self.handle(block.addr, index, id));
                }
                BlockState::PendingFree => {
                    if block.streams.is_empty() {
                        return Err(AllocError::Beginning(Corruption::NoStreams(block.addr)));
                    }
                    self.record_events(index, false)?;
                    self.await_events(index);
                }
                BlockState::Inactive | BlockState::Unmapped => self.put_in_pool(index),
            }
        }
        Ok(())
    }

    /// The memory pool with this id, which is added if it does not exist.
    fn memory_pool_of(&mut self, id: PoolId) -> MemoryPoolIndex {
        if let Some(memory_pool) = self.memory_pools.iter().position(|pool| pool.id == id) {
            return memory_pool;
        }
        self.memory_pools.push(MemoryPool::new(id, 1));
        self.memory_pools.len() - 1
    }

    fn adopt_block(
        &mut self,
        segment: &SegmentSnapshot,
        block: &BlockSnapshot,
        list: FreeListIndex,
        previous: Option<BlockIndex>,
    ) -> BlockIndex {
        let whole = (block.addr, block.size);
        let index = self.blocks.insert(Block {
            requested: block.requested,
            state: block.state,
            allocation: block.allocation.unwrap_or_default(),
            previous,
            ..Block::of_segment(block.id, segment.id, whole, (list, segment.pool), segment.is_expandable)
        });
        if !block.streams.is_empty() {
            self.blocks.uses_mut(index).streams.clone_from(&block.streams);
        }
        if let Some(previous) = previous {
            self.blocks[previous].next = Some(index);
        }
        self.blocks.skip(block.id);
        if let Some(id) = block.allocation {
            self.skip_allocations(id);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use blockyard_device::VirtualDevice;
    use blockyard_record::{BlockId, DeviceAddr, NullSink, PoolKind, SegmentId, StreamId};

    use super::*;

    #[test]
    fn segments_that_no_device_can_hold_together_are_an_error() {
        let size = Bytes::new(3 << 61);
        let segment = |number: u32| SegmentSnapshot {
            id: SegmentId::new(number),
            addr: DeviceAddr::new(u64::from(number) << 40),
            size,
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
            pool: PoolKind::Large,
            is_expandable: false,
            blocks: vec![BlockSnapshot {
                id: BlockId::new(number),
                addr: DeviceAddr::new(u64::from(number) << 40),
                size,
                requested: Bytes::ZERO,
                state: BlockState::Inactive,
                allocation: None,
                streams: Vec::new(),
            }],
        };
        let begin = |segments| {
            let device = VirtualDevice::new(Bytes::new(u64::MAX));
            let snapshot = Snapshot { segments };
            CachingAllocator::beginning_with(device, AllocatorConfig::default(), NullSink, &snapshot)
        };
        assert!(begin(vec![segment(0)]).is_ok());
        let error = begin((0..4).map(segment).collect()).unwrap_err();
        assert!(matches!(error, AllocError::Beginning(Corruption::TooLarge(id)) if id == SegmentId::new(1)));
    }
}
