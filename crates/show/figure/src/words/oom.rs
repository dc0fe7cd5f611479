//! Why a request ran out of memory, as sentences.

use blockyard_record::{
    Event, FailureCause, MemoryAtFailure, MemoryState, OomRequest, PoolId, PoolKind, Recording, exact_size,
    grouped,
};

use crate::words::names::stream_phrase;

/// Why a request ran out of memory: the bytes that it needed, the free and cached bytes, and why these were
/// not enough.
pub(super) fn why_no_memory(
    event: &Event,
    cause: Option<FailureCause>,
    state: &MemoryState,
    recording: &Recording,
) -> String {
    let Event::OutOfMemory { requested, rounded, segment_size, stream, device_free, .. } = *event else {
        return String::new();
    };
    // An event does not name the memory pool; most requests come from the default one.
    let pool_id = PoolId::DEFAULT;
    let request = OomRequest { size: requested, rounded, segment_size, stream, pool_id };
    let memory = MemoryAtFailure::of(&state.snapshot(), &request);
    let breakdown = state.breakdown();
    let room = match (cause, state.limit()) {
        (Some(FailureCause::Fraction), Some(limit)) => {
            format!("the limit of {limit} leaves {}", limit.saturating_sub(breakdown.reserved()))
        }
        // A snapshot does not have the limit, only that the device would have had more.
        _ if recording.info().is_capacity_unknown && device_free >= segment_size => {
            format!("a limit of the process stops it, not the device, which has {device_free} free")
        }
        _ => format!("the device has {device_free} free"),
    };
    let of = if rounded == segment_size { String::new() } else { format!(" of {segment_size}") };
    let mut parts = vec![format!("out of memory: {rounded} need a new segment{of}, and {room}")];
    let (pool, user) = (PoolKind::serving(rounded), stream_phrase(recording, stream));
    let (total, largest) = (memory.cached(), memory.largest_cached_here);
    // The exact size is named if the rounded size looks large enough for the request.
    let exact_largest = if largest.to_string() == rounded.to_string() {
        format!("{}, of {} bytes needed", exact_size(largest), grouped(rounded.get()))
    } else {
        largest.to_string()
    };
    let elsewhere = [(memory.cached_other_streams, "streams"), (memory.cached_other_pools, "memory pools")];
    let elsewhere = elsewhere.iter().filter(|(bytes, _)| !bytes.is_zero());
    let elsewhere: Vec<String> =
        elsewhere.map(|(bytes, owners)| format!("{bytes} for other {owners}")).collect();
    // A limit on splits keeps requests from blocks that are large enough for them.
    let splits_all = recording.info().max_split_size < 0;
    parts.push(if splits_all && memory.has_block_for(&request) {
        format!("a cached block of {largest} came free too late: PyTorch does not look for it again (issue 189504)")
    } else if total.is_zero() {
        "nothing is cached".to_owned()
    } else if largest.is_zero() {
        format!("{total} are cached, but none of that is in the {pool} pool of {user}")
    } else if elsewhere.is_empty() {
        format!("{total} are cached, but the largest cached block for it is {exact_largest}")
    } else {
        let elsewhere = elsewhere.join(", ");
        format!("{total} are cached ({elsewhere}), but the largest cached block that {user} may use is {exact_largest}")
    });
    if !breakdown.pending.is_zero() {
        parts.push(format!("{} wait for a stream", breakdown.pending));
    }
    parts.join("; ")
}
