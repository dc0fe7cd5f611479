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
use self::training::Training;
use crate::limited_run::FixedConditions;
use crate::outcome::outcome_before;
use crate::{
    CodeFix, CodeFixKind, Conditions, Finding, FindingTopic, LabError, LimitedRun, Run, Verdict, VerdictKind,
};

/// A change that takes less than one in this many bytes of the peak is left out.
const LEAST_SHARE: u64 = 100;

/// A change of the code that is to be tried.
struct Proposal {
    kind: CodeFixKind,
    /// The change in words.
    name: String,
    lines: Vec<String>,
    /// The run with the change.
    run: Run,
}

/// Adds the changes of the code to a verdict, the one that takes most first, each with its sentence.
pub(crate) fn add_code_fixes(
    verdict: &mut Verdict,
    run: &Run,
    conditions: &Conditions,
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
    let Some(training) = Training::of(limited.run(), failed) else { return Ok(()) };
    let bounds = limited.conditions_at_bounds(&conditions.conf);
    let Some(first) = bounds.first() else { return Ok(()) };
    // The run goes on to its end on a device without a limit, so that peaks can be compared.
    let unlimited = FixedConditions { capacity: UNLIMITED, fraction: None, ..first.clone() };
    let own = ChangedRequests::of(&training).finish();
    let Some((own, _)) = peaks(&own, &unlimited, &mut on_done)? else { return Ok(()) };
    let mut fixes: Vec<CodeFix> = Vec::new();
    let batch = Batch::of(&training);
    let batch = match &batch {
        Some(batch) => Some(largest_batch(batch, failed.map(|_| bounds.as_slice()), &mut on_done)?),
        None => None,
    };
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
        if bytes.get().saturating_mul(LEAST_SHARE) < own.get() || !is_better {
            continue;
        }
        let passes = match failed {
            Some(_) => Some(passes(&proposal.run, &bounds, &mut on_done)?),
            None => None,
        };
        if let Some(place) = known {
            fixes.remove(place);
        }
        let is_bound = proposal.kind == CodeFixKind::SmallerBatch;
        let sentence = if is_bound && passes == Some(true) {
            format!("{}{REST_IS_UNKNOWN}", proposal.name)
        } else {
            sentence(&proposal, (bytes, allocated, own), passes)
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
        });
    }
    fixes.sort_by_key(|fix| (std::cmp::Reverse(fix.bytes), fix.kind));
    let findings = fixes.iter().map(|fix| Finding::about(FindingTopic::Code, &fix.sentence, None));
    verdict.answer.findings.extend(findings);
    if !fixes.is_empty() {
        verdict.answer.findings.push(Finding::about(FindingTopic::Code, PROOF, None));
    }
    verdict.answer.findings.sort_by_key(|finding| finding.about);
    verdict.answer.code_fixes = fixes;
    Ok(())
}

const PROOF: &str = "these are estimates from the lifetimes of this run: `blockyard dry-run` of the changed program is the proof";

/// The end of the sentence about a smaller batch in a run that failed: the rest of the iteration is not recorded, and
/// may ask for more.
const REST_IS_UNKNOWN: &str = ", is the most with which the request that failed passes in a replay; the rest of the iteration is not recorded and may need \
     a smaller one: `blockyard fit` of the program finds it";

/// The largest share of the batch with which the request that failed passes; half of it where none of them is
/// enough, or where no request failed.
fn largest_batch(
    batch: &Batch<'_>,
    bounds: Option<&[FixedConditions]>,
    on_done: OnDone,
) -> Result<Proposal, LabError> {
    let (mut enough, mut too_large) = (0, PARTS);
    while let Some(bounds) = bounds.filter(|_| too_large.saturating_sub(enough) > 1) {
        let middle = enough.midpoint(too_large);
        if passes(&batch.with_parts(middle).run, bounds, on_done)? {
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
) -> String {
    let then = match passes {
        None => "",
        Some(true) => "; in a replay the request that failed then passes",
        Some(false) => "; in a replay the request fails all the same",
    };
    let about = if *kind == CodeFixKind::InPieces { "at most" } else { "about" };
    format!(
        "{name}: {about} {bytes} less at the peak, {allocated} allocated in place of {own} (estimate){then}"
    )
}

/// The most allocated and the most reserved bytes of a run; `None` if the requests cannot be replayed.
fn peaks(run: &Run, fixed: &FixedConditions, on_done: OnDone) -> Result<Option<(Bytes, Bytes)>, LabError> {
    match outcome_before(run, fixed, 0, run.requests().len(), on_done) {
        Ok(outcome) => Ok((outcome.ooms == 0).then_some((outcome.peak_allocated, outcome.peak_reserved))),
        Err(LabError::Cancelled) => Err(LabError::Cancelled),
        Err(_) => Ok(None),
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
