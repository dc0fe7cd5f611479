//! The memory of a device, which follows events and decides nothing.

mod beginning;
mod effects;
mod packed;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::stats::count_one;
use crate::{
    AllocationId, Backend, BlockId, BlockSnapshot, BlockState, Breakdown, Bytes, DeviceAddr, Event, PoolId,
    PoolKind, SegmentId, SegmentInfo, SegmentSnapshot, Snapshot, Stats, StreamId, TraceAction, TraceEntry,
};

/// The memory of one device after the events so far.
///
/// [`MemoryState::apply`] only follows events and decides nothing. The snapshot and the statistics equal
/// those of the allocator after every request; the cross-crate tests check that.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "packed::PackedState")]
pub struct MemoryState {
    capacity: Bytes,
    limit: Option<Bytes>,
    backend: Backend,
    segments: BTreeMap<DeviceAddr, SegmentEntry>,
    segment_addrs: FxHashMap<SegmentId, DeviceAddr>,
    /// Blocks are stored in slots, which are reused. `block_slots` finds the slot of a block id, which is
    /// never reused.
    slots: Vec<BlockEntry>,
    vacant: Vec<u32>,
    block_slots: FxHashMap<BlockId, u32>,
    /// New blocks have ids from this one on.
    next_block: u64,
    stats: Stats,
    requested: Bytes,
    /// The new block of a split, if the event before was one. Allocating this block must not count as
    /// allocating an inactive block that was split earlier.
    fresh_front: Option<BlockId>,
}

#[derive(Clone, Debug)]
struct SegmentEntry {
    id: SegmentId,
    size: Bytes,
    stream: StreamId,
    pool_id: PoolId,
    pool: PoolKind,
    is_expandable: bool,
    first: u32,
}

#[derive(Clone, Debug)]
struct BlockEntry {
    id: BlockId,
    segment: DeviceAddr,
    addr: DeviceAddr,
    size: Bytes,
    requested: Bytes,
    state: BlockState,
    allocation: Option<AllocationId>,
    streams: Vec<StreamId>,
    previous: Option<u32>,
    next: Option<u32>,
}

/// An event that does not fit the state. The recording is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The event names a block that does not exist.
    #[error("the event names block {0}, which does not exist at this point")]
    UnknownBlock(BlockId),
    /// The event names a segment that does not exist.
    #[error("the event names segment {0}, which does not exist at this point")]
    UnknownSegment(SegmentId),
    /// The event does not fit the block's state, size or neighbors.
    #[error("the event does not fit block {0} as it is at this point")]
    Unfitting(BlockId),
    /// A new block has the id of an earlier one: after 2^32 blocks the ids of an allocator begin at 0 again.
    #[error("the event gives a new block the number {0}, which another block had before")]
    IdUsedAgain(BlockId),
    /// A new segment overlaps another one.
    #[error("segment {0} starts where another segment is")]
    Overlap(SegmentId),
}

impl MemoryState {
    /// An empty device of `capacity` bytes.
    #[must_use]
    pub fn new(capacity: Bytes) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// All bytes of the device.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// The most that may be reserved, if a memory fraction is set.
    #[must_use]
    pub fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The statistics after the events so far, counted as the native allocator counts. Figures and sums are
    /// made from these.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The statistics as PyTorch reports them, which are fewer under `backend:cudaMallocAsync`.
    #[must_use]
    pub fn reported_stats(&self) -> Stats {
        self.stats.reported_by(self.backend)
    }

    pub(crate) fn set_backend(&mut self, backend: Backend) {
        self.backend = backend;
    }

    pub(crate) fn set_initial_max_split_size(&mut self, max_split_size: i64) {
        self.stats.max_split_size = max_split_size;
    }

    /// The breakdown: how many bytes of the device are in each class.
    #[must_use]
    pub fn breakdown(&self) -> Breakdown {
        // Sums of sizes are negative only in a damaged recording, which shows no bytes then.
        let unsigned = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
        let allocated = unsigned(self.stats.allocated_bytes.all.current);
        let active = unsigned(self.stats.active_bytes.all.current);
        let reserved = unsigned(self.stats.reserved_bytes.all.current);
        Breakdown {
            requested: self.requested,
            rounding: allocated.saturating_sub(self.requested),
            pending: active.saturating_sub(allocated),
            cached: reserved.saturating_sub(active),
            free: self.capacity.saturating_sub(reserved),
        }
    }

