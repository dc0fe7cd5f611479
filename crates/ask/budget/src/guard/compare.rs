//! A run, compared with its entry.

use std::cmp::Reverse;

use blockyard_answers::{GuardFailure, GuardHolder, GuardRow, GuardStep};
use blockyard_record::Bytes;

use super::lines::{pairs, place};
use super::text::number;
use super::{Baseline, MeasuredRun, ProgramEntry};

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardComparison {
    /// Why the run fails; none if the run passes.
    pub failures: Vec<GuardFailure>,
    /// The change of the peak allocated, as a sum: changes of lines, the largest first, then everything else,
    /// which may be 0. The rows add up to the change, to the byte. Empty without a baseline.
    pub rows: Vec<GuardRow>,
    /// Iterations whose peak changed.
    pub iterations: Vec<GuardStep>,
    /// Whether a peak fell by more than the tolerance and the run passes: the baseline can be written again.
    pub is_lower: bool,
    /// Whether something was assumed in the run or in the run of the baseline.
    pub is_estimate: bool,
    /// Whether the baseline was made with another version of PyTorch.
    pub has_other_torch: bool,
}

impl GuardComparison {
    /// Whether the program fails. A growth is not a failure of an update.
    pub fn is_failed(&self, is_update: bool) -> bool {
        let is_growth = |failure: &GuardFailure| {
            matches!(failure, GuardFailure::Allocated { .. } | GuardFailure::Reserved { .. })
        };
        self.failures.iter().any(|failure| !is_update || !is_growth(failure))
    }
}

/// Compares a run with its entry. A peak equal to the budget, and a growth equal to the tolerance, pass.
pub fn compare(entry: &ProgramEntry, run: &MeasuredRun) -> GuardComparison {
    let mut found = GuardComparison { is_estimate: !run.is_exact, ..GuardComparison::default() };
    found.failures.extend(run.failure.clone());
    if let Some(budget) = entry.budget.filter(|budget| run.peak_reserved > *budget) {
        found.failures.push(GuardFailure::Budget { budget, reserved: run.peak_reserved });
    }
    let Some(baseline) = &entry.baseline else { return found };
    let peaks = [(baseline.peak_allocated, run.peak_allocated), (baseline.peak_reserved, run.peak_reserved)];
    for (at, (before, after)) in peaks.into_iter().enumerate() {
        let allowed = entry.tolerance.of(before);
        found.is_lower |= before.saturating_sub(after) > allowed;
        if after.saturating_sub(before) > allowed {
            found.failures.push(match at {
                0 => GuardFailure::Allocated { before, after, allowed },
                _ => GuardFailure::Reserved { before, after, allowed },
            });
        }
    }
    found.is_lower &= found.failures.is_empty();
    found.is_estimate |= !baseline.is_exact;
    found.has_other_torch = baseline.torch != run.torch;
    found.rows = rows(baseline, run);
    found.iterations = iterations(&baseline.iteration_peaks, &run.iteration_peaks);
    found
}

/// A part of the change of the peak allocated.
struct Change<'a> {
    /// The line; `None` for everything else.
    line: Option<&'a GuardHolder>,
    /// The bytes of the baseline. If the baseline does not list the line, its bytes count as everything else.
    before: i128,
    after: i128,
    most_before: Option<Bytes>,
}

impl Change<'_> {
    fn bytes(&self) -> i128 {
        self.after.saturating_sub(self.before)
    }

    fn row(&self) -> GuardRow {
        // A number that does not fit in 64 bits is left out, as in the guard's file.
        let in_64_bits = |bytes: i128| i64::try_from(bytes).ok();
        GuardRow {
            at: self.line.map(|line| line.at.clone()),
            function: self.line.map(|line| line.function.clone()),
            code: self.line.map(|line| line.code.clone()),
            before: in_64_bits(self.before),
            after: in_64_bits(self.after),
            change: in_64_bits(self.bytes()),
            most_before: self.most_before,
        }
    }
}

fn rows(baseline: &Baseline, run: &MeasuredRun) -> Vec<GuardRow> {
    let pairs = pairs(&baseline.holders, &run.holders);
    // The most that a line which the baseline does not list can have held, if the baseline leaves lines out.
    let least = baseline.holders.iter().map(|holder| holder.bytes).min().unwrap_or_default();
    let most_before = (baseline.further > 0).then_some(least);
    let mut rows = Vec::new();
    for (holder, pair) in run.holders.iter().zip(&pairs) {
        let (line, after) = (Some(holder), number(holder.bytes));
        if let Some(old) = pair.and_then(|index| baseline.holders.get(index)) {
            rows.push(Change { line, before: number(old.bytes), after, most_before: None });
        } else if most_before.is_none_or(|most| holder.bytes > most) {
            // The line holds more than any line that the baseline leaves out, so it grew for certain.
            rows.push(Change { line, before: 0, after, most_before });
        }
    }
    // Without a history of the run, the bytes that the lines hold now are not known.
    if !run.holders.is_empty() {
        for (index, old) in baseline.holders.iter().enumerate() {
            if !pairs.contains(&Some(index)) {
                rows.push(Change { line: Some(old), before: number(old.bytes), after: 0, most_before: None });
            }
        }
    }
    let sum = |of: fn(&Change<'_>) -> i128| rows.iter().map(of).fold(0_i128, i128::saturating_add);
    let others = Change {
        line: None,
        before: number(baseline.peak_allocated).saturating_sub(sum(|row| row.before)),
        after: number(run.peak_allocated).saturating_sub(sum(|row| row.after)),
        most_before: None,
    };
    rows.retain(|row| row.bytes() != 0);
    rows.sort_by_key(|row| {
        let by_line = row.line.map(|line| (place(line), line.function.as_str(), line.code.as_str()));
        (Reverse(row.bytes().abs()), by_line)
    });
    rows.push(others);
    rows.iter().map(Change::row).collect()
}

fn iterations(before: &[Bytes], after: &[Bytes]) -> Vec<GuardStep> {
    let all = (0..before.len().max(after.len())).map(|index| GuardStep {
        number: (index as u64).saturating_add(1),
        before: before.get(index).copied(),
        after: after.get(index).copied(),
    });
    all.filter(|step| step.before != step.after).collect()
}

#[cfg(test)]
mod tests;
