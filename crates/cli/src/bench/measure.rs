use std::time::Duration;

/// What several turns gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Measure {
    /// The middle and the range; `None` for no values.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median =
            if values.len().is_multiple_of(2) { f64::midpoint(values[middle - 1], upper) } else { upper };
        Some(Self { median, least: *values.first()?, most: *values.last()? })
    }
}

/// Nanoseconds of one of `count` equal things.
pub(crate) fn nanos_each(took: Duration, count: u32) -> f64 {
    took.as_secs_f64() * 1e9 / f64::from(count.max(1))
}

/// How many of something make a turn that is long against the clock and short against patience.
pub(crate) fn count_for_turn(took: Duration, count: u32) -> u32 {
    const TURN_NANOS: f64 = 4e6;
    const MOST: f64 = 100_000.0;
    let each = nanos_each(took, count).max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 100,000")]
    let wanted = (TURN_NANOS / each).clamp(1.0, MOST) as u32;
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between() {
        assert_eq!(Measure::of(vec![]), None);
        assert_eq!(Measure::of(vec![3.0, 1.0, 2.0]), Some(Measure { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Measure::of(vec![4.0, 1.0, 2.0, 3.0]).map(|measure| measure.median), Some(2.5));
    }

    #[test]
    fn turns_are_neither_short_nor_long() {
        assert_eq!(count_for_turn(Duration::from_nanos(1600), 16), 40_000);
        assert_eq!(count_for_turn(Duration::from_secs(1), 16), 1);
        assert_eq!(count_for_turn(Duration::ZERO, 16), 100_000);
    }
}
