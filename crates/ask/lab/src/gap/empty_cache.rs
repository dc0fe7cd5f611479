//! One call of `torch.cuda.empty_cache()`.

use std::collections::BTreeMap;

use blockyard_record::{Bytes, OnDone, StackHolder, frame_text, grouped, own_caller, own_line};
use blockyard_replay::{OnProgress, Progress};
use blockyard_workload::Request;

use super::trial::{Trial, empty};
use super::{Use, follow};
use crate::request_numbers::request_text;
use crate::{GapOutcome, GapRemedy, GapRemedyKind, LabError, Run, leaks};

/// How many places between iterations are replayed.
const MAX_BETWEEN: usize = 4;

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
    let boundaries = boundaries(trial.run, on_progress)?;
    let total = trial.end;
    let mut on_done = |done| on_progress(Progress::new("trying empty_cache", done, total));
    let places = places(trial, &boundaries, first.saturating_sub(1), &mut on_done)?;
    let end = trial.end.saturating_add(1);
    let mut best: Option<(GapOutcome, CallMoment)> = None;
    for place in places {
        let changed = with_call(trial, place.request);
        let Some(outcome) = trial.outcome(&changed, trial.bounds, end, &mut on_done)? else { continue };
        let cost = |outcome: &GapOutcome| (outcome.peak_reserved, outcome.device_calls);
        if best.as_ref().is_none_or(|(known, _)| cost(&outcome) < cost(known)) {
            best = Some((outcome, place));
        }
    }
    let Some((outcome, place)) = best else { return Ok(None) };
    let changed = with_call(trial, place.request);
    let name = format!("one `torch.cuda.empty_cache()` right before {}", place.text(trial.run));
    let (line, caller) = place.line.map_or((None, None), |line| (Some(line.line), line.caller));
    let remedy = GapRemedy {
        request: Some(trial.run.request_number(place.request)).filter(|request| *request > 0),
        line,
        caller,
        occurrence: place.occurrence,
        ..empty(GapRemedyKind::EmptyCache)
    };
    trial.proved(remedy, &name, outcome, (&changed, trial.bounds, end), &mut on_done)
}

/// The run with a call before the request with this index.
fn with_call(trial: &Trial<'_>, request: usize) -> Run {
    let mut requests = trial.run.requests().to_vec();
    requests.insert(request.min(requests.len()), Request::EmptyCache);
    trial.run.with_requests(requests)
}

/// How many requests are done at the end of each iteration, if iterations are known.
fn boundaries(run: &Run, on_progress: OnProgress) -> Result<Vec<usize>, LabError> {
    let iterations = leaks(run, on_progress)?;
    Ok(if iterations.has_known_iterations { iterations.ends } else { Vec::new() })
}

/// The places that are tried, none after the request with the index `last`.
fn places(
    trial: &Trial<'_>,
    boundaries: &[usize],
    last: usize,
    on_done: OnDone,
) -> Result<Vec<CallMoment>, LabError> {
    let Some(fixed) = trial.bounds.get(trial.place) else { return Ok(Vec::new()) };
    let (mut most, mut between) = ((Bytes::ZERO, 0), Vec::new());
    follow(trial.run, fixed, last, on_done, &mut |done, Use { cached, .. }| {
        if cached > most.0 {
            most = (cached, done);
        }
        if boundaries.binary_search(&done).is_ok() {
            between.push((cached, done));
        }
    })?;
    between.sort_by_key(|(cached, done)| (std::cmp::Reverse(*cached), *done));
    between.truncate(MAX_BETWEEN);
    between.push(most);
    let possible = possible_places(trial.run);
    let wanted = between.iter().filter(|(cached, _)| !cached.is_zero());
    // A program makes the call before one of its lines, and so before the first request of the line.
    let next = |done: usize| possible.get(possible.partition_point(|place| place.request < done));
    let found = wanted.filter_map(|(_, done)| next(*done)).filter(|place| place.request <= last);
    let mut places: Vec<CallMoment> = found.cloned().collect();
    places.sort_by_key(|place| place.request);
    places.dedup_by_key(|place| place.request);
    Ok(places)
}

/// A place for a call.
#[derive(Clone, Debug)]
struct CallMoment {
    /// The index of the request before which the call is made.
    request: usize,
    /// The line of the program that makes the request.
    line: Option<CallingLine>,
    /// How often the line has followed another one; `None` without stacks.
    occurrence: Option<u64>,
}

impl CallMoment {
    fn text(&self, run: &Run) -> String {
        let request = request_text(run.request_number(self.request));
        let Some(CallingLine { line, caller }) = &self.line else { return request };
        let caller = caller.as_ref().map_or_else(String::new, |caller| format!(", called at `{caller}`"));
        let occurrence = match self.occurrence {
            None => String::new(),
            Some(1) => ", the first time".to_owned(),
            Some(count) => format!(", time {} that it follows another line", grouped(count)),
        };
        format!("{request} (`{line}`{caller}{occurrence})")
    }
}

/// A line of the program that makes requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallingLine {
    line: String,
    /// The line that called the function of `line`.
    caller: Option<String>,
}

impl CallingLine {
    /// The line of a request; `None` if none is known, or if no line of the program makes the request.
    fn of(run: &Run, request: usize) -> Option<Self> {
        let stack = run.stack(request);
        let line = own_line(&stack).filter(|_| StackHolder::from_texts(&stack) == StackHolder::Program);
        let line = line.map(frame_text)?;
        // A line outside of all functions has no caller.
        let caller = own_caller(&stack).map(frame_text).filter(|_| !line.starts_with("<module>"));
        Some(Self { line, caller })
    }
}

/// The places before which a program can make a call, ascending: a request for memory whose line follows
/// another line. PyTorch's own threads make requests without a line, which are left out. Without stacks these
/// are all requests for memory.
fn possible_places(run: &Run) -> Vec<CallMoment> {
    let requests = run.requests().iter().enumerate();
    let asked = requests.filter(|(_, request)| matches!(request, Request::Allocate { .. })).map(|(at, _)| at);
    if !run.has_stacks() {
        let place = |at| CallMoment { request: at, line: CallingLine::of(run, at), occurrence: None };
        return asked.map(place).collect();
    }
    // Stacks repeat, so the line of each stack is made once.
    let mut known: BTreeMap<u32, Option<CallingLine>> = BTreeMap::new();
    let mut counts: BTreeMap<CallingLine, u64> = BTreeMap::new();
    let mut before: Option<CallingLine> = None;
    let mut places = Vec::new();
    for request in asked {
        let Some(number) = run.stack_number(request) else { continue };
        let line = known.entry(number).or_insert_with(|| CallingLine::of(run, request));
        let Some(line) = line.clone().filter(|line| before.as_ref() != Some(line)) else { continue };
        let count = counts.entry(line.clone()).or_default();
        *count = count.saturating_add(1);
        let occurrence = Some(*count);
        before = Some(line.clone());
        places.push(CallMoment { request, line: Some(line), occurrence });
    }
    places
}
