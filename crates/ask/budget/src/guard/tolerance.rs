//! How much a peak may grow.

use std::fmt;
use std::str::FromStr;

use blockyard_record::Bytes;
use blockyard_workload::parse_size;
use thiserror::Error;

/// How much more than the baseline a peak may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// A number of bytes.
    Bytes(Bytes),
    /// Millionths of the baseline; written in percent.
    Share(u64),
}

/// The millionths of one percent.
const PERCENT: u64 = 10_000;

/// A text that is not a tolerance.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a tolerance: write a share (\"1%\", at most four decimals) or a size (\"64 MiB\")")]
pub struct ToleranceError(String);

impl Default for Tolerance {
    /// One percent.
    fn default() -> Self {
        Self::Share(PERCENT)
    }
}

impl Tolerance {
    /// The bytes that a peak of `before` bytes may grow by, a fraction of a byte cut off.
    pub fn of(self, before: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(millionths) => {
                let product = u128::from(before.get()).saturating_mul(u128::from(millionths));
                Bytes::new(u64::try_from(product / 1_000_000).unwrap_or(u64::MAX))
            }
        }
    }
}

impl FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, ToleranceError> {
        let wrong = || ToleranceError(text.to_owned());
        let Some(percent) = text.trim().strip_suffix('%') else {
            return parse_size(text).map(Self::Bytes).map_err(|_error| wrong());
        };
        let percent = percent.trim();
        let (whole, decimals) = percent.split_once('.').unwrap_or((percent, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 4 {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_error| wrong())?;
        let decimals: u64 = format!("{decimals:0<4}").parse().map_err(|_error| wrong())?;
        let share = whole.checked_mul(PERCENT).and_then(|whole| whole.checked_add(decimals));
        share.map(Self::Share).ok_or_else(wrong)
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Share(millionths) => {
                let decimals = format!("{:04}", millionths % PERCENT);
                let decimals = decimals.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                write!(f, "{}{point}{decimals}%", millionths / PERCENT)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_cut_off_to_whole_bytes() {
        let of = |text: &str, before| text.parse::<Tolerance>().unwrap().of(Bytes::new(before)).get();
        assert_eq!(of("1%", 199), 1);
        assert_eq!(of("1 %", 200), 2);
        assert_eq!(of("0.5%", 1000), 5);
        assert_eq!(of("0.0001%", 1_000_000), 1);
        assert_eq!(of("0%", u64::MAX), 0);
        assert_eq!(of("100%", u64::MAX), u64::MAX);
        assert_eq!(of("64 MiB", 5), 64 << 20);
        assert_eq!(of("0", 5), 0);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["1%", "0.5%", "12.0625%", "0%"] {
            assert_eq!(text.parse::<Tolerance>().unwrap().to_string(), text);
        }
        for wrong in ["", "%", "-1%", "1.%", "1.23456%", "one", "99999999999999999999%", "3 MBB"] {
            assert!(wrong.parse::<Tolerance>().is_err(), "{wrong}");
        }
    }
}
