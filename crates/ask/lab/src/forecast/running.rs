//! What becomes of a program that is still running, and under which setting it goes on longest.

use blockyard_record::OnDone;
use blockyard_workload::Request;

use super::Forecaster;
use crate::{Conditions, Forecast, LabError, Run, plain_candidates};

/// The ends of two equal iterations: that of the one before, theirs, and that of one which may be cut off.
const MIN_ENDS: usize = 4;

/// What becomes of a program that is still running, if its iterations go on like the last ones. `later` says how
/// many allocations and frees come after the end of each iteration, of which the first has what came before.
///
/// `None` if neither the last three iterations are equal but for steps of their sizes nor the last two are
/// equal, or where the release refuses the settings.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::NoTrace`] for a run without requests, and [`LabError::Run`] for requests
/// that cannot be replayed.
pub fn forecast(
    run: &Run,
    later: &[usize],
    conditions: &Conditions,
    on_done: OnDone,
) -> Result<Option<Forecast>, LabError> {
    let Some((forecaster, left_out)) = running(run, later)? else { return Ok(None) };
    Ok(forecaster.forecast(conditions, on_done)?.map(|found| found.counted_after(left_out)))
}

/// The [plain setting](plain_candidates) under which a program that is still running goes on longest, and what
/// becomes of it: the first under which no later iteration fails. `None` if none can be replayed.
///
/// A break of `on_done` ends the search with the best setting so far.
///
/// # Errors
///
/// [`LabError::NoTrace`] for a run without requests, and [`LabError::Run`] for requests that cannot be replayed.
pub fn forecast_settings(
    run: &Run,
    later: &[usize],
    conditions: &Conditions,
    on_done: OnDone,
) -> Result<Option<(String, Forecast)>, LabError> {
    let Some((forecaster, left_out)) = running(run, later)? else { return Ok(None) };
    let last = |found: &Forecast| match found {
        Forecast::Finishes => u64::MAX,
        Forecast::Fails { iteration, .. } | Forecast::Passes { iteration } => *iteration,
    };
    let mut best: Option<(String, Forecast)> = None;
    for conf in plain_candidates(run, conditions) {
        let found = match forecaster.forecast(&conditions.and_conf(&conf), on_done) {
            Ok(Some(found)) => found.counted_after(left_out),
            Ok(None) => continue,
            Err(LabError::Cancelled) => break,
            Err(error) => return Err(error),
        };
        let is_end = found == Forecast::Finishes;
        if best.as_ref().is_none_or(|(_, best)| last(best) < last(&found)) {
            best = Some((conf, found));
        }
        if is_end {
            break;
        }
    }
    Ok(best)
}

/// The iterations of a program that is still running, and how many of the first ones are left out.
fn running<'a>(run: &'a Run, later: &[usize]) -> Result<Option<(Forecaster<'a>, u64)>, LabError> {
    run.require_requests()?;
    let is_counted = |request: &Request| matches!(request, Request::Allocate { .. } | Request::Free { .. });
    let counted = run.requests().iter().enumerate().rev().filter(|(_, request)| is_counted(request));
    let places: Vec<usize> = counted.map(|(index, _)| index).collect();
    let total = run.requests().len();
    let end = |later: &usize| later.checked_sub(1).map_or(Some(total), |later| places.get(later).copied());
    let Some(mut ends) = later.iter().map(end).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    // The last iteration is whole too.
    ends.push(total);
    let of_last = |left_out: usize| Some((Forecaster::of_ends(run, ends.get(left_out..)?)?, left_out as u64));
    Ok(of_last(0).or_else(|| of_last(ends.len().saturating_sub(MIN_ENDS))))
}
