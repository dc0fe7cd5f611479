//! PyTorch's random numbers of the host: MT19937 and the distributions over it that decide orders and small
//! values.
//!
//! Numbers that nobody reads are counted and skipped only when one is read again, since most of a program's
//! random numbers on the host are weights, whose values are not kept. A GPU's numbers are never made.

use std::cell::{Cell, RefCell};

use crate::{Dtype, Scalar};

const LENGTH: usize = 624;
const SHIFT: usize = 397;

/// What an unseeded `torch.Generator()` begins with (`default_rng_seed_val`).
pub(crate) const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A generator of the host (`CPUGeneratorImpl`): MT19937, and the numbers that were drawn and not made yet.
#[derive(Clone)]
struct Generator {
    seed: u64,
    state: [u32; LENGTH],
    next: usize,
    /// Numbers that were drawn and not looked at.
    skipped: u64,
    /// The second number of a pair of normal ones, which the next draw takes (`next_double_normal_sample`).
    normal: Option<f64>,
    /// Whether the next numbers are known: a seed was set, and every draw since then could be counted.
    is_known: bool,
}

impl Generator {
    fn new(seed: u64, is_known: bool) -> Self {
        let mut state = [0_u32; LENGTH];
        // The engine takes the low half.
        let mut before = seed as u32;
        for (index, slot) in state.iter_mut().enumerate() {
            if index > 0 {
                before = (before ^ before >> 30).wrapping_mul(1_812_433_253).wrapping_add(index as u32);
            }
            *slot = before;
        }
        Self { seed, state, next: LENGTH, skipped: 0, normal: None, is_known }
    }

    fn at(&self, index: usize) -> u32 {
        self.state.get(index % LENGTH).copied().unwrap_or(0)
    }

    fn twist(&mut self) {
        for index in 0..LENGTH {
            let joined = self.at(index) & 0x8000_0000 | self.at(index + 1) & 0x7fff_ffff;
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            let value = self.at(index + SHIFT) ^ joined >> 1 ^ odd;
            if let Some(slot) = self.state.get_mut(index) {
                *slot = value;
            }
        }
        self.next = 0;
    }

    /// The next 32 random bits (`random()` of the engine).
    fn random(&mut self) -> u64 {
        while self.skipped > 0 {
            let left = (LENGTH - self.next) as u64;
            if self.skipped < left {
                self.next += self.skipped as usize;
                self.skipped = 0;
            } else {
                self.skipped -= left;
                self.twist();
            }
        }
        if self.next >= LENGTH {
            self.twist();
        }
        let mut value = self.at(self.next);
        self.next += 1;
        value ^= value >> 11;
        value ^= value << 7 & 0x9d2c_5680;
        value ^= value << 15 & 0xefc6_0000;
        u64::from(value ^ value >> 18)
    }

    fn random64(&mut self) -> u64 {
        let high = self.random();
        high << 32 | self.random()
    }

    /// `uniform_real_distribution` from 0 to 1.
    fn uniform(&mut self, dtype: Dtype) -> f64 {
        if dtype == Dtype::F64 {
            return (self.random64() & ((1 << 53) - 1)) as f64 / (1_u64 << 53) as f64;
        }
        (self.random() & ((1 << 24) - 1)) as f64 / f64::from(1_u32 << 24)
    }

    /// `normal_distribution<double>`: two numbers at a time.
    fn normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        let first = self.uniform(Dtype::F64);
        let second = self.uniform(Dtype::F64);
        let radius = (-2.0 * (-second).ln_1p()).sqrt();
        let angle = std::f64::consts::TAU * first;
        self.normal = Some(radius * angle.sin());
        radius * angle.cos()
    }
}

/// The generators of a run: the default one, and those that a program makes.
pub(crate) struct Generators {
    all: RefCell<Vec<Generator>>,
    current: Cell<usize>,
}

impl std::fmt::Debug for Generators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generators").field("current", &self.current).finish_non_exhaustive()
    }
}

impl Default for Generators {
    fn default() -> Self {
        // Without a seed PyTorch takes a random number of the system, which is not known.
        Self { all: RefCell::new(vec![Generator::new(DEFAULT_SEED, false)]), current: Cell::new(0) }
    }
}

/// The distribution that each element of a draw has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draw {
    /// A floating-point number from 0 to 1, 1 excluded.
    Uniform,
    Normal {
        mean: f64,
        std: f64,
    },
    Integer {
        low: i64,
        high: i64,
    },
    /// `random_()`: any number of 63 bits.
    Any,
}

impl Generators {
    /// Makes a generator; returns its number.
    pub(crate) fn make(&self) -> usize {
        let mut all = self.all.borrow_mut();
        all.push(Generator::new(DEFAULT_SEED, true));
        all.len() - 1
    }

