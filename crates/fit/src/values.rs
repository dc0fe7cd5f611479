//! The values that are searched.

use std::str::FromStr;

/// A text that names no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotValues {
    /// Another form.
    #[error("\"{0}\" is no range of values: write 1..512, 8..512:8 for the multiples of 8, or one number")]
    Form(String),
    /// No number is in the range.
    #[error("there is no value in {0}")]
    Empty(String),
}

/// Whole numbers from a lowest to a highest one, all of them or the multiples of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    low: u64,
    high: u64,
    multiple: u64,
}

impl Values {
    /// The lowest value.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// The highest value.
    #[must_use]
    pub fn high(&self) -> u64 {
        self.high
    }

    /// All are multiples of this number.
    #[must_use]
    pub fn multiple(&self) -> u64 {
        self.multiple
    }

    /// How many values there are, less one: the number of the highest, where the lowest has the number 0.
    #[must_use]
    pub fn last(&self) -> u64 {
        (self.high - self.low) / self.multiple
    }

    /// The value of a number; the highest for numbers above the last.
    #[must_use]
    pub fn at(&self, number: u64) -> u64 {
        self.low + number.min(self.last()) * self.multiple
    }

    /// The value above another one; none above the highest.
    #[must_use]
    pub fn above(&self, value: u64) -> Option<u64> {
        value.checked_add(self.multiple).filter(|next| *next <= self.high)
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.low == self.high, self.multiple) {
            (true, _) => write!(f, "{}", self.low),
            (false, 1) => write!(f, "{}..{}", self.low, self.high),
            (false, multiple) => write!(f, "{}..{}:{multiple}", self.low, self.high),
        }
    }
}

impl FromStr for Values {
    type Err = NotValues;

    fn from_str(text: &str) -> Result<Self, NotValues> {
        let form = || NotValues::Form(text.to_owned());
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_error| form());
        let (range, multiple) = match text.split_once(':') {
            Some((range, multiple)) => (range, number(multiple)?),
            None => (text, 1),
        };
        let (low, high) = match range.split_once("..") {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (number(range)?, number(range)?),
        };
        if multiple == 0 {
            return Err(form());
        }
        let empty = || NotValues::Empty(text.to_owned());
        let low = low.checked_next_multiple_of(multiple).ok_or_else(empty)?;
        let high = high / multiple * multiple;
        if low > high { Err(empty()) } else { Ok(Self { low, high, multiple }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let all = |text: &str| -> Vec<u64> {
            let values: Values = text.parse().unwrap();
            (0..=values.last()).map(|number| values.at(number)).collect()
        };
        assert_eq!(all("1..4"), [1, 2, 3, 4]);
        assert_eq!(all("5..24:8"), [8, 16, 24]);
        assert_eq!(all("32"), [32]);
        assert_eq!(all("7..7"), [7]);
        let values: Values = "5..24:8".parse().unwrap();
        assert_eq!(
            (values.above(16), values.above(24), values.to_string()),
            (Some(24), None, "8..24:8".into())
        );
    }

    #[test]
    fn what_is_no_range_is_said() {
        for text in ["", "1..", "..4", "a..b", "1-4", "1..4:0", "1..4:x", "-1..4"] {
            assert_eq!(text.parse::<Values>(), Err(NotValues::Form(text.to_owned())), "{text}");
        }
        for text in ["4..1", "1..7:8"] {
            assert_eq!(text.parse::<Values>(), Err(NotValues::Empty(text.to_owned())), "{text}");
        }
    }
}
