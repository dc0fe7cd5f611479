//! The parts of a gap: each byte has one name.

use std::collections::BTreeMap;

use blockyard_pytorch::snapshot::DeviceSnapshot;
use blockyard_record::{BlockState, Bytes, PoolId, PoolKind, Snapshot, StreamId};
use blockyard_rules::AllocatorConfig;
use blockyard_rules::size::page_size;

use crate::GapAtMoment;
use crate::state::whole_pages;

/// A segment of a replay or of a file.
struct Segment<B> {
    stream: StreamId,
    pool_id: PoolId,
    pool: PoolKind,
    is_expandable: bool,
    blocks: B,
}

/// A block: its state, its bytes, and the bytes that its request asked for.
type Block = (BlockState, Bytes, Bytes);

/// The gap in a snapshot of a replay, as seen from a stream and a memory pool.
pub(super) fn of_replay(
    snapshot: &Snapshot,
    config: &AllocatorConfig,
    stream: StreamId,
    pool_id: PoolId,
) -> GapAtMoment {
    let segments = snapshot.segments.iter().map(|segment| Segment {
        stream: segment.stream,
        pool_id: segment.pool_id,
        pool: segment.pool,
        is_expandable: segment.is_expandable,
        blocks: segment.blocks.iter().map(|block| (block.state, block.size, block.requested)),
    });
    of_segments(segments, config, (stream, pool_id))
}

/// The gap in a device of PyTorch's snapshot, as seen from the stream and the memory pool that reserve most.
pub(crate) fn of_device(device: &DeviceSnapshot, config: &AllocatorConfig) -> GapAtMoment {
    let sizes = device.segments.iter().map(|segment| (segment.stream, segment.pool_id, segment.size));
    let segments = device.segments.iter().map(|segment| Segment {
        stream: segment.stream,
        pool_id: segment.pool_id,
        pool: segment.pool,
        is_expandable: segment.is_expandable,
        // Without the size of the request nothing says how much of the block is rounding.
        blocks: segment
            .blocks
            .iter()
            .map(|block| (block.state, block.size, block.requested.unwrap_or(block.size))),
    });
    of_segments(segments, config, most_reserving(sizes))
}

fn of_segments<B: Iterator<Item = Block> + Clone>(
    segments: impl Iterator<Item = Segment<B>>,
    config: &AllocatorConfig,
    (stream, pool_id): (StreamId, PoolId),
) -> GapAtMoment {
    let mut gap = GapAtMoment { stream, pool_id, ..GapAtMoment::default() };
    for segment in segments {
        add(&mut gap, config, segment);
    }
    gap
}

/// The stream and the memory pool that reserve most; of equal ones the first.
pub(super) fn most_reserving(
    segments: impl Iterator<Item = (StreamId, PoolId, Bytes)>,
) -> (StreamId, PoolId) {
    let mut sums: BTreeMap<(StreamId, PoolId), Bytes> = BTreeMap::new();
    for (stream, pool_id, size) in segments {
        let sum = sums.entry((stream, pool_id)).or_default();
        *sum = sum.saturating_add(size);
    }
    let mut most = ((StreamId::DEFAULT, PoolId::DEFAULT), Bytes::ZERO);
    for (place, sum) in sums {
        if sum > most.1 {
            most = (place, sum);
        }
    }
    most.0
}

/// Adds the bytes of a segment. A byte of a live or pending block is named by its block. A free byte is of
/// another pool, or else of another stream, or else free with its whole segment, or else a piece.
fn add(
    gap: &mut GapAtMoment,
    config: &AllocatorConfig,
    segment: Segment<impl Iterator<Item = Block> + Clone>,
) {
    let is_free = !segment.blocks.clone().any(|(state, ..)| state.is_active());
    let is_other_pool = segment.pool_id != gap.pool_id;
    let is_other_stream = segment.stream != gap.stream;
    let page = page_size(segment.pool, config);
    let parts = &mut gap.parts;
    let add = |sum: &mut Bytes, bytes: Bytes| *sum = sum.saturating_add(bytes);
    let mut end = 0_u64;
    for (state, size, requested) in segment.blocks {
        let begin = end;
        end = end.saturating_add(size.get());
        if state != BlockState::Unmapped {
            add(&mut gap.reserved, size);
        }
        match state {
            BlockState::Unmapped => {}
            BlockState::Allocated => {
                // A damaged file may have a request above its block.
                let requested = requested.min(size);
                add(&mut gap.requested, requested);
                add(&mut parts.rounding, size.saturating_sub(requested));
            }
            BlockState::PendingFree => add(&mut parts.pending, size),
            BlockState::Inactive if is_other_pool => add(&mut parts.other_pools, size),
            BlockState::Inactive if is_other_stream => add(&mut parts.other_streams, size),
            BlockState::Inactive => {
                let whole = match (is_free, segment.is_expandable) {
                    (true, _) => size,
                    (false, true) => whole_pages(begin, end, page).min(size),
                    (false, false) => Bytes::ZERO,
                };
                add(&mut parts.free_segments, whole);
                add(&mut parts.free_pieces, size.saturating_sub(whole));
            }
        }
    }
}
