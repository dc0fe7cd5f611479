//! The texts that mean something in a snapshot, with fixed numbers.

use blockyard_record::{Stacks, TextId, TraceAction};

macro_rules! keys {
    ($($name:ident $text:literal,)*) => {
        /// The texts in the order of their numbers.
        const TEXTS: &[&str] = &[$($text),*];
        keys!(@number 0, $($name,)*);
    };
    (@number $number:expr, $name:ident, $($rest:ident,)*) => {
        pub(super) const $name: TextId = TextId::new($number);
        keys!(@number $number + 1, $($rest,)*);
    };
    (@number $number:expr,) => {
        /// The number of the first name of an action.
        const FIRST_ACTION: u32 = $number;
    };
}

keys! {
    ACTION "action",
    ADDR "addr",
    DEVICE_FREE "device_free",
    SIZE "size",
    STREAM "stream",
    TIME_US "time_us",
    COMPILE_CONTEXT "compile_context",
    USER_METADATA "user_metadata",
    FRAMES "frames",
    POOL_ID "pool_id",
    NAME "name",
    FILENAME "filename",
    LINE "line",
    DEVICE "device",
    ADDRESS "address",
    TOTAL_SIZE "total_size",
    ALLOCATED_SIZE "allocated_size",
    ACTIVE_SIZE "active_size",
    REQUESTED_SIZE "requested_size",
    SEGMENT_TYPE "segment_type",
    SEGMENT_POOL_ID "segment_pool_id",
    IS_EXPANDABLE "is_expandable",
    BLOCKS "blocks",
    STATE "state",
    HISTORY "history",
    REAL_SIZE "real_size",
    STAGE "stage",
    SEGMENTS "segments",
    DEVICE_TRACES "device_traces",
    ALLOCATOR_SETTINGS "allocator_settings",
    EXTERNAL_ANNOTATIONS "external_annotations",
    ALLOC_CONF "PYTORCH_CUDA_ALLOC_CONF",
    MAX_SPLIT_SIZE "max_split_size",
    GARBAGE_COLLECTION_THRESHOLD "garbage_collection_threshold",
    EXPANDABLE_SEGMENTS "expandable_segments",
    ROUNDUP "roundup_power2_divisions",
    NOT_AVAILABLE "N/A",
    EMPTY "",
    SMALL "small",
    START "START",
    END "END",
    ACTIVE_ALLOCATED "active_allocated",
    ACTIVE_PENDING_FREE "active_pending_free",
    ACTIVE_AWAITING_FREE "active_awaiting_free",
    INACTIVE "inactive",
    HOST_SEGMENTS "host_segments",
    HOST_TRACES "host_traces",
    INTERNAL_METADATA "internal_metadata",
    ANNOTATE "annotate",
    KEEPERS "blockyard_keepers",
}

/// Stacks whose texts begin with all of these.
pub(super) fn stacks() -> Stacks {
    let mut stacks = Stacks::default();
    for text in TEXTS.iter().copied().chain(TraceAction::all().map(TraceAction::name)) {
        // A handful of short texts always fits.
        let _ = stacks.intern_text(text);
    }
    stacks
}

pub(super) fn action(text: TextId) -> Option<TraceAction> {
    let number = text.get().checked_sub(FIRST_ACTION)?;
    TraceAction::from_number(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_belong_together() {
        let stacks = stacks();
        assert_eq!(stacks.texts().get(ACTION), "action");
        assert_eq!(stacks.texts().get(INACTIVE), "inactive");
        assert_eq!(stacks.texts().len(), TEXTS.len() + TraceAction::all().count());
        for known in TraceAction::all() {
            let found = (0..stacks.texts().len()).map(|number| TextId::new(u32::try_from(number).unwrap()));
            let mut found = found.filter(|text| action(*text) == Some(known));
            assert_eq!(found.next().map(|text| stacks.texts().get(text)), Some(known.name()));
        }
    }
}
