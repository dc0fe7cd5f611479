//! Sizes as the language writes them.

use blockyard_record::Bytes;

use crate::size::{decimal_unit, unit_shift, whole_number};
use crate::{ParseErrorKind, Request, Workload};

/// Reads a size as the language writes it: `3 MiB`, `1.5 GiB`, `4096`, `10000 x 10000 float32`.
///
/// # Errors
///
/// [`ParseErrorKind`], as for a size inside of a text.
pub fn parse_size(text: &str) -> Result<Bytes, ParseErrorKind> {
    let expected = || ParseErrorKind::Unexpected {
        expected: "a size such as \"3 MiB\"",
        found: format!("\"{}\"", text.trim()),
    };
    if text.contains(['\n', ';', '#', '{', '}', '"']) {
        return Err(expected());
    }
    let workload = Workload::parse(&format!("a = alloc {text}")).map_err(|error| error.kind().clone())?;
    match workload.requests() {
        [Request::Allocate { size, stream, .. }] if stream.get() == 0 && !text.contains(" on ") => Ok(*size),
        _ => Err(expected()),
    }
}

/// Reads a size as a person copies one from a figure, such as `1.23 GiB`: as [`parse_size`], rounded to the
/// nearest byte where the text has a part of one.
///
/// # Errors
///
/// The errors of [`parse_size`], except [`ParseErrorKind::NotWholeBytes`].
pub fn parse_rounded_size(text: &str) -> Result<Bytes, ParseErrorKind> {
    match parse_size(text) {
        Err(ParseErrorKind::NotWholeBytes { found }) => {
            rounded(text).map(Bytes::new).ok_or(ParseErrorKind::NotWholeBytes { found })
        }
        other => other,
    }
}

/// A number with decimals and its unit, to the nearest byte; half a byte is rounded up.
fn rounded(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '_'))?;
    let (number, unit) = text.split_at_checked(end)?;
    let unit = unit.trim();
    let multiple =
        unit_shift(unit).and_then(|shift| 1_u64.checked_shl(shift)).or_else(|| decimal_unit(unit))?;
    let (whole, decimals) = number.split_once('.').filter(|(_, decimals)| !decimals.contains('.'))?;
    // More decimals than these say less than a byte.
    let decimals: String = decimals.chars().filter(char::is_ascii_digit).take(18).collect();
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let part = decimals.parse::<u128>().ok()?.checked_mul(multiple.into())?;
    let part = part.checked_mul(2)?.checked_add(scale)?.checked_div(scale.checked_mul(2)?)?;
    let whole = u128::from(whole_number(whole)?).checked_mul(multiple.into())?;
    u64::try_from(whole.checked_add(part)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_a_figure_shows_are_rounded_to_bytes() {
        assert_eq!(parse_rounded_size("1.23 GiB"), Ok(Bytes::new(1_320_702_444)));
        assert_eq!(parse_rounded_size(" 0.1MB "), Ok(Bytes::new(100_000)));
        assert_eq!(parse_rounded_size("1.5 GiB"), Ok(Bytes::mib(1536)));
        assert_eq!(parse_rounded_size("0.3KiB"), Ok(Bytes::new(307)));
        for text in ["", "1.23 GiBB", "1.2.3 GiB", "1_.3 KB of", "0.3", "1.23 GiB of", "2 x 0.3 KiB"] {
            assert!(parse_rounded_size(text).is_err(), "{text}: {:?}", parse_rounded_size(text));
        }
    }

    #[test]
    fn sizes_stand_alone() {
        assert_eq!(parse_size("1.5 GiB").unwrap(), Bytes::mib(1536));
        assert_eq!(parse_size("10000 x 10000 float32").unwrap(), Bytes::new(400_000_000));
        assert_eq!(parse_size(" 18446744073709551615 ").unwrap(), Bytes::new(u64::MAX));
        for text in ["", "3 MBB", "3 MiB; empty_cache", "3 MiB on default", "3 MiB\nempty_cache", "-1"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
