//! Compares the segments at the end of the replay with those of the recording.

use blockyard_pytorch::{RecordedBlock, RecordedSegment};
use blockyard_record::{
    BlockId, BlockSnapshot, BlockState, Bytes, PoolId, PoolKind, SegmentSnapshot, Snapshot, StreamId, counted,
};

use crate::Comparison;

/// The lowest block id that is above the ids of all blocks before the first request.
pub(super) fn first_new_block(start: &Snapshot) -> BlockId {
    let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
    BlockId::new(blocks.map(|block| block.id.get().saturating_add(1)).max().unwrap_or(0))
}

/// Compares segments and their blocks. Blocks from `first_new` on are new since the recording began.
pub(super) fn compare_segments(
    expected: &[RecordedSegment],
    found: &[SegmentSnapshot],
    first_new: BlockId,
    comparison: &mut Comparison,
) {
    let mut unknown = 0_usize;
    for index in 0..expected.len().max(found.len()) {
        let recorded = expected.get(index);
        let ours = found.get(index);
        let (left, right) = (recorded.map(recorded_segment_text), ours.map(our_segment_text));
        comparison.compare("segments", &left, &right, None, || {
            (format!("segment {index} of the end"), or_nothing(left.as_ref()), or_nothing(right.as_ref()))
        });
        let left = recorded.map(|segment| segment.blocks.as_slice()).unwrap_or_default();
        let right = ours.map(|segment| segment.blocks.as_slice()).unwrap_or_default();
        for place in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(place), right.get(place));
            // The block was last allocated before the recording, so that its requested size is not known.
            let is_old = right.is_some_and(|block| {
                block.state == BlockState::Inactive && block.requested.is_zero() && block.id < first_new
            });
            unknown += usize::from(is_old);
            let left = left.map(|block| recorded_block_text(block, !is_old));
            let right = right.map(|block| our_block_text(block, !is_old));
            comparison.compare("blocks", &left, &right, None, || {
                let what = format!("block {place} of segment {index} of the end");
                (what, or_nothing(left.as_ref()), or_nothing(right.as_ref()))
            });
        }
    }
    if unknown > 0 {
        comparison.notes.push(format!(
            "stale requested sizes are not compared for blocks that were last allocated before the recording: {}",
            counted(unknown, "cached block")
        ));
    }
}

// The text contains every compared fact, so that equal texts are equal facts.

fn recorded_segment_text(segment: &RecordedSegment) -> String {
    let RecordedSegment { addr, size, stream, pool_id, pool, is_expandable, sums, .. } = segment;
    segment_text(*addr, *size, *stream, (*pool_id, *pool, *is_expandable), *sums)
}

fn our_segment_text(segment: &SegmentSnapshot) -> String {
    let SegmentSnapshot { addr, size, stream, pool_id, pool, is_expandable, .. } = segment;
    let sums = [segment.allocated(), segment.active(), segment.requested()];
    segment_text(addr.get(), *size, *stream, (*pool_id, *pool, *is_expandable), sums)
}

fn segment_text(
    addr: u64,
    size: Bytes,
    stream: StreamId,
    (pool_id, pool, is_expandable): (PoolId, PoolKind, bool),
    [allocated, active, requested]: [Bytes; 3],
) -> String {
    let kind = if is_expandable { "expandable " } else { "" };
    format!(
        "{kind}{pool} segment of {} bytes at {addr:#x} on stream {stream} in pool {pool_id}, {} allocated, {} active, {} \
         requested",
        size.get(),
        allocated.get(),
        active.get(),
        requested.get()
    )
}

fn recorded_block_text(block: &RecordedBlock, has_requested: bool) -> String {
    block_text(block.addr, block.size, has_requested.then_some(block.requested), &block.state)
}

fn our_block_text(block: &BlockSnapshot, has_requested: bool) -> String {
    let requested = has_requested.then_some(block.requested);
    block_text(block.addr.get(), block.size, requested, block.state.name())
}

fn block_text(addr: u64, size: Bytes, requested: Option<Bytes>, state: &str) -> String {
    let requested =
        requested.map_or_else(String::new, |requested| format!(", {} requested", requested.get()));
    format!("{state} block of {} bytes at {addr:#x}{requested}", size.get())
}

fn or_nothing(text: Option<&String>) -> String {
    text.map_or_else(|| "nothing".to_owned(), Clone::clone)
}
