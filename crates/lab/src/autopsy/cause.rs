//! Why the request failed, by replays under the limits that the file allows.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, OomCause};
use blockyard_rules::setting_values;

use super::changes::{synchronized, without};
use super::{Examination, ProgressCallback};
use crate::LabError;

/// How many limits within the bounds are tried.
const LIMITS: u64 = 64;

/// The part of `span` for one of the limits: nothing for the first, all for the last.
fn part(span: Bytes, place: u64) -> Bytes {
    let share = u128::from(span.get())
        .saturating_mul(u128::from(place))
        .checked_div(u128::from(LIMITS - 1))
        .unwrap_or(0);
    // No larger than the span, which fits.
    Bytes::new(u64::try_from(share).unwrap_or(span.get()))
}

/// The cause and, where the limit is not known exactly and decides, the other causes that it may be.
pub(super) fn cause(
    examined: &Examination<'_>,
    tell: ProgressCallback<'_>,
) -> Result<(OomCause, Vec<OomCause>), LabError> {
    let Examination { limit, failure, conditions, .. } = examined;
    let request = failure.request.for_cause();
    if setting_values(&conditions.conf).any(|(key, _)| key == "roundup_power2_divisions")
        && request.least() <= limit.highest
    {
        let plain = without(&conditions.conf, "roundup_power2_divisions");
        if examined.passes_under(&plain, tell)?.always() {
            return Ok((OomCause::RoundingBySetting, Vec::new()));
        }
    }
    // A block that a setting keeps from the request cannot serve it: only a replay in which the free completes earlier decides.
    let mut memory = failure.memory;
    if memory.has_block_for(&request)
        && !synchronized(examined, tell)?.is_some_and(|change| change.proved || change.depends_on_limit)
    {
        memory.largest_cached_here = Bytes::ZERO;
    }
    // Every limit within the bounds is as likely as any other: the cause that most of them have.
    let span = limit.highest.saturating_sub(limit.lowest);
    let mut counts: BTreeMap<OomCause, u64> = BTreeMap::new();
    for place in 0..LIMITS {
        let cause = OomCause::of(&request, &memory, limit.at(limit.lowest.saturating_add(part(span, place))));
        let count = counts.entry(cause).or_default();
        *count = count.saturating_add(1);
    }
    let mut causes: Vec<(OomCause, u64)> = counts.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut causes = causes.into_iter().map(|(cause, _)| cause);
    let first = causes.next().unwrap_or(OomCause::LiveBytesAtLimit);
    Ok((first, causes.collect()))
}

pub(super) fn sentence(cause: OomCause, examined: &Examination<'_>) -> String {
    let Examination { limit, failure, .. } = examined;
    cause.sentence(&failure.request.for_cause(), &failure.memory, limit.bounds())
}
