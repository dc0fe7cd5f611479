//! Counters of pinned host memory: the rows of `host_memory_stats()`.

use blockyard_record::{Bytes, DurationStat, HostStats, Stat};

use super::LISTS;

/// The counters of one allocator of pinned memory. Active blocks are counted for each size, because PyTorch
/// has a lock for each size.
#[derive(Clone, Debug)]
pub(super) struct HostCounters {
    allocations: Stat,
    allocated_bytes: Stat,
    active_requests: [Stat; LISTS],
    active_bytes: [Stat; LISTS],
    pub(super) host_alloc_time: DurationStat,
    pub(super) host_free_time: DurationStat,
}

impl Default for HostCounters {
    fn default() -> Self {
        Self {
            allocations: Stat::default(),
            allocated_bytes: Stat::default(),
            active_requests: [Stat::default(); LISTS],
            active_bytes: [Stat::default(); LISTS],
            host_alloc_time: DurationStat::default(),
            host_free_time: DurationStat::default(),
        }
    }
}

impl HostCounters {
    pub(super) fn block_made(&mut self, size: Bytes) {
        self.allocations.increase(1);
        self.allocated_bytes.increase(size.signed());
    }

    pub(super) fn block_released(&mut self, size: Bytes) {
        self.allocations.decrease(1);
        self.allocated_bytes.decrease(size.signed());
    }

    pub(super) fn block_allocated(&mut self, exponent: usize, size: Bytes) {
        self.active_requests[exponent].increase(1);
        self.active_bytes[exponent].increase(size.signed());
    }

    /// Differs: PyTorch 2.11 and 2.12 skip blocks here that no stream has used, and decrease the bytes by 1
    /// for other blocks (their documentation says otherwise). Here both the count and the bytes fall by the
    /// block when its free completes, as in PyTorch from 2.13 on.
    pub(super) fn free_completed(&mut self, exponent: usize, size: Bytes) {
        self.active_requests[exponent].decrease(1);
        self.active_bytes[exponent].decrease(size.signed());
    }

    /// Peaks of active blocks are sums over the peaks of all sizes, as in PyTorch, and so not below the true
    /// peak.
    pub(super) fn stats(&self) -> HostStats {
        HostStats {
            allocations: self.allocations,
            active_requests: sum(&self.active_requests),
            allocated_bytes: self.allocated_bytes,
            active_bytes: sum(&self.active_bytes),
            host_alloc_time: self.host_alloc_time,
            host_free_time: self.host_free_time,
            num_host_alloc: self.allocations.allocated,
            num_host_free: self.allocations.freed,
        }
    }

    pub(super) fn reset_peak(&mut self) {
        self.each(Stat::reset_peak);
        self.host_alloc_time.reset_peak();
        self.host_free_time.reset_peak();
    }

    pub(super) fn reset_accumulated(&mut self) {
        self.each(Stat::reset_accumulated);
        self.host_alloc_time.reset_accumulated();
        self.host_free_time.reset_accumulated();
    }

    fn each(&mut self, apply: impl Fn(&mut Stat)) {
        let by_size = self.active_requests.iter_mut().chain(&mut self.active_bytes);
        by_size.chain([&mut self.allocations, &mut self.allocated_bytes]).for_each(apply);
    }
}

fn sum(stats: &[Stat]) -> Stat {
    stats.iter().fold(Stat::default(), |sum, stat| Stat {
        current: sum.current.wrapping_add(stat.current),
        peak: sum.peak.wrapping_add(stat.peak),
        allocated: sum.allocated.wrapping_add(stat.allocated),
        freed: sum.freed.wrapping_add(stat.freed),
    })
}
