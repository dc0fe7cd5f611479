//! Sizes around every threshold.

use blockyard_record::Bytes;
use fastrand::Rng;

use super::settings::Choice;

const MIB: u64 = 1 << 20;

/// The sizes that a sequence requests.
pub(super) struct Sizes {
    /// A few sizes that come again and again, as a program's do.
    repeated: Vec<u64>,
    /// The last sizes: requests near them meet their free blocks and remainders.
    recent: Vec<u64>,
    thresholds: Vec<u64>,
    /// Whether most segments are as large as the request, so that sums of them are exact.
    is_even: bool,
    /// The largest request, exceeded only rarely.
    most: u64,
    /// The chance of a repeated size, in a hundred requests.
    repeats: u8,
    small: u8,
}

impl Sizes {
    pub(super) fn new(rng: &mut Rng, capacity: Bytes, choice: &Choice) -> Self {
        let large = choice.large_mib * MIB;
        let mut thresholds =
            vec![512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, large, large - MIB, large - 10 * MIB, 2 * large];
        if let Some(split) = choice.max_split_mib.map(|mib| mib * MIB) {
            let rounding = choice.rounding_mib.map_or(large, |mib| mib * MIB);
            thresholds.extend([split, split + rounding, split.saturating_sub(rounding), split - MIB]);
        }
        thresholds.extend([capacity.get(), capacity.get() / 2, capacity.get() / 4]);
        let most = (capacity.get() / rng.u64(2..40)).max(MIB);
        let is_even = choice.max_split_mib.is_some() && rng.u8(..4) == 0;
        let small = [0, 20, 50, 80, 100][rng.usize(..5)];
        let mut sizes =
            Self { repeated: Vec::new(), recent: Vec::new(), thresholds, most, repeats: 0, small, is_even };
        sizes.repeated = (0..rng.usize(2..10)).map(|_| sizes.fresh(rng)).collect();
        sizes.repeats = rng.u8(..80);
        sizes
    }

    pub(super) fn next(&mut self, rng: &mut Rng) -> Bytes {
        let size = match rng.u32(..1000) {
            0 => 0,
            1 => [1 << 60, (1 << 60) - 1, 1 << 40, u64::MAX][rng.usize(..4)],
            2..90 if self.recent.len() > 1 => self.rest(rng),
            _ if rng.u8(..100) < self.repeats => {
                let size = self.repeated[rng.usize(..self.repeated.len())];
                if rng.u8(..5) == 0 { nudged(rng, size) } else { size }
            }
            _ => self.fresh(rng),
        };
        let size = if self.is_even && size > MIB && size < self.most {
            size.next_multiple_of(2 * MIB)
        } else {
            size
        };
        if size > 0 && size < self.most {
            if self.recent.len() == 16 {
                self.recent.remove(0);
            }
            self.recent.push(size);
        }
        Bytes::new(size)
    }

    fn fresh(&self, rng: &mut Rng) -> u64 {
        let size = match rng.u8(..10) {
            0..=3 => {
                let threshold = self.thresholds[rng.usize(..self.thresholds.len())];
                nudged(rng, threshold)
            }
            4 => {
                let power = 1_u64 << rng.u8(9..30);
                nudged(rng, power)
            }
            // Each order of magnitude is equally likely.
            _ => {
                let power = 1_u64 << rng.u8(8..28);
                power + rng.u64(..power)
            }
        };
        let is_small = rng.u8(..100) < self.small;
        let limit = if is_small { MIB + 512 } else { self.most };
        if size <= limit { size } else { 1 + rng.u64(..limit) }
    }

    /// The difference or the sum of two recent sizes, for exact fits and for remainders near the threshold of
    /// splitting.
    fn rest(&self, rng: &mut Rng) -> u64 {
        let left = self.recent[rng.usize(..self.recent.len())];
        let right = self.recent[rng.usize(..self.recent.len())];
        let size = match rng.u8(..4) {
            0 => left.saturating_sub(MIB),
            1 => left + right,
            _ => left.abs_diff(right),
        };
        nudged(rng, size).min(self.most)
    }
}

/// The size, or a size a little above or below it.
fn nudged(rng: &mut Rng, size: u64) -> u64 {
    const STEPS: [i64; 9] = [0, 0, 0, 1, -1, 512, -512, 511, 513];
    size.saturating_add_signed(STEPS[rng.usize(..STEPS.len())]).max(1)
}
