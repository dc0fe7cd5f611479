//! The statistics, kept as the few numbers from which the others follow.
//!
//! Of each quantity PyTorch keeps four numbers three times: now, peak, gained and lost, for all memory and for either half of
//! the pool. Here a request moves about half of them. What both halves add up to is summed when it is read, except
//! the peak; what was lost is what was gained and is not there now; and active memory is allocated memory and pending
//! frees, so that its own peak needs care only while frees are pending.

use blockyard_record::{Bytes, PoolKind, Stat, StatArray, Stats};

const COUNT: usize = 0;
const BYTES: usize = 1;
const REQUESTED: usize = 2;

/// The counters of one allocator. All sums wrap around, as PyTorch's do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Blocks in callers' hands, for the small and the large half: their number and bytes, and what was asked for in
    /// active blocks.
    live: [Tally<3>; 2],
    live_all: Level<3>,
    /// All pending frees.
    pending_blocks: i64,
    /// Frees that are pending in either half: number and bytes.
    pending: [[i64; 2]; 2],
    /// The peaks of active blocks and their bytes at the times when frees were pending.
    pending_peak: [[i64; 2]; 2],
    pending_peak_all: [i64; 2],
    /// Active blocks and bytes when the accumulated counts were last reset.
    active_start: [[i64; 2]; 2],
    /// Inactive blocks of segments with other blocks: number and bytes.
    rests: [Tally<2>; 2],
    rests_all: Level<2>,
    /// What changes seldom, as PyTorch keeps it; its other parts are not used.
    pub(crate) seldom: Stats,
}

/// Quantities of one half of the pool.
#[derive(Clone, Copy, Debug)]
struct Tally<const N: usize> {
    current: [i64; N],
    peak: [i64; N],
    /// All increases since the last reset.
    gained: [i64; N],
    /// The current values at the last reset.
    start: [i64; N],
}

/// The same quantities in both halves together.
#[derive(Clone, Copy, Debug)]
struct Level<const N: usize> {
    current: [i64; N],
    peak: [i64; N],
}

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self { current: [0; N], peak: [0; N], gained: [0; N], start: [0; N] }
    }
}

impl<const N: usize> Default for Level<N> {
    fn default() -> Self {
        Self { current: [0; N], peak: [0; N] }
    }
}

impl<const N: usize> Level<N> {
    #[inline]
    fn increase(&mut self, quantity: usize, amount: i64) {
        let current = self.current[quantity].wrapping_add(amount);
        self.current[quantity] = current;
        if current > self.peak[quantity] {
            self.peak[quantity] = current;
        }
    }

    #[inline]
    fn decrease(&mut self, quantity: usize, amount: i64) {
        self.current[quantity] = self.current[quantity].wrapping_sub(amount);
    }
}

impl<const N: usize> Tally<N> {
    #[inline]
    fn increase(&mut self, quantity: usize, amount: i64) {
        let current = self.current[quantity].wrapping_add(amount);
        self.current[quantity] = current;
        if current > self.peak[quantity] {
            self.peak[quantity] = current;
        }
        self.gained[quantity] = self.gained[quantity].wrapping_add(amount);
    }

    #[inline]
    fn decrease(&mut self, quantity: usize, amount: i64) {
        self.current[quantity] = self.current[quantity].wrapping_sub(amount);
    }

    fn stat(&self, quantity: usize) -> Stat {
        let current = self.current[quantity];
        let allocated = self.gained[quantity];
        let since_start = current.wrapping_sub(self.start[quantity]);
        Stat { current, peak: self.peak[quantity], allocated, freed: allocated.wrapping_sub(since_start) }
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }

    fn reset_accumulated(&mut self) {
        self.gained = [0; N];
        self.start = self.current;
    }
}

