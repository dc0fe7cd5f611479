//! The search for the largest value that fits.
//!
//! The lowest value comes first, then a value that is a sixteenth of the range higher. From two values that
//! fit a straight line through their peaks says which value would be the largest: this value comes next, and
//! from there the search continues in steps of 1, 2, 4, ... until the answer lies between two probes, whose
//! distance is then halved. So a program whose memory grows in a straight line takes four or five probes, and
//! any other program at most four more than twice the binary logarithm of the number of values.
//!
//! A value that fits only since cached segments were released says nothing by its peak reserved. From there
//! the line through the peaks allocated leads on, to the value whose tensors alone would fill the limit. If
//! that value does not fit, the line leads to what was allocated when it ran out, a few times.
//!
//! If the answer is guessed from a search of nearly the same question ([`Guess`]), the guess comes first, and
//! the line begins at the bytes that the lowest value is guessed to take.

use blockyard_answers::{FitContradiction, FitContradictionKind};
use blockyard_record::Bytes;

use crate::{Probe, Values};

/// How often what was allocated when a value ran out predicts the next value.
const MAX_CORRECTIONS: u32 = 3;

/// The second probe is this part of the range above the first.
const SECOND_PROBE_DIVISOR: u64 = 16;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOutcome<E> {
    /// The probes, in the order in which they were made.
    pub probes: Vec<Probe>,
    /// The value whose probe failed, and why, if the search ended before the answer.
    pub failure: Option<(u64, E)>,
}

impl<E> SearchOutcome<E> {
    fn of(&self, value: u64) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.value == value)
    }

    /// The largest value that is known to fit and whose next value is known not to fit, or which is the
    /// highest of all. `None` where no value fits, and if the search ended before the answer.
    pub fn largest(&self, values: &Values) -> Option<u64> {
        let is_proved = |probe: &&Probe| {
            let above = values.above(probe.value);
            probe.run.fits && above.is_none_or(|above| self.of(above).is_some_and(|next| !next.run.fits))
        };
        self.probes.iter().filter(is_proved).map(|probe| probe.value).max()
    }

    /// The probe with the largest value that fits; nothing may be known about the next value.
    pub fn largest_fitting(&self) -> Option<&Probe> {
        self.probes.iter().filter(|probe| probe.run.fits).max_by_key(|probe| probe.value)
    }

    /// The probes that prove the answer: of the largest value, and of the next value, which does not fit. If
    /// no value fits, the second is the probe of the lowest value.
    pub fn proofs(&self, values: &Values) -> (Option<&Probe>, Option<&Probe>) {
        let largest = self.largest(values);
        let next = largest.map_or_else(|| Some(values.low()), |largest| values.above(largest));
        let next = next.and_then(|next| self.of(next)).filter(|probe| !probe.run.fits);
        (largest.and_then(|largest| self.of(largest)), next)
    }

    /// Neighbors among the probes that contradict that memory grows with the value, from the lowest value on.
    pub fn contradictions(&self) -> Vec<FitContradiction> {
        let mut probes: Vec<&Probe> = self.probes.iter().collect();
        probes.sort_by_key(|probe| probe.value);
        let mut found = Vec::new();
        for pair in probes.windows(2) {
            let [low, high] = pair else { continue };
            let (one, other) = (&low.run, &high.run);
            let is_lower = |before: Bytes, after: Bytes| one.fits && other.fits && after < before;
            let kinds = [
                (FitContradictionKind::Fits, !one.fits && other.fits),
                (FitContradictionKind::Allocated, is_lower(one.peak_allocated, other.peak_allocated)),
                (FitContradictionKind::Reserved, is_lower(one.peak_reserved, other.peak_reserved)),
            ];
            let kinds = kinds.into_iter().filter(|(_, is_found)| *is_found);
            found.extend(kinds.map(|(kind, _)| FitContradiction {
                kind,
                value: low.value,
                larger: high.value,
            }));
        }
        found
    }
}

