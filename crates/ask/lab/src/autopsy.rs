//! Why a run went out of memory, and what would have helped.

mod cause;
mod changed;
mod changes;
mod failure;
mod pins;
mod tensors;

use blockyard_record::{OnDone, OomCause};
use blockyard_replay::{OnProgress, Progress};
use serde::{Deserialize, Serialize};

use crate::forecast::{Forecaster, forecast_end};
use crate::limited_run::FixedConditions;
use crate::outcome::{outcome, outcome_before};
use crate::rest::CompletedRun;
use crate::{
    AutopsyFailure, Change, ChangeKind, Conditions, GapOutcome, HoldingLine, LabError, Leaks, Limit,
    LimitKind, LimitSource, LimitedRun, RestOfIteration, Run, leaks,
};

pub(crate) use changed::ChangedRun;
pub use changed::try_change;
pub(crate) use changes::passes_changed;

pub(crate) use failure::open_pool;

use failure::Failure;

/// Why a request ran out of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autopsy {
    /// The request that failed, the memory at the failure, and all changes that were replayed.
    pub failure: AutopsyFailure,
    /// The index of the request that failed.
    pub index: usize,
    /// The cause of the failure.
    pub cause: OomCause,
    /// The limit that the request met.
    pub limit: Limit,
    /// The conditions of the replay. [`try_change`] needs them to give the same answer.
    pub conditions: Conditions,
    /// The lines of the program that held live blocks at the failure, by descending bytes.
    pub held: Vec<HoldingLine>,
    /// Sentences about facts that are not known.
    pub notes: Vec<String>,
}

/// Says why a run goes out of memory for the first time; `None` if it does not.
///
/// Without a limit in `conditions`, the limit counts that the run's file implies. A change is proved if it
/// helps at both bounds of the limit.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] when the run cannot be
/// replayed.
pub fn autopsy(
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<Option<Autopsy>, LabError> {
    Ok(failure_and_growth(run, conditions, on_progress)?.map(|(found, _)| found))
}

/// What grew before a failure.
pub(crate) struct GrowthToFailure {
    pub(crate) leaks: Leaks,
    /// Whether the iterations before the failure are equal but for what grows, and lead to this failure when
    /// they are replayed forward.
    pub(crate) is_explained: bool,
    /// The run with the rest of the iteration that failed; `None` where the failure is explained, and where nothing
    /// shows the rest.
    pub(crate) completed: Option<CompletedRun>,
}

/// [`autopsy()`] with what grew before the failure.
pub(crate) fn failure_and_growth(
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<Option<(Autopsy, GrowthToFailure)>, LabError> {
    let mut on_done = |_: usize| on_progress(Progress::new("looking for the cause", 0, 0));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let run = limited.run();
    let Some(first) = first_failure(&limited, conditions, &mut on_done)? else { return Ok(None) };
    let FirstFailure { limit: met, place, fixed, request } = first;
    let config = conditions.config(run)?;
    let failure = Failure::replayed(run, &fixed, &config, request, &mut on_done)?;
    let limit = limited.limit().unwrap_or(met);
    let outcome = GapOutcome::from(&outcome_before(run, &fixed, 0, request.saturating_add(1), &mut on_done)?);
    let examined =
        Examination { limited: &limited, run, conditions, limit: met, failure: &failure, place, outcome };
    let (cause, others) = cause::cause(&examined, &mut on_done)?;
    let (mut changes, in_vain) = changes::changes(&examined, on_progress)?;
    let growth = forecast_changes(run, conditions, failure.index, &mut changes, on_progress)?;
    changes.extend(limit_for_the_rest(&examined, growth.completed.as_ref(), &changes, on_progress)?);
    let mut notes = run.notes();
    // The notes of the run say already which limit its file implies.
    if !limit.is_inferred() {
        notes.push(limit.sentence());
    }
    if met.high < limit.high {
        notes.push(format!(
            "whether the run goes out of memory depends on the limit, which is {}: the answer is for {}",
            limit.range_text(),
            met.high
        ));
    }
    let sentence = cause::sentence(cause, &examined);
    let cached_by = failure.cached_by(cause);
    notes.extend(others.iter().map(|other| other.sentence(&met)));
    let found = Autopsy {
        failure: AutopsyFailure {
            sentence,
            request: failure.request.clone(),
            outcome,
            memory: failure.memory,
            cached_by,
            pinned_by: pins::pinned(&examined),
            changes,
            in_vain,
        },
        index: failure.index,
        cause,
        limit,
        conditions: conditions.clone(),
        held: failure.live.holders(run),
        notes,
    };
    Ok(Some((found, growth)))
}

/// Adds to each change what comes after the request, in its field and at the end of its sentence: a forecast or,
/// where the iterations do not lead to the failure, the rest of the iteration.
fn forecast_changes(
    run: &Run,
    conditions: &Conditions,
    failed: usize,
    changes: &mut [Change],
    on_progress: OnProgress,
) -> Result<GrowthToFailure, LabError> {
    let mut on_done = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
    let cut = run.until_failure(conditions, failed.saturating_add(1), &mut on_done)?;
    let leaks = leaks(&cut, &mut |progress| on_done(usize::try_from(progress.done).unwrap_or_default()))?;
    let forecaster = Forecaster::to_failure(&cut, conditions, &leaks, &mut on_done)?;
    if let Some(forecaster) = &forecaster {
        for change in changes {
            let Some(conditions) = conditions.and_change(&change.kind, &cut) else { continue };
            change.forecast = forecaster.forecast(&conditions, &mut on_done)?;
            if let Some(end) = change.forecast.as_ref().and_then(forecast_end) {
                change.sentence.push_str(", ");
                change.sentence.push_str(&end);
            }
        }
        return Ok(GrowthToFailure { leaks, is_explained: true, completed: None });
    }
    let completed = CompletedRun::of(run, &cut, &leaks, failed, &mut on_done)?;
    for change in changes {
        let Some(completed) = &completed else { break };
        completed.add_rest(conditions, change, &mut on_done)?;
    }
    Ok(GrowthToFailure { leaks, is_explained: false, completed })
}

/// The limit under which the rest of the iteration passes, too, where the smallest one for the failed request is not
/// enough.
fn limit_for_the_rest(
    examined: &Examination<'_>,
    completed: Option<&CompletedRun>,
    changes: &[Change],
    on_progress: OnProgress,
) -> Result<Option<Change>, LabError> {
    let mut on_done = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
    let is_short = |change: &Change| {
        let fails = |rest: &RestOfIteration| rest.fails.is_some();
        matches!(change.kind, ChangeKind::Limit(_)) && change.rest.as_ref().is_some_and(fails)
    };
    let Some(completed) = completed.filter(|_| changes.iter().any(is_short)) else { return Ok(None) };
    let last = completed.run.requests().len().saturating_sub(1);
    let mut change = changes::limit(examined, &completed.run, last, &mut on_done)?;
    completed.add_rest(examined.conditions, &mut change, &mut on_done)?;
    Ok(Some(change).filter(|change| change.proved))
}

/// The failure and the run, which all parts of an autopsy use.
struct Examination<'a> {
    limited: &'a LimitedRun<'a>,
    run: &'a Run,
    conditions: &'a Conditions,
    /// The limit that the failure met.
    limit: Limit,
    failure: &'a Failure,
    /// The place of the limit that the failure met among the bounds of the limit.
    place: usize,
    /// The run without a change, up to the failure.
    outcome: GapOutcome,
}

/// Whether a request passes at the lower bound of the limit, and at the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    at_low: bool,
    at_high: bool,
}

