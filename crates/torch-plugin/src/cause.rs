//! Why a request found no memory, in one sentence, from the allocator's memory at that moment.

use blockyard_allocator::OutOfMemory;
use blockyard_record::{BlockState, Bytes, PoolId, PoolKind, Snapshot};

/// The largest request that the small pool serves: see [`PoolKind`].
const SMALL: Bytes = Bytes::mib(1);

/// The cause in one sentence without a full stop.
///
/// The causes are tried in this order, and the first that would have made the difference is the answer: the request alone is above the
/// limit; cached bytes of the request's own stream and pool lie in pieces; cached bytes belong to other streams; to
/// private pools; freed blocks wait for another stream; others use memory of the device; live blocks fill the limit.
pub(crate) fn cause(failed: &OutOfMemory, snapshot: &Snapshot) -> String {
    let held = Cached::of(failed, snapshot);
    let limit = failed.limit.map_or(failed.device_total, |limit| limit.min(failed.device_total));
    let needed = failed.rounded;
    if needed > limit {
        return format!("the request of {needed} alone is above the limit of {limit}");
    }
    // The bytes that could still be reserved.
    let room = limit.saturating_sub(failed.reserved).min(failed.device_free);
    let mut within = room.saturating_add(held.own);
    if within >= needed && !held.own.is_zero() {
        return format!(
            "{} are cached for this stream and {room} can still be reserved, but the largest cached block is {}: \
             blocks in use lie between (fragmentation)",
            held.own, held.largest,
        );
    }
    within = within.saturating_add(held.other_streams);
    if within >= needed && !held.other_streams.is_zero() {
        return format!("{} are cached for other streams, which this stream cannot use", held.other_streams);
    }
    within = within.saturating_add(held.other_pools);
    if within >= needed && !held.other_pools.is_zero() {
        return format!(
            "{} are cached in other memory pools (CUDA graphs, MemPool), which this request cannot use",
            held.other_pools
        );
    }
    within = within.saturating_add(held.pending);
    if within >= needed && !held.pending.is_zero() {
        return format!("{} are freed, and wait until another stream has finished with them", held.pending);
    }
    let others = failed.device_total.saturating_sub(failed.device_free).saturating_sub(failed.reserved);
    if failed.reserved.saturating_add(needed) <= limit && !others.is_zero() {
        return format!("{others} of the device are in use outside of this allocator");
    }
    format!("blocks in use hold {}, and {needed} more do not fit into the limit of {limit}", failed.allocated)
}

/// Cached and pending bytes, by the streams and pools that may use them.
#[derive(Default)]
struct Cached {
    own: Bytes,
    largest: Bytes,
    other_streams: Bytes,
    other_pools: Bytes,
    pending: Bytes,
}

impl Cached {
    fn of(failed: &OutOfMemory, snapshot: &Snapshot) -> Self {
        let mut held = Self::default();
        let kind = if failed.rounded <= SMALL { PoolKind::Small } else { PoolKind::Large };
        for segment in &snapshot.segments {
            for block in &segment.blocks {
                let place = match block.state {
                    BlockState::Inactive if segment.pool_id != PoolId::DEFAULT => &mut held.other_pools,
                    BlockState::Inactive if segment.stream != failed.stream => &mut held.other_streams,
                    BlockState::Inactive if segment.pool == kind => {
                        held.largest = held.largest.max(block.size);
                        &mut held.own
                    }
                    BlockState::PendingFree => &mut held.pending,
                    _ => continue,
                };
                *place = place.saturating_add(block.size);
            }
        }
        held
    }
}
