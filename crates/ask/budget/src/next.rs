//! A search value by value, for a caller that waits for each run: the largest value that fits, and a safe one.

use blockyard_record::{Bytes, grouped};

use crate::{Guess, Probe, Values, search_from};

/// A safe value leaves this part of a GPU's memory free, in percent.
pub const RESERVE_PERCENT: u64 = 5;

/// A search that begins with a value which fits tries values up to this many times as large.
const MAX_FACTOR: u64 = 4096;

/// A safe value is near enough to the largest safe value if they differ by less than this part of it.
const NEAR_PART: u64 = 32;

/// The next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchStep {
    /// Run the program with this value.
    Try(u64),
    /// The probe of the answer; `None` where no value is one.
    Found(Option<Box<Probe>>),
}

/// The next step of a search for the largest value that fits, after these probes. The search begins with
/// `start`. From a value that does not fit, values are halved until one fits, and the search continues between
/// the last two. From a value that fits, the next is twice as large, and then the line through the peaks leads
/// on, up to [`highest_tried`]. `limit` is the most bytes that may be reserved.
pub fn next_value(start: u64, limit: Bytes, probes: &[Probe]) -> SearchStep {
    match probe_of(probes, start) {
        None => SearchStep::Try(start),
        Some(first) if first.run.fits => next_above(first, limit, probes),
        Some(_) => next_below(start, limit, probes),
    }
}

/// The highest value that a search tries which begins with this value.
pub fn highest_tried(start: u64) -> u64 {
    start.saturating_mul(MAX_FACTOR)
}

fn probe_of(probes: &[Probe], value: u64) -> Option<&Probe> {
    probes.iter().find(|probe| probe.value == value)
}

fn next_above(first: &Probe, limit: Bytes, probes: &[Probe]) -> SearchStep {
    let range = format!("{}..{}", first.value, highest_tried(first.value));
    let Ok(values) = range.parse::<Values>() else { return SearchStep::Found(Some(Box::new(first.clone()))) };
    let second = first.value.saturating_mul(2);
    let guess = Guess { value: second, lowest: Some(first.peak_reserved()), limit };
    followed(&values, limit, Some(guess), probes)
}

fn next_below(too_large: u64, limit: Bytes, probes: &[Probe]) -> SearchStep {
    let mut high = too_large;
    let low = loop {
        let half = high / 2;
        match probe_of(probes, half) {
            _ if half == 0 => return SearchStep::Found(None),
            None => return SearchStep::Try(half),
            Some(probe) if probe.run.fits => break half,
            Some(_) => high = half,
        }
    };
    let Ok(values) = format!("{low}..{high}").parse::<Values>() else { return SearchStep::Found(None) };
    followed(&values, limit, None, probes)
}

/// Follows a search to the first value without a probe.
fn followed(values: &Values, limit: Bytes, guess: Option<Guess>, probes: &[Probe]) -> SearchStep {
    let found = search_from(values, limit, guess, |value| probe_of(probes, value).cloned().ok_or(()));
    match found.failure {
        Some((value, ())) => SearchStep::Try(value),
        None => SearchStep::Found(found.largest_fitting().cloned().map(Box::new)),
    }
}

/// The bytes that a safe value leaves free of a GPU, or of a limit below the GPU's memory.
pub fn reserve(total: Bytes) -> Bytes {
    Bytes::new(total.get() / 100 * RESERVE_PERCENT)
}

/// The next step of a search for a safe value, whose run reserves at most `most` bytes, after these probes of
/// `values`. The line through the two nearest probes leads to the next value. The search ends where a safe
/// value is nearly the largest safe one, so that it takes one run or two.
pub fn next_safe(values: &Values, most: Bytes, probes: &[Probe]) -> SearchStep {
    let fits = || probes.iter().filter(|probe| probe.run.fits);
    let above = fits().filter(|probe| probe.peak_reserved() > most).min_by_key(|probe| probe.value);
    let is_below = |probe: &&Probe| above.is_none_or(|above| probe.value < above.value);
    let safe = fits().filter(|probe| probe.peak_reserved() <= most).filter(is_below);
    let safe = safe.max_by_key(|probe| probe.value);
    let found = || SearchStep::Found(safe.cloned().map(Box::new));
    let Some(above) = above else { return found() };
    let (from, bytes) = safe.map_or((0, Bytes::ZERO), |safe| (safe.value, safe.peak_reserved()));
    let rise = u128::from(above.peak_reserved().saturating_sub(bytes).get());
    let room = u128::from(most.saturating_sub(bytes).get());
    let distance = u128::from(above.value.saturating_sub(from));
    let further = (room * distance).checked_div(rise).unwrap_or(0);
    let value = values.at(values.number_below(from.saturating_add(u64::try_from(further).unwrap_or(0))));
    let is_near = |safe: &Probe| value.saturating_sub(safe.value) <= safe.value / NEAR_PART;
    if safe.is_some_and(is_near) || probe_of(probes, value).is_some() {
        return found();
    }
    SearchStep::Try(value)
}

