//! Sizes as people write them, to the byte and back.

use blockyard_record::Bytes;

/// Why a number is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeError {
    TooLarge,
    NotWhole,
}

/// Binary units with the power of two that each stands for, smallest first.
const UNITS: [(&str, u32); 7] =
    [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("PiB", 50), ("EiB", 60)];

/// Units of a thousand with the bytes of each.
const DECIMAL_UNITS: [(&str, u64); 4] =
    [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];

/// Dtypes with the bytes of one element, the likeliest first.
pub(crate) const DTYPES: [(&str, u64); 10] = [
    ("float32", 4),
    ("float16", 2),
    ("bfloat16", 2),
    ("float64", 8),
    ("int64", 8),
    ("int32", 4),
    ("int16", 2),
    ("int8", 1),
    ("uint8", 1),
    ("bool", 1),
];

/// The power of two of a unit.
pub(crate) fn unit_shift(word: &str) -> Option<u32> {
    UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(word)).map(|(_, shift)| *shift)
}

/// The bytes of a unit of a thousand.
pub(crate) fn decimal_unit(word: &str) -> Option<u64> {
    DECIMAL_UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(word)).map(|(_, multiple)| *multiple)
}

/// `number` times a power of ten, exactly.
pub(crate) fn decimal_number(number: &str, multiple: u64) -> Result<u64, SizeError> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = decimals.replace('_', "");
    let decimals = decimals.trim_end_matches('0');
    let whole = parse_digits(whole).ok_or(SizeError::TooLarge)?;
    let places = u32::try_from(decimals.len()).map_err(|_| SizeError::NotWhole)?;
    let scale = 10_u128.checked_pow(places).ok_or(SizeError::NotWhole)?;
    let digits = if decimals.is_empty() { 0 } else { parse_digits(decimals).ok_or(SizeError::NotWhole)? };
    let part = digits.checked_mul(u128::from(multiple)).ok_or(SizeError::NotWhole)?;
    if !part.is_multiple_of(scale) {
        return Err(SizeError::NotWhole);
    }
    let scaled =
        whole.checked_mul(u128::from(multiple)).and_then(|whole| whole.checked_add(part.checked_div(scale)?));
    scaled.and_then(|bytes| u64::try_from(bytes).ok()).ok_or(SizeError::TooLarge)
}

/// The bytes of one element.
pub(crate) fn dtype_size(word: &str) -> Option<u64> {
    DTYPES.iter().find(|(dtype, _)| *dtype == word).map(|(_, size)| *size)
}

/// A whole number, perhaps with underscores; `None` with decimals, saturating at 2^64-1.
pub(crate) fn whole_number(number: &str) -> Option<u64> {
    number.chars().filter(|digit| *digit != '_').try_fold(0_u64, |value, digit| {
        Some(value.saturating_mul(10).saturating_add(u64::from(digit.to_digit(10)?)))
    })
}

/// `number` times `2^shift`, exactly.
pub(crate) fn scaled_number(number: &str, shift: u32) -> Result<u64, SizeError> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = decimals.replace('_', "");
    let decimals = decimals.trim_end_matches('0');
    let whole = parse_digits(whole).ok_or(SizeError::TooLarge)?;
    let part =
        if decimals.is_empty() { 0 } else { scaled_decimals(decimals, shift).ok_or(SizeError::NotWhole)? };
    let scaled = whole.checked_mul(1_u128 << shift).and_then(|whole| whole.checked_add(part));
    scaled.and_then(|bytes| u64::try_from(bytes).ok()).ok_or(SizeError::TooLarge)
}

/// `0.decimals` times `2^shift` if that is whole.
///
/// With k decimals of which the last is not zero this is decimals * 2^shift / (2^k * 5^k). Powers of two
/// cannot cancel a five, so 5^k divides the decimals, which are then odd, so k is at most `shift`.
fn scaled_decimals(decimals: &str, shift: u32) -> Option<u128> {
    let places = u32::try_from(decimals.len()).ok()?;
    let fives = 5_u128.checked_pow(places)?;
    let digits = parse_digits(decimals)?;
    let shift = shift.checked_sub(places).filter(|_| digits.is_multiple_of(fives))?;
    digits.checked_div(fives)?.checked_shl(shift)
}

