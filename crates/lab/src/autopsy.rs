//! Why a run went out of memory, and what would have helped.

use std::ops::ControlFlow;

use blockyard_record::{Bytes, MemoryAtFailure, OomCause, OomRequest, PoolId, PoolKind, StreamId};
use blockyard_replay::{AllocatorConfig, OnProgress, Progress};
use serde::{Deserialize, Serialize};

use crate::limit::{Limit, LimitSource};
use crate::outcome::{outcome, outcome_before};
use crate::{Conditions, LabError, Run};

mod cause;
mod changed;
mod changes;
mod failure;
mod pins;
mod tensors;

pub use changed::try_change;
pub use changes::{Change, ChangeKind};
pub use pins::{PinnedSegment, PinningBlock};

use failure::Failure;

/// Why a request ran out of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autopsy {
    /// The request.
    pub request: FailedAllocation,
    /// The limit that it met.
    pub limit: Limit,
    /// What the memory was used for at that moment, after everything that could be released was.
    pub memory: MemoryAtFailure,
    /// Why it failed.
    pub cause: OomCause,
    /// The same in a sentence.
    pub sentence: String,
    /// The segments that have free bytes which could not serve, with the blocks that keep them; those first that take the fewest
    /// live bytes to get back.
    pub pinned_by: Vec<PinnedSegment>,
    /// What lets the request pass, each replayed; of every kind the smallest first.
    pub changes: Vec<Change>,
    /// What was replayed too and does not help.
    pub in_vain: Vec<Change>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

/// The request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAllocation {
    /// Which request, counted from 1 as [`Run::requests`] lists them.
    pub request: u64,
    /// How many allocations came before it.
    pub allocations_before: u64,
    /// What it asked for.
    pub size: Bytes,
    /// The size after rounding.
    pub rounded: Bytes,
    /// The segment that was wanted for it.
    pub segment_size: Bytes,
    /// Its stream.
    pub stream: StreamId,
    /// The memory pool that it came from.
    pub pool_id: PoolId,
    /// Small or large.
    pub pool: PoolKind,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its stack, innermost frame first; empty where none was recorded.
    pub stack: Vec<String>,
}

impl FailedAllocation {
    pub(crate) fn for_cause(&self) -> OomRequest {
        OomRequest {
            size: self.size,
            rounded: self.rounded,
            segment_size: self.segment_size,
            stream: self.stream,
            pool_id: self.pool_id,
        }
    }
}

/// Says why a run goes out of memory first; `None` where it does not.
///
/// Without a limit in `conditions` that of the recording counts, whose bounds are inferred.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] when the run cannot be replayed.
pub fn autopsy(
    run: &Run,
    conditions: &Conditions,
    on_progress: OnProgress,
) -> Result<Option<Autopsy>, LabError> {
    let mut tell =
        |_: usize| on_progress(Progress { phase: "looking for the cause".to_owned(), done: 0, total: 0 });
    let run = &*run.under_limit(conditions, &mut tell)?;
    let Some((limit, request)) = failing_request(run, conditions, &mut tell)? else { return Ok(None) };
    let limited = conditions.and_limit(limit.highest);
    let config: AllocatorConfig = conditions.conf.parse()?;
    let failure = Failure::replayed(run, &limited, &config, request, &mut tell)?;
    let examined = Examined { run, conditions, limit, failure: &failure };
    let (cause, others) = cause::cause(&examined, &mut tell)?;
    let (changes, in_vain) = changes::changes(&examined, on_progress)?;
    let mut notes = run.notes().to_vec();
    notes.push(limit.sentence());
    let mut sentence = cause::sentence(cause, &examined);
    if !others.is_empty() {
        let others: Vec<&str> = others.iter().map(|cause| cause.name()).collect();
        sentence = format!("{sentence}; depending on the limit it may also be {}", others.join(" or "));
    }
    Ok(Some(Autopsy {
        request: failure.request.clone(),
        limit,
        memory: failure.memory,
        cause,
        sentence,
        pinned_by: pins::pinned(&examined),
        changes,
        in_vain,
        notes,
    }))
}

/// What all parts of an autopsy look at.
struct Examined<'a> {
    run: &'a Run,
    conditions: &'a Conditions,
    limit: Limit,
    failure: &'a Failure,
}

impl Examined<'_> {
    /// Whether the failing request passes in a run under other settings, at either end of what the limit may be.
    fn passes_under(&self, conf: &str, tell: Tell<'_>) -> Result<bool, LabError> {
        for limit in self.limit.ends() {
            let conditions = self.conditions.and_conf(conf).and_limit(limit);
            if !passes(self.run, &conditions, self.failure.index, tell)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

type Tell<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// Whether a request of a run passes, and every one before it.
fn passes(run: &Run, conditions: &Conditions, request: usize, tell: Tell<'_>) -> Result<bool, LabError> {
    match outcome_before(run, conditions, 0, request.saturating_add(1), tell) {
        Ok(outcome) => Ok(outcome.first_oom.is_none()),
        // A setting that cannot be replayed helps nobody.
        Err(LabError::Config(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The limit, and the request that fails first under it.
fn failing_request(
    run: &Run,
    conditions: &Conditions,
    tell: Tell<'_>,
) -> Result<Option<(Limit, usize)>, LabError> {
    let first = |limit: Bytes, tell: Tell<'_>| -> Result<Option<usize>, LabError> {
        let found = outcome(run, &conditions.and_limit(limit), 0, tell)?;
        Ok(found.first_oom.and_then(|oom| usize::try_from(oom.request.checked_sub(1)?).ok()))
    };
    let capacity = conditions.capacity_of(run);
    let recorded =
        run.recorded_limit().filter(|_| conditions.limit_of(run).is_none() && conditions.capacity.is_none());
    let Some(mut limit) = recorded else {
        let source =
            if conditions.limit_of(run).is_some() { LimitSource::Given } else { LimitSource::Device };
        let limit = Limit::exactly(conditions.limit_of(run).unwrap_or(capacity).min(capacity), source);
        return Ok(first(limit.highest, tell)?.map(|request| (limit, request)));
    };
    let Some(request) = run.recorded_oom() else { return Ok(None) };
    // Ties fall differently where addresses do, so that a replay may need a little more than was recorded.
    match first(limit.lowest, tell)? {
        Some(found) if found < request => limit.lowest = limit.highest,
        _ => {}
    }
    Ok(first(limit.highest, tell)?.map(|found| (limit, found)))
}
