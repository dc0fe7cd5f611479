//! The segments and blocks of a device, followed from a snapshot through the entries of its trace.

use std::collections::BTreeMap;

use blockyard_record::{BlockState, Bytes, PoolId, PoolKind, StackId, TraceAction, TraceEntry};
use blockyard_rules::{AllocatorConfig, size};

use super::{DeviceSnapshot, DeviceTrace, SnapshotBlock, SnapshotSegment};

/// A device whose memory follows entries.
///
/// Entries have the requested bytes of a block. What is left of a free block follows from PyTorch's rule of
/// splitting, as in `should_split`.
#[derive(Clone, Debug, Default)]
pub struct FollowedDevice {
    index: u32,
    config: AllocatorConfig,
    /// By address, without their blocks.
    segments: BTreeMap<u64, SnapshotSegment>,
    /// The blocks of all segments by address, without gaps inside of a segment.
    blocks: BTreeMap<u64, SnapshotBlock>,
    memory: FollowedBytes,
    misfits: u64,
}

/// The bytes of a followed device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedBytes {
    /// Blocks in callers' hands.
    pub allocated: Bytes,
    /// Allocated, and blocks whose free is pending.
    pub active: Bytes,
    /// All segments.
    pub reserved: Bytes,
}

/// The end of what begins at an address.
fn end(addr: u64, size: Bytes) -> u64 {
    addr.saturating_add(size.get())
}

impl FollowedDevice {
    /// Begins with a snapshot of the device, under the settings of its process.
    #[must_use]
    pub fn of(device: &DeviceSnapshot, config: AllocatorConfig) -> Self {
        let mut followed = Self { index: device.index, config, ..Self::default() };
        for segment in &device.segments {
            followed.memory.reserved = followed.memory.reserved.saturating_add(segment.size);
            for block in &segment.blocks {
                let is_active = matches!(block.state, BlockState::Allocated | BlockState::PendingFree);
                if is_active {
                    followed.memory.active = followed.memory.active.saturating_add(block.size);
                }
                if block.state == BlockState::Allocated {
                    followed.memory.allocated = followed.memory.allocated.saturating_add(block.size);
                }
                followed.blocks.insert(block.addr(), *block);
            }
            followed.segments.insert(segment.addr, SnapshotSegment { blocks: Vec::new(), ..segment.clone() });
        }
        followed
    }

    /// The bytes of the device now.
    #[must_use]
    pub fn memory(&self) -> FollowedBytes {
        self.memory
    }

    /// How many entries did not fit the memory; they changed nothing.
    #[must_use]
    pub fn misfits(&self) -> u64 {
        self.misfits
    }

    /// The block at an address.
    #[must_use]
    pub fn block(&self, addr: u64) -> Option<&SnapshotBlock> {
        self.blocks.get(&addr)
    }

    /// The snapshot of the device now, with a trace that the caller has.
    #[must_use]
    pub fn snapshot(&self, trace: DeviceTrace) -> DeviceSnapshot {
        let segments = self.segments.values().map(|segment| {
            let blocks = self.blocks.range(segment.addr..end(segment.addr, segment.size));
            let blocks: Vec<SnapshotBlock> = blocks.map(|(_, block)| *block).collect();
            let sum =
                |counts: &dyn Fn(&SnapshotBlock) -> Option<Bytes>| blocks.iter().filter_map(counts).sum();
            let is_active = |block: &SnapshotBlock| block.state != BlockState::Inactive;
            let sums = [
                sum(&|block| (block.state == BlockState::Allocated).then_some(block.size)),
                sum(&|block| is_active(block).then_some(block.size)),
                sum(&|block| block.requested.filter(|_| is_active(block))),
            ];
            SnapshotSegment { sums, blocks, ..segment.clone() }
        });
        DeviceSnapshot { index: self.index, is_host: false, trace, segments: segments.collect() }
    }

    /// Applies an entry. `pool_id` is the memory pool of a new segment.
    pub fn apply(&mut self, entry: &TraceEntry, pool_id: PoolId, stack: StackId) {
        let fits = match entry.action {
            TraceAction::Alloc => self.allocate(entry, stack),
            TraceAction::FreeRequested => self.request_free(entry.addr),
            TraceAction::FreeCompleted => self.complete_free(entry.addr),
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => self.add(entry, pool_id, stack),
            TraceAction::SegmentFree => self.remove(entry.addr, self.size_of_segment(entry.addr)),
            TraceAction::SegmentUnmap => self.remove(entry.addr, entry.size),
            TraceAction::Snapshot | TraceAction::OutOfMemory => Some(()),
        };
        self.misfits = self.misfits.saturating_add(u64::from(fits.is_none()));
    }

    fn size_of_segment(&self, addr: u64) -> Bytes {
        self.segments.get(&addr).map_or(Bytes::ZERO, |segment| segment.size)
    }

    /// The segment that has an address.
    fn segment_of(&self, addr: u64) -> Option<&SnapshotSegment> {
        let (_, segment) = self.segments.range(..=addr).next_back()?;
        (addr < end(segment.addr, segment.size)).then_some(segment)
    }

