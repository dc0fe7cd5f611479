//! Statistics, as `memory_stats()` has them.

use serde::{Deserialize, Serialize};

use crate::{Backend, BlockState, Bytes, PoolKind, SegmentSnapshot, Snapshot};

/// One quantity: its current value, its peak, and the sums of all increases and decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// The value now.
    pub current: i64,
    /// The largest value since the peaks were last reset.
    pub peak: i64,
    /// All increases since the accumulated counts were last reset.
    pub allocated: i64,
    /// All decreases since the accumulated counts were last reset.
    pub freed: i64,
}

impl Stat {
    /// The current value of a quantity in bytes; none where a file says less than zero.
    #[must_use]
    pub fn current_bytes(&self) -> Bytes {
        Bytes::new(u64::try_from(self.current).unwrap_or(0))
    }

    /// The peak of a quantity in bytes; none where a file says less than zero.
    #[must_use]
    pub fn peak_bytes(&self) -> Bytes {
        Bytes::new(u64::try_from(self.peak).unwrap_or(0))
    }

    // Sums wrap around, as PyTorch's do: on a large virtual device, more than 2^63 bytes may be allocated and
    // freed in all.

    /// Adds `amount` to the current value, which may raise the peak.
    pub fn increase(&mut self, amount: i64) {
        self.current = self.current.wrapping_add(amount);
        self.peak = self.peak.max(self.current);
        self.allocated = self.allocated.wrapping_add(amount);
    }

    /// Subtracts `amount` from the current value.
    pub fn decrease(&mut self, amount: i64) {
        self.current = self.current.wrapping_sub(amount);
        self.freed = self.freed.wrapping_add(amount);
    }

    /// Applies a net change as one increase or one decrease. Zero changes nothing, not even the peak.
    fn change(&mut self, amount: i64) {
        if amount > 0 {
            self.increase(amount);
        } else if amount < 0 {
            self.decrease(amount.wrapping_neg());
        }
    }

    /// Sets the peak to the current value.
    pub fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    /// Sets the sums of increases and decreases to zero.
    pub fn reset_accumulated(&mut self) {
        self.allocated = 0;
        self.freed = 0;
    }
}

/// A quantity in all pools and in each pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatArray {
    /// The numbers of both block pools together. The peak is that of the sum, not the sum of the peaks.
    pub all: Stat,
    /// The numbers of the small block pools.
    pub small_pool: Stat,
    /// The numbers of the large block pools.
    pub large_pool: Stat,
}

impl StatArray {
    fn both(&mut self, pool: PoolKind, apply: impl Fn(&mut Stat)) {
        apply(&mut self.all);
        apply(match pool {
            PoolKind::Small => &mut self.small_pool,
            PoolKind::Large => &mut self.large_pool,
        });
    }

    fn increase(&mut self, pool: PoolKind, amount: i64) {
        self.both(pool, |stat| stat.increase(amount));
    }

    fn decrease(&mut self, pool: PoolKind, amount: i64) {
        self.both(pool, |stat| stat.decrease(amount));
    }

    /// Applies a net change in one pool as one increase or one decrease. Zero changes nothing.
    pub fn change(&mut self, pool: PoolKind, amount: i64) {
        self.both(pool, |stat| stat.change(amount));
    }

    /// Sets the peaks to the current values.
    pub fn reset_peak(&mut self) {
        self.each(Stat::reset_peak);
    }

    /// Sets the sums of increases and decreases to zero.
    pub fn reset_accumulated(&mut self) {
        self.each(Stat::reset_accumulated);
    }

    fn each(&mut self, apply: impl Fn(&mut Stat)) {
        apply(&mut self.all);
        apply(&mut self.small_pool);
        apply(&mut self.large_pool);
    }
}