/// How the next value is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A value above the largest that fits, at least this many values further.
    Up(u64),
    /// A value this many values below the smallest that does not fit.
    Down(u64),
    /// The middle between the largest value that fits and the smallest that does not.
    Halve,
}

/// Numbers of values between which the answer lies.
#[derive(Clone, Copy, Debug)]
struct SearchRange {
    /// The largest number that is known to fit.
    low: u64,
    /// The smallest number that is known not to fit, or the number after the last.
    high: u64,
}

/// Asks for probes until a value fits and the next value does not. `limit` serves the prediction alone: each
/// probe decides whether its value fits.
///
/// The search ends at the first probe that fails, and keeps the probes before.
pub fn search<E>(
    values: &Values,
    limit: Bytes,
    probe: impl FnMut(u64) -> Result<Probe, E>,
) -> SearchOutcome<E> {
    search_from(values, limit, None, probe)
}

/// A guess of the answer. A wrong guess costs probes and changes no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The value that may be the largest.
    pub value: u64,
    /// The bytes that the lowest value may reserve, if they are known.
    pub lowest: Option<Bytes>,
    /// The most bytes that may be reserved, for the prediction alone.
    pub limit: Bytes,
}

/// The search of [`search`], which begins at a guess, if there is one.
pub fn search_from<E>(
    values: &Values,
    limit: Bytes,
    guess: Option<Guess>,
    probe: impl FnMut(u64) -> Result<Probe, E>,
) -> SearchOutcome<E> {
    let found = SearchOutcome { probes: Vec::new(), failure: None };
    let lowest = |bytes| Fitting { number: 0, allocated: bytes, reserved: bytes, has_released: false };
    let fits = guess.and_then(|guess| guess.lowest).map(lowest).into_iter().collect();
    let limit = guess.map_or(limit, |guess| guess.limit);
    let mut search = Search { values, limit, found, fits, probe };
    // `None` is the end by a probe that failed; `failure` of the outcome says why.
    let _ended = match guess {
        Some(guess) => search.run_from(values.number_below(guess.value)),
        None => search.run(),
    };
    search.found
}

/// A value that fits.
#[derive(Clone, Copy, Debug)]
struct Fitting {
    number: u64,
    allocated: Bytes,
    reserved: Bytes,
    has_released: bool,
}

/// The peaks through which a line leads to a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peaks {
    Reserved,
    Allocated,
}

struct Search<'a, E, F> {
    values: &'a Values,
    limit: Bytes,
    found: SearchOutcome<E>,
    /// Values that fit, by rising number.
    fits: Vec<Fitting>,
    probe: F,
}

