use serde::{Deserialize, Serialize};

use crate::Stat;

/// How long calls of one kind took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationStat {
    /// All of them together.
    pub total: i64,
    /// The longest since the last reset of peaks.
    pub max: i64,
    /// The shortest since then; 0 also means that there was none.
    pub min: i64,
    /// How many there were.
    pub count: i64,
}

impl DurationStat {
    /// Adds a call that took so many microseconds.
    pub fn add(&mut self, micros: i64) {
        self.total = self.total.wrapping_add(micros);
        self.count += 1;
        self.max = self.max.max(micros);
        // PyTorch takes a minimum of zero for none, so a call of less than a microsecond is forgotten.
        self.min = if self.min == 0 { micros } else { self.min.min(micros) };
    }

    /// The mean, cut off to whole microseconds; 0 without calls.
    #[must_use]
    pub fn average(&self) -> i64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// Forgets the longest and the shortest.
    pub fn reset_peak(&mut self) {
        self.max = 0;
        self.min = 0;
    }

    /// Forgets the sum and the count.
    pub fn reset_accumulated(&mut self) {
        self.total = 0;
        self.count = 0;
    }
}

/// What PyTorch counts about its allocator of pinned host memory (`HostStats`); `host_memory_stats()` shows it as 28 keys.
///
/// Bytes count blocks, which are powers of two: active ≤ allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStats {
    /// Blocks held: those in use, those that wait for a stream, and those that are cached.
    pub allocations: Stat,
    /// Blocks in callers' hands or waiting for a stream.
    pub active_requests: Stat,
    /// Bytes of the blocks held.
    pub allocated_bytes: Stat,
    /// Bytes of active blocks.
    pub active_bytes: Stat,
    /// Calls that pinned memory.
    pub host_alloc_time: DurationStat,
    /// Calls that gave pinned memory back.
    pub host_free_time: DurationStat,
    /// A copy of `allocations.allocated`.
    pub num_host_alloc: i64,
    /// A copy of `allocations.freed`.
    pub num_host_free: i64,
}
