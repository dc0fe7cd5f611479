//! What changes of the code would take from the peak: estimates from the recorded lifetimes.
//!
//! The requests of a training run say when each block is made and freed, and the stacks say in which part of
//! a training step. A change of the code is a change of sizes and lifetimes. The changed requests go through
//! the allocator, over the whole run, since the peak moves. What the changed program would ask for besides is
//! not known, so that each number is an estimate.

mod activations;
mod changed_requests;
mod checkpoint;
mod loss;
mod optimizer;
mod pieces;
mod training;

use blockyard_record::{Bytes, OnDone};
use blockyard_replay::{OnProgress, Progress};

use self::activations::{Batch, PARTS};
use self::changed_requests::ChangedRequests;
use self::training::{Phase, Training};
use crate::limited_run::FixedConditions;
use crate::rest::CompletedRun;
use crate::{
    CodeFix, CodeFixKind, Conditions, Finding, FindingTopic, LabError, LimitedRun, RestOfIteration,
    RestSource, Run, Verdict, VerdictKind,
};

/// A change that takes less than one in this many bytes of the peak is left out.
const MIN_SHARE: u64 = 100;

/// A change of the code that is to be tried.
struct Proposal {
    kind: CodeFixKind,
    /// The change in words.
    name: String,
    lines: Vec<String>,
    /// The run with the change.
    run: Run,
}

/// Where the iterations of a training begin: at the first block of its data or of a forward pass. `None` where no
/// pass is seen.
pub(crate) fn iteration_starts(run: &Run, failed: Option<usize>) -> Option<Vec<usize>> {
    let training = Training::of(run, failed)?;
    let starts = training.passes.iter().filter_map(|pass| {
        let mut blocks = training.of_pass(pass).iter();
        let first = blocks.find(|block| matches!(block.phase, Phase::Forward | Phase::Other));
        first.map(|block| block.request)
    });
    Some(starts.collect())
}

/// Where a changed run is replayed, and what is known of the requests after the one that failed.
struct Trial<'a> {
    bounds: &'a [FixedConditions],
    completed: Option<&'a CompletedRun>,
}

impl Trial<'_> {
    /// Whether all requests are served, and what becomes of those after the one that failed.
    fn of(&self, changed: &Run, on_done: OnDone) -> Result<(bool, Option<RestOfIteration>), LabError> {
        match self.completed {
            Some(completed) => {
                let rest = completed.of_changed(changed, self.bounds, on_done)?;
                Ok((rest.is_some(), rest))
            }
            None => Ok((passes(changed, self.bounds, on_done)?, None)),
        }
    }

    fn serves_all(&self, changed: &Run, on_done: OnDone) -> Result<bool, LabError> {
        let (passes, rest) = self.of(changed, on_done)?;
        Ok(passes && rest.is_none_or(|rest| rest.fails.is_none()))
    }
}

/// Adds the changes of the code to a verdict, the one that takes most first, each with its sentence. `completed` is
/// the run with the rest of the iteration that failed, where it is known.
pub(crate) fn add_code_fixes(
    verdict: &mut Verdict,
    run: &Run,
    conditions: &Conditions,
    completed: Option<&CompletedRun>,
    on_progress: OnProgress,
) -> Result<(), LabError> {
    // A leak has its own advice. Without stacks nothing is known about the code.
    if matches!(verdict.answer.kind, VerdictKind::NotReplayed | VerdictKind::Leak) || !run.has_stacks() {
        return Ok(());
    }
    let total = run.requests().len();
    let mut on_done = |done| on_progress(Progress::new("trying changes of the code", done, total));
    let limited = LimitedRun::of(run, conditions, &mut on_done)?;
    let failed = verdict.autopsy.as_ref().map(|found| found.index);
    let whole = completed.and_then(|completed| {
        let run = &completed.run;
        let training = Training::until(run, run.requests().len(), failed, !completed.is_whole)?;
        Some((training, Some(completed)))
    });
    let alone = || Some((Training::of(limited.run(), failed)?, None));
    let Some((training, completed)) = whole.or_else(alone) else { return Ok(()) };
    let bounds = limited.conditions_at_bounds(&conditions.conf);
    let Some(first) = bounds.first() else { return Ok(()) };
    let trial = failed.map(|_| Trial { bounds: &bounds, completed });
    // The run goes on to its end on a device without a limit, so that peaks can be compared.
    let unlimited = FixedConditions { capacity: UNLIMITED, limit: None, ..first.clone() };
    let own = ChangedRequests::of(&training).finish();
    let Some((own, _)) = peaks(&own, &unlimited, &mut on_done)? else { return Ok(()) };
    let mut fixes: Vec<CodeFix> = Vec::new();
    let batch = Batch::of(&training);
    let batch = batch.map(|batch| largest_batch(&batch, trial.as_ref(), &mut on_done)).transpose()?;
    for proposal in proposals(&training, own).into_iter().chain(batch) {
        // A line in pieces comes last: a known pattern says more about the code.
        let is_known = |fix: &CodeFix| matches!(fix.kind, CodeFixKind::Checkpoint | CodeFixKind::ChunkedLoss);
        if proposal.kind == CodeFixKind::InPieces && fixes.iter().any(is_known) {
            continue;
        }
        let Some((allocated, reserved)) = peaks(&proposal.run, &unlimited, &mut on_done)? else { continue };
        let bytes = own.saturating_sub(allocated);
        let known = fixes.iter().position(|fix| fix.kind == proposal.kind);
        let is_better = known.and_then(|place| fixes.get(place)).is_none_or(|fix| fix.bytes < bytes);
        if bytes.get().saturating_mul(MIN_SHARE) < own.get() || !is_better {
            continue;
        }
        let found = trial.as_ref().map(|trial| trial.of(&proposal.run, &mut on_done)).transpose()?;
        let (passes, rest) = found.map_or((None, None), |(passes, rest)| (Some(passes), rest));
        if let Some(place) = known {
            fixes.remove(place);
        }
        let sentence = match &rest {
            _ if proposal.kind != CodeFixKind::SmallerBatch || passes != Some(true) => {
                sentence(&proposal, (bytes, allocated, own), passes, rest.as_ref())
            }
            None => format!("{}{REST_IS_UNKNOWN}", proposal.name),
            Some(rest) if rest.fails.is_some() => {
                sentence(&proposal, (bytes, allocated, own), passes, Some(rest))
            }
            Some(rest) => batch_sentence(&proposal.name, rest),
        };
        let Proposal { kind, lines, .. } = proposal;
        fixes.push(CodeFix {
            kind,
            sentence,
            lines,
            bytes,
            peak_allocated: allocated,
            peak_reserved: reserved,
            passes,
            rest,
        });
    }
    fixes.sort_by_key(|fix| (std::cmp::Reverse(fix.bytes), fix.kind));
    let findings = fixes.iter().map(|fix| Finding::new(FindingTopic::Code, &fix.sentence));
    verdict.answer.findings.extend(findings);
    if !fixes.is_empty() {
        verdict.answer.findings.push(Finding::new(FindingTopic::Code, PROOF));
    }
    verdict.answer.findings.sort_by_key(|finding| finding.about);
    verdict.answer.code_fixes = fixes;
    Ok(())
}

