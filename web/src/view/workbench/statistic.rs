//! The statistics of `memory_stats()`, each with its meaning in a sentence.

use blockyard_record::{Stat, StatArray, Stats};

/// A statistic that PyTorch counts in all and for each of the block pools.
#[derive(Clone, Copy)]
pub(crate) struct Statistic {
    /// The beginning of PyTorch's keys in `memory_stats()`.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) get: fn(&Stats) -> &StatArray,
}

impl Statistic {
    pub(crate) fn is_bytes(self) -> bool {
        self.key.ends_with("_bytes")
    }
}

macro_rules! statistics {
    ($($key:ident $title:literal, $meaning:literal;)*) => {
        [$(Statistic {
            key: stringify!($key),
            title: $title,
            meaning: $meaning,
            get: |stats| &stats.$key,
        }),*]
    };
}

pub(crate) static STATISTICS: [Statistic; 9] = statistics! {
    allocated_bytes "Allocated",
        "Bytes of allocated blocks, rounding included: torch.cuda.memory_allocated().";
    reserved_bytes "Reserved",
        "Bytes of all segments taken from the device, used or not: torch.cuda.memory_reserved().";
    active_bytes "Active", "Allocated bytes and those whose free still waits for another stream.";
    requested_bytes "Requested", "What callers asked for, before rounding, in active blocks.";
    inactive_split_bytes "Inactive split",
        "Cached bytes in segments that also hold other blocks: they cannot be given back to the device.";
    allocation "Allocations", "How many blocks are allocated.";
    segment "Segments", "How many segments are taken from the device; each was one cudaMalloc.";
    active "Active blocks", "How many blocks are allocated or pending.";
    inactive_split "Inactive split blocks",
        "How many cached blocks lie in segments that also hold other blocks.";
};

/// A statistic that is one number.
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) get: fn(&Stats) -> i64,
}

macro_rules! counters {
    ($($key:ident $(. $of:ident)? $title:literal, $meaning:literal;)*) => {
        [$(Counter {
            key: stringify!($key),
            title: $title,
            meaning: $meaning,
            get: |stats| stats.$key$(.$of)?,
        }),*]
    };
}

pub(crate) static COUNTERS: [Counter; 8] = counters! {
    num_device_alloc "Segments taken", "Calls to the device for a segment (cudaMalloc) that succeeded.";
    num_device_free "Segments given back", "Segments returned to the device (cudaFree).";
    num_alloc_retries "Retries", "Times that a request released the whole cache and asked the device again.";
    num_ooms "Out of memory", "Requests that failed.";
    num_sync_all_streams "Waits for all streams",
        "Times that the allocator waited for all outstanding work before it released memory.";
    oversize_allocations.current "Oversize allocations", "Allocated blocks of at least max_split_size.";
    oversize_segments.current "Oversize segments", "Segments of at least max_split_size.";
    max_split_size "max_split_size",
        "Blocks above this many bytes are never divided; memory_stats() has -1 for no limit.";
};

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
