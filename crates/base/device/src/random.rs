//! Random numbers from a seed: the same on every machine.

/// A generator of random numbers (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`; 0 where `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        let number = mixed(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number % if end == 0 { 1 } else { end }
    }

    /// An index of a list of this length; 0 for no items.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap_or(u64::MAX))).unwrap_or(0)
    }

    /// Whether an event happens whose chance is this many percent.
    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items; the default value for no items.
    pub fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        let index = self.index(items.len());
        items.get(index).copied().unwrap_or_default()
    }
}

/// The distance of two states in a row.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that depends on each bit of another: a step of `SplitMix64`.
#[must_use]
pub const fn mixed(number: u64) -> u64 {
    let state = number.wrapping_add(STEP);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
