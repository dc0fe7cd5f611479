//! The report as JSON: `docs/guard.md` has its fields.

use std::path::Path;

use blockyard_dry_run::Torch;
use blockyard_guard::{Baseline, Entry, Failure, Holder, Row, RunFailure, StepChange, report as text};
use blockyard_record::Bytes;
use serde_json::{Value, json};

use super::{Held, is_failed, outcome};
use crate::dry_run::gpu_of;

/// Counts changes of the fields that take something away.
const VERSION: u32 = 1;

pub(super) fn report(is_update: bool, file: &Path, torch: &Torch, held: &[Held]) -> Value {
    json!({
        "version": VERSION,
        "file": file.display().to_string(),
        "torch": torch.version,
        "passed": held.iter().all(|held| !is_failed(is_update, &held.found.failures)),
        "programs": held.iter().map(|held| program(is_update, held)).collect::<Vec<_>>(),
    })
}

fn program(is_update: bool, held: &Held) -> Value {
    let Held { entry, run, report, found } = held;
    let gpus: Vec<_> = gpu_of(&entry.gpu).into_iter().collect();
    json!({
        "program": entry.program,
        "arguments": entry.arguments,
        "gpu": entry.gpu,
        "steps": entry.steps,
        "conf": entry.conf,
        "budget": entry.budget.map(Bytes::get),
        "tolerance": entry.tolerance.to_string(),
        "passed": !is_failed(is_update, &found.failures),
        "failures": found.failures.iter().map(failure).collect::<Vec<_>>(),
        "text": text(entry, run, found, outcome(is_update, &found.failures)).unwrap_or_default(),
        "estimate": found.is_estimate,
        "other_torch": found.has_other_torch,
        "lower": found.is_lower,
        "peak_allocated": run.peak_allocated.get(),
        "peak_reserved": run.peak_reserved.get(),
        "peak_by_step": run.steps.iter().map(|bytes| bytes.get()).collect::<Vec<_>>(),
        "holders": run.holders.iter().map(holder).collect::<Vec<_>>(),
        "baseline": entry.baseline.as_ref().map(|baseline| self::baseline(baseline, entry)),
        "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
        "steps_changed": found.steps.iter().map(step).collect::<Vec<_>>(),
        "dry_run": report.to_json(&gpus),
    })
}

fn failure(failure: &Failure) -> Value {
    match failure {
        Failure::Ended(RunFailure::OutOfMemory(at)) => json!({"kind": "out_of_memory", "at": at}),
        Failure::Ended(RunFailure::Failed(why)) => json!({"kind": "error", "why": why}),
        Failure::Budget { budget, reserved } => {
            json!({"kind": "budget", "budget": budget.get(), "reserved": reserved.get()})
        }
        Failure::Allocated(growth) | Failure::Reserved(growth) => json!({
            "kind": if matches!(failure, Failure::Allocated(_)) { "allocated" } else { "reserved" },
            "before": growth.before.get(),
            "after": growth.after.get(),
            "allowed": growth.allowed.get(),
        }),
    }
}

fn baseline(baseline: &Baseline, entry: &Entry) -> Value {
    json!({
        "torch": baseline.torch,
        "exact": baseline.is_exact,
        "peak_allocated": baseline.peak_allocated.get(),
        "peak_reserved": baseline.peak_reserved.get(),
        "allowed_allocated": entry.tolerance.of(baseline.peak_allocated).get(),
        "allowed_reserved": entry.tolerance.of(baseline.peak_reserved).get(),
        "peak_by_step": baseline.steps.iter().map(|bytes| bytes.get()).collect::<Vec<_>>(),
        "holders": baseline.holders.iter().map(holder).collect::<Vec<_>>(),
        "further_lines": baseline.further,
    })
}

fn holder(holder: &Holder) -> Value {
    json!({
        "bytes": holder.bytes.get(),
        "at": holder.line.place(),
        "function": holder.line.function,
        "code": holder.line.code,
    })
}

fn row(row: &Row) -> Value {
    json!({
        "at": row.line.as_ref().map(blockyard_guard::ProgramLine::place),
        "function": row.line.as_ref().map(|line| &line.function),
        "code": row.line.as_ref().map(|line| &line.code),
        "before": number(row.before),
        "after": number(row.after),
        "change": number(row.change()),
        "most_before": row.most_before.map(Bytes::get),
    })
}

fn step(step: &StepChange) -> Value {
    json!({
        "number": step.number,
        "before": step.before.map(Bytes::get),
        "after": step.after.map(Bytes::get),
    })
}

/// JSON's numbers end where a file's do.
fn number(bytes: i128) -> Value {
    i64::try_from(bytes).map_or(Value::Null, Value::from)
}
