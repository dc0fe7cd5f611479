//! Numbers of bytes, of 64 bits on every target.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A number of bytes.
///
/// A size has 64 bits on every target. `usize` has 32 bits in WebAssembly, too few for the size of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bytes(u64);

crate::schema_as!(Bytes, u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// A share of these bytes, from 0 to 1: doubles are multiplied, and parts of a byte are left out, as
    /// PyTorch does in this expression. A memory fraction is
    /// [`Release::memory_limit`](crate::Release::memory_limit), which from 2.13 on rounds.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "as PyTorch: `static_cast<size_t>(fraction * static_cast<double>(device_total))`"
    )]
    pub fn share(self, share: f64) -> Self {
        Self((share * self.0 as f64) as u64)
    }

    /// `count` KiB (1024 bytes), saturating at 2^64-1 bytes.
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 10))
    }

    /// `count` MiB (1024 KiB), saturating at 2^64-1 bytes.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 20))
    }

    /// `count` GiB (1024 MiB), saturating at 2^64-1 bytes.
    #[must_use]
    pub const fn gib(count: u64) -> Self {
        Self(count.saturating_mul(1 << 30))
    }

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number with a sign, as PyTorch's statistics count; saturates at `i64::MAX`.
    #[inline]
    #[must_use]
    pub fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// Whether the number is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, or 2^64-1 if the sum does not fit in 64 bits.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The sum, or `None` if the sum does not fit in 64 bits.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or `None` if `other` is larger.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

// The operators are for sizes that an allocator bounds: parts of a block add up to the block. Sizes of a file
// go through `checked_add` and `checked_sub`.

impl Add for Bytes {
    type Output = Self;
    #[expect(clippy::arithmetic_side_effects, reason = "the caller knows that the sum fits")]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[expect(clippy::arithmetic_side_effects, reason = "the caller knows that the sum fits")]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[expect(clippy::arithmetic_side_effects, reason = "the caller knows that `other` is not larger")]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[expect(clippy::arithmetic_side_effects, reason = "the caller knows that `other` is not larger")]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, Self::saturating_add)
    }
}

/// The size for people: `512 B`, `1.5 KiB`, `764 MiB`, `139.8 GiB`. The unit is the largest one that leaves
/// at least one, with at most two decimals, rounded as PyTorch's messages round them, but never up to a whole
/// number: 2 MiB less 4 KiB are `1.99 MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit();
        match unit.checked_sub(1) {
            None => f.pad(&format!("{} B", self.0)),
            Some(_) => f.pad(&in_unit(hundredths(self.0, divisor(unit)), unit)),
        }
    }
}

impl Bytes {
    /// The power of 1024 that the number is shown in.
    fn unit(self) -> usize {
        let last = UNITS.len().saturating_sub(1);
        let is_larger = |unit: &usize| hundredths(self.0, divisor(*unit)) >= 102_400;
        if self.0 < 1024 { 0 } else { (1..last).find(|unit| !is_larger(unit)).unwrap_or(last) }
    }

    /// The number in the largest unit in which two decimals say it to the byte; else in bytes. A reader who
    /// types the text means this number.
    #[must_use]
    pub fn exact_text(self) -> String {
        let is_exact = |unit: &usize| {
            let said = hundredths(self.0, divisor(*unit)).saturating_mul(divisor(*unit));
            said.saturating_add(50).checked_div(100) == Some(u128::from(self.0))
        };
        match (1..=self.unit()).rev().find(is_exact) {
            Some(unit) => in_unit(hundredths(self.0, divisor(unit)), unit),
            None => format!("{} B", self.0),
        }
    }

    /// A text for an amount that is enough: what it says is not less than the number, and more by less than
    /// 11 KiB below 2 GiB, and by less than a part in 200 above. Shown digits that are rounded to the nearest
    /// may say too little.
    #[must_use]
    pub fn enough_text(self) -> String {
        const MEBI: usize = 2;
        const FINE: Bytes = Bytes::gib(2);
        let exact = self.exact_text();
        if exact == self.to_string() {
            return exact;
        }
        // A larger number has the unit that all other texts about it have.
        let unit = self.unit().clamp(1, if self < FINE { MEBI } else { UNITS.len().saturating_sub(1) });
        let most = divisor(unit);
        let up = u128::from(self.0).saturating_mul(100).div_ceil(most);
        in_unit(up, unit)
    }
}

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// How many bytes a unit has, at least one.
fn divisor(unit: usize) -> u128 {
    (0..unit).fold(1, |divisor: u128, _| divisor.saturating_mul(1024))
}

/// Hundredths of a unit as people write them: `1.5 MiB`.
fn in_unit(value: u128, unit: usize) -> String {
    let name = UNITS.get(unit).copied().unwrap_or_default();
    let (whole, fraction) = (value / 100, value % 100);
    match (fraction / 10, fraction % 10) {
        (0, 0) => format!("{whole} {name}"),
        (tenths, 0) => format!("{whole}.{tenths} {name}"),
        _ => format!("{whole}.{fraction:02} {name}"),
    }
}

/// `count / divisor` in hundredths: to the nearest, but not up to a whole number. The sum fits: it is below
/// 2^72.
fn hundredths(count: u64, divisor: u128) -> u128 {
    let of = |part: u128| {
        u128::from(count).saturating_mul(100).saturating_add(part).checked_div(divisor).unwrap_or(0)
    };
    let (cut, nearest) = (of(0), of(divisor / 2));
    if nearest.is_multiple_of(100) { cut } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_as_people_write_them() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1_048_575, "1023.99 KiB"),
            (2_096_640, "1.99 MiB"),
            (20_971_520, "20 MiB"),
            (801_112_064, "764 MiB"),
            (150_109_880_320, "139.8 GiB"),
            (19_922_432, "18.99 MiB"),
            (1_049_088, "1 MiB"),
            (1_310_720, "1.25 MiB"),
            (u64::MAX, "15.99 EiB"),
            (1_781_156_352, "1.66 GiB"),
            (400_000_000, "381.47 MiB"),
        ];
        for (count, text) in cases {
            assert_eq!(Bytes::new(count).to_string(), text);
        }
    }

    #[test]
    fn an_amount_that_is_enough_is_not_less_than_the_number() {
        let cases = [
            (Bytes::mib(614), "614 MiB", "614 MiB"),
            // 1.2324 GiB: "1.23 GiB" would be too little.
            (Bytes::mib(1262), "1262 MiB", "1262 MiB"),
            (Bytes::new(1_323_302_913), "1323302913 B", "1262.01 MiB"),
            (Bytes::new(1_320_702_444), "1.23 GiB", "1.23 GiB"),
            (Bytes::new(100), "100 B", "100 B"),
            (Bytes::new(1_049_088), "1024.5 KiB", "1.01 MiB"),
            (Bytes::new(1025), "1025 B", "1.01 KiB"),
            (Bytes::new(89_508_927_730), "89508927730 B", "83.37 GiB"),
        ];
        for (bytes, exact, enough) in cases {
            assert_eq!((bytes.exact_text().as_str(), bytes.enough_text().as_str()), (exact, enough));
        }
        assert_eq!(Bytes::new(u64::MAX).enough_text(), "16 EiB");
    }
}
