//! The statistics, stored as few numbers from which all others are computed on reading.
//!
//! PyTorch stores four numbers for each quantity (current, peak, allocated, freed), three times: for the
//! small pool, the large pool, and both. Here a request updates about half of them. Sums over both pools are
//! computed on reading, except peaks. The freed amount is the allocated amount minus the change of the
//! current value. Active memory is allocated memory plus pending frees, so that its peak needs extra work
//! only while frees are pending.

use blockyard_record::{Bytes, PoolKind, Stat, StatArray, Stats};

const COUNT: usize = 0;
const BYTES: usize = 1;
const REQUESTED: usize = 2;

/// The counters of one allocator. All sums wrap around, as PyTorch's do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// For the small and the large pool: count and bytes of allocated blocks, and requested bytes of active
    /// blocks.
    live: [[Tally; 3]; 2],
    live_all: [Level; 3],
    /// All pending frees.
    pending_blocks: i64,
    /// For the small and the large pool: count and bytes of pending frees.
    pending: [[i64; 2]; 2],
    /// The peaks of active blocks and their bytes at the times when frees were pending.
    pending_peak: [[i64; 2]; 2],
    pending_peak_all: [i64; 2],
    /// Active blocks and bytes when the accumulated counts were last reset.
    active_start: [[i64; 2]; 2],
    /// For the small and the large pool: count and bytes of inactive blocks in split segments.
    inactive_splits: [[Tally; 2]; 2],
    inactive_splits_all: [Level; 2],
    /// The statistics that change rarely, as PyTorch stores them. The other fields of this value are not
    /// used.
    pub(crate) infrequent: Stats,
}

/// One quantity in one pool.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    level: Level,
    /// All increases since the last reset.
    gained: i64,
    /// The current value at the last reset.
    start: i64,
}

/// The current value and the peak of one quantity.
///
/// The stored number is the distance from the current value to the peak. A change is then one subtraction,
/// and the sign of the result says whether there is a new peak. The distances of different quantities are not
/// adjacent in memory: otherwise the compiler would load two of them with one wide load, which has to wait
/// for the two narrow stores before it.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    below_peak: i64,
    peak: i64,
}

impl Level {
    fn beginning_with(current: i64) -> Self {
        Self { below_peak: 0, peak: current }
    }

    #[inline]
    fn current(self) -> i64 {
        self.peak.wrapping_sub(self.below_peak)
    }

    /// Returns the distance to the peak. If it is negative, the caller must call [`Level::raise_peak`].
    #[inline]
    fn change(&mut self, amount: i64) -> i64 {
        self.below_peak = self.below_peak.wrapping_sub(amount);
        self.below_peak
    }

    #[inline]
    fn raise_peak(&mut self) {
        let excess = self.below_peak.min(0);
        self.peak = self.peak.wrapping_sub(excess);
        self.below_peak -= excess;
    }

    fn reset_peak(&mut self) {
        *self = Self::beginning_with(self.current());
    }
}

impl Tally {
    fn beginning_with(current: i64) -> Self {
        Self { level: Level::beginning_with(current), gained: 0, start: current }
    }

    /// Counts an increase (a decrease would go to [`Level::change`] alone). Returns as [`Level::change`].
    #[inline]
    fn increase(&mut self, amount: i64) -> i64 {
        self.gained = self.gained.wrapping_add(amount);
        self.level.change(amount)
    }

    fn stat(&self) -> Stat {
        let current = self.level.current();
        let allocated = self.gained;
        let since_start = current.wrapping_sub(self.start);
        Stat { current, peak: self.level.peak, allocated, freed: allocated.wrapping_sub(since_start) }
    }

    fn reset_accumulated(&mut self) {
        self.gained = 0;
        self.start = self.level.current();
    }
}

#[inline]
fn pool_index(pool: PoolKind) -> usize {
    match pool {
        PoolKind::Small => 0,
        PoolKind::Large => 1,
    }
}

/// Blocks are smaller than 2^60 bytes.
#[inline]
fn signed(size: Bytes) -> i64 {
    size.get().cast_signed()
}

/// A current value as bytes. Sizes of blocks that exist never add up to less than zero.
fn unsigned(bytes: i64) -> Bytes {
    debug_assert!(bytes >= 0, "the blocks have {bytes} bytes");
    Bytes::new(u64::try_from(bytes).unwrap_or(0))
}

