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
    /// Its identity within the run.
    pub id: SegmentId,
    /// Where it starts.
    pub addr: DeviceAddr,
    /// Its size; the sizes of its blocks add up to it.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// Which half of that pool.
    pub pool: PoolKind,
    /// Whether it is a range of addresses that gets memory page by page; its size then counts unmapped blocks too.
    pub is_expandable: bool,
    /// Its blocks, by ascending address, without gaps.
    pub blocks: Vec<BlockSnapshot>,
}

impl SegmentSnapshot {
    /// The bytes that have memory: all but unmapped blocks.
    #[must_use]
    pub fn mapped(&self) -> Bytes {
        self.sum(|block| if block.state == BlockState::Unmapped { Bytes::ZERO } else { block.size })
    }

    /// The segments that PyTorch's snapshot shows for this one: itself, or each run of mapped blocks of an expandable one.
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

    /// What was asked for in active blocks; stale values of inactive ones do not count.
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
    /// Its identity within the run.
    pub id: SegmentId,
    /// Where it starts.
    pub addr: DeviceAddr,
    /// Its size; of an expandable one up to the end of its last mapped block.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// Which half of that pool.
    pub pool: PoolKind,
    /// Whether it is a range of addresses that gets memory page by page.
    pub is_expandable: bool,
}

/// One block of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSnapshot {
    /// Its identity within the run.
    pub id: BlockId,
    /// Where it starts.
    pub addr: DeviceAddr,
    /// Its size, a multiple of 512.
    pub size: Bytes,
    /// What the caller asked for. An inactive block shows what its object was last handed out for, or zero.
    pub requested: Bytes,
    /// What it is used for.
    pub state: BlockState,
    /// The allocation that it serves or, while pending, served.
    pub allocation: Option<AllocationId>,
    /// Other streams that used it since it was handed out, ascending; empty once it is inactive.
    pub streams: Vec<StreamId>,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockState {
    /// In a caller's hands.
    Allocated,
    /// Given back, waiting for another stream's work.
    PendingFree,
    /// Cached: ready to be handed out.
    Inactive,
    /// Addresses of an expandable segment without memory.
    Unmapped,
}

impl BlockState {
    /// Whether the block is allocated or pending.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Allocated | Self::PendingFree)
    }

    /// PyTorch's word for it in a snapshot.
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
