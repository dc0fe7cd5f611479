//! Snapshots: all segments and blocks at one moment.

use serde::{Deserialize, Serialize};

use crate::{AllocationId, BlockId, Bytes, DeviceAddr, PoolId, PoolKind, SegmentId, StreamId};

/// All segments of an allocator at one moment, by ascending address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The segments, by ascending address.
    pub segments: Vec<SegmentSnapshot>,
}

/// One segment and its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSnapshot {
    /// The id, unique within the run.
    pub id: SegmentId,
    /// The address of the first byte.
    pub addr: DeviceAddr,
    /// The size: the sum of the sizes of the blocks.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// The small or the large block pool.
    pub pool: PoolKind,
    /// Whether the segment is expandable: memory is mapped into reserved addresses page by page. The size
    /// then counts unmapped blocks too.
    pub is_expandable: bool,
    /// The blocks, by ascending address, without gaps.
    pub blocks: Vec<BlockSnapshot>,
}

impl SegmentSnapshot {
    /// The bytes that are mapped: all blocks but unmapped ones.
    #[must_use]
    pub fn mapped(&self) -> Bytes {
        self.sum(|block| if block.state == BlockState::Unmapped { Bytes::ZERO } else { block.size })
    }

    /// The segments that PyTorch's snapshot shows for this segment: the segment itself, or each run of mapped
    /// blocks if the segment is expandable.
    #[must_use]
    pub fn mapped_runs(&self) -> Vec<Self> {
        let runs =
            self.blocks.split(|block| block.state == BlockState::Unmapped).filter(|run| !run.is_empty());
        runs.map(|run| Self {
            addr: run.first().map_or(self.addr, |block| block.addr),
            size: run.iter().map(|block| block.size).sum(),
            blocks: run.to_vec(),
            ..*self
        })
        .collect()
    }

    /// The sizes of allocated blocks, added up.
    #[must_use]
    pub fn allocated(&self) -> Bytes {
        self.sum(|block| if block.state == BlockState::Allocated { block.size } else { Bytes::ZERO })
    }

    /// The sizes of allocated and pending blocks, added up.
    #[must_use]
    pub fn active(&self) -> Bytes {
        self.sum(|block| if block.state.is_active() { block.size } else { Bytes::ZERO })
    }

    /// The requested bytes of active blocks. The stale values of inactive blocks do not count.
    #[must_use]
    pub fn requested(&self) -> Bytes {
        self.sum(|block| if block.state.is_active() { block.requested } else { Bytes::ZERO })
    }

    fn sum(&self, part: impl Fn(&BlockSnapshot) -> Bytes) -> Bytes {
        self.blocks.iter().map(part).sum()
    }
}

/// One segment without its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentInfo {
    /// The id, unique within the run.
    pub id: SegmentId,
    /// The address of the first byte.
    pub addr: DeviceAddr,
    /// The size. An expandable segment counts up to the end of its last mapped block.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// The small or the large block pool.
    pub pool: PoolKind,
    /// Whether the segment is expandable: memory is mapped into reserved addresses page by page.
    pub is_expandable: bool,
}

/// One block of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSnapshot {
    /// The id, unique within the run.
    pub id: BlockId,
    /// The address of the first byte.
    pub addr: DeviceAddr,
    /// The size, a multiple of 512.
    pub size: Bytes,
    /// What the caller asked for. An inactive block keeps the value of its last allocation, or zero, as in
    /// PyTorch.
    pub requested: Bytes,
    /// The state of the block.
    pub state: BlockState,
    /// The allocation that it serves or, while pending, served.
    pub allocation: Option<AllocationId>,
    /// Other streams that used the block since it was allocated, ascending; empty once the block is inactive.
    pub streams: Vec<StreamId>,
}

/// Who may use the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockState {
    /// Allocated to a caller.
    Allocated,
    /// The caller has freed the block, but the free waits for the work of another stream.
    PendingFree,
    /// Cached: can be allocated.
    Inactive,
    /// Addresses of an expandable segment where no memory is mapped.
    Unmapped,
}

impl BlockState {
    /// Whether the block is allocated or pending.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Allocated | Self::PendingFree)
    }

    /// The name of the state in PyTorch's snapshot.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::PendingFree => "active_pending_free",
            Self::Inactive => "inactive",
            Self::Unmapped => "unmapped",
        }
    }
}