/// The statistics of both pools as PyTorch shows them. The peak of the sum is not the sum of the peaks.
fn array(by_pool: [Stat; 2], peak: i64) -> StatArray {
    let [small_pool, large_pool] = by_pool;
    let sum = |part: fn(&Stat) -> i64| part(&small_pool).wrapping_add(part(&large_pool));
    let all = Stat {
        current: sum(|stat| stat.current),
        peak,
        allocated: sum(|stat| stat.allocated),
        freed: sum(|stat| stat.freed),
    };
    StatArray { all, small_pool, large_pool }
}

impl Counters {
    /// Counters with these current values. Peaks equal the current values, and accumulated counts are zero.
    pub(crate) fn beginning_with(stats: &Stats) -> Self {
        let mut counters = Self { infrequent: *stats, ..Self::default() };
        let by_pool = |stat: &StatArray| [stat.small_pool.current, stat.large_pool.current];
        let (active, active_bytes) = (by_pool(&stats.active), by_pool(&stats.active_bytes));
        let (count, bytes) = (by_pool(&stats.allocation), by_pool(&stats.allocated_bytes));
        let requested = by_pool(&stats.requested_bytes);
        let (inactive_splits, split_bytes) =
            (by_pool(&stats.inactive_split), by_pool(&stats.inactive_split_bytes));
        for pool in [0, 1] {
            counters.live[pool] = [count[pool], bytes[pool], requested[pool]].map(Tally::beginning_with);
            counters.inactive_splits[pool] =
                [inactive_splits[pool], split_bytes[pool]].map(Tally::beginning_with);
            counters.pending[pool] = [active[pool] - count[pool], active_bytes[pool] - bytes[pool]];
            counters.pending_blocks += counters.pending[pool][COUNT];
        }
        let sum = |by_pool: [i64; 2]| Level::beginning_with(by_pool[0].wrapping_add(by_pool[1]));
        counters.live_all = [count, bytes, requested].map(sum);
        counters.inactive_splits_all = [inactive_splits, split_bytes].map(sum);
        counters.reset_peak();
        counters.active_start = counters.actives();
        counters
    }