/// What PyTorch counts about a device allocator (`DeviceStats`); `memory_stats()` shows it as 122 keys, and
/// as more from release 2.12 on.
///
/// Bytes count *block* sizes, except `requested_bytes` (what callers asked for) and `reserved_bytes` (sizes
/// of segments). `allocation` falls when a free is requested; `active` and `requested_bytes` fall when the
/// free completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Allocated blocks.
    pub allocation: StatArray,
    /// The number of segments.
    pub segment: StatArray,
    /// Allocated and pending blocks.
    pub active: StatArray,
    /// Inactive blocks that are part of a split segment.
    pub inactive_split: StatArray,
    /// Bytes of allocated blocks.
    pub allocated_bytes: StatArray,
    /// Bytes of segments.
    pub reserved_bytes: StatArray,
    /// Bytes of active blocks.
    pub active_bytes: StatArray,
    /// Bytes of inactive blocks that are part of a split segment.
    pub inactive_split_bytes: StatArray,
    /// Bytes that callers asked for, in active blocks.
    pub requested_bytes: StatArray,
    /// Allocated blocks of at least `max_split_size`.
    pub oversize_allocations: Stat,
    /// Segments of at least `max_split_size`.
    pub oversize_segments: Stat,
    /// Second attempts to allocate a segment, after the cache was released.
    pub num_alloc_retries: i64,
    /// Failed requests.
    pub num_ooms: i64,
    /// How often the allocator waited for all streams.
    pub num_sync_all_streams: i64,
    /// Segments that the device allocated.
    pub num_device_alloc: i64,
    /// Segments that were released to the device.
    pub num_device_free: i64,
    /// Requests that were rejected before the device was asked (`throw_on_cudamalloc_oom`). Releases from
    /// 2.12 on report the count.
    pub num_oom_rejections: i64,
    /// `max_split_size` when the allocator was made, in bytes; -1 for unlimited. Later settings do not change
    /// it.
    pub max_split_size: i64,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            allocation: StatArray::default(),
            segment: StatArray::default(),
            active: StatArray::default(),
            inactive_split: StatArray::default(),
            allocated_bytes: StatArray::default(),
            reserved_bytes: StatArray::default(),
            active_bytes: StatArray::default(),
            inactive_split_bytes: StatArray::default(),
            requested_bytes: StatArray::default(),
            oversize_allocations: Stat::default(),
            oversize_segments: Stat::default(),
            num_alloc_retries: 0,
            num_ooms: 0,
            num_sync_all_streams: 0,
            num_device_alloc: 0,
            num_device_free: 0,
            num_oom_rejections: 0,
            max_split_size: -1,
        }
    }
}

impl Stats {
    /// The statistics of an allocator that begins with this memory: current values are the sums over the
    /// blocks, peaks equal the current values, and accumulated counts are zero.
    ///
    /// `max_split_size` is in bytes, -1 for unlimited.
    #[must_use]
    pub fn beginning_with(snapshot: &Snapshot, max_split_size: i64) -> Self {
        let mut stats = Self { max_split_size, ..Self::default() };
        for segment in &snapshot.segments {
            stats.add_segment(segment);
        }
        stats.reset_peak();
        stats.reset_accumulated();
        stats
    }

    fn add_segment(&mut self, segment: &SegmentSnapshot) {
        let pool = segment.pool;
        // As an unsigned number, -1 (unlimited) is larger than any size.
        let limit = u64::from_ne_bytes(self.max_split_size.to_ne_bytes());
        let is_oversize = |size: Bytes| size.get() >= limit;
        if segment.is_expandable {
            self.mapped(pool, segment.mapped());
        } else {
            self.segment_allocated(pool, segment.size, is_oversize(segment.size));
        }
        let is_split = segment.blocks.len() > 1 && !segment.is_expandable;
        for block in &segment.blocks {
            match block.state {
                BlockState::Allocated | BlockState::PendingFree => {
                    self.allocated(pool, block.size, block.requested, is_oversize(block.size));
                }
                BlockState::Inactive if is_split => self.inactive_split_changed(pool, 1, block.size.signed()),
                BlockState::Inactive | BlockState::Unmapped => {}
            }
            if block.state == BlockState::PendingFree {
                self.free_requested(pool, block.size, is_oversize(block.size));
            }
        }
    }

    /// The device allocated a segment of `size`.
    pub fn segment_allocated(&mut self, pool: PoolKind, size: Bytes, is_oversize: bool) {
        self.segment.increase(pool, 1);
        self.reserved_bytes.increase(pool, size.signed());
        if is_oversize {
            self.oversize_segments.increase(1);
        }
        count_one(&mut self.num_device_alloc);
    }

