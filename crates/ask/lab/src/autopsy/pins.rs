//! Segments whose free bytes could not serve the request, and the blocks that keep them.

use blockyard_record::{BlockState, Bytes, DeviceAddr, PoolId, PoolKind, SegmentSnapshot, StreamId};
use blockyard_workload::Request;
use serde::{Deserialize, Serialize};

use super::Examination;
use crate::request_number;

const MAX_SEGMENTS: usize = 32;
const MAX_BLOCKS: usize = 64;

/// A segment with free bytes that could not serve the request, and the live blocks that keep the segment from
/// being released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedSegment {
    /// The address of the first byte, in the replay.
    pub addr: DeviceAddr,
    /// The size of the segment in bytes.
    pub size: Bytes,
    /// The stream that the segment was allocated for.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// The block pool of the segment: small or large.
    pub pool: PoolKind,
    /// The free bytes of the segment.
    pub free: Bytes,
    /// The largest free block of the segment in bytes.
    pub largest_free: Bytes,
    /// The live bytes of the segment.
    pub live: Bytes,
    /// How many live blocks the segment has.
    pub block_count: u64,
    /// The live blocks, by ascending address; the first 64.
    pub blocks: Vec<PinningBlock>,
}

/// A live block of a [`PinnedSegment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinningBlock {
    /// The address of the first byte, in the replay.
    pub addr: DeviceAddr,
    /// The size of the block in bytes.
    pub size: Bytes,
    /// The request that the block serves, counted from 1; `None` if it is not known.
    pub request: Option<u64>,
    /// The name of the tensor, if it has one.
    pub name: Option<String>,
    /// The stack of the request, innermost frame first; empty if none was recorded.
    pub stack: Vec<String>,
}

/// Segments whose free bytes could not serve the request; those with the fewest live bytes for each free byte
/// first.
pub(super) fn pinned(examined: &Examination<'_>) -> Vec<PinnedSegment> {
    let segments = examined.failure.live.snapshot.segments.iter();
    let mut pinned: Vec<PinnedSegment> = segments
        .map(|segment| pinned_segment(segment, examined))
        .filter(|segment| !segment.free.is_zero())
        .collect();
    // Own segments first, since freeing there is enough; then by how little must be freed.
    pinned.sort_by_key(|segment| {
        let is_own = examined.failure.is_own(segment.stream, segment.pool_id);
        let is_large_enough = segment.size >= examined.failure.request.rounded;
        (!is_own, !is_large_enough, segment.live, segment.addr)
    });
    pinned.truncate(MAX_SEGMENTS);
    pinned
}

fn pinned_segment(segment: &SegmentSnapshot, examined: &Examination<'_>) -> PinnedSegment {
    let free = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive);
    let live = segment.blocks.iter().filter(|block| block.state.is_active());
    let blocks = live.clone().take(MAX_BLOCKS).map(|block| {
        let request = examined.failure.served(block.allocation);
        PinningBlock {
            addr: block.addr,
            size: block.size,
            request: request.map(request_number),
            name: request.and_then(|request| name(examined, request)),
            stack: request.map_or_else(Vec::new, |request| examined.run.stack(request)),
        }
    });
    PinnedSegment {
        addr: segment.addr,
        size: segment.mapped(),
        stream: segment.stream,
        pool_id: segment.pool_id,
        pool: segment.pool,
        free: free.clone().map(|block| block.size).sum(),
        largest_free: free.map(|block| block.size).max().unwrap_or_default(),
        live: live.clone().map(|block| block.size).sum(),
        block_count: live.clone().count() as u64,
        blocks: blocks.collect(),
    }
}

pub(super) fn name(examined: &Examination<'_>, request: usize) -> Option<String> {
    match examined.run.requests().get(request) {
        Some(Request::Allocate { tensor, .. }) => {
            examined.run.workload().tensor_name(*tensor).map(std::borrow::Cow::into_owned)
        }
        _ => None,
    }
}
