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
    live_all: Peaks<3>,
    /// Frees that are pending: number and bytes.
    pending: [[i64; 2]; 2],
    /// The peaks of active blocks and their bytes at the times when frees were pending.
    pending_peak: [[i64; 2]; 2],
    pending_peak_all: [i64; 2],
    /// Active blocks and bytes when the accumulated counts were last reset.
    active_start: [[i64; 2]; 2],
    /// Inactive blocks of segments with other blocks: number and bytes.
    rests: [Tally<2>; 2],
    rests_all: Peaks<2>,
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
struct Peaks<const N: usize> {
    current: [i64; N],
    peak: [i64; N],
}

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self { current: [0; N], peak: [0; N], gained: [0; N], start: [0; N] }
    }
}

impl<const N: usize> Default for Peaks<N> {
    fn default() -> Self {
        Self { current: [0; N], peak: [0; N] }
    }
}

impl<const N: usize> Peaks<N> {
    #[inline]
    fn increase(&mut self, amounts: [i64; N]) {
        for (quantity, amount) in amounts.into_iter().enumerate() {
            self.current[quantity] = self.current[quantity].wrapping_add(amount);
            self.peak[quantity] = self.peak[quantity].max(self.current[quantity]);
        }
    }
}

impl<const N: usize> Tally<N> {
    #[inline]
    fn increase(&mut self, amounts: [i64; N]) {
        for (quantity, amount) in amounts.into_iter().enumerate() {
            self.current[quantity] = self.current[quantity].wrapping_add(amount);
            self.peak[quantity] = self.peak[quantity].max(self.current[quantity]);
            self.gained[quantity] = self.gained[quantity].wrapping_add(amount);
        }
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
    /// A block of `size` was handed out for a request of `requested`.
    #[inline]
    pub(crate) fn allocated(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let amounts = [1, size.signed(), requested.signed()];
        self.live[half(pool)].increase(amounts);
        self.live_all.increase(amounts);
        if self.pending[0][COUNT] | self.pending[1][COUNT] != 0 {
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
        let amounts = [1, size.signed(), requested.signed()];
        let live = &mut self.live[half(pool)];
        for (quantity, amount) in amounts.into_iter().enumerate() {
            live.current[quantity] = live.current[quantity].wrapping_sub(amount);
            self.live_all.current[quantity] = self.live_all.current[quantity].wrapping_sub(amount);
        }
    }

    /// A block of `size` was given back by its caller and stays pending.
    pub(crate) fn free_requested(&mut self, pool: PoolKind, size: Bytes) {
        self.freed(pool, size, Bytes::ZERO);
        let pending = &mut self.pending[half(pool)];
        pending[COUNT] += 1;
        pending[BYTES] = pending[BYTES].wrapping_add(size.signed());
    }

    /// A pending block of `size`, handed out for `requested`, became reusable.
    pub(crate) fn pending_completed(&mut self, pool: PoolKind, size: Bytes, requested: Bytes) {
        let pending = &mut self.pending[half(pool)];
        pending[COUNT] -= 1;
        pending[BYTES] = pending[BYTES].wrapping_sub(size.signed());
        let amount = requested.signed();
        let live = &mut self.live[half(pool)];
        live.current[REQUESTED] = live.current[REQUESTED].wrapping_sub(amount);
        self.live_all.current[REQUESTED] = self.live_all.current[REQUESTED].wrapping_sub(amount);
    }

    /// The inactive blocks of divided segments changed by `blocks` and `bytes`, each applied as one net change.
    #[inline]
    pub(crate) fn rests_changed(&mut self, pool: PoolKind, blocks: i64, bytes: i64) {
        let rests = &mut self.rests[half(pool)];
        for (quantity, amount) in [blocks, bytes].into_iter().enumerate() {
            rests.current[quantity] = rests.current[quantity].wrapping_add(amount);
            rests.peak[quantity] = rests.peak[quantity].max(rests.current[quantity]);
            rests.gained[quantity] = rests.gained[quantity].wrapping_add(amount.max(0));
        }
        self.rests_all.increase([blocks, bytes]);
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