    /// Makes draws take the numbers of another generator; returns the number of the generator before.
    pub(crate) fn choose(&self, number: usize) -> usize {
        self.current.replace(number)
    }

    /// `manual_seed` of a generator, after which its numbers are known.
    pub(crate) fn seed(&self, number: usize, seed: u64) {
        if let Some(slot) = self.all.borrow_mut().get_mut(number) {
            *slot = Generator::new(seed, true);
        }
    }

    /// The seed that a generator was given last.
    pub(crate) fn initial_seed(&self, number: usize) -> u64 {
        self.all.borrow().get(number).map_or(DEFAULT_SEED, |generator| generator.seed)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Generator) -> T) -> Option<T> {
        self.all.borrow_mut().get_mut(self.current.get()).map(work)
    }

    /// From now on the host's numbers are not known: an operator on the host drew, and how many numbers it
    /// takes was not looked up. Does nothing for an operator on a GPU.
    pub(crate) fn forget_on(&self, device: crate::Device) {
        if device == crate::Device::Cpu {
            self.forget();
        }
    }

    /// From now on the current generator's numbers are not known, until the generator is seeded again.
    pub(crate) fn forget(&self) {
        self.with(|generator| generator.is_known = false);
    }

    /// Draws numbers for `count` elements. Returns the elements' values if they are known and few enough to
    /// be kept.
    pub(crate) fn draw(&self, draw: Draw, count: i64, dtype: Dtype, keeps: bool) -> Option<Vec<Scalar>> {
        const MAX: u64 = 1 << 17;
        let count = count.max(0) as u64;
        self.with(|generator| {
            // From 16 normal numbers on, a kernel makes 16 at a time, and their last bits differ between
            // machines.
            let is_long_normal = matches!(draw, Draw::Normal { .. }) && count >= 16;
            if !generator.is_known || count == 0 {
                return None;
            }
            if !keeps || count > MAX || is_long_normal {
                generator.skip(draw, count, dtype);
                return None;
            }
            Some((0..count).map(|_| generator.one(draw, dtype)).collect())
        })
        .flatten()
    }

    /// `randperm`: each place is exchanged with a random one of the places from itself on. `None` if the
    /// numbers are not known.
    pub(crate) fn permutation(&self, count: i64) -> Option<Vec<Scalar>> {
        const MAX: i64 = 1 << 20;
        self.with(|generator| {
            if !generator.is_known {
                return None;
            }
            if count > MAX {
                generator.skipped += (count - 1).max(0) as u64;
                return None;
            }
            let mut order: Vec<i64> = (0..count).collect();
            for index in 0..order.len().saturating_sub(1) {
                let other = index + (generator.random() % (order.len() - index) as u64) as usize;
                order.swap(index, other);
            }
            Some(order.into_iter().map(Scalar::Int).collect())
        })
        .flatten()
    }
}

/// Ranges of this many numbers and more take 64 random bits for each element.
const WIDE: i64 = 1 << 28;

impl Generator {
    fn one(&mut self, draw: Draw, dtype: Dtype) -> Scalar {
        match draw {
            Draw::Uniform => Scalar::Float(self.uniform(dtype)),
            Draw::Normal { mean, std } => Scalar::Float(self.normal() * std + mean),
            Draw::Integer { low, high } => {
                let range = high.wrapping_sub(low);
                let bits = if range >= WIDE { self.random64() } else { self.random() };
                Scalar::Int(low.wrapping_add((bits % range.max(1) as u64) as i64))
            }
            Draw::Any => Scalar::Int((self.random64() & i64::MAX as u64) as i64),
        }
    }

    fn skip(&mut self, draw: Draw, count: u64, dtype: Dtype) {
        let wide = if dtype == Dtype::F64 { 2 } else { 1 };
        let skipped = match draw {
            Draw::Uniform => count * wide,
            Draw::Normal { .. } if count >= 16 => {
                // The last 16 numbers are made again where the count is not a multiple of 16.
                (count + if count.is_multiple_of(16) { 0 } else { 16 }) * wide
            }
            Draw::Normal { .. } => {
                for _ in 0..count {
                    self.normal();
                }
                0
            }
            Draw::Integer { low, high } => count * if high.wrapping_sub(low) >= WIDE { 2 } else { 1 },
            Draw::Any => count * 2,
        };
        // Skipping this many numbers would take minutes.
        if self.skipped.saturating_add(skipped) > 1 << 34 {
            self.is_known = false;
        }
        self.skipped = self.skipped.saturating_add(skipped);
    }
}