    /// All segments and blocks, by ascending address.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let segments =
            self.segments.iter().map(|(addr, segment)| self.segment_snapshot(*addr, segment)).collect();
        Snapshot { segments }
    }

    /// All segments without their blocks, by ascending address.
    ///
    /// An expandable segment ends with its last mapped block here, because it reserves more addresses than
    /// the device has memory. An expandable segment without mapped memory is left out. The time does not
    /// depend on the number of blocks, except for expandable segments.
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.segments.iter().filter_map(|(addr, segment)| {
            let size = if segment.is_expandable { self.extent(*addr, segment) } else { segment.size };
            (!size.is_zero()).then_some(SegmentInfo {
                id: segment.id,
                addr: *addr,
                size,
                stream: segment.stream,
                pool_id: segment.pool_id,
                pool: segment.pool,
                is_expandable: segment.is_expandable,
            })
        })
    }

    /// One segment with its blocks, if the segment exists at this moment. An expandable segment ends with its
    /// last mapped block.
    #[must_use]
    pub fn segment(&self, id: SegmentId) -> Option<SegmentSnapshot> {
        let addr = self.segment_addrs.get(&id)?;
        let segment = self.segments.get(addr)?;
        let mut snapshot = self.segment_snapshot(*addr, segment);
        if let Some(tail) = snapshot.blocks.pop_if(|block| block.state == BlockState::Unmapped) {
            snapshot.size = tail.addr.offset_from(*addr);
        }
        Some(snapshot)
    }

    /// The bytes from the start of the segment to the end of its last mapped block.
    fn extent(&self, addr: DeviceAddr, segment: &SegmentEntry) -> Bytes {
        let mapped = self.chain(segment).filter(|block| block.state != BlockState::Unmapped);
        mapped.last().map_or(Bytes::ZERO, |last| last.addr.offset(last.size).offset_from(addr))
    }

    /// The blocks of the segment by ascending address. The count is limited, because links in a damaged
    /// recording may form a cycle.
    fn chain<'a>(&'a self, segment: &SegmentEntry) -> impl Iterator<Item = &'a BlockEntry> {
        let slot = |slot: u32| self.slots.get(slot as usize);
        let chain = std::iter::successors(slot(segment.first), move |block| block.next.and_then(slot));
        chain.take(self.slots.len())
    }

    /// One block, if it exists at this moment.
    #[must_use]
    pub fn block(&self, id: BlockId) -> Option<BlockSnapshot> {
        let slot = *self.block_slots.get(&id)?;
        self.slots.get(slot as usize).map(BlockEntry::snapshot)
    }

    /// The segment that a block is part of, if the block exists at this moment.
    #[must_use]
    pub fn segment_of(&self, id: BlockId) -> Option<SegmentId> {
        let slot = *self.block_slots.get(&id)?;
        let block = self.slots.get(slot as usize)?;
        self.segments.get(&block.segment).map(|segment| segment.id)
    }

    fn segment_snapshot(&self, addr: DeviceAddr, segment: &SegmentEntry) -> SegmentSnapshot {
        SegmentSnapshot {
            id: segment.id,
            addr,
            size: segment.size,
            stream: segment.stream,
            pool_id: segment.pool_id,
            pool: segment.pool,
            is_expandable: segment.is_expandable,
            blocks: self.chain(segment).map(BlockEntry::snapshot).collect(),
        }
    }

    /// PyTorch's trace entry for `event`, which is applied next; `None` for events that have no entry in the
    /// trace.
    #[must_use]
    pub fn trace_entry(&self, event: &Event) -> Option<TraceEntry> {
        self.pooled_trace_entry(event).map(|(entry, _)| entry)
    }

    /// The trace entry, as [`Self::trace_entry`], with the memory pool that the event is about, which
    /// PyTorch's trace entries name since 2.12. The default pool for events that are about no segment, and
    /// for a request that ran out of memory, whose event does not say its pool.
    #[must_use]
    pub fn pooled_trace_entry(&self, event: &Event) -> Option<(TraceEntry, PoolId)> {
        let entry = |action, addr: DeviceAddr, size, segment: &SegmentEntry| {
            let stream = segment.stream;
            (TraceEntry { action, addr: addr.get(), size, stream }, segment.pool_id)
        };
        let of_block = |action, id: BlockId, requested: Option<Bytes>| {
            let block = self.find(id).ok()?;
            let segment = self.segments.get(&block.segment)?;
            Some(entry(action, block.addr, requested.unwrap_or(block.requested), segment))
        };
        match *event {
            Event::SegmentAllocated { addr, size, stream, pool_id, .. } => {
                let action = TraceAction::SegmentAlloc;
                Some((TraceEntry { action, addr: addr.get(), size, stream }, pool_id))
            }
            Event::SegmentReleased { segment, .. } => {
                let addr = *self.segment_addrs.get(&segment)?;
                let segment = self.segments.get(&addr)?;
                Some(entry(TraceAction::SegmentFree, addr, segment.size, segment))
            }
            Event::Mapped { block, size, .. } => of_block(TraceAction::SegmentMap, block, Some(size)),
            Event::Unmapped { block, before, after } => {
                let whole = self.find(block).ok()?;
                let leftover = |part: Option<(BlockId, Bytes)>| part.map_or(Bytes::ZERO, |(_, size)| size);
                let size = whole.size.saturating_sub(leftover(before)).saturating_sub(leftover(after));
                let (mut entry, pool) = of_block(TraceAction::SegmentUnmap, block, Some(size))?;
                entry.addr = entry.addr.saturating_add(leftover(before).get());
                Some((entry, pool))
            }
            Event::Allocated { block, requested, .. } => of_block(TraceAction::Alloc, block, Some(requested)),
            Event::FreeRequested { block, .. } => of_block(TraceAction::FreeRequested, block, None),
            Event::FreeCompleted { block } => of_block(TraceAction::FreeCompleted, block, None),
            Event::OutOfMemory { rounded, stream, device_free, is_rejected: false, .. } => {
                let (action, addr) = (TraceAction::OutOfMemory, device_free.get());
                Some((TraceEntry { action, addr, size: rounded, stream }, PoolId::DEFAULT))
            }
            Event::SnapshotTaken { active } => {
                let (action, stream) = (TraceAction::Snapshot, StreamId::DEFAULT);
                Some((TraceEntry { action, addr: 0, size: active, stream }, PoolId::DEFAULT))
            }
            Event::RangeReserved { .. }
            | Event::RangeReleased { .. }
            | Event::SegmentFailed { .. }
            | Event::Split { .. }
            | Event::StreamRecorded { .. }
            | Event::Merged { .. }
            | Event::RetryStarted
            | Event::StreamsSynchronized
            | Event::OutOfMemory { .. }
            | Event::PeakReset
            | Event::AccumulatedReset
            | Event::FractionSet { .. } => None,
        }
    }

    /// Applies the next event.
    ///
    /// # Errors
    ///
    /// [`StateError`] when the event does not fit. The state may be changed in part then and must not be used
    /// any more.
    pub fn apply(&mut self, event: &Event) -> Result<(), StateError> {
        match *event {
            Event::SegmentAllocated { segment, block, addr, size, stream, pool_id, pool, is_oversize } => {
                let entry =
                    SegmentEntry { id: segment, size, stream, pool_id, pool, is_expandable: false, first: 0 };
                self.add_segment(block, addr, entry)?;
                self.stats.segment_allocated(pool, size, is_oversize);
            }
            Event::SegmentReleased { segment, is_oversize } => {
                let entry = self.remove_segment(segment, BlockState::Inactive)?;
                self.stats.segment_released(entry.pool, entry.size, is_oversize);
            }
            Event::RangeReserved { segment, block, addr, size, stream, pool_id, pool } => {
                let entry =
                    SegmentEntry { id: segment, size, stream, pool_id, pool, is_expandable: true, first: 0 };
                self.add_segment(block, addr, entry)?;
            }
            Event::RangeReleased { segment } => {
                self.remove_segment(segment, BlockState::Unmapped)?;
            }
            Event::Mapped { block, size, remainder } => self.map(block, size, remainder)?,
            Event::Unmapped { block, before, after } => self.unmap(block, before, after)?,
            Event::Split { block, front, size } => self.split(block, front, size)?,
            Event::Allocated { block, allocation, requested, is_oversize } => {
                self.allocate(block, allocation, requested, is_oversize)?;
            }
            Event::StreamRecorded { block, stream } => {
                let streams = &mut self.find_mut(block)?.streams;
                if let Err(position) = streams.binary_search(&stream) {
                    streams.insert(position, stream);
                }
            }
            Event::FreeRequested { block, is_oversize } => self.request_free(block, is_oversize)?,
            Event::FreeCompleted { block } => self.complete_free(block)?,
            Event::Merged { block, absorbed } => self.merge(block, absorbed)?,
            Event::RetryStarted => count_one(&mut self.stats.num_alloc_retries),
            Event::StreamsSynchronized => count_one(&mut self.stats.num_sync_all_streams),
            Event::OutOfMemory { is_rejected: false, .. } => count_one(&mut self.stats.num_ooms),
            Event::OutOfMemory { is_rejected: true, .. } => count_one(&mut self.stats.num_oom_rejections),
            Event::PeakReset => self.stats.reset_peak(),
            Event::AccumulatedReset => self.stats.reset_accumulated(),
            Event::FractionSet { limit } => self.limit = limit,
            Event::SegmentFailed { .. } | Event::SnapshotTaken { .. } => {}
        }
        Ok(())
    }

    fn slot(&self, id: BlockId) -> Result<u32, StateError> {
        self.block_slots.get(&id).copied().ok_or(StateError::UnknownBlock(id))
    }

    fn find(&self, id: BlockId) -> Result<&BlockEntry, StateError> {
        self.slots.get(self.slot(id)? as usize).ok_or(StateError::UnknownBlock(id))
    }

    fn find_mut(&mut self, id: BlockId) -> Result<&mut BlockEntry, StateError> {
        let slot = self.slot(id)?;
        self.slots.get_mut(slot as usize).ok_or(StateError::UnknownBlock(id))
    }

    /// The block pool of the block. Only a damaged recording has a block without its segment.
    fn pool_of(&self, block: &BlockEntry) -> PoolKind {
        self.segments.get(&block.segment).map_or(PoolKind::Large, |segment| segment.pool)
    }

    /// Adds a block that is new at this point.
    fn insert(&mut self, entry: BlockEntry) -> Result<u32, StateError> {
        if u64::from(entry.id.get()) < self.next_block {
            return Err(StateError::IdUsedAgain(entry.id));
        }
        self.insert_existing(entry)
    }

    /// Adds a block of the memory that the state begins with. The ids of such blocks are in no order.
    fn insert_existing(&mut self, entry: BlockEntry) -> Result<u32, StateError> {
        let id = entry.id;
        if self.block_slots.contains_key(&id) {
            return Err(StateError::IdUsedAgain(id));
        }
        self.next_block = self.next_block.max(u64::from(id.get()) + 1);
        // There are fewer slots than ids.
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None => u32::try_from(self.slots.len()).map_err(|_| StateError::IdUsedAgain(id))?,
        };
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = entry,
            None => self.slots.push(entry),
        }
        self.block_slots.insert(id, slot);
        Ok(slot)
    }

    fn remove(&mut self, id: BlockId) {
        if let Some(slot) = self.block_slots.remove(&id) {
            self.vacant.push(slot);
        }
    }
}

impl BlockEntry {
    fn is_whole(&self) -> bool {
        self.previous.is_none() && self.next.is_none()
    }

    fn snapshot(&self) -> BlockSnapshot {
        BlockSnapshot {
            id: self.id,
            addr: self.addr,
            size: self.size,
            requested: self.requested,
            state: self.state,
            allocation: self.allocation,
            streams: self.streams.clone(),
        }
    }
}