impl Passes {
    pub(crate) fn always(self) -> bool {
        self.at_low && self.at_high
    }
}

impl Examination<'_> {
    /// Whether the failing request passes in a run under other settings, and the run up to it at the limit that
    /// the failure met, where it passes there.
    fn passes_under(&self, conf: &str, on_done: OnDone) -> Result<(Passes, Option<GapOutcome>), LabError> {
        let bounds = self.limited.conditions_at_bounds(conf);
        let (passes, all) = passes_at_bounds(self.run, &bounds, self.failure.index, on_done)?;
        Ok((passes, all.get(self.place).copied().flatten()))
    }
}

/// Whether a request of a run passes at the bounds of the limit, and the run up to it at each where it passes.
fn passes_at_bounds(
    run: &Run,
    bounds: &[FixedConditions],
    request: usize,
    on_done: OnDone,
) -> Result<(Passes, Vec<Option<GapOutcome>>), LabError> {
    let mut all = Vec::with_capacity(2);
    for fixed in bounds {
        let served = fixed.served(run, request.saturating_add(1), on_done)?;
        all.push(served.as_ref().map(GapOutcome::from));
    }
    let at_low = all.first().is_some_and(Option::is_some);
    Ok((Passes { at_low, at_high: all.last().map_or(at_low, Option::is_some) }, all))
}

/// The first request of a run that fails.
pub(crate) struct FirstFailure {
    /// The limit that it met.
    limit: Limit,
    /// The place of this limit among the bounds of the limit.
    pub(crate) place: usize,
    /// The conditions of the replay.
    fixed: FixedConditions,
    pub(crate) request: usize,
}

/// The first request that fails.
///
/// The replay is at the upper bound of the limit if a request fails there, and otherwise at the lower bound.
pub(crate) fn first_failure(
    limited: &LimitedRun<'_>,
    conditions: &Conditions,
    on_done: OnDone,
) -> Result<Option<FirstFailure>, LabError> {
    let run = limited.run();
    let own = || Limit::exactly(conditions.capacity_of(run), LimitSource::Given, LimitKind::Device);
    let limit = limited.limit().unwrap_or_else(own);
    for (place, fixed) in limited.conditions_at_bounds(&conditions.conf).into_iter().enumerate().rev() {
        let Some(request) = outcome(run, &fixed, 0, on_done)?.failed else { continue };
        let limit = Limit { high: limit.high.min(fixed.most()), ..limit };
        return Ok(Some(FirstFailure { limit, place, fixed, request }));
    }
    Ok(None)
}
