//! Times of contenders that take turns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The median and the range of the values of several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The median: the value in the middle.
    pub median: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
}

impl Measurement {
    /// The median and the range of `values`; all zero for none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = match sorted.len() {
            0 => 0.0,
            count if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Self {
            median,
            least: sorted.first().copied().unwrap_or(0.0),
            most: sorted.last().copied().unwrap_or(0.0),
        }
    }

    /// How many times `divisor` goes into `values`: the ratio of the medians, and the range of the ratios of
    /// each round.
    #[must_use]
    pub fn ratio(values: &[f64], divisor: &[f64]) -> Self {
        let rounds: Vec<f64> = values.iter().zip(divisor).map(|(value, divisor)| value / divisor).collect();
        let range = Self::of(&rounds);
        Self { median: Self::of(values).median / Self::of(divisor).median, ..range }
    }

    /// A value without a range.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { median: value, least: value, most: value }
    }
}

/// The geometric mean: the root of the product of the factors.
pub fn geometric_mean(factors: &[f64]) -> f64 {
    let logarithms: f64 = factors.iter().map(|factor| factor.ln()).sum();
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    let count = factors.len() as f64;
    if factors.is_empty() { 0.0 } else { (logarithms / count).exp() }
}

/// Lets contenders take turns for `rounds` rounds; every second round in reverse order.
///
/// `turn` gets the place of a contender and the contender. It returns the value of the turn, or nothing where
/// the contender does not take part. Returns the values of each contender.
///
/// # Errors
///
/// The errors of the contenders.
pub fn take_turns<C, E>(
    rounds: usize,
    contenders: &mut [C],
    mut turn: impl FnMut(usize, &mut C) -> Result<Option<f64>, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut values = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            values[index].extend(turn(index, &mut contenders[index])?);
        }
    }
    Ok(values)
}

/// Lets contenders that do the same work take turns, as [`take_turns`] does.
///
/// `replay` does a contender's work a number of times: once that does not count, since the turn before left
/// its own data in the caches, then `times` times. Returns nanoseconds for each of the `units` of that work,
/// for each contender those of each round.
///
/// # Errors
///
/// The errors of the contenders.
pub fn alternate<C, E>(
    rounds: usize,
    times: u32,
    units: usize,
    contenders: &mut [C],
    mut replay: impl FnMut(&mut C, u32) -> Result<Duration, E>,
) -> Result<Vec<Vec<f64>>, E> {
    take_turns(rounds, contenders, |_, contender| {
        replay(contender, 1)?;
        let took = replay(contender, times)?;
        Ok(Some(per_unit(took, units * times as usize)))
    })
}

/// How many units make a turn of a few milliseconds, if `count` units took `took`: long compared with the
/// clock's resolution, and short enough for many rounds.
pub fn count_for_turn(took: Duration, count: u32) -> u32 {
    const TURN_NANOS: f64 = 4e6;
    const MAX: f64 = 100_000.0;
    let each = per_unit(took, count as usize).max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 100,000")]
    let wanted = (TURN_NANOS / each).clamp(1.0, MAX) as u32;
    wanted
}

/// The time of one unit in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "a count of operations")]
pub fn per_unit(took: Duration, units: usize) -> f64 {
    took.as_secs_f64() * 1e9 / units.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_medians_and_its_range_of_rounds() {
        let ratio = Measurement::ratio(&[10.0, 30.0, 20.0], &[1.0, 2.0, 4.0]);
        assert_eq!(ratio, Measurement { median: 10.0, least: 5.0, most: 15.0 });
        assert_eq!(Measurement::of(&[4.0, 1.0]), Measurement { median: 2.5, least: 1.0, most: 4.0 });
    }

    #[test]
    fn contenders_take_turns_in_changing_order() {
        let mut order = Vec::new();
        let mut contenders = ["a", "b"];
        let nanos = alternate(3, 5, 2, &mut contenders, |name, times| {
            order.push((*name, times));
            Ok::<_, std::convert::Infallible>(Duration::from_nanos(if times == 1 { 1000 } else { 20 }))
        })
        .unwrap();
        let turns = order.chunks(2).map(|turn| (turn[0], turn[1]));
        let expected = ["a", "b", "b", "a", "a", "b"].map(|name| ((name, 1), (name, 5)));
        assert_eq!(turns.collect::<Vec<_>>(), expected);
        assert_eq!(nanos, [[2.0; 3], [2.0; 3]]);
    }

    #[test]
    fn turns_are_neither_short_nor_long() {
        assert_eq!(count_for_turn(Duration::from_nanos(1600), 16), 40_000);
        assert_eq!(count_for_turn(Duration::from_secs(1), 16), 1);
        assert_eq!(count_for_turn(Duration::ZERO, 16), 100_000);
    }

    #[test]
    fn the_geometric_mean_is_the_root_of_the_product() {
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
