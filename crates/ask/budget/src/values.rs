//! The values that are searched.

use std::str::FromStr;

/// Why a text names no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// The text has another form.
    #[error(
        "\"{0}\" is not a range of values: write 1..512, 8..512:8 for the multiples of 8, 1,2,4,8, or one number"
    )]
    Form(String),
    /// The range has no number.
    #[error("the range {0} has no value")]
    Empty(String),
}

/// Whole numbers, rising: all numbers from a lowest to a highest, the multiples of a number among these, or a
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Range {
        low: u64,
        high: u64,
        multiple: u64,
    },
    /// At least two, rising.
    List(Vec<u64>),
}

impl Values {
    /// The lowest value.
    pub fn low(&self) -> u64 {
        self.at(0)
    }

    /// The highest value.
    pub fn high(&self) -> u64 {
        self.at(self.last())
    }

    /// The number of which all values are multiples; `None` for a list.
    pub fn multiple(&self) -> Option<u64> {
        match &self.0 {
            Kind::Range { multiple, .. } => Some(*multiple),
            Kind::List(_) => None,
        }
    }

    /// How many values exist, less one: the number of the highest, where the lowest has the number 0.
    pub fn last(&self) -> u64 {
        match &self.0 {
            Kind::Range { low, high, multiple } => (high - low) / multiple,
            Kind::List(list) => (list.len() as u64).saturating_sub(1),
        }
    }

    /// The value of a number; the highest for numbers above the last.
    pub fn at(&self, number: u64) -> u64 {
        match &self.0 {
            Kind::Range { low, high, multiple } => low + number.min((high - low) / multiple) * multiple,
            Kind::List(list) => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                list.get(number).or(list.last()).copied().unwrap_or(0)
            }
        }
    }

    /// The number of the largest value that is at most `value`; 0 if all values are larger.
    pub fn number_below(&self, value: u64) -> u64 {
        match &self.0 {
            Kind::Range { low, high, multiple } => value.clamp(*low, *high).saturating_sub(*low) / multiple,
            Kind::List(list) => (list.partition_point(|other| *other <= value) as u64).saturating_sub(1),
        }
    }

    /// The next value above `value`; `None` above the highest.
    pub fn above(&self, value: u64) -> Option<u64> {
        match &self.0 {
            Kind::Range { high, multiple, .. } => value.checked_add(*multiple).filter(|next| next <= high),
            Kind::List(list) => list.iter().find(|other| **other > value).copied(),
        }
    }

    /// All values, rising.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..=self.last()).map(|number| self.at(number))
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Range { low, high, .. } if low == high => write!(f, "{low}"),
            Kind::Range { low, high, multiple: 1 } => write!(f, "{low}..{high}"),
            Kind::Range { low, high, multiple } => write!(f, "{low}..{high}:{multiple}"),
            Kind::List(list) => {
                let list: Vec<String> = list.iter().map(u64::to_string).collect();
                write!(f, "{}", list.join(","))
            }
        }
    }
}

impl FromStr for Values {
    type Err = ValuesError;

    fn from_str(text: &str) -> Result<Self, ValuesError> {
        let form = || ValuesError::Form(text.to_owned());
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_error| form());
        if text.contains(',') {
            let mut list = text.split(',').map(number).collect::<Result<Vec<u64>, _>>()?;
            list.sort_unstable();
            list.dedup();
            return Ok(Self(match list.as_slice() {
                [one] => Kind::Range { low: *one, high: *one, multiple: 1 },
                _ => Kind::List(list),
            }));
        }
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
        let empty = || ValuesError::Empty(text.to_owned());
        let low = low.checked_next_multiple_of(multiple).ok_or_else(empty)?;
        let high = high / multiple * multiple;
        if low > high { Err(empty()) } else { Ok(Self(Kind::Range { low, high, multiple })) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let all = |text: &str| -> Vec<u64> { text.parse::<Values>().unwrap().iter().collect() };
        assert_eq!(all("1..4"), [1, 2, 3, 4]);
        assert_eq!(all("5..24:8"), [8, 16, 24]);
        assert_eq!(all("32"), [32]);
        assert_eq!(all("7..7"), [7]);
        assert_eq!(all("8,2,1,2"), [1, 2, 8]);
        assert_eq!(all("4,4"), [4]);
        let values: Values = "5..24:8".parse().unwrap();
        assert_eq!(
            (values.above(16), values.above(24), values.to_string()),
            (Some(24), None, "8..24:8".into())
        );
    }

    #[test]
    fn values_are_found_by_number_and_by_what_is_below() {
        for text in ["5..24:8", "8,16,24"] {
            let values: Values = text.parse().unwrap();
            let below: Vec<u64> = [0, 8, 15, 16, 23, 24, 99].map(|value| values.number_below(value)).to_vec();
            assert_eq!(below, [0, 0, 0, 1, 1, 2, 2], "{text}");
            assert_eq!((values.above(8), values.above(24), values.at(7)), (Some(16), None, 24), "{text}");
        }
        assert_eq!("3,1".parse::<Values>().unwrap().to_string(), "1,3");
    }

    #[test]
    fn what_is_no_range_is_said() {
        for text in ["", "1..", "..4", "a..b", "1-4", "1..4:0", "1..4:x", "-1..4", "1,", "1,2..4"] {
            assert_eq!(text.parse::<Values>(), Err(ValuesError::Form(text.to_owned())), "{text}");
        }
        for text in ["4..1", "1..7:8"] {
            assert_eq!(text.parse::<Values>(), Err(ValuesError::Empty(text.to_owned())), "{text}");
        }
    }
}
