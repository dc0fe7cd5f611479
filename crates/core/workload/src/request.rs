//! Requests: the calls of a program to an allocator.

use std::fmt;

use blockyard_record::{Bytes, PoolId, StreamId};
use serde::{Deserialize, Serialize};

/// The number of a tensor's storage: from 0 in the order of the workload's allocations.
///
/// Requests that fail count too, because a workload does not know which requests fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TensorId(u32);

impl TensorId {
    /// The tensor with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One thing that a program asks of an allocator, of its device, or of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Asks for `size` bytes, to be used on `stream`.
    Allocate {
        /// The tensor that will hold the bytes.
        tensor: TensorId,
        /// The requested size, before rounding; any number of bytes, zero included.
        size: Bytes,
        /// The stream on which the tensor lives.
        stream: StreamId,
    },
    /// Frees a tensor's bytes.
    Free {
        /// The tensor whose bytes are freed.
        tensor: TensorId,
    },
    /// Records that a tensor is used on a further stream, so that its free must wait for the work of that
    /// stream.
    RecordStream {
        /// The tensor that a further stream uses.
        tensor: TensorId,
        /// The further stream.
        stream: StreamId,
    },
    /// All work queued on the stream so far is done (its events complete); `None` stands for every stream.
    Advance {
        /// The stream whose work is done; `None` for every stream.
        stream: Option<StreamId>,
    },
    /// Releases all cached segments, as `torch.cuda.empty_cache()` does.
    EmptyCache,
    /// Limits the reserved bytes to a share of the device, as `torch.cuda.set_per_process_memory_fraction`
    /// does.
    SetFraction {
        /// The share, from 0 to 1; 1 means no limit.
        fraction: f64,
    },
    /// Sets every peak to its current value, as `torch.cuda.reset_peak_memory_stats()` does.
    ResetPeak,
    /// Sets accumulated counts to zero, as `torch.cuda.reset_accumulated_memory_stats()` does.
    ResetAccumulated,
    /// Makes a memory pool, as `torch.cuda.MemPool()` does.
    CreatePool {
        /// The id of the new pool.
        #[serde(rename = "pool")]
        pool_id: PoolId,
        /// Whether every request in the pool gets a whole segment (`no_split`).
        never_splits: bool,
        /// Whether requests outside of the pool that would fail may take cached blocks of the pool
        /// (`use_on_oom`).
        serves_on_oom: bool,
    },
    /// Directs the following requests to a memory pool, as entering `torch.cuda.use_mem_pool()` does. The
    /// pool is created if it does not exist.
    EnterPool {
        /// The id of the pool that following requests go to.
        #[serde(rename = "pool")]
        pool_id: PoolId,
    },
    /// Ends the scope that [`Request::EnterPool`] opened.
    LeavePool {
        /// The id of the pool that was entered.
        #[serde(rename = "pool")]
        pool_id: PoolId,
    },
    /// Gives up a memory pool that [`Request::CreatePool`] made, as the end of its `MemPool` object does.
    DestroyPool {
        /// The id of the pool that is given up.
        #[serde(rename = "pool")]
        pool_id: PoolId,
    },
    /// Gives the allocator further settings, as `_set_allocator_settings()` does.
    Set {
        /// The number of the settings text, for [`Workload::settings`](crate::Workload::settings).
        settings: u32,
    },
    /// Takes a snapshot, which changes nothing; PyTorch's trace lists it.
    Snapshot,
}

// Five million of them must fit a browser tab.
const _: () = assert!(size_of::<Request>() <= 24);
