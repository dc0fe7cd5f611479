//! Segments whose free bytes could not serve the request, and the blocks that keep them.

use blockyard_record::{BlockState, SegmentSnapshot};
use blockyard_workload::Request;

use super::Examination;
use crate::{PinnedSegment, PinningBlock};

const MAX_SEGMENTS: usize = 32;
const MAX_BLOCKS: usize = 64;

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
            request: request
                .map(|request| examined.run.request_number(request))
                .filter(|request| *request > 0),
            earlier: request.and_then(|request| examined.run.earlier_block(request)),
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
