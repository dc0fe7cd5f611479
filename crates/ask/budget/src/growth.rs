//! How bytes grow with the value of an option: the rule that probes follow.

use blockyard_answers::{FitGrowth, FitGrowthKind};
use blockyard_record::Bytes;

/// A rule may be off by this part of the largest number of bytes.
const TOLERANCE: f64 = 0.01;
/// The fewest points that say something about a straight line: any two points lie on one.
const MIN_PROBES: usize = 3;

/// The simplest rule that these points (a value and its bytes) follow: to the byte, or to one part in a
/// hundred of the most bytes.
///
/// If the points follow no rule, the lowest values are left out, as long as three values are left: at small
/// values another moment of the program may be the peak. `None` for fewer than three values, and if no rule
/// is found. A quadratic rule needs four values.
pub fn fit_growth(points: &[(u64, Bytes)]) -> Option<FitGrowth> {
    let mut points: Vec<(u64, u64)> = points.iter().map(|(value, bytes)| (*value, bytes.get())).collect();
    points.sort_unstable();
    points.dedup_by_key(|(value, _)| *value);
    let starts = 0..=points.len().checked_sub(MIN_PROBES)?;
    let parts = || starts.clone().filter_map(|start| points.get(start..));
    // A rule that is met to the byte by the upper values says more than one over all values that is nearly
    // met.
    parts().find_map(exactly).or_else(|| parts().find_map(nearly))
}

/// The rule that is met to the byte.
fn exactly(points: &[(u64, u64)]) -> Option<FitGrowth> {
    let by_kind = [FitGrowthKind::Constant, FitGrowthKind::Linear, FitGrowthKind::Quadratic];
    by_kind.into_iter().find_map(|kind| {
        let order = order(kind);
        if points.len() < order + 2
            || !differences(points, order + 1)?.iter().all(|difference| *difference == 0)
        {
            return None;
        }
        let mut rule = fitted(points, kind)?;
        rule.exact = true;
        rule.residual = Bytes::ZERO;
        Some(rule)
    })
}

fn nearly(points: &[(u64, u64)]) -> Option<FitGrowth> {
    let most = points.iter().map(|(_, bytes)| *bytes).max()?;
    let by_kind = [FitGrowthKind::Constant, FitGrowthKind::Linear, FitGrowthKind::Quadratic];
    by_kind.into_iter().filter(|kind| points.len() >= order(*kind) + 2).find_map(|kind| {
        fitted(points, kind).filter(|rule| as_float(rule.residual.get()) <= TOLERANCE * as_float(most))
    })
}

/// The highest power in the rule.
fn order(kind: FitGrowthKind) -> usize {
    match kind {
        FitGrowthKind::Constant => 0,
        FitGrowthKind::Linear => 1,
        FitGrowthKind::Quadratic => 2,
    }
}

/// Numbers that are all 0 if the points lie on a polynomial below this degree: divided differences without
/// the division.
fn differences(points: &[(u64, u64)], degree: usize) -> Option<Vec<i128>> {
    points.windows(degree + 1).map(difference).collect()
}

/// The sum over the points of `bytes / product of distances to the others`, times the common multiple.
fn difference(points: &[(u64, u64)]) -> Option<i128> {
    // Each pair's distance divides the product over all pairs; the quotients stay integers.
    let distance = |one: usize, other: usize| -> Option<i128> {
        Some(i128::from(points.get(one)?.0) - i128::from(points.get(other)?.0))
    };
    let count = points.len();
    let mut sum = 0_i128;
    for (at, (_, bytes)) in points.iter().enumerate() {
        let mut term = i128::from(*bytes);
        // The distances among the other points, which the denominator of this point does not have.
        for one in 0..count {
            for other in (one + 1)..count {
                if one != at && other != at {
                    term = term.checked_mul(distance(other, one)?)?;
                }
            }
        }
        let is_negative = (count - 1 - at) % 2 == 1;
        sum = sum.checked_add(if is_negative { -term } else { term })?;
    }
    Some(sum)
}

/// The rule with the least squares.
fn fitted(points: &[(u64, u64)], kind: FitGrowthKind) -> Option<FitGrowth> {
    let terms = order(kind) + 1;
    // Values are counted from the middle, in units of the largest distance, so that the sums keep about one
    // size.
    let count = as_float(points.len() as u64);
    let middle = points.iter().map(|(value, _)| as_float(*value)).sum::<f64>() / count;
    let far = points.iter().map(|(value, _)| (as_float(*value) - middle).abs()).fold(1.0_f64, f64::max);
    let mut rows = [[0.0_f64; 4]; 3];
    for (value, bytes) in points {
        let x = (as_float(*value) - middle) / far;
        let powers = [1.0, x, x * x];
        for (row, power) in rows.iter_mut().zip(powers).take(terms) {
            for (cell, other) in row.iter_mut().zip(powers).take(terms) {
                *cell += power * other;
            }
            row[3] += power * as_float(*bytes);
        }
    }
    let [a, b, c] = solved(rows, terms)?;
    let (slope, square) = (b / far - 2.0 * c * middle / (far * far), c / (far * far));
    let base = a - b * middle / far + c * middle * middle / (far * far);
    let off = |(value, bytes): &(u64, u64)| {
        let x = (as_float(*value) - middle) / far;
        (a + b * x + c * x * x - as_float(*bytes)).abs()
    };
    let residual = points.iter().map(off).fold(0.0_f64, f64::max);
    Some(FitGrowth {
        kind,
        base,
        slope,
        square,
        values: points.iter().map(|(value, _)| *value).collect(),
        residual: Bytes::new(rounded(residual)),
        exact: false,
    })
}

