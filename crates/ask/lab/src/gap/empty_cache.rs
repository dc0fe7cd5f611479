//! One call of `torch.cuda.empty_cache()`.

use std::collections::BTreeSet;

use blockyard_record::{Bytes, frame_text, grouped, own_line};
use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::Request;

use super::follow;
use super::trial::{Trial, empty};
use crate::{
    GapAtMoment, GapOutcome, GapRemedy, GapRemedyKind, IterationSource, LabError, leaks, request_number,
};

/// How many places between iterations are replayed.
const MAX_BETWEEN: usize = 4;

/// A place for a call: before the request with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    request: usize,
    is_between_iterations: bool,
}

/// The call that leads to the lowest peak; of equal ones the one with the fewest calls of the device. `None`
/// if no call helps.
///
/// The call is made where most is cached before the moment, or between two iterations.
pub(super) fn remedy(
    trial: &Trial<'_>,
    moment: &GapAtMoment,
    on_progress: OnProgress,
) -> Result<Option<GapRemedy>, LabError> {
    let places = places(trial, moment, on_progress)?;
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
    let between = if place.is_between_iterations { ", between two iterations," } else { "" };
    let name =
        format!("one `torch.cuda.empty_cache()` right before request {}{at}{between}", grouped(number));
    let remedy = GapRemedy { request: Some(number), line, ..empty(GapRemedyKind::EmptyCache) };
    let changed = with_call(trial, place.request);
    trial.proved(remedy, &name, outcome, (&changed, trial.bounds, end), &mut on_done)
}

/// The run with a call before the request with this index.
fn with_call(trial: &Trial<'_>, request: usize) -> crate::Run {
    let mut requests = trial.run.requests().to_vec();
    requests.insert(request.min(requests.len()), Request::EmptyCache);
    trial.run.with_requests(requests)
}

/// The places that are tried: up to the request of the moment.
fn places(
    trial: &Trial<'_>,
    moment: &GapAtMoment,
    on_progress: OnProgress,
) -> Result<BTreeSet<Place>, LabError> {
    let run = trial.run;
    let iterations = leaks(run, on_progress)?;
    let boundaries = match iterations.answer.steps {
        IterationSource::Markers => iterations.answer.boundaries,
        _ if iterations.has_known_iterations => iterations.answer.boundaries,
        _ => Vec::new(),
    };
    let boundaries: BTreeSet<usize> =
        boundaries.into_iter().filter_map(|boundary| usize::try_from(boundary).ok()).collect();
    let Some(fixed) = trial.bounds.get(trial.place) else { return Ok(BTreeSet::new()) };
    let last = usize::try_from(moment.request.saturating_sub(1)).unwrap_or(usize::MAX);
    let (mut most, mut between) = ((Bytes::ZERO, 0), Vec::new());
    let mut on_done = |done| on_progress(Progress::new("looking for cached bytes", done, last));
    follow(run, fixed, last, &mut on_done, &mut |done, _, cached| {
        if cached > most.0 {
            most = (cached, done);
        }
        if boundaries.contains(&done) {
            between.push((cached, done));
        }
    })?;
    between.sort_by_key(|(cached, done)| (std::cmp::Reverse(*cached), *done));
    between.truncate(MAX_BETWEEN);
    between.retain(|(cached, _)| !cached.is_zero());
    // A line of a program can be named for a request for memory, and not for a free.
    let next = |done: usize| {
        let later = run.requests().iter().enumerate().skip(done);
        later.into_iter().find(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(at, _)| at)
    };
    let place = |done: usize, is_between_iterations| {
        next(done).filter(|at| *at <= last).map(|request| Place { request, is_between_iterations })
    };
    let mut places: BTreeSet<Place> = between.iter().filter_map(|(_, done)| place(*done, true)).collect();
    if !most.0.is_zero() {
        let most = place(most.1, false);
        places.extend(most.filter(|most| !places.iter().any(|known| known.request == most.request)));
    }
    Ok(places)
}
