//! Conversions between counts, bytes and pixels, in one place so that their precision is documented once.

use blockyard_record::{Bytes, grouped};

/// A byte count as a float; exact up to 2^53 bytes, which is 8 PiB.
#[expect(clippy::cast_precision_loss, reason = "a picture has no use for the 54th bit")]
pub(crate) fn bytes_f64(bytes: Bytes) -> f64 {
    bytes.get() as f64
}

/// A count as a float; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "nothing is counted up to 2^53")]
pub(crate) fn count_f64(count: usize) -> f64 {
    count as f64
}

/// Microseconds as a float; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no run takes 2^53 microseconds")]
pub(crate) fn micros_f64(micros: u64) -> f64 {
    micros as f64
}

/// A position in pixels.
#[expect(clippy::cast_possible_truncation, reason = "pixels need no more than 24 bits")]
pub fn px(value: f64) -> f32 {
    value as f32
}

/// A count as a float for lengths in pixels, as for the height of a number of rows.
pub(crate) fn count_px(count: usize) -> f32 {
    px(count_f64(count))
}

/// The whole number at or below `value`, from 0 on; `NaN` gives 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
pub(crate) fn floor_count(value: f64) -> usize {
    value.floor() as usize
}

/// The whole number of bytes nearest to `value`, from 0 on.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate"
)]
pub(crate) fn round_bytes(value: f64) -> Bytes {
    Bytes::new(value.round() as u64)
}

/// `part` divided by `whole`, from 0 to 1; 0 if the whole is zero.
pub(crate) fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole.is_zero() { 0.0 } else { (bytes_f64(part) / bytes_f64(whole)).clamp(0.0, 1.0) }
}

/// A step index as recordings store it. Recordings have fewer than 2^32 steps, so that a larger index stays
/// after the last step.
pub(crate) fn step_u32(step: usize) -> u32 {
    u32::try_from(step).unwrap_or(u32::MAX)
}

/// `12.3%`; `<0.1%` for a part that would round to zero; `100%` only for the whole.
pub fn percent(part: Bytes, whole: Bytes) -> String {
    if part.is_zero() || whole.is_zero() {
        return "0%".to_owned();
    }
    let value = share(part, whole) * 100.0;
    if part >= whole {
        "100%".to_owned()
    } else if value < 0.1 {
        "<0.1%".to_owned()
    } else if value > 99.9 {
        ">99.9%".to_owned()
    } else if !(10.0..99.0).contains(&value) {
        format!("{value:.1}%")
    } else {
        format!("{value:.0}%")
    }
}

/// A binary unit, the same for all numbers of an axis or of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteUnit {
    /// The unit's place among the units: 0 for bytes.
    place: u32,
}

impl ByteUnit {
    /// The largest unit of which `highest` is at least one.
    #[must_use]
    pub fn of(highest: Bytes) -> Self {
        Self { place: highest.get().max(1).ilog2() / 10 }
    }

    /// The unit of an axis up to `highest` with ticks in this distance, which is a power of two: each number
    /// has at most two decimals.
    pub(crate) fn of_ticks(step: Bytes, highest: Bytes) -> Self {
        // A unit is used from two of it on, so that an axis up to 1 GiB is in MiB, as are the numbers beside
        // its figure.
        let largest = Self::of(Bytes::new(highest.get() / 2)).place;
        Self { place: largest.min(step.get().max(1).ilog2().saturating_add(2) / 10) }
    }

    /// The unit's name: `MiB`.
    pub fn name(self) -> &'static str {
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].get(self.place as usize).copied().unwrap_or_default()
    }

    /// How many bytes one unit is.
    pub(crate) fn bytes(self) -> f64 {
        (0..self.place).fold(1.0, |unit, _| unit * 1024.0)
    }

    /// The number of a tick of an axis, in this unit, with as many decimals as the distance of the ticks has.
    pub(crate) fn tick(self, tick: Bytes, step: Bytes) -> String {
        let step = bytes_f64(step) / self.bytes();
        let digits = if step >= 1.0 {
            0
        } else if step >= 0.5 {
            1
        } else {
            2
        };
        if tick.is_zero() { "0".to_owned() } else { format!("{:.digits$}", bytes_f64(tick) / self.bytes()) }
    }

    /// Bytes in this unit, for a column of numbers: `344.72`, and `<0.01` for bytes that would be written as
    /// zero.
    pub fn number(self, bytes: Bytes) -> String {
        let value = bytes_f64(bytes) / self.bytes();
        match self.place {
            0 => grouped(bytes.get()),
            _ if bytes.is_zero() => "0".to_owned(),
            _ if value < 0.005 => "<0.01".to_owned(),
            _ => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit() {
        let unit = ByteUnit::of(Bytes::mib(345));
        assert_eq!(unit.name(), "MiB");
        let numbers = [Bytes::mib(345), Bytes::kib(512), Bytes::new(512), Bytes::ZERO];
        assert_eq!(numbers.map(|bytes| unit.number(bytes)), ["345.00", "0.50", "<0.01", "0"]);
        assert_eq!(ByteUnit::of(Bytes::new(700)).number(Bytes::new(512)), "512");
    }

    #[test]
    fn an_axis_has_one_unit_and_at_most_two_decimals() {
        for (step, highest, unit, last) in [
            (Bytes::mib(128), Bytes::gib(1), "MiB", "1024"),
            (Bytes::mib(256), Bytes::gib(2), "GiB", "2.00"),
            (Bytes::mib(512), Bytes::gib(2), "GiB", "2.0"),
            (Bytes::kib(64), Bytes::gib(1), "KiB", "1048576"),
        ] {
            let found = ByteUnit::of_ticks(step, highest);
            assert_eq!((found.name(), found.tick(highest, step).as_str()), (unit, last), "{step}");
        }
    }

    #[test]
    fn thousands_are_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn only_the_whole_is_a_hundred_percent_and_only_nothing_is_zero() {
        let cases = [
            (0, 100, "0%"),
            (1, 100_000, "<0.1%"),
            (5, 100, "5.0%"),
            (50, 100, "50%"),
            (997, 1000, "99.7%"),
            (100, 100, "100%"),
        ];
        for (part, whole, text) in cases {
            assert_eq!(percent(Bytes::new(part), Bytes::new(whole)), text);
        }
        assert_eq!(percent(Bytes::new(99_999), Bytes::new(100_000)), ">99.9%");
        assert_eq!(percent(Bytes::new(1), Bytes::ZERO), "0%");
    }
}