const PROOF: &str = "these are estimates from the lifetimes of this run: `blockyard dry-run` of the changed program is the proof";

/// The end of the sentence about a smaller batch in a run that failed, where nothing shows the rest of the iteration.
const REST_IS_UNKNOWN: &str = ", is the most with which the request that failed passes in a replay; what comes after it is not known and may need \
     a smaller one: `blockyard fit` of the program finds it";

/// The sentence about the most of a batch with which the known rest of the iteration passes.
fn batch_sentence(name: &str, rest: &RestOfIteration) -> String {
    let passes = match rest.from {
        RestSource::Recording if rest.is_whole => "the run finishes",
        _ if rest.is_whole => "the iteration that failed finishes",
        _ => "all known requests pass",
    };
    format!("{name}, is the most with which {passes} in a replay (estimate); {}", rest.from.text())
}

/// The largest share of the batch with which all requests pass; half of it where none of them is enough, or where no
/// request failed.
fn largest_batch(
    batch: &Batch<'_>,
    trial: Option<&Trial<'_>>,
    on_done: OnDone,
) -> Result<Proposal, LabError> {
    let (mut enough, mut too_large) = (0, PARTS);
    while let Some(trial) = trial.filter(|_| too_large.saturating_sub(enough) > 1) {
        let middle = enough.midpoint(too_large);
        if trial.serves_all(&batch.with_parts(middle).run, on_done)? {
            enough = middle;
        } else {
            too_large = middle;
        }
    }
    Ok(batch.with_parts(if enough == 0 { PARTS / 2 } else { enough }))
}

/// More than any device has.
const UNLIMITED: Bytes = Bytes::gib(64 * 1024);

fn proposals(training: &Training<'_>, peak: Bytes) -> Vec<Proposal> {
    let (mut all, outputs) = checkpoint::proposals(training);
    all.extend(activations::autocast(training, &outputs));
    all.extend(loss::chunked(training, peak));
    all.extend(pieces::largest_line(training, peak));
    all.extend(optimizer::proposals(training));
    all
}

fn sentence(
    Proposal { kind, name, .. }: &Proposal,
    (bytes, allocated, own): (Bytes, Bytes, Bytes),
    passes: Option<bool>,
    rest: Option<&RestOfIteration>,
) -> String {
    let then = match passes {
        None => "",
        Some(true) => "; in a replay the request that failed then passes",
        Some(false) => "; in a replay the request fails all the same",
    };
    let rest = rest.map_or_else(String::new, |rest| format!(", {}", rest.end_text()));
    let about = if *kind == CodeFixKind::InPieces { "at most" } else { "about" };
    format!(
        "{name}: {about} {bytes} less at the peak, {allocated} allocated in place of {own} (estimate){then}{rest}"
    )
}

/// The most allocated and the most reserved bytes of a run; `None` if a request fails, and where the changed
/// requests cannot be replayed: an estimate is then left out, and the verdict stays.
fn peaks(run: &Run, fixed: &FixedConditions, on_done: OnDone) -> Result<Option<(Bytes, Bytes)>, LabError> {
    match fixed.served(run, run.requests().len(), on_done) {
        Err(LabError::Run(_)) => Ok(None),
        found => Ok(found?.map(|outcome| (outcome.peak_allocated, outcome.peak_reserved))),
    }
}

/// Whether all requests are served at both bounds of the limit.
fn passes(run: &Run, bounds: &[FixedConditions], on_done: OnDone) -> Result<bool, LabError> {
    for fixed in bounds {
        if peaks(run, fixed, on_done)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