fn parse_digits(digits: &str) -> Option<u128> {
    digits
        .chars()
        .filter_map(|digit| digit.to_digit(10))
        .try_fold(0_u128, |value, digit| value.checked_mul(10)?.checked_add(u128::from(digit)))
}

/// The size in the form that people write: `3 MiB`, `1.5 KiB`, else plain bytes; reads back to the same
/// number.
pub(crate) fn write_size(size: Bytes) -> String {
    let count = u128::from(size.get());
    for (unit, shift) in UNITS.into_iter().rev() {
        let hundredths = count * 100;
        let is_exact = hundredths.trailing_zeros() >= shift;
        let hundredths = hundredths >> shift;
        // Four digits before the point are the most that still read better than bytes.
        if is_exact && (100..1_000_000).contains(&hundredths) {
            let (whole, part) = (hundredths / 100, hundredths % 100);
            return match (part / 10, part % 10) {
                (0, 0) => format!("{whole} {unit}"),
                (tenths, 0) => format!("{whole}.{tenths} {unit}"),
                _ => format!("{whole}.{part:02} {unit}"),
            };
        }
    }
    format!("{count} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_scale_exactly_or_not_at_all() {
        let cases = [
            ("0", 0, Ok(0)),
            ("1_000", 0, Ok(1000)),
            ("1.5", 10, Ok(1536)),
            ("1.50", 10, Ok(1536)),
            ("2.000", 0, Ok(2)),
            ("0.1", 10, Err(SizeError::NotWhole)),
            ("1.5", 0, Err(SizeError::NotWhole)),
            ("0.0009765625", 10, Ok(1)),
            ("0.00048828125", 10, Err(SizeError::NotWhole)),
            ("1048576", 40, Ok(1 << 60)),
            ("18446744073709551615", 0, Ok(u64::MAX)),
            ("18446744073709551616", 0, Err(SizeError::TooLarge)),
            ("16", 60, Err(SizeError::TooLarge)),
            ("15.5", 60, Ok((15 << 60) + (1 << 59))),
            ("99999999999999999999999999999999999999999999", 60, Err(SizeError::TooLarge)),
            ("0.99999999999999999999999999999999999999999999", 60, Err(SizeError::NotWhole)),
        ];
        for (number, shift, expected) in cases {
            assert_eq!(scaled_number(number, shift), expected, "{number} << {shift}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_stays_exact() {
        let cases = [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1537, "1537 B"),
            (3 << 20, "3 MiB"),
            (1025 << 20, "1025 MiB"),
            ((3 << 30) + 512, "3221225984 B"),
            (5 << 18, "1.25 MiB"),
            (400_000_000, "400000000 B"),
            (1 << 60, "1 EiB"),
            (u64::MAX, "18446744073709551615 B"),
        ];
        for (count, text) in cases {
            assert_eq!(write_size(Bytes::new(count)), text);
        }
    }

    #[test]
    fn units_of_a_thousand_scale_exactly_or_not_at_all() {
        let cases = [
            ("3", "GB", Ok(3_000_000_000)),
            ("1.5", "MB", Ok(1_500_000)),
            ("0.001", "kb", Ok(1)),
            ("0.0001", "KB", Err(SizeError::NotWhole)),
            ("80", "TB", Ok(80_000_000_000_000)),
            ("99999999999999", "TB", Err(SizeError::TooLarge)),
            ("0.00000000000000000000000000000000000000001", "TB", Err(SizeError::NotWhole)),
        ];
        for (number, unit, expected) in cases {
            assert_eq!(decimal_number(number, decimal_unit(unit).unwrap()), expected, "{number} {unit}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_written_size_reads_back(count: u64, shift in 0_u32..64) {
            let size = Bytes::new(count >> shift << (shift / 2));
            let text = write_size(size);
            let (number, unit) = text.split_once(' ').unwrap();
            proptest::prop_assert_eq!(scaled_number(number, unit_shift(unit).unwrap()), Ok(size.get()));
        }
    }
}
