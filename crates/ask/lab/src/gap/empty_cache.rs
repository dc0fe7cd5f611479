//! One call of `torch.cuda.empty_cache()`.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, frame_text, grouped, own_line};
use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::Request;

use super::trial::{Trial, empty};
use super::{Use, follow};
use crate::{GapOutcome, GapRemedy, GapRemedyKind, IterationSource, LabError, leaks, request_number};

/// How many places between iterations are replayed.
const MAX_BETWEEN: usize = 4;

/// A place for a call: before the request with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    request: usize,
    /// The iteration after which the call is made, counted from 1.
    iteration: Option<u64>,
}

/// The call that leads to the lowest peak; of equal ones the one with the fewest calls of the device. `None`
/// if no call helps.
///
/// The call is made where most is cached before the peak, or between two iterations. `first` is how many
/// requests are done when the peak is reached, or when a request fails.
pub(super) fn remedy(
    trial: &Trial<'_>,
    first: usize,
    on_progress: OnProgress,
) -> Result<Option<GapRemedy>, LabError> {
    let places = places(trial, first, on_progress)?;
    let total = trial.end;
    let mut on_done = |done| on_progress(Progress::new("trying empty_cache", done, total));
    let end = trial.end.saturating_add(1);
    let mut best: Option<(GapOutcome, Place)> = None;
    for place in places {
        let changed = with_call(trial, place.request);
        let Some(outcome) = trial.outcome(&changed, trial.bounds, end, &mut on_done)? else { continue };
        let cost = |outcome: &GapOutcome| (outcome.peak_reserved, outcome.device_calls);
        if best.as_ref().is_none_or(|(known, _)| cost(&outcome) < cost(known)) {
            best = Some((outcome, place));
        }
    }
    let Some((outcome, place)) = best else { return Ok(None) };
    let number = request_number(place.request);
    let line = own_line(&trial.run.stack(place.request)).map(frame_text);
    let at = line.as_ref().map_or_else(String::new, |line| format!(" (`{line}`)"));
    let between = place.iteration.map_or_else(String::new, |iteration| {
        format!(", between iterations {} and {},", grouped(iteration), grouped(iteration.saturating_add(1)))
    });
    let name =
        format!("one `torch.cuda.empty_cache()` right before request {}{at}{between}", grouped(number));
    let remedy =
        GapRemedy { request: Some(number), step: place.iteration, line, ..empty(GapRemedyKind::EmptyCache) };
    let changed = with_call(trial, place.request);
    trial.proved(remedy, &name, outcome, (&changed, trial.bounds, end), &mut on_done)
}

/// The run with a call before the request with this index.
fn with_call(trial: &Trial<'_>, request: usize) -> crate::Run {
    let mut requests = trial.run.requests().to_vec();
    requests.insert(request.min(requests.len()), Request::EmptyCache);
    trial.run.with_requests(requests)
}

/// The places that are tried: up to the request that reaches the peak, or that fails.
fn places(trial: &Trial<'_>, first: usize, on_progress: OnProgress) -> Result<BTreeSet<Place>, LabError> {
    let run = trial.run;
    let iterations = leaks(run, on_progress)?;
    let boundaries = match iterations.answer.steps {
        IterationSource::Markers => iterations.answer.boundaries,
        _ if iterations.has_known_iterations => iterations.answer.boundaries,
        _ => Vec::new(),
    };
    let Some(fixed) = trial.bounds.get(trial.place) else { return Ok(BTreeSet::new()) };
    let last = first.saturating_sub(1);
    let (mut most, mut between) = ((Bytes::ZERO, 0), Vec::new());
    let mut on_done = |done| on_progress(Progress::new("looking for cached bytes", done, last));
    follow(run, fixed, last, &mut on_done, &mut |done, Use { cached, .. }| {
        if cached > most.0 {
            most = (cached, done);
        }
        if let Ok(place) = boundaries.binary_search(&(done as u64)) {
            between.push((cached, done, request_number(place)));
        }
    })?;
    between.sort_by_key(|(cached, done, _)| (std::cmp::Reverse(*cached), *done));
    between.truncate(MAX_BETWEEN);
    between.retain(|(cached, ..)| !cached.is_zero());
    // A line of a program can be named for a request for memory, and not for a free.
    let next = |done: usize| {
        let later = run.requests().iter().enumerate().skip(done);
        later.into_iter().find(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(at, _)| at)
    };
    let place = |done: usize, iteration| {
        next(done).filter(|at| *at <= last).map(|request| Place { request, iteration })
    };
    let between = between.iter().filter_map(|(_, done, iteration)| place(*done, Some(*iteration)));
    let mut places: BTreeSet<Place> = between.collect();
    if !most.0.is_zero() {
        let most = place(most.1, None);
        places.extend(most.filter(|most| !places.iter().any(|known| known.request == most.request)));
    }
    Ok(places)
}
