//! What is known of requests that found no memory, in words.

use blockyard_record::{Breakdown, Bytes};

/// What is known of a request that found no memory. The trace has neither PyTorch's message nor the limit, so
/// the text has the snapshot's own numbers and says so; `most` is the most that was ever reserved.
pub(super) fn failure(size: Bytes, wanted: Bytes, free: Bytes, most: Bytes, memory: Breakdown) -> String {
    let (reserved, active) = (memory.reserved(), memory.active());
    let cause = if free < wanted && wanted > reserved.saturating_add(free) {
        "More than the GPU could give".to_owned()
    } else if free < wanted {
        "The GPU was full".to_owned()
    } else {
        let highest = reserved.saturating_add(wanted).max(most);
        format!("A process limit between {most} and {highest}, not the GPU")
    };
    format!(
        "{cause}: {size} were asked for, {reserved} were reserved, {active} of them in use, and the device reported {free} free. These \
         are the snapshot's numbers; PyTorch's message is not in the file."
    )
}

/// What is known of a request for pinned host memory that failed. The limit is the operating system's.
pub(super) fn host_failure(size: Bytes, memory: Breakdown) -> String {
    format!(
        "Pinned host memory ran out: {size} were asked for, {} were reserved, {} of them in use. These are \
         the snapshot's numbers.",
        memory.reserved(),
        memory.active()
    )
}
