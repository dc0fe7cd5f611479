//! The statistics of `memory_stats()`, each with its meaning in a sentence.

use blockyard_record::{Stat, StatArray, Stats};

/// A statistic that PyTorch counts in all and for each of the block pools.
#[derive(Clone, Copy)]
pub(crate) struct Statistic {
    /// The beginning of PyTorch's keys in `memory_stats()`.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) is_bytes: bool,
    pub(crate) get: fn(&Stats) -> &StatArray,
}

pub(crate) static STATISTICS: [Statistic; 9] = [
    Statistic {
        key: "allocated_bytes",
        title: "Allocated",
        meaning: "Bytes of allocated blocks, rounding included: torch.cuda.memory_allocated().",
        is_bytes: true,
        get: |stats| &stats.allocated_bytes,
    },
    Statistic {
        key: "reserved_bytes",
        title: "Reserved",
        meaning: "Bytes of all segments taken from the device, used or not: torch.cuda.memory_reserved().",
        is_bytes: true,
        get: |stats| &stats.reserved_bytes,
    },
    Statistic {
        key: "active_bytes",
        title: "Active",
        meaning: "Allocated bytes and those whose free still waits for another stream.",
        is_bytes: true,
        get: |stats| &stats.active_bytes,
    },
    Statistic {
        key: "requested_bytes",
        title: "Requested",
        meaning: "What callers asked for, before rounding, in active blocks.",
        is_bytes: true,
        get: |stats| &stats.requested_bytes,
    },
    Statistic {
        key: "inactive_split_bytes",
        title: "Inactive split",
        meaning: "Cached bytes in segments that also hold other blocks: they cannot be given back to the device.",
        is_bytes: true,
        get: |stats| &stats.inactive_split_bytes,
    },
    Statistic {
        key: "allocation",
        title: "Allocations",
        meaning: "How many blocks are allocated.",
        is_bytes: false,
        get: |stats| &stats.allocation,
    },
    Statistic {
        key: "segment",
        title: "Segments",
        meaning: "How many segments are taken from the device; each was one cudaMalloc.",
        is_bytes: false,
        get: |stats| &stats.segment,
    },
    Statistic {
        key: "active",
        title: "Active blocks",
        meaning: "How many blocks are allocated or pending.",
        is_bytes: false,
        get: |stats| &stats.active,
    },
    Statistic {
        key: "inactive_split",
        title: "Inactive split blocks",
        meaning: "How many cached blocks lie in segments that also hold other blocks.",
        is_bytes: false,
        get: |stats| &stats.inactive_split,
    },
];

/// A statistic that is one number.
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) get: fn(&Stats) -> i64,
}

pub(crate) static COUNTERS: [Counter; 8] = [
    Counter {
        key: "num_device_alloc",
        title: "Segments taken",
        meaning: "Calls to the device for a segment (cudaMalloc) that succeeded.",
        get: |stats| stats.num_device_alloc,
    },
    Counter {
        key: "num_device_free",
        title: "Segments given back",
        meaning: "Segments returned to the device (cudaFree).",
        get: |stats| stats.num_device_free,
    },
    Counter {
        key: "num_alloc_retries",
        title: "Retries",
        meaning: "Times that a request released the whole cache and asked the device again.",
        get: |stats| stats.num_alloc_retries,
    },
    Counter {
        key: "num_ooms",
        title: "Out of memory",
        meaning: "Requests that failed.",
        get: |stats| stats.num_ooms,
    },
    Counter {
        key: "num_sync_all_streams",
        title: "Waits for all streams",
        meaning: "Times that the allocator waited for all outstanding work before it released memory.",
        get: |stats| stats.num_sync_all_streams,
    },
    Counter {
        key: "oversize_allocations",
        title: "Oversize allocations",
        meaning: "Allocated blocks of at least max_split_size.",
        get: |stats| stats.oversize_allocations.current,
    },
    Counter {
        key: "oversize_segments",
        title: "Oversize segments",
        meaning: "Segments of at least max_split_size.",
        get: |stats| stats.oversize_segments.current,
    },
    Counter {
        key: "max_split_size",
        title: "max_split_size",
        meaning: "Blocks above this many bytes are never divided; memory_stats() has -1 for no limit.",
        get: |stats| stats.max_split_size,
    },
];

/// The block pools whose blocks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedPools {
    All,
    Small,
    Large,
}

impl CountedPools {
    pub(crate) const ALL: [Self; 3] = [Self::All, Self::Small, Self::Large];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Small => "Small pool",
            Self::Large => "Large pool",
        }
    }

    pub(crate) fn test_id(self) -> &'static str {
        match self {
            Self::All => "share-all",
            Self::Small => "share-small",
            Self::Large => "share-large",
        }
    }

    pub(crate) fn of(self, stat: &StatArray) -> Stat {
        match self {
            Self::All => stat.all,
            Self::Small => stat.small_pool,
            Self::Large => stat.large_pool,
        }
    }
}
