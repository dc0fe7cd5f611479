//! An allocator that begins with the memory of a snapshot, in the middle of a run.

use blockyard_device::DeviceMemory;
use blockyard_record::{BlockSnapshot, BlockState, EventSink, PoolId, SegmentSnapshot, Snapshot, Stats};

use crate::block::{Block, BlockIndex};
use crate::counters::Counters;
use crate::pool::FreeListIndex;
use crate::private_pool::{PoolIndex, PrivatePool};
use crate::{AllocError, Allocation, AllocatorConfig, CachingAllocator, Corruption};

impl<D: DeviceMemory, S: EventSink> CachingAllocator<D, S> {
    /// An allocator with the segments of the snapshot, which the device must have allocated before. Also returns the live
    /// allocations, by ascending address.
    ///
    /// Ids are those of the snapshot, and new ids follow the largest. The sink gets no events for the memory of the snapshot.
    /// Pending frees wait for all work that their streams have on the device at this moment. Statistics are those of
    /// [`Stats::beginning_with`]. A memory pool other than the default one counts as used by its owner. For garbage
    /// collection, all cached blocks have the same age.
    ///
    /// # Errors
    ///
    /// [`AllocError::Beginning`] for a snapshot that no allocator can be in, [`AllocError::Device`] when the device fails to
    /// record an event.
    pub fn beginning_with(
        device: D,
        config: AllocatorConfig,
        sink: S,
        snapshot: &Snapshot,
    ) -> Result<(Self, Vec<Allocation>), AllocError> {
        let mut allocator = Self::new(device, config, sink);
        let stats = Stats::beginning_with(snapshot, allocator.config.max_split_size_signed());
        allocator.counters = Counters::beginning_with(&stats);
        let mut live = Vec::new();
        for segment in &snapshot.segments {
            allocator.adopt_segment(segment, &mut live)?;
        }
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
        let owner = self.owner_of(segment.pool_id);
        self.reserved += segment.mapped();
        self.pools[owner].device_allocations += 1;
        self.skip_segments(segment.id);
        let list = self.free_list(owner, segment.pool, segment.stream);
        if segment.is_expandable {
            self.adopt_expandable(segment);
        }
        let mut previous = None;
        for block in &segment.blocks {
            let index = self.adopt_block(segment, block, list, previous);
            previous = Some(index);
            match block.state {
                BlockState::Allocated => {
                    let id =
                        block.allocation.ok_or(AllocError::Beginning(Corruption::Coverage(segment.id)))?;
                    live.push(self.handle(block.addr, index, id));
                }
                BlockState::PendingFree => {
                    if block.streams.is_empty() {
                        // Without a stream to wait for, the free would never complete.
                        return Err(AllocError::Beginning(Corruption::Coverage(segment.id)));
                    }
                    self.record_events(index, false)?;
                    self.await_events(index);
                }
                BlockState::Inactive | BlockState::Unmapped => self.put_in_pool(index),
            }
        }
        Ok(())
    }

    fn owner_of(&mut self, id: PoolId) -> PoolIndex {
        if let Some(owner) = self.pools.iter().position(|pool| pool.id == id) {
            return owner;
        }
        self.pools.push(PrivatePool::new(id, 1));
        self.pools.len() - 1
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
