//! Why a request found no memory, in one sentence, from the allocator's memory at that moment.

use blockyard_allocator::OutOfMemory;
use blockyard_record::{MemoryAtFailure, OomCause, OomLimit, OomRequest, Snapshot};

/// The cause in one sentence without a full stop.
pub(crate) fn cause(failed: &OutOfMemory, snapshot: &Snapshot) -> String {
    let request = OomRequest {
        size: failed.requested,
        rounded: failed.rounded,
        segment_size: failed.segment_size,
        stream: failed.stream,
        pool_id: failed.pool_id,
    };
    let memory = MemoryAtFailure::of(snapshot, &request);
    let limit = OomLimit::at_failure(
        &request,
        failed.reserved,
        failed.limit,
        failed.device_free,
        failed.device_total,
    );
    OomCause::of(&request, &memory, limit).sentence(&request, &memory, limit)
}
