use blockyard_record::{
    BlockState, Bytes, Event, FailureCause, MemoryState, PoolKind, Recording, StreamId, grouped,
};

use crate::words::names::{exact, stream_phrase};

/// Requests of at most this size, rounded, are served from the small pool: see [`PoolKind`].
const SMALL: Bytes = Bytes::mib(1);

/// Why a request ran out of memory: what it needed, what was free or cached, and why that was not enough.
pub(super) fn why_no_memory(
    event: &Event,
    cause: Option<FailureCause>,
    state: &MemoryState,
    recording: &Recording,
) -> String {
    let Event::OutOfMemory { rounded, segment_size, stream, device_free, .. } = *event else {
        return String::new();
    };
    let breakdown = state.breakdown();
    let room = match (cause, state.limit()) {
        (Some(FailureCause::Fraction), Some(limit)) => {
            format!("the limit of {limit} leaves {}", limit.saturating_sub(breakdown.reserved()))
        }
        _ => format!("the device has {device_free} free"),
    };
    let of = if rounded == segment_size { String::new() } else { format!(" of {segment_size}") };
    let mut parts = vec![format!("out of memory: {rounded} need a new segment{of}, and {room}")];
    let pool = if rounded <= SMALL { PoolKind::Small } else { PoolKind::Large };
    let cached = Cached::of(state, stream, pool);
    let (total, user) = (breakdown.cached, stream_phrase(recording, stream));
    // The exact size, if the rounded one looks large enough.
    let largest = if cached.largest.to_string() == rounded.to_string() {
        format!("{}, of {} bytes needed", exact(cached.largest), grouped(rounded.get()))
    } else {
        cached.largest.to_string()
    };
    parts.push(if total.is_zero() {
        "nothing is cached".to_owned()
    } else if cached.largest.is_zero() {
        format!("{total} are cached, but none of that is in the {pool} pool of {user}")
    } else if cached.elsewhere.is_zero() {
        format!("{total} are cached, but the largest cached block that {user} may use is {largest}")
    } else {
        let others = cached.elsewhere;
        format!(
            "{total} are cached ({others} for other streams), but the largest cached block that {user} may use is {largest}"
        )
    });
    if !breakdown.pending.is_zero() {
        parts.push(format!("{} wait for a stream", breakdown.pending));
    }
    parts.join("; ")
}

/// The cached blocks of a stream in a pool.
struct Cached {
    largest: Bytes,
    /// The cached bytes of other streams, in both pools.
    elsewhere: Bytes,
}

impl Cached {
    fn of(state: &MemoryState, stream: StreamId, pool: PoolKind) -> Self {
        let mut cached = Self { largest: Bytes::ZERO, elsewhere: Bytes::ZERO };
        for segment in state.snapshot().segments {
            for block in segment.blocks.iter().filter(|block| block.state == BlockState::Inactive) {
                if segment.stream != stream {
                    cached.elsewhere = cached.elsewhere.saturating_add(block.size);
                } else if segment.pool == pool {
                    cached.largest = cached.largest.max(block.size);
                }
            }
        }
        cached
    }
}