#[inline]
fn half(pool: PoolKind) -> usize {
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

/// Both halves as PyTorch shows them; the peak of all is not the sum of theirs.
fn array(halves: [Stat; 2], peak: i64) -> StatArray {
    let [small_pool, large_pool] = halves;
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
    /// Counters that show these statistics, whose peaks are their current values and which have counted nothing yet.
    pub(crate) fn beginning_with(stats: &Stats) -> Self {
        let mut counters = Self { seldom: *stats, ..Self::default() };
        let halves = |stat: &StatArray| [stat.small_pool.current, stat.large_pool.current];
        let (active, active_bytes) = (halves(&stats.active), halves(&stats.active_bytes));
        let (count, bytes) = (halves(&stats.allocation), halves(&stats.allocated_bytes));
        let requested = halves(&stats.requested_bytes);
        let (rests, rest_bytes) = (halves(&stats.inactive_split), halves(&stats.inactive_split_bytes));
        for half in [0, 1] {
            counters.live[half].current = [count[half], bytes[half], requested[half]];
            counters.rests[half].current = [rests[half], rest_bytes[half]];
            counters.pending[half] = [active[half] - count[half], active_bytes[half] - bytes[half]];
            counters.pending_blocks += counters.pending[half][COUNT];
        }
        let sum = |halves: [i64; 2]| halves[0].wrapping_add(halves[1]);
        counters.live_all.current = [sum(count), sum(bytes), sum(requested)];
        counters.rests_all.current = [sum(rests), sum(rest_bytes)];
        counters.reset_peak();
        counters.live.iter_mut().for_each(Tally::reset_accumulated);
        counters.rests.iter_mut().for_each(Tally::reset_accumulated);
        counters.active_start = counters.actives();
        counters
    }

    /// A block of `size` was handed out for a request of `requested`.
    #[inline]
    pub(crate) fn allocated(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let live = &mut self.live[half(pool)];
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            live.increase(quantity, amount);
            self.live_all.increase(quantity, amount);
        }
        if self.pending_blocks != 0 {
            self.note_pending_peaks();
        }
    }

    #[cold]
    fn note_pending_peaks(&mut self) {
        for quantity in [COUNT, BYTES] {
            let mut all = 0_i64;
            for half in [0, 1] {
                let active = self.active(half, quantity);
                self.pending_peak[half][quantity] = self.pending_peak[half][quantity].max(active);
                all = all.wrapping_add(active);
            }
            self.pending_peak_all[quantity] = self.pending_peak_all[quantity].max(all);
        }
    }

    fn active(&self, half: usize, quantity: usize) -> i64 {
        self.live[half].current[quantity].wrapping_add(self.pending[half][quantity])
    }

    /// A block of `size` went from its caller's hands straight into the cache.
    #[inline]
    pub(crate) fn freed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let live = &mut self.live[half(pool)];
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            live.decrease(quantity, amount);
            self.live_all.decrease(quantity, amount);
        }
    }

    /// A block of `size` was given back by its caller and stays pending.
    pub(crate) fn free_requested(&mut self, pool: PoolKind, size: Bytes) {
        self.freed(pool, size, Bytes::ZERO);
        self.pending_blocks += 1;
        let pending = &mut self.pending[half(pool)];
        pending[COUNT] += 1;
        pending[BYTES] = pending[BYTES].wrapping_add(signed(size));
    }

    /// A pending block of `size`, handed out for `requested`, became reusable.
    pub(crate) fn pending_completed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        self.pending_blocks -= 1;
        let pending = &mut self.pending[half(pool)];
        pending[COUNT] -= 1;
        pending[BYTES] = pending[BYTES].wrapping_sub(signed(size));
        self.live[half(pool)].decrease(REQUESTED, signed(requested));
        self.live_all.decrease(REQUESTED, signed(requested));
    }

    // Inactive blocks of divided segments: each request and each free counts as one net change, since peaks and
    // accumulated counts tell one change from two.

    /// A free block of a divided segment was taken whole.
    #[inline]
    pub(crate) fn rest_taken(&mut self, pool: PoolKind, size: Bytes) {
        self.rests_lost(pool, 1, size);
    }

    /// The front of such a block was taken: `size` bytes.
    #[inline]
    pub(crate) fn rest_cut(&mut self, pool: PoolKind, size: Bytes) {
        self.rests_lost(pool, 0, size);
    }

    /// The front of a whole segment was taken, and `rest` bytes were left.
    #[inline]
    pub(crate) fn rest_left(&mut self, pool: PoolKind, rest: Bytes) {
        self.rest_grown(pool, 0, rest);
    }

    /// A block was freed that stays in a divided segment: its own `size` bytes were gained, and it absorbed `absorbed` blocks.
    #[inline]
    pub(crate) fn rest_grown(&mut self, pool: PoolKind, absorbed: u8, size: Bytes) {
        let rests = &mut self.rests[half(pool)];
        rests.increase(BYTES, signed(size));
        self.rests_all.increase(BYTES, signed(size));
        if absorbed == 0 {
            rests.increase(COUNT, 1);
            self.rests_all.increase(COUNT, 1);
        } else {
            let gone = i64::from(absorbed) - 1;
            rests.decrease(COUNT, gone);
            self.rests_all.decrease(COUNT, gone);
        }
    }

    /// `blocks` such blocks of `size` bytes altogether are part of a whole segment again.
    #[inline]
    pub(crate) fn rests_lost(&mut self, pool: PoolKind, blocks: u8, size: Bytes) {
        let rests = &mut self.rests[half(pool)];
        for (quantity, amount) in [(COUNT, i64::from(blocks)), (BYTES, signed(size))] {
            rests.decrease(quantity, amount);
            self.rests_all.decrease(quantity, amount);
        }
    }

    /// Bytes in callers' hands.
    pub(crate) fn allocated_bytes(&self) -> i64 {
        self.live_all.current[BYTES]
    }

    /// Bytes of active blocks.
    pub(crate) fn active_bytes(&self) -> i64 {
        self.active(0, BYTES).wrapping_add(self.active(1, BYTES))
    }

    /// Sets every peak to its current value.
    pub(crate) fn reset_peak(&mut self) {
        self.live.iter_mut().for_each(Tally::reset_peak);
        self.rests.iter_mut().for_each(Tally::reset_peak);
        self.live_all.peak = self.live_all.current;
        self.rests_all.peak = self.rests_all.current;
        self.pending_peak = self.actives();
        self.pending_peak_all = [COUNT, BYTES].map(|quantity| self.active_all(quantity));
        self.seldom.reset_peak();
    }

    /// Sets all accumulated counts and the `num_*` counters to zero.
    pub(crate) fn reset_accumulated(&mut self) {
        self.live.iter_mut().for_each(Tally::reset_accumulated);
        self.rests.iter_mut().for_each(Tally::reset_accumulated);
        self.active_start = self.actives();
        self.seldom.reset_accumulated();
    }

    fn actives(&self) -> [[i64; 2]; 2] {
        [0, 1].map(|half| [COUNT, BYTES].map(|quantity| self.active(half, quantity)))
    }

    fn active_all(&self, quantity: usize) -> i64 {
        self.active(0, quantity).wrapping_add(self.active(1, quantity))
    }

    /// All of them, as PyTorch shows them.
    pub(crate) fn read(&self) -> Stats {
        let live = |quantity: usize| {
            array([0, 1].map(|half| self.live[half].stat(quantity)), self.live_all.peak[quantity])
        };
        let rests = |quantity: usize| {
            array([0, 1].map(|half| self.rests[half].stat(quantity)), self.rests_all.peak[quantity])
        };
        let active = |quantity: usize| {
            let of_half = |half: usize| {
                let current = self.active(half, quantity);
                // What became active was handed out, so the increases are the same; and while nothing was pending, the
                // peaks were the same too.
                let allocated = self.live[half].gained[quantity];
                let since_start = current.wrapping_sub(self.active_start[half][quantity]);
                let peak = self.live[half].peak[quantity].max(self.pending_peak[half][quantity]);
                Stat { current, peak, allocated, freed: allocated.wrapping_sub(since_start) }
            };
            let peak = self.live_all.peak[quantity].max(self.pending_peak_all[quantity]);
            array([0, 1].map(of_half), peak)
        };
        Stats {
            allocation: live(COUNT),
            allocated_bytes: live(BYTES),
            requested_bytes: live(REQUESTED),
            active: active(COUNT),
            active_bytes: active(BYTES),
            inactive_split: rests(COUNT),
            inactive_split_bytes: rests(BYTES),
            ..self.seldom
        }
    }
}

#[cfg(test)]
mod model;