/// The solution of the first `terms` of three equations; the others are 0.
fn solved(mut rows: [[f64; 4]; 3], terms: usize) -> Option<[f64; 3]> {
    for (at, row) in rows.iter_mut().enumerate().skip(terms) {
        *row = [0.0; 4];
        *row.get_mut(at)? = 1.0;
    }
    for at in 0..3 {
        let pivot = *rows.get(at)?;
        let head = *pivot.get(at)?;
        // The matrix is positive definite where the values differ.
        if head.abs() < f64::EPSILON {
            return None;
        }
        for (number, row) in rows.iter_mut().enumerate() {
            if number == at {
                continue;
            }
            let factor = row.get(at)? / head;
            for (cell, above) in row.iter_mut().zip(pivot) {
                *cell -= factor * above;
            }
        }
    }
    Some([rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]])
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a device are below 2^53, and a guess may be wrong")]
pub(crate) fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is rounded and not negative"
)]
pub(crate) fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn growth_of(points: &[(u64, u64)]) -> Option<FitGrowth> {
        let points = points.iter().map(|(value, bytes)| (*value, Bytes::new(*bytes)));
        fit_growth(&points.collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_found_to_the_byte() {
        let of = |rule: fn(u64) -> u64, values: &[u64]| {
            let points: Vec<(u64, u64)> = values.iter().map(|value| (*value, rule(*value))).collect();
            growth_of(&points).map(|growth| (growth.kind, growth.exact, growth.values))
        };
        let values = [1, 33, 37, 38];
        let all = values.to_vec();
        assert_eq!(of(|_| 4096, &values), Some((FitGrowthKind::Constant, true, all.clone())));
        assert_eq!(of(|v| 4096 + 512 * v, &values), Some((FitGrowthKind::Linear, true, all.clone())));
        assert_eq!(of(|v| 4096 + 512 * v * v, &values), Some((FitGrowthKind::Quadratic, true, all)));
        // Three points lie on a parabola always: that says nothing.
        assert_eq!(of(|v| v * v * 1000, &values[..3]), None);
        assert_eq!(of(|v| v, &values[..2]), None);
        assert_eq!(of(|v| 1 << v, &[1, 9, 17, 25, 33]), None);
    }

    #[test]
    fn small_values_with_another_peak_are_left_out() {
        let growth = growth_of(&[(1, 9000), (10, 10_000), (20, 20_000), (30, 30_000)]).unwrap();
        assert_eq!(
            (growth.kind, growth.values, growth.exact),
            (FitGrowthKind::Linear, vec![10, 20, 30], true)
        );
        assert!((growth.slope - 1000.0).abs() < 1e-6 && growth.base.abs() < 1e-3);
    }

    #[test]
    fn a_rule_that_is_nearly_met_says_by_how_much_not() {
        let growth = growth_of(&[(1, 1_000_000), (2, 2_000_512), (3, 3_000_000), (4, 4_000_000)]).unwrap();
        assert_eq!((growth.kind, growth.exact), (FitGrowthKind::Linear, false));
        assert!((1..=512).contains(&growth.residual.get()), "{}", growth.residual);
    }

    proptest! {
        #[test]
        fn coefficients_are_those_of_the_rule(
            base in 0_u64..1 << 34, slope in 1_u64..1 << 30, square in 0_u64..1 << 20,
            values in prop::collection::btree_set(1_u64..600, 4..8),
        ) {
            let points: Vec<(u64, u64)> =
                values.iter().map(|value| (*value, base + slope * value + square * value * value)).collect();
            let growth = growth_of(&points).unwrap();
            prop_assert!(growth.exact);
            prop_assert_eq!(growth.kind, if square == 0 { FitGrowthKind::Linear } else { FitGrowthKind::Quadratic });
            let most = as_float(points.iter().map(|point| point.1).max().unwrap());
            for (value, bytes) in points {
                let value = as_float(value);
                let told = growth.base + growth.slope * value + growth.square * value * value;
                prop_assert!((told - as_float(bytes)).abs() <= 1e-6 * most);
            }
        }
    }
}
