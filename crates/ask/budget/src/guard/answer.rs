//! The report of the guard.

use blockyard_answers::{DryRunAnswer, GuardAnswer, GuardBaseline, GuardedProgram, VERSION};

use super::text::text;
use super::{Baseline, GuardComparison, MeasuredRun, ProgramEntry};

/// The run of a program, compared with its entry.
#[derive(Clone, Debug)]
pub struct GuardedRun {
    /// The entry.
    pub entry: ProgramEntry,
    /// The run.
    pub run: MeasuredRun,
    /// The report of the dry run.
    pub report: DryRunAnswer,
    /// The result of the comparison.
    pub found: GuardComparison,
}

/// The report about all programs of a file. With `is_update`, the run replaces the baseline.
pub fn answer(file: String, torch: String, runs: &[GuardedRun], is_update: bool) -> GuardAnswer {
    GuardAnswer {
        version: VERSION,
        file,
        torch,
        passed: runs.iter().all(|run| !run.found.is_failed(is_update)),
        programs: runs.iter().map(|run| program(run, is_update)).collect(),
    }
}

fn program(GuardedRun { entry, run, report, found }: &GuardedRun, is_update: bool) -> GuardedProgram {
    GuardedProgram {
        program: entry.program.clone(),
        arguments: entry.arguments.clone(),
        gpu: entry.gpu.clone(),
        steps: entry.iterations,
        conf: entry.conf.clone(),
        budget: entry.budget,
        tolerance: entry.tolerance.to_string(),
        passed: !found.is_failed(is_update),
        failures: found.failures.clone(),
        text: text(entry, run, found, is_update),
        estimate: found.is_estimate,
        other_torch: found.has_other_torch,
        lower: found.is_lower,
        peak_allocated: run.peak_allocated,
        peak_reserved: run.peak_reserved,
        peak_by_step: run.iteration_peaks.clone(),
        holders: run.holders.clone(),
        baseline: entry.baseline.as_ref().map(|baseline| self::baseline(baseline, entry)),
        rows: found.rows.clone(),
        steps_changed: found.iterations.clone(),
        dry_run: report.clone(),
    }
}

fn baseline(baseline: &Baseline, entry: &ProgramEntry) -> GuardBaseline {
    GuardBaseline {
        torch: baseline.torch.clone(),
        exact: baseline.is_exact,
        peak_allocated: baseline.peak_allocated,
        peak_reserved: baseline.peak_reserved,
        allowed_allocated: entry.tolerance.of(baseline.peak_allocated),
        allowed_reserved: entry.tolerance.of(baseline.peak_reserved),
        peak_by_step: baseline.iteration_peaks.clone(),
        holders: baseline.holders.clone(),
        further_lines: baseline.further,
    }
}