    /// A block of `size` was allocated for a request of `requested`.
    #[inline]
    pub(crate) fn allocated(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let live = &mut self.live[pool_index(pool)];
        let mut least = 0;
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            // `least` is negative if one of the two distances is.
            least |= live[quantity].increase(amount) | self.live_all[quantity].change(amount);
        }
        if least < 0 {
            for tally in live {
                tally.level.raise_peak();
            }
            self.live_all.iter_mut().for_each(Level::raise_peak);
        }
    }

    /// Updates the peaks of active memory after a request while frees are pending.
    pub(crate) fn note_pending(&mut self) {
        if self.pending_blocks != 0 {
            self.note_pending_peaks();
        }
    }

    #[cold]
    fn note_pending_peaks(&mut self) {
        for quantity in [COUNT, BYTES] {
            let mut all = 0_i64;
            for pool in [0, 1] {
                let active = self.active(pool, quantity);
                self.pending_peak[pool][quantity] = self.pending_peak[pool][quantity].max(active);
                all = all.wrapping_add(active);
            }
            self.pending_peak_all[quantity] = self.pending_peak_all[quantity].max(all);
        }
    }

    fn active(&self, pool: usize, quantity: usize) -> i64 {
        self.live[pool][quantity].level.current().wrapping_add(self.pending[pool][quantity])
    }

    /// An allocated block of `size` was freed, and the free completed at once.
    #[inline]
    pub(crate) fn freed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let live = &mut self.live[pool_index(pool)];
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            live[quantity].level.change(-amount);
            self.live_all[quantity].change(-amount);
        }
    }

    /// A free of a block of `size` was requested and is pending.
    pub(crate) fn free_requested(&mut self, pool: PoolKind, size: Bytes) {
        self.freed(pool, size, Bytes::ZERO);
        self.pending_blocks += 1;
        let pending = &mut self.pending[pool_index(pool)];
        pending[COUNT] += 1;
        pending[BYTES] = pending[BYTES].wrapping_add(signed(size));
    }

    /// The pending free of a block of `size`, allocated for `requested`, completed.
    pub(crate) fn pending_completed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        self.pending_blocks -= 1;
        let pending = &mut self.pending[pool_index(pool)];
        pending[COUNT] -= 1;
        pending[BYTES] = pending[BYTES].wrapping_sub(signed(size));
        self.live[pool_index(pool)][REQUESTED].level.change(-signed(requested));
        self.live_all[REQUESTED].change(-signed(requested));
    }

    /// The inactive splits changed by `blocks` and `bytes`.
    ///
    /// Each request and each free is one net change, because peaks and accumulated counts would differ after
    /// two changes.
    #[inline]
    pub(crate) fn splits_changed(&mut self, pool: PoolKind, blocks: i64, bytes: i64) {
        let inactive_splits = &mut self.inactive_splits[pool_index(pool)];
        let mut least = 0;
        for (quantity, change) in [(COUNT, blocks), (BYTES, bytes)] {
            let tally = &mut inactive_splits[quantity];
            tally.gained = tally.gained.wrapping_add(change.max(0));
            least |= tally.level.change(change) | self.inactive_splits_all[quantity].change(change);
        }
        if least < 0 {
            for tally in inactive_splits {
                tally.level.raise_peak();
            }
            self.inactive_splits_all.iter_mut().for_each(Level::raise_peak);
        }
    }

    /// The inactive splits fell by `blocks` and `bytes`. A decrease adds nothing to accumulated counts and
    /// makes no new peak, so this is shorter than [`Counters::splits_changed`].
    #[inline]
    pub(crate) fn splits_fell(&mut self, pool: PoolKind, blocks: i64, bytes: Bytes) {
        let inactive_splits = &mut self.inactive_splits[pool_index(pool)];
        for (quantity, amount) in [(COUNT, blocks), (BYTES, signed(bytes))] {
            inactive_splits[quantity].level.change(-amount);
            self.inactive_splits_all[quantity].change(-amount);
        }
    }

    /// Bytes of allocated blocks.
    pub(crate) fn allocated_bytes(&self) -> Bytes {
        unsigned(self.live_all[BYTES].current())
    }

    /// Bytes of active blocks.
    pub(crate) fn active_bytes(&self) -> Bytes {
        unsigned(self.active_all(BYTES))
    }

    /// Sets every peak to its current value.
    pub(crate) fn reset_peak(&mut self) {
        self.tallies().for_each(|tally| tally.level.reset_peak());
        self.live_all.iter_mut().chain(&mut self.inactive_splits_all).for_each(Level::reset_peak);
        self.pending_peak = self.actives();
        self.pending_peak_all = [COUNT, BYTES].map(|quantity| self.active_all(quantity));
        self.infrequent.reset_peak();
    }

    /// Sets all accumulated counts and the `num_*` counters to zero.
    pub(crate) fn reset_accumulated(&mut self) {
        self.tallies().for_each(Tally::reset_accumulated);
        self.active_start = self.actives();
        self.infrequent.reset_accumulated();
    }

    fn tallies(&mut self) -> impl Iterator<Item = &mut Tally> {
        self.live.iter_mut().flatten().chain(self.inactive_splits.iter_mut().flatten())
    }

    fn actives(&self) -> [[i64; 2]; 2] {
        [0, 1].map(|pool| [COUNT, BYTES].map(|quantity| self.active(pool, quantity)))
    }

    fn active_all(&self, quantity: usize) -> i64 {
        self.active(0, quantity).wrapping_add(self.active(1, quantity))
    }

    /// All statistics, as PyTorch shows them.
    pub(crate) fn read(&self) -> Stats {
        let live = |quantity: usize| {
            array([0, 1].map(|pool| self.live[pool][quantity].stat()), self.live_all[quantity].peak)
        };
        let inactive_splits = |quantity: usize| {
            array(
                [0, 1].map(|pool| self.inactive_splits[pool][quantity].stat()),
                self.inactive_splits_all[quantity].peak,
            )
        };
        let active = |quantity: usize| {
            let of_pool = |pool: usize| {
                let current = self.active(pool, quantity);
                // A block becomes active when it is allocated, so the increases of the two are equal. While
                // no free is pending, the peaks are equal too.
                let allocated = self.live[pool][quantity].gained;
                let since_start = current.wrapping_sub(self.active_start[pool][quantity]);
                let peak = self.live[pool][quantity].level.peak.max(self.pending_peak[pool][quantity]);
                Stat { current, peak, allocated, freed: allocated.wrapping_sub(since_start) }
            };
            let peak = self.live_all[quantity].peak.max(self.pending_peak_all[quantity]);
            array([0, 1].map(of_pool), peak)
        };
        Stats {
            allocation: live(COUNT),
            allocated_bytes: live(BYTES),
            requested_bytes: live(REQUESTED),
            active: active(COUNT),
            active_bytes: active(BYTES),
            inactive_split: inactive_splits(COUNT),
            inactive_split_bytes: inactive_splits(BYTES),
            ..self.infrequent
        }
    }
}

#[cfg(test)]
mod model;
