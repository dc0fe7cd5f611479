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
    level: Level<N>,
    /// All increases since the last reset.
    gained: [i64; N],
    /// The current values at the last reset.
    start: [i64; N],
}

/// How much there is of some quantities, and the most there was.
///
/// The current value is not kept but what it lacks to the peak: then a change is one subtraction, and its sign says whether
/// there is a new peak.
#[derive(Clone, Copy, Debug)]
struct Level<const N: usize> {
    room: [i64; N],
    peak: [i64; N],
}

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self { level: Level::default(), gained: [0; N], start: [0; N] }
    }
}

impl<const N: usize> Default for Level<N> {
    fn default() -> Self {
        Self { room: [0; N], peak: [0; N] }
    }
}

impl<const N: usize> Level<N> {
    fn beginning_with(current: [i64; N]) -> Self {
        Self { room: [0; N], peak: current }
    }

    #[inline]
    fn current(&self, quantity: usize) -> i64 {
        self.peak[quantity].wrapping_sub(self.room[quantity])
    }

    fn currents(&self) -> [i64; N] {
        std::array::from_fn(|quantity| self.current(quantity))
    }

    /// Returns the room that is left; [`Level::raise_peaks`] has to follow where that is less than none.
    #[inline]
    fn change(&mut self, quantity: usize, amount: i64) -> i64 {
        let room = self.room[quantity].wrapping_sub(amount);
        self.room[quantity] = room;
        room
    }

    #[inline]
    fn raise_peaks(&mut self) {
        for (room, peak) in self.room.iter_mut().zip(&mut self.peak) {
            let excess = (*room).min(0);
            *peak = peak.wrapping_sub(excess);
            *room -= excess;
        }
    }

    fn reset_peak(&mut self) {
        *self = Self::beginning_with(self.currents());
    }
}

impl<const N: usize> Tally<N> {
    /// Counts an increase; a decrease, which is no gain, goes to the level alone. Returns as [`Level::change`].
    #[inline]
    fn increase(&mut self, quantity: usize, amount: i64) -> i64 {
        self.gained[quantity] = self.gained[quantity].wrapping_add(amount);
        self.level.change(quantity, amount)
    }

    fn stat(&self, quantity: usize) -> Stat {
        let current = self.level.current(quantity);
        let allocated = self.gained[quantity];
        let since_start = current.wrapping_sub(self.start[quantity]);
        Stat {
            current,
            peak: self.level.peak[quantity],
            allocated,
            freed: allocated.wrapping_sub(since_start),
        }
    }

    fn reset_accumulated(&mut self) {
        self.gained = [0; N];
        self.start = self.level.currents();
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
            counters.live[half].level = Level::beginning_with([count[half], bytes[half], requested[half]]);
            counters.rests[half].level = Level::beginning_with([rests[half], rest_bytes[half]]);
            counters.pending[half] = [active[half] - count[half], active_bytes[half] - bytes[half]];
            counters.pending_blocks += counters.pending[half][COUNT];
        }
        let sum = |halves: [i64; 2]| halves[0].wrapping_add(halves[1]);
        counters.live_all = Level::beginning_with([sum(count), sum(bytes), sum(requested)]);
        counters.rests_all = Level::beginning_with([sum(rests), sum(rest_bytes)]);
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
        let mut least = 0;
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            // The sign of either is the sign of both.
            least |= live.increase(quantity, amount) | self.live_all.change(quantity, amount);
        }
        if least < 0 {
            live.level.raise_peaks();
            self.live_all.raise_peaks();
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
        self.live[half].level.current(quantity).wrapping_add(self.pending[half][quantity])
    }

    /// A block of `size` went from its caller's hands straight into the cache.
    #[inline]
    pub(crate) fn freed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let live = &mut self.live[half(pool)];
        for (quantity, amount) in [(COUNT, 1), (BYTES, signed(size)), (REQUESTED, signed(requested))] {
            live.level.change(quantity, -amount);
            self.live_all.change(quantity, -amount);
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
        self.live[half(pool)].level.change(REQUESTED, -signed(requested));
        self.live_all.change(REQUESTED, -signed(requested));
    }

    /// The inactive blocks of divided segments became `blocks` more, and `bytes`; or fewer.
    ///
    /// Each request and each free counts as one net change, since peaks and accumulated counts tell one change from two.
    #[inline]
    pub(crate) fn rests_changed(&mut self, pool: PoolKind, blocks: i64, bytes: i64) {
        let rests = &mut self.rests[half(pool)];
        let mut least = 0;
        for (quantity, change) in [(COUNT, blocks), (BYTES, bytes)] {
            rests.gained[quantity] = rests.gained[quantity].wrapping_add(change.max(0));
            least |= rests.level.change(quantity, change) | self.rests_all.change(quantity, change);
        }
        if least < 0 {
            rests.level.raise_peaks();
            self.rests_all.raise_peaks();
        }
    }

    /// Bytes in callers' hands.
    pub(crate) fn allocated_bytes(&self) -> i64 {
        self.live_all.current(BYTES)
    }

    /// Bytes of active blocks.
    pub(crate) fn active_bytes(&self) -> i64 {
        self.active(0, BYTES).wrapping_add(self.active(1, BYTES))
    }

    /// Sets every peak to its current value.
    pub(crate) fn reset_peak(&mut self) {
        self.live.iter_mut().for_each(|tally| tally.level.reset_peak());
        self.rests.iter_mut().for_each(|tally| tally.level.reset_peak());
        self.live_all.reset_peak();
        self.rests_all.reset_peak();
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
                let peak = self.live[half].level.peak[quantity].max(self.pending_peak[half][quantity]);
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
