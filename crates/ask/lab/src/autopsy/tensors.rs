//! Which live tensors, once freed, might let a request pass.

use blockyard_record::{BlockSnapshot, BlockState, Bytes, PoolId, Snapshot, StackCategory, StackHolder};

use super::Examination;
use super::failure::Failure;

/// Sets of requests whose live blocks, once free, might serve the failed request; the sets with the fewest
/// bytes first. The program can free each of these blocks: where stacks were recorded, no block is PyTorch's
/// own, a parameter or a state of an optimizer.
pub(super) fn tensor_sets(examined: &Examination<'_>) -> Vec<Vec<usize>> {
    const MAX_SETS: usize = 12;
    let mut sets = windows(examined);
    sets.extend(releases(examined));
    let has_stacks = examined.run.has_stacks();
    let can_free = |request: &usize| {
        let stack = examined.run.stack(*request);
        let is_lasting =
            matches!(StackCategory::from_texts(&stack), StackCategory::Parameters | StackCategory::Optimizer);
        let is_of_program = StackHolder::from_texts(&stack) == StackHolder::Program;
        !has_stacks || (is_of_program && !is_lasting && !examined.run.is_unfreeable(*request))
    };
    sets.retain(|(_, set)| !set.is_empty() && set.iter().all(can_free));
    sets.sort();
    sets.dedup();
    sets.truncate(MAX_SETS);
    sets.into_iter().map(|(_, set)| set).collect()
}

/// Blocks of one segment side by side that together have room for the request.
fn windows(examined: &Examination<'_>) -> Vec<(Bytes, Vec<usize>)> {
    const MAX_TENSORS: usize = 8;
    let (failure, needed) = (examined.failure, examined.failure.request.rounded);
    let own = failure.live.snapshot.segments.iter().filter(|segment| {
        failure.is_own(segment.stream, segment.pool_id) && segment.pool == failure.request.pool
    });
    let mut found = Vec::new();
    for segment in own {
        let blocks = &segment.blocks;
        let (mut start, mut size, mut live) = (0, Bytes::ZERO, Bytes::ZERO);
        let live_size = |block: &BlockSnapshot| {
            if block.state == BlockState::Allocated { block.size } else { Bytes::ZERO }
        };
        let mut best: Option<(Bytes, std::ops::Range<usize>)> = None;
        for (end, block) in blocks.iter().enumerate() {
            if matches!(block.state, BlockState::Unmapped | BlockState::PendingFree) {
                (start, size, live) = (end + 1, Bytes::ZERO, Bytes::ZERO);
                continue;
            }
            (size, live) = (size.saturating_add(block.size), live.saturating_add(live_size(block)));
            while let Some(first) =
                blocks.get(start).filter(|first| size.saturating_sub(first.size) >= needed)
            {
                (size, live) = (size.saturating_sub(first.size), live.saturating_sub(live_size(first)));
                start += 1;
            }
            if size >= needed && best.as_ref().is_none_or(|(least, _)| live < *least) {
                best = Some((live, start..end + 1));
            }
        }
        if let Some((bytes, range)) = best {
            let window = blocks.get(range).unwrap_or_default().iter();
            let live = window.filter(|block| block.state == BlockState::Allocated);
            found.push((bytes, live.filter_map(|block| failure.served(block.allocation)).collect()));
        }
    }
    found.sort();
    found.truncate(MAX_TENSORS);
    found
}

/// A segment that goes back to the device once its blocks are free.
struct ReleasableSegment {
    size: Bytes,
    live: Bytes,
    requests: Vec<usize>,
}

/// Sets of segments that can be released once their blocks are free, with enough bytes for the request. Each
/// set takes the segments in another order: by live bytes for their size, by the number of blocks, by live
/// bytes; or one segment alone.
fn releases(examined: &Examination<'_>) -> Vec<(Bytes, Vec<usize>)> {
    let Examination { failure, limit, .. } = examined;
    let wanted = failure.memory.reserved.saturating_add(failure.request.segment_size);
    let missing = wanted.saturating_sub(limit.low);
    let mut segments = releasable(&failure.live.snapshot, failure);
    let mut sets = Vec::new();
    let alone = segments.iter().filter(|segment| segment.size >= missing).min_by_key(|segment| segment.live);
    sets.extend(alone.map(|segment| (segment.live, segment.requests.clone())));
    segments.sort_by_key(|segment| {
        let share = u128::from(segment.live.get())
            .saturating_mul(1_000_000)
            .checked_div(u128::from(segment.size.get()));
        (share, std::cmp::Reverse(segment.size))
    });
    sets.extend(first_enough(&segments, missing));
    segments.sort_by_key(|segment| (segment.requests.len(), std::cmp::Reverse(segment.size)));
    sets.extend(first_enough(&segments, missing));
    segments.sort_by_key(|segment| segment.live);
    sets.extend(first_enough(&segments, missing));
    sets
}

fn releasable(snapshot: &Snapshot, failure: &Failure) -> Vec<ReleasableSegment> {
    let default = snapshot.segments.iter().filter(|segment| segment.pool_id == PoolId::DEFAULT);
    let is_pending = |block: &BlockSnapshot| block.state == BlockState::PendingFree;
    let whole =
        default.filter(|segment| !segment.mapped().is_zero() && !segment.blocks.iter().any(is_pending));
    whole
        .map(|segment| {
            let live = segment.blocks.iter().filter(|block| block.state == BlockState::Allocated);
            ReleasableSegment {
                size: segment.mapped(),
                live: segment.allocated(),
                requests: live.filter_map(|block| failure.served(block.allocation)).collect(),
            }
        })
        .collect()
}

/// The first segments that together have the missing bytes, without segments that are not needed.
fn first_enough(segments: &[ReleasableSegment], missing: Bytes) -> Option<(Bytes, Vec<usize>)> {
    let mut released = Bytes::ZERO;
    let mut chosen: Vec<&ReleasableSegment> = Vec::new();
    for segment in segments {
        if released >= missing {
            break;
        }
        released = released.saturating_add(segment.size);
        chosen.push(segment);
    }
    if released < missing {
        return None;
    }
    chosen.sort_by_key(|segment| std::cmp::Reverse(segment.live));
    chosen.retain(|segment| {
        let is_needed = released.saturating_sub(segment.size) < missing;
        if !is_needed {
            released = released.saturating_sub(segment.size);
        }
        is_needed
    });
    let live = chosen.iter().map(|segment| segment.live).sum();
    Some((live, chosen.into_iter().flat_map(|segment| segment.requests.iter().copied()).collect()))
}
