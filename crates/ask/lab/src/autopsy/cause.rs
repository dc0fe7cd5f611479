//! Why the request failed, by replays under the limits that the file allows.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, OnDone, OomCause, OomLimit};
use blockyard_rules::setting_values;

use super::Examination;
use super::changes::{synchronized, without_key};
use crate::{LabError, Limit};

/// How many limits within the bounds are tried.
const LIMITS: u64 = 64;

/// The part of `span` for one of the limits: nothing for the first, all for the last.
fn part(span: Bytes, index: u64) -> Bytes {
    let share = u128::from(span.get())
        .saturating_mul(u128::from(index))
        .checked_div(u128::from(LIMITS - 1))
        .unwrap_or(0);
    // No larger than the span, which fits.
    Bytes::new(u64::try_from(share).unwrap_or(span.get()))
}

/// A cause that holds for some of the limits that are possible, with the least and the most of these.
pub(super) struct CauseAtLimits {
    cause: OomCause,
    lowest: Bytes,
    highest: Bytes,
}

impl CauseAtLimits {
    /// The limits for which this is the cause, in a sentence; `limit` has the bounds of all possible limits.
    pub(super) fn sentence(&self, limit: &Limit) -> String {
        let (name, lowest, highest) = (self.cause.name(), self.lowest, self.highest);
        let range = match (lowest <= limit.low, highest >= limit.high) {
            (_, true) => format!("at least {lowest}"),
            (true, false) => format!("at most {highest}"),
            (false, false) => format!("at least {lowest} and at most {highest}"),
        };
        format!("if the limit is {range}, the cause is another: {name}")
    }
}

/// The cause. If the limit is not known exactly and the cause depends on it, also the other causes with the
/// limits for which they hold.
pub(super) fn cause(
    examined: &Examination<'_>,
    on_done: OnDone,
) -> Result<(OomCause, Vec<CauseAtLimits>), LabError> {
    let Examination { limit, failure, conditions, .. } = examined;
    let request = failure.request.for_cause();
    if setting_values(&conditions.conf).any(|(key, _)| key == "roundup_power2_divisions")
        && request.least_size() <= limit.high
    {
        let plain = without_key(&conditions.conf, "roundup_power2_divisions");
        if examined.passes_under(&plain, on_done)?.0.always() {
            return Ok((OomCause::RoundingBySetting, Vec::new()));
        }
    }
    // A block that a setting keeps from the request cannot serve it: only a replay in which the free
    // completes earlier decides.
    let mut memory = failure.memory;
    if memory.has_block_for(&request)
        && !synchronized(examined, on_done)?.is_some_and(|change| change.proved || change.depends_on_limit)
    {
        memory.largest_cached_here = Bytes::ZERO;
    }
    // Every limit within the bounds is as likely as any other, so the cause of most of them is taken.
    let span = limit.high.saturating_sub(limit.low);
    let cause_at = |highest: Bytes| OomCause::of(&request, &memory, OomLimit::known(highest, limit.others));
    let mut counts: BTreeMap<OomCause, u64> = BTreeMap::new();
    let mut ranges: Vec<CauseAtLimits> = Vec::new();
    for index in 0..LIMITS {
        let highest = limit.low.saturating_add(part(span, index));
        let cause = cause_at(highest);
        let count = counts.entry(cause).or_default();
        *count = count.saturating_add(1);
        match ranges.last_mut() {
            Some(last) if last.cause == cause => last.highest = highest,
            Some(last) => {
                // A binary search finds, to the byte, where one cause ends and the next begins.
                let end = last_with(last.highest, highest, |limit| cause_at(limit) == last.cause);
                last.highest = end;
                ranges.push(CauseAtLimits { cause, lowest: end.saturating_add(Bytes::new(1)), highest });
            }
            None => ranges.push(CauseAtLimits { cause, lowest: highest, highest }),
        }
    }
    let mut causes: Vec<(OomCause, u64)> = counts.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let first = causes.first().map_or(OomCause::LiveBytesAtLimit, |(cause, _)| *cause);
    ranges.retain(|range| range.cause != first);
    Ok((first, ranges))
}

/// The last value for which `holds` is true, by binary search. `holds` is true for `low` and false for
/// `high`, and changes once between the two.
fn last_with(mut low: Bytes, mut high: Bytes, holds: impl Fn(Bytes) -> bool) -> Bytes {
    while high.saturating_sub(low) > Bytes::new(1) {
        let middle = Bytes::new(low.get().midpoint(high.get()));
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

pub(super) fn sentence(cause: OomCause, examined: &Examination<'_>) -> String {
    let Examination { limit, failure, .. } = examined;
    cause.sentence(&failure.request.for_cause(), &failure.memory, limit.bounds())
}