/// A safe value and the share that it leaves free, without a full stop. `safe` is the value and its peak
/// reserved, and `left` are the bytes of `total` that PyTorch may reserve.
pub fn safe_text(name: &str, safe: Option<(u64, Bytes)>, left: Bytes, total: Bytes) -> String {
    let Some((value, reserved)) = safe else {
        return format!("no {name} that was tried leaves {RESERVE_PERCENT} % of {total} in reserve");
    };
    let (value, free) = (grouped(value), left.saturating_sub(reserved));
    let tenths = u128::from(free.get()) * 1000 / u128::from(total.get().max(1));
    format!(
        "a safe {name} is {value}: {free} stay free, {}.{} % of {total}, where {RESERVE_PERCENT} % are kept in reserve",
        tenths / 10,
        tenths % 10
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All probes of a search, and its answer.
    fn run_all(
        mut probes: Vec<Probe>,
        limit: u64,
        bytes: impl Fn(u64) -> u64,
        next: impl Fn(&[Probe]) -> SearchStep,
    ) -> (Vec<Probe>, Option<u64>) {
        loop {
            match next(&probes) {
                SearchStep::Try(value) => {
                    assert!(probe_of(&probes, value).is_none(), "{value} is tried twice");
                    let peak = Bytes::new(bytes(value).min(limit));
                    probes.push(Probe::of(value, bytes(value) <= limit, peak, peak));
                }
                SearchStep::Found(found) => return (probes, found.map(|probe| probe.value)),
            }
        }
    }

    #[test]
    fn from_a_value_that_fits_a_straight_line_takes_four_more_runs() {
        let limit = Bytes::new(10_000);
        let bytes = |value| 1000 + 243 * value;
        let (probes, found) = run_all(Vec::new(), 10_000, bytes, |known| next_value(4, limit, known));
        let tried: Vec<u64> = probes.iter().map(|probe| probe.value).collect();
        assert_eq!((tried, found), (vec![4, 8, 37, 38], Some(37)));
        // 5 % of 10,000 bytes: 34 values take 9,262 bytes, and 35 take 9,505.
        let values: Values = "1..37".parse().unwrap();
        let most = limit.saturating_sub(reserve(limit));
        let (all, safe) = run_all(probes, 10_000, bytes, |known| next_safe(&values, most, known));
        assert_eq!((all.len(), safe), (5, Some(34)));
        let safe = safe_text("--batch", Some((34, Bytes::new(9262))), limit, limit);
        assert_eq!(
            safe,
            "a safe --batch is 34: 738 B stay free, 7.3 % of 9.77 KiB, where 5 % are kept in reserve"
        );
    }

    #[test]
    fn a_program_that_takes_the_same_for_every_value_ends_at_the_highest() {
        let next = |known: &[Probe]| next_value(3, Bytes::new(10), known);
        let (probes, found) = run_all(Vec::new(), 10, |_| 7, next);
        assert_eq!(found, Some(highest_tried(3)));
        assert!(probes.len() < 20, "{} runs", probes.len());
    }

    proptest! {
        #[test]
        fn the_largest_is_found_in_few_runs(start in 1_u64..5000, base in 0_u64..1000, slope in 1_u64..50, limit in 0_u64..300_000) {
            let bytes = |value: u64| base + slope * value;
            let (probes, found) = run_all(Vec::new(), limit, bytes, |known| next_value(start, Bytes::new(limit), known));
            let most = limit.checked_sub(base).map(|room| room / slope).filter(|most| *most > 0);
            prop_assert_eq!(found, most.map(|most| most.min(highest_tried(start))));
            prop_assert!(probes.len() <= 25, "{} runs", probes.len());
        }

        #[test]
        fn a_safe_value_leaves_the_reserve_and_is_nearly_the_largest(base in 0_u64..10_000, slope in 100_u64..1000, square in 0_u64..4, limit in 100_000_u64..300_000) {
            let bytes = |value: u64| base + slope * value + square * value * value;
            let next = |known: &[Probe]| next_value(8, Bytes::new(limit), known);
            let (probes, largest) = run_all(Vec::new(), limit, bytes, next);
            let Some(largest) = largest else { return Ok(()) };
            let values: Values = format!("1..{largest}").parse().unwrap();
            let most = limit - reserve(Bytes::new(limit)).get();
            let before = probes.len();
            let (probes, safe) = run_all(probes, limit, bytes, |known| next_safe(&values, Bytes::new(most), known));
            let best = (1..=largest).filter(|value| bytes(*value) <= most).max();
            prop_assert!(probes.len() <= before + 4, "{} runs", probes.len() - before);
            match (safe, best) {
                (Some(safe), Some(best)) => prop_assert!(bytes(safe) <= most && best - safe <= best / 16 + 1, "{safe} of {best}"),
                (safe, best) => prop_assert_eq!(safe, best),
            }
        }
    }
}