    fn allocate(&mut self, entry: &TraceEntry, stack: StackId) -> Option<()> {
        let segment = self.segment_of(entry.addr)?;
        let (pool, is_expandable) = (segment.pool, segment.is_expandable);
        let free = *self.blocks.get(&entry.addr)?;
        let rounded = size::rounded(entry.size, &self.config);
        if free.state != BlockState::Inactive || free.size < rounded {
            return None;
        }
        let expands = is_expandable || self.config.expandable_segments();
        let is_split = size::should_split(free.size, rounded, pool, expands, &self.config);
        let taken = if is_split { rounded } else { free.size };
        if is_split {
            let addr = end(entry.addr, rounded);
            let rest = free.size.saturating_sub(rounded);
            // The remainder is the free block itself in PyTorch, so that it keeps the bytes of its last request.
            self.blocks.insert(addr, SnapshotBlock { addr: Some(addr), size: rest, ..free });
        }
        let block = SnapshotBlock {
            addr: Some(entry.addr),
            size: taken,
            requested: Some(entry.size),
            state: BlockState::Allocated,
            stack,
        };
        self.blocks.insert(entry.addr, block);
        self.memory.allocated = self.memory.allocated.saturating_add(taken);
        self.memory.active = self.memory.active.saturating_add(taken);
        Some(())
    }

    fn request_free(&mut self, addr: u64) -> Option<()> {
        let block = self.blocks.get_mut(&addr).filter(|block| block.state == BlockState::Allocated)?;
        block.state = BlockState::PendingFree;
        self.memory.allocated = self.memory.allocated.saturating_sub(block.size);
        Some(())
    }

    fn complete_free(&mut self, addr: u64) -> Option<()> {
        let block = self.blocks.get_mut(&addr).filter(|block| block.state == BlockState::PendingFree)?;
        block.state = BlockState::Inactive;
        block.stack = StackId::EMPTY;
        self.memory.active = self.memory.active.saturating_sub(block.size);
        self.merge(addr);
        Some(())
    }

    /// Merges a free block with free neighbors of its segment.
    fn merge(&mut self, addr: u64) -> Option<()> {
        let segment = self.segment_of(addr)?;
        let (from, to) = (segment.addr, end(segment.addr, segment.size));
        let is_free = |block: &SnapshotBlock| block.state == BlockState::Inactive;
        let next = end(addr, self.blocks.get(&addr)?.size);
        if next < to && self.blocks.get(&next).is_some_and(is_free) {
            let size = self.blocks.remove(&next)?.size;
            let block = self.blocks.get_mut(&addr)?;
            block.size = block.size.saturating_add(size);
        }
        let before = self.blocks.range(from..addr).next_back().filter(|(_, block)| is_free(block));
        if let Some(before) = before.map(|(addr, _)| *addr) {
            // The freed block takes its neighbors and keeps its request.
            let freed = self.blocks.remove(&addr)?;
            let block = self.blocks.get_mut(&before)?;
            block.size = block.size.saturating_add(freed.size);
            block.requested = freed.requested;
        }
        Some(())
    }

    /// Adds a segment, or pages of an expandable one.
    fn add(&mut self, entry: &TraceEntry, pool_id: PoolId, stack: StackId) -> Option<()> {
        let TraceEntry { addr, size, stream, .. } = *entry;
        let overlaps = self.segments.range(..end(addr, size)).next_back();
        if overlaps.is_some_and(|(_, other)| end(other.addr, other.size) > addr) {
            return None;
        }
        let is_expandable = entry.action == TraceAction::SegmentMap;
        let pool = if size == size::SMALL_SEGMENT_SIZE { PoolKind::Small } else { PoolKind::Large };
        let mut segment = SnapshotSegment {
            device: self.index,
            addr,
            size,
            stream,
            pool_id,
            pool,
            is_expandable,
            stack,
            ..SnapshotSegment::default()
        };
        self.blocks.insert(addr, SnapshotBlock { addr: Some(addr), size, ..SnapshotBlock::default() });
        self.memory.reserved = self.memory.reserved.saturating_add(size);
        if is_expandable {
            let joins = |other: &SnapshotSegment| {
                other.is_expandable && other.stream == stream && other.pool_id == pool_id
            };
            let after = self.segments.get(&end(addr, size)).filter(|other| joins(other)).cloned();
            if let Some(after) = after {
                self.segments.remove(&after.addr);
                segment = SnapshotSegment { addr, size: size.saturating_add(after.size), ..after };
            }
            let before = self.segments.range(..addr).next_back().map(|(_, other)| other);
            let before = before.filter(|other| end(other.addr, other.size) == addr && joins(other)).cloned();
            if let Some(before) = before {
                segment = SnapshotSegment { size: before.size.saturating_add(segment.size), ..before };
            }
        }
        self.segments.insert(segment.addr, segment);
        self.merge(addr)
    }

    /// Removes free memory: a whole segment, or pages of an expandable one.
    fn remove(&mut self, addr: u64, size: Bytes) -> Option<()> {
        let to = end(addr, size);
        let segment = self.segment_of(addr)?.clone();
        let segment_end = end(segment.addr, segment.size);
        let (&at, &block) = self.blocks.range(..=addr).next_back()?;
        let block_end = end(at, block.size);
        if size.is_zero() || block.state != BlockState::Inactive || to > block_end || to > segment_end {
            return None;
        }
        self.blocks.remove(&at);
        let parts = [(at, addr), (to, block_end)];
        for (from, to) in parts.into_iter().filter(|(from, to)| from < to) {
            let size = Bytes::new(to.saturating_sub(from));
            self.blocks.insert(from, SnapshotBlock { addr: Some(from), size, ..SnapshotBlock::default() });
        }
        self.segments.remove(&segment.addr);
        let parts = [(segment.addr, addr), (to, segment_end)];
        for (from, to) in parts.into_iter().filter(|(from, to)| from < to) {
            let size = Bytes::new(to.saturating_sub(from));
            self.segments.insert(from, SnapshotSegment { addr: from, size, ..segment.clone() });
        }
        self.memory.reserved = self.memory.reserved.saturating_sub(size);
        Some(())
    }
}
