//! Statistics of pinned host memory.

use serde::{Deserialize, Serialize};

use crate::Stat;
use crate::stats::count_one;

/// How long calls of one kind took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationStat {
    /// The sum over all calls.
    pub total: i64,
    /// The longest call since the peaks were last reset.
    pub max: i64,
    /// The shortest call since the peaks were last reset; 0 also means that there was no call.
    pub min: i64,
    /// How many calls there were.
    pub count: i64,
}

impl DurationStat {
    /// Adds a call that took this number of microseconds. The sum wraps around, as PyTorch's does.
    pub fn add(&mut self, micros: i64) {
        self.total = self.total.wrapping_add(micros);
        count_one(&mut self.count);
        self.max = self.max.max(micros);
        // PyTorch reads a minimum of zero as "no call yet", so a call of less than a microsecond is not kept
        // as the minimum.
        self.min = if self.min == 0 { micros } else { self.min.min(micros) };
    }

    /// The mean, cut off to whole microseconds; 0 without calls.
    #[must_use]
    pub fn average(&self) -> i64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// Sets `max` and `min` to zero.
    pub fn reset_peak(&mut self) {
        self.max = 0;
        self.min = 0;
    }

    /// Sets `total` and `count` to zero.
    pub fn reset_accumulated(&mut self) {
        self.total = 0;
        self.count = 0;
    }
}

/// What PyTorch counts about its allocator of pinned host memory (`HostStats`); `host_memory_stats()` shows
/// it as 28 keys.
///
/// Bytes count blocks, which are powers of two: active ≤ allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStats {
    /// All blocks: allocated, pending and cached.
    pub allocations: Stat,
    /// Allocated and pending blocks.
    pub active_requests: Stat,
    /// Bytes of all blocks.
    pub allocated_bytes: Stat,
    /// Bytes of active blocks.
    pub active_bytes: Stat,
    /// How long the calls took that pinned memory.
    pub host_alloc_time: DurationStat,
    /// How long the calls took that released pinned memory.
    pub host_free_time: DurationStat,
    /// A copy of `allocations.allocated`.
    pub num_host_alloc: i64,
    /// A copy of `allocations.freed`.
    pub num_host_free: i64,
}