    /// A segment of `size` was released to the device.
    pub fn segment_released(&mut self, pool: PoolKind, size: Bytes, is_oversize: bool) {
        count_one(&mut self.num_device_free);
        self.segment.decrease(pool, 1);
        self.reserved_bytes.decrease(pool, size.signed());
        if is_oversize {
            self.oversize_segments.decrease(1);
        }
    }

    /// Memory was mapped into `size` bytes of an expandable segment. `segment` does not count expandable
    /// segments.
    pub fn mapped(&mut self, pool: PoolKind, size: Bytes) {
        self.reserved_bytes.increase(pool, size.signed());
        count_one(&mut self.num_device_alloc);
    }

    /// `size` bytes of an expandable segment were unmapped.
    pub fn unmapped(&mut self, pool: PoolKind, size: Bytes) {
        count_one(&mut self.num_device_free);
        self.reserved_bytes.decrease(pool, size.signed());
    }

    /// A block of `size` was allocated for a request of `requested`.
    pub fn allocated(&mut self, pool: PoolKind, size: Bytes, requested: Bytes, is_oversize: bool) {
        self.allocation.increase(pool, 1);
        self.allocated_bytes.increase(pool, size.signed());
        self.active.increase(pool, 1);
        self.active_bytes.increase(pool, size.signed());
        self.requested_bytes.increase(pool, requested.signed());
        if is_oversize {
            self.oversize_allocations.increase(1);
        }
    }

    /// The caller of a block of `size` freed it.
    pub fn free_requested(&mut self, pool: PoolKind, size: Bytes, is_oversize: bool) {
        self.allocation.decrease(pool, 1);
        self.allocated_bytes.decrease(pool, size.signed());
        if is_oversize {
            self.oversize_allocations.decrease(1);
        }
    }

    /// The free of a block of `size`, allocated for `requested`, completed.
    pub fn free_completed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        self.active.decrease(pool, 1);
        self.active_bytes.decrease(pool, size.signed());
        self.requested_bytes.decrease(pool, requested.signed());
    }

    /// Changes the inactive splits by `blocks` and `bytes`, each as one net change.
    pub fn inactive_split_changed(&mut self, pool: PoolKind, blocks: i64, bytes: i64) {
        self.inactive_split.both(pool, |stat| stat.change(blocks));
        self.inactive_split_bytes.both(pool, |stat| stat.change(bytes));
    }

    /// Sets every peak to its current value.
    pub fn reset_peak(&mut self) {
        self.each(Stat::reset_peak);
    }

    /// Sets all accumulated counts and the `num_*` counters to zero.
    pub fn reset_accumulated(&mut self) {
        self.each(Stat::reset_accumulated);
        self.num_alloc_retries = 0;
        self.num_ooms = 0;
        self.num_sync_all_streams = 0;
        self.num_device_alloc = 0;
        self.num_device_free = 0;
        self.num_oom_rejections = 0;
    }

    /// The statistics that PyTorch reports under this backend, from the full counts in `self`.
    ///
    /// `cudaMallocAsync` asks the driver, which counts only requested and reserved bytes, each with its peak.
    /// Everything else is zero, also the accumulated counts and `max_split_size`.
    #[must_use]
    pub fn reported_by(&self, backend: Backend) -> Self {
        let driver = |stat: Stat| StatArray {
            all: Stat { current: stat.current, peak: stat.peak, ..Stat::default() },
            ..StatArray::default()
        };
        match backend {
            Backend::Native => *self,
            Backend::CudaMallocAsync => Self {
                allocated_bytes: driver(self.requested_bytes.all),
                active_bytes: driver(self.requested_bytes.all),
                reserved_bytes: driver(self.reserved_bytes.all),
                max_split_size: 0,
                ..Self::default()
            },
        }
    }

    fn each(&mut self, apply: impl Fn(&mut Stat) + Copy) {
        for array in [
            &mut self.allocation,
            &mut self.segment,
            &mut self.active,
            &mut self.inactive_split,
            &mut self.allocated_bytes,
            &mut self.reserved_bytes,
            &mut self.active_bytes,
            &mut self.inactive_split_bytes,
            &mut self.requested_bytes,
        ] {
            array.each(apply);
        }
        apply(&mut self.oversize_allocations);
        apply(&mut self.oversize_segments);
    }
}

/// Adds one to a count. A saved state from a file may have any count, so the sum saturates.
pub(crate) fn count_one(count: &mut i64) {
    *count = count.saturating_add(1);
}