impl<E, F: FnMut(u64) -> Result<Probe, E>> Search<'_, E, F> {
    /// `None` where a probe failed.
    fn run(&mut self) -> Option<()> {
        let end = self.values.last().saturating_add(1);
        if !self.ask(0)? {
            return Some(());
        }
        // Without a prediction, steps upwards are as long as the way so far.
        self.narrow(SearchRange { low: 0, high: end }, Phase::Up((end / SECOND_PROBE_DIVISOR).max(1)))
    }

    /// `None` where a probe failed.
    fn run_from(&mut self, start: u64) -> Option<()> {
        let end = self.values.last().saturating_add(1);
        if self.ask(start)? {
            return self.narrow(SearchRange { low: start, high: end }, Phase::Up(1));
        }
        // The first step down is as long as the step between the first two probes of a search; once two
        // values fit, the line through them leads on.
        let (mut high, mut step) = (start, (start / SECOND_PROBE_DIVISOR).max(1));
        while high > 0 {
            let number = high.saturating_sub(step);
            if self.ask(number)? {
                return self.narrow(SearchRange { low: number, high }, Phase::Halve);
            }
            (high, step) = (number, step.saturating_mul(2));
        }
        Some(())
    }

    /// Asks within the range until no number is left. `None` where a probe failed.
    fn narrow(&mut self, mut range: SearchRange, mut phase: Phase) -> Option<()> {
        // Each kind of line predicts once, and the line through the peaks allocated only upwards.
        let mut predicted_by = None;
        let (mut held, mut corrections) = (None, 0);
        while range.high - range.low > 1 {
            let peaks = self.peaks();
            let is_new =
                predicted_by < Some(peaks) && (predicted_by.is_none() || range.high > self.values.last());
            let bytes = if is_new { Some(self.limit) } else { held.take() };
            let predicted = bytes.and_then(|bytes| self.predicted(range, bytes));
            // A line that leads out of the range predicts no number within the range.
            let is_end = predicted == Some(self.values.last());
            if predicted.is_some() && !is_end {
                predicted_by = Some(peaks);
            }
            let number = predicted.unwrap_or_else(|| self.next(range, phase));
            let is_fitting = self.ask(number)?;
            if is_fitting {
                range.low = number;
            } else {
                range.high = number;
            }
            if !is_fitting
                && predicted.is_some()
                && peaks == Peaks::Allocated
                && corrections < MAX_CORRECTIONS
            {
                corrections += 1;
                held = self.found.probes.last().map(|probe| probe.run.peak_allocated);
            }
            phase = match (phase, is_fitting) {
                _ if is_end => Phase::Halve,
                // From a prediction on, the steps begin with 1.
                _ if predicted.is_some() => match (is_fitting, peaks) {
                    (true, _) => Phase::Up(1),
                    (false, Peaks::Reserved) => Phase::Down(1),
                    (false, Peaks::Allocated) => Phase::Halve,
                },
                // The line through peaks allocated is not exact enough for long steps from its end.
                (Phase::Up(_), true)
                    if self.peaks() == Peaks::Allocated && range.high <= self.values.last() =>
                {
                    Phase::Halve
                }
                (Phase::Up(step), true) => Phase::Up(step.saturating_mul(2)),
                (Phase::Down(step), false) => Phase::Down(step.saturating_mul(2)),
                _ => Phase::Halve,
            };
        }
        Some(())
    }

    fn ask(&mut self, number: u64) -> Option<bool> {
        let value = self.values.at(number);
        match (self.probe)(value) {
            Ok(probe) => {
                let is_fitting = probe.run.fits;
                if is_fitting {
                    // The guessed bytes of a number count until its probe.
                    self.fits.retain(|known| known.number != number);
                    self.fits.push(Fitting {
                        number,
                        allocated: probe.run.peak_allocated,
                        reserved: probe.peak_reserved(),
                        has_released: probe.has_released,
                    });
                    self.fits.sort_unstable_by_key(|known| known.number);
                }
                self.found.probes.push(probe);
                Some(is_fitting)
            }
            Err(error) => {
                self.found.failure = Some((value, error));
                None
            }
        }
    }

    /// The next number, which lies between the two; halfway where the step of the phase is longer.
    fn next(&self, range: SearchRange, phase: Phase) -> u64 {
        let SearchRange { low, high } = range;
        let middle = low.midpoint(high);
        match phase {
            // No number above is known not to fit: the line through the last two may lead further than the
            // step.
            Phase::Up(step) if high > self.values.last() => {
                let line = self.line(self.limit).unwrap_or(0);
                low.saturating_add(step).max(line).min(high - 1)
            }
            Phase::Up(step) => low.saturating_add(step).min(middle),
            Phase::Down(step) => high.saturating_sub(step).max(middle),
            Phase::Halve => middle,
        }
    }

    /// The prediction, once two values fit.
    fn predicted(&self, range: SearchRange, bytes: Bytes) -> Option<u64> {
        Some(self.line(bytes)?.clamp(range.low + 1, range.high - 1))
    }

    /// The peaks that lead on from the largest number that fits.
    fn peaks(&self) -> Peaks {
        let has_released = self.fits.last().is_some_and(|fitting| fitting.has_released);
        if has_released { Peaks::Allocated } else { Peaks::Reserved }
    }

    /// The largest number whose peak is at most this many bytes, on the line through the peaks of the two
    /// largest numbers that fit.
    fn line(&self, bytes: Bytes) -> Option<u64> {
        let [.., one, other] = self.fits.as_slice() else { return None };
        let peak = |fitting: &Fitting| match self.peaks() {
            Peaks::Reserved => fitting.reserved.get(),
            Peaks::Allocated => fitting.allocated.get(),
        };
        let rise = u128::from(peak(other).checked_sub(peak(one))?);
        let left = u128::from(bytes.get().checked_sub(peak(other))?);
        // How much further the line leads: left / (rise / distance).
        let further =
            left.checked_mul(u128::from(other.number.checked_sub(one.number)?))?.checked_div(rise)?;
        Some(other.number.saturating_add(u64::try_from(further).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Values {
        text.parse().unwrap()
    }

    /// A program that takes a number of bytes for each value.
    fn with(values: &Values, limit: u64, bytes: impl Fn(u64) -> u64) -> SearchOutcome<Infallible> {
        search(values, Bytes::new(limit), |value| {
            let bytes = bytes(value);
            let is_fitting = bytes <= limit;
            let peak = Bytes::new(bytes.min(limit));
            Ok(Probe::of(value, is_fitting, peak, peak))
        })
    }

    fn tried(found: &SearchOutcome<Infallible>) -> Vec<u64> {
        found.probes.iter().map(|probe| probe.value).collect()
    }

    /// At most twice the binary logarithm of the number of values, and four.
    fn most_probes(values: &Values) -> usize {
        let logarithm = (values.last() + 1).next_power_of_two().ilog2();
        usize::try_from(2 * logarithm + 4).unwrap()
    }

    #[test]
    fn a_straight_line_takes_four_probes() {
        let range = values("1..512");
        let found = with(&range, 10_000, |value| 1000 + 243 * value);
        assert_eq!(found.largest(&range), Some(37));
        assert_eq!(tried(&found), [1, 33, 37, 38]);
        assert_eq!(found.contradictions(), []);
    }

    /// A program that caches a part of what it allocates, in percent. The cached segments are released near
    /// the limit, and bytes of them are not released.
    fn releasing(values: &Values, limit: u64, part: u64, kept: u64) -> SearchOutcome<Infallible> {
        search(values, Bytes::new(limit), |value| {
            let allocated = 270 + 87 * value;
            let reserved = allocated + allocated * part / 100;
            let peaks = [allocated.min(limit.saturating_sub(kept)), reserved.min(limit)].map(Bytes::new);
            let mut probe = Probe::of(value, allocated + kept <= limit, peaks[0], peaks[1]);
            probe.has_released = reserved > limit;
            Ok(probe)
        })
    }

    #[test]
    fn where_cached_segments_are_released_the_peaks_allocated_lead_on() {
        let range = values("16..512");
        let found = releasing(&range, 43_000, 20, 300);
        assert_eq!(found.largest(&range), Some(487));
        assert_eq!(tried(&found), [16, 47, 408, 409, 491, 487, 488]);
    }

    #[test]
    fn ends_of_the_range_are_answers_too() {
        let range = values("1..512");
        let none = with(&range, 10, |_| 11);
        assert_eq!((none.largest(&range), tried(&none)), (None, vec![1]));
        let all = with(&range, 10, |_| 10);
        assert_eq!(all.largest(&range), Some(512));
        let one = values("32");
        assert_eq!(with(&one, 10, |_| 10).largest(&one), Some(32));
        let last = with(&range, 512, |value| value);
        assert_eq!(last.largest(&range), Some(512));
    }

    #[test]
    fn multiples_are_searched_alone() {
        let range = values("1..512:8");
        let found = with(&range, 10_000, |value| 1000 + 243 * value);
        assert_eq!(found.largest(&range), Some(32));
        assert!(tried(&found).iter().all(|value| value % 8 == 0));
    }

    #[test]
    fn a_probe_that_fails_ends_the_search_and_nothing_is_lost() {
        let range = values("1..512");
        let found = search(&range, Bytes::new(10_000), |value| {
            let bytes = Bytes::new(1000 + 243 * value);
            if value == 37 { Err("no such file") } else { Ok(Probe::of(value, true, bytes, bytes)) }
        });
        assert_eq!(found.failure, Some((37, "no such file")));
        assert_eq!(found.largest(&range), None);
        assert_eq!(found.largest_fitting().map(|probe| probe.value), Some(33));
    }

    #[test]
    fn what_contradicts_is_named_and_the_answer_is_what_was_proved() {
        let range = values("1..512");
        // 20 to 29 take more than 30.
        let found =
            with(&range, 10_000, |value| if (20..30).contains(&value) { 20_000 } else { 1000 + 100 * value });
        let largest = found.largest(&range).unwrap();
        let is_fitting = |value| found.of(value).unwrap().run.fits;
        assert!(is_fitting(largest) && !is_fitting(largest + 1));
        let falls = SearchOutcome::<Infallible> {
            probes: [(1, true, 50), (9, true, 70), (8, false, 80), (4, true, 40)]
                .map(|(value, fits, peak)| Probe::of(value, fits, Bytes::new(peak), Bytes::new(peak)))
                .to_vec(),
            failure: None,
        };
        assert_eq!(
            falls.contradictions(),
            [
                (FitContradictionKind::Allocated, 1, 4),
                (FitContradictionKind::Reserved, 1, 4),
                (FitContradictionKind::Fits, 8, 9),
            ]
            .map(|(kind, value, larger)| FitContradiction { kind, value, larger })
        );
        assert_eq!(falls.largest(&values("1..9")), Some(9));
    }

    proptest! {
        #[test]
        fn the_answer_is_that_of_trying_all(
            low in 0_u64..50, count in 1_u64..3000, multiple in 1_u64..9, limit in 0_u64..2_000_000,
            base in 0_u64..1_000_000, slope in 0_u64..3000, square in 0_u64..5, jump in 0_u64..3000, more in 0_u64..500_000,
        ) {
            let Ok(range) = format!("{low}..{}:{multiple}", low + count).parse::<Values>() else { return Ok(()) };
            let bytes = |value: u64| base + slope * value + square * value * value + if value >= jump { more } else { 0 };
            let found = with(&range, limit, bytes);
            let all = (0..=range.last()).map(|number| range.at(number)).filter(|value| bytes(*value) <= limit).max();
            prop_assert_eq!(found.largest(&range), all);
            prop_assert!(found.probes.len() <= most_probes(&range), "{} probes of {range}", found.probes.len());
            let mut once = tried(&found);
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), found.probes.len(), "no value is tried twice");
            prop_assert_eq!(found.contradictions(), Vec::new());
        }

        #[test]
        fn released_segments_cost_few_probes(
            low in 0_u64..50, count in 1_u64..3000, limit in 0_u64..300_000, part in 0_u64..200, kept in 0_u64..9000,
        ) {
            let range = values(&format!("{low}..{}", low + count));
            let found = releasing(&range, limit, part, kept);
            let all = range.iter().filter(|value| 270 + 87 * value + kept <= limit).max();
            prop_assert_eq!(found.largest(&range), all);
            prop_assert!(found.probes.len() <= most_probes(&range), "{} probes of {range}", found.probes.len());
        }

        #[test]
        fn whatever_fits_the_answer_is_proved(count in 1_u64..400, seed in prop::collection::vec(any::<bool>(), 401)) {
            let range: Values = format!("0..{count}").parse().unwrap();
            let fits = |value: u64| seed[usize::try_from(value).unwrap()];
            let found = search(&range, Bytes::new(1000), |value| {
                Ok::<_, Infallible>(Probe::of(value, fits(value), Bytes::new(value), Bytes::new(value)))
            });
            match found.largest(&range) {
                Some(largest) => prop_assert!(fits(largest) && (largest == count || !fits(largest + 1))),
                None => prop_assert!(!fits(0)),
            }
        }
    }
}
