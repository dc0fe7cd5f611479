//! A run, compared with its entry.

use blockyard_record::Bytes;

use crate::lines::pairs;
use crate::{Baseline, EntryLine, MeasuredRun, ProgramEntry, RunFailure};

/// Why a run fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program did not run to its end.
    Ended(RunFailure),
    /// The run reserved more than the budget.
    Budget {
        /// The budget.
        budget: Bytes,
        /// The peak reserved.
        reserved: Bytes,
    },
    /// The peak allocated grew by more than the tolerance.
    Allocated(PeakGrowth),
    /// The peak reserved grew by more than the tolerance.
    Reserved(PeakGrowth),
}

/// A peak that grew by more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakGrowth {
    /// The peak of the baseline.
    pub before: Bytes,
    /// The peak of the run.
    pub after: Bytes,
    /// The bytes by which the peak may grow.
    pub allowed: Bytes,
}

/// A part of the change of the peak allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    /// The line; `None` for everything else.
    pub line: Option<EntryLine>,
    /// The bytes of the baseline. If the baseline does not list the line, its bytes count as everything else.
    pub before: i128,
    /// The bytes of the run.
    pub after: i128,
    /// The most that the line held in the baseline, if the baseline lists some lines and not this line.
    pub most_before: Option<Bytes>,
}

impl ChangeRow {
    /// The change in bytes, negative for fewer bytes.
    #[must_use]
    pub fn change(&self) -> i128 {
        self.after.saturating_sub(self.before)
    }
}

/// An iteration whose peak changed. A peak is `None` where the run or the baseline has no such iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationChange {
    /// The number of the iteration, counted from 1.
    pub number: usize,
    /// The peak allocated of the baseline.
    pub before: Option<Bytes>,
    /// The peak allocated of the run.
    pub after: Option<Bytes>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardComparison {
    /// Why the run fails; none if the run passes.
    pub failures: Vec<Failure>,
    /// The change of the peak allocated, as a sum: changes of lines, the largest first, then everything else,
    /// which may be 0. The rows add up to the change, to the byte. Empty without a baseline.
    pub rows: Vec<ChangeRow>,
    /// Iterations whose peak changed.
    pub iterations: Vec<IterationChange>,
    /// Whether a peak fell by more than the tolerance and the run passes: the baseline can be written again.
    pub is_lower: bool,
    /// Whether something was assumed in the run or in the run of the baseline.
    pub is_estimate: bool,
    /// Whether the baseline was made with another version of PyTorch.
    pub has_other_torch: bool,
}

/// Compares a run with its entry. A peak equal to the budget, and a growth equal to the tolerance, pass.
#[must_use]
pub fn compare(entry: &ProgramEntry, run: &MeasuredRun) -> GuardComparison {
    let mut found = GuardComparison { is_estimate: !run.is_exact, ..GuardComparison::default() };
    found.failures.extend(run.failure.clone().map(Failure::Ended));
    if let Some(budget) = entry.budget.filter(|budget| run.peak_reserved > *budget) {
        found.failures.push(Failure::Budget { budget, reserved: run.peak_reserved });
    }
    let Some(baseline) = &entry.baseline else { return found };
    let peaks = [(baseline.peak_allocated, run.peak_allocated), (baseline.peak_reserved, run.peak_reserved)];
    let kinds: [fn(PeakGrowth) -> Failure; 2] = [Failure::Allocated, Failure::Reserved];
    for ((before, after), kind) in peaks.into_iter().zip(kinds) {
        let allowed = entry.tolerance.of(before);
        if after.saturating_sub(before) > allowed {
            found.failures.push(kind(PeakGrowth { before, after, allowed }));
        }
        found.is_lower |= before.saturating_sub(after) > allowed;
    }
    found.is_lower &= found.failures.is_empty();
    found.is_estimate |= !baseline.is_exact;
    found.has_other_torch = baseline.torch != run.torch;
    found.rows = rows(baseline, run);
    found.iterations = iterations(&baseline.iteration_peaks, &run.iteration_peaks);
    found
}

fn rows(baseline: &Baseline, run: &MeasuredRun) -> Vec<ChangeRow> {
    let pairs = pairs(&baseline.holders, &run.holders);
    // The most that a line which the baseline does not list can have held, if the baseline leaves lines out.
    let least = baseline.holders.iter().map(|holder| holder.bytes).min().unwrap_or_default();
    let most_before = (baseline.further > 0).then_some(least);
    let number = |bytes: Bytes| i128::from(bytes.get());
    let mut rows = Vec::new();
    for (holder, pair) in run.holders.iter().zip(&pairs) {
        let old = pair.and_then(|index| baseline.holders.get(index));
        if let Some(old) = old {
            rows.push(ChangeRow {
                line: Some(holder.line.clone()),
                before: number(old.bytes),
                after: number(holder.bytes),
                most_before: None,
            });
        } else if most_before.is_none_or(|most| holder.bytes > most) {
            // The line holds more than any line that the baseline leaves out, so it grew for certain.
            rows.push(ChangeRow {
                line: Some(holder.line.clone()),
                before: 0,
                after: number(holder.bytes),
                most_before,
            });
        }
    }
    // Without a history of the run, the bytes that the lines hold now are not known.
    if !run.holders.is_empty() {
        for (index, old) in baseline.holders.iter().enumerate() {
            if !pairs.contains(&Some(index)) {
                let line = Some(old.line.clone());
                rows.push(ChangeRow { line, before: number(old.bytes), after: 0, most_before: None });
            }
        }
    }
    let sum = |of: fn(&ChangeRow) -> i128| rows.iter().map(of).fold(0_i128, i128::saturating_add);
    let others = ChangeRow {
        line: None,
        before: number(baseline.peak_allocated).saturating_sub(sum(|row| row.before)),
        after: number(run.peak_allocated).saturating_sub(sum(|row| row.after)),
        most_before: None,
    };
    rows.retain(|row| row.change() != 0);
    rows.sort_by(|one, other| {
        other.change().abs().cmp(&one.change().abs()).then_with(|| one.line.cmp(&other.line))
    });
    rows.push(others);
    rows
}

fn iterations(before: &[Bytes], after: &[Bytes]) -> Vec<IterationChange> {
    let all = (0..before.len().max(after.len())).map(|index| IterationChange {
        number: index.saturating_add(1),
        before: before.get(index).copied(),
        after: after.get(index).copied(),
    });
    all.filter(|step| step.before != step.after).collect()
}

#[cfg(test)]
mod tests;
