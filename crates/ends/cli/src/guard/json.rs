//! The report as JSON, through the types of `blockyard_answers`: `docs/guard-json.md` has its fields.

use std::path::Path;

use blockyard_answers::{
    GUARD_VERSION, GuardAnswer, GuardBaseline, GuardFailure, GuardHolder, GuardRow, GuardStep, GuardedProgram,
};
use blockyard_dry_run::Torch;
use blockyard_guard::{
    Baseline, ChangeRow, EntryLine, Failure, IterationChange, LineHolder, ProgramEntry, RunFailure,
    report as text,
};
use blockyard_record::Bytes;

use super::{GuardedRun, is_failed, outcome};
use crate::dry_run::gpu_of;

pub(super) fn report(is_update: bool, file: &Path, torch: &Torch, held: &[GuardedRun]) -> GuardAnswer {
    GuardAnswer {
        version: GUARD_VERSION,
        file: file.display().to_string(),
        torch: torch.version.clone(),
        passed: held.iter().all(|held| !is_failed(is_update, &held.found.failures)),
        programs: held.iter().map(|held| program(is_update, held)).collect(),
    }
}

fn program(is_update: bool, held: &GuardedRun) -> GuardedProgram {
    let GuardedRun { entry, run, report, found } = held;
    let gpus: Vec<_> = gpu_of(&entry.gpu).into_iter().collect();
    GuardedProgram {
        program: entry.program.clone(),
        arguments: entry.arguments.clone(),
        gpu: entry.gpu.clone(),
        steps: entry.iterations,
        conf: entry.conf.clone(),
        budget: entry.budget.map(Bytes::get),
        tolerance: entry.tolerance.to_string(),
        passed: !is_failed(is_update, &found.failures),
        failures: found.failures.iter().map(failure).collect(),
        text: text(entry, run, found, outcome(is_update, &found.failures)).unwrap_or_default(),
        estimate: found.is_estimate,
        other_torch: found.has_other_torch,
        lower: found.is_lower,
        peak_allocated: run.peak_allocated.get(),
        peak_reserved: run.peak_reserved.get(),
        peak_by_step: byte_counts(&run.iteration_peaks),
        holders: run.holders.iter().map(holder).collect(),
        baseline: entry.baseline.as_ref().map(|baseline| self::baseline(baseline, entry)),
        rows: found.rows.iter().map(row).collect(),
        steps_changed: found.iterations.iter().map(step).collect(),
        dry_run: report.to_answer(&gpus),
    }
}

fn failure(failure: &Failure) -> GuardFailure {
    match failure {
        Failure::Ended(RunFailure::OutOfMemory(at)) => GuardFailure::OutOfMemory { at: at.clone() },
        Failure::Ended(RunFailure::Failed(why)) => GuardFailure::Error { why: why.clone() },
        Failure::Budget { budget, reserved } => {
            GuardFailure::Budget { budget: budget.get(), reserved: reserved.get() }
        }
        Failure::Allocated(growth) => GuardFailure::Allocated {
            before: growth.before.get(),
            after: growth.after.get(),
            allowed: growth.allowed.get(),
        },
        Failure::Reserved(growth) => GuardFailure::Reserved {
            before: growth.before.get(),
            after: growth.after.get(),
            allowed: growth.allowed.get(),
        },
    }
}

fn baseline(baseline: &Baseline, entry: &ProgramEntry) -> GuardBaseline {
    GuardBaseline {
        torch: baseline.torch.clone(),
        exact: baseline.is_exact,
        peak_allocated: baseline.peak_allocated.get(),
        peak_reserved: baseline.peak_reserved.get(),
        allowed_allocated: entry.tolerance.of(baseline.peak_allocated).get(),
        allowed_reserved: entry.tolerance.of(baseline.peak_reserved).get(),
        peak_by_step: byte_counts(&baseline.iteration_peaks),
        holders: baseline.holders.iter().map(holder).collect(),
        further_lines: baseline.further,
    }
}

fn byte_counts(bytes: &[Bytes]) -> Vec<u64> {
    bytes.iter().map(|bytes| bytes.get()).collect()
}

fn holder(holder: &LineHolder) -> GuardHolder {
    GuardHolder {
        bytes: holder.bytes.get(),
        at: holder.line.place(),
        function: holder.line.function.clone(),
        code: holder.line.code.clone(),
    }
}

fn row(row: &ChangeRow) -> GuardRow {
    let line = row.line.as_ref();
    GuardRow {
        at: line.map(EntryLine::place),
        function: line.map(|line| line.function.clone()),
        code: line.map(|line| line.code.clone()),
        before: number(row.before),
        after: number(row.after),
        change: number(row.change()),
        most_before: row.most_before.map(Bytes::get),
    }
}

fn step(step: &IterationChange) -> GuardStep {
    GuardStep {
        number: step.number as u64,
        before: step.before.map(Bytes::get),
        after: step.after.map(Bytes::get),
    }
}

/// The number for JSON; `None` if it does not fit in 64 bits, as in the guard's file.
fn number(bytes: i128) -> Option<i64> {
    i64::try_from(bytes).ok()
}
