//! The result of a comparison, in sentences.

use std::fmt::{self, Write as _};

use blockyard_answers::{GuardFailure, GuardRow};
use blockyard_record::{Bytes, counted, grouped, signed};

use super::{Baseline, GuardComparison, MeasuredRun, ProgramEntry, Tolerance};

/// At most this many rows, notes and iterations are listed.
const MAX_ROWS: usize = 10;

/// The report about one program.
pub(super) fn text(
    entry: &ProgramEntry,
    run: &MeasuredRun,
    found: &GuardComparison,
    is_update: bool,
) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = write(&mut text, entry, run, found, is_update);
    text
}

fn write(
    text: &mut String,
    entry: &ProgramEntry,
    run: &MeasuredRun,
    found: &GuardComparison,
    is_update: bool,
) -> fmt::Result {
    let outcome = match (is_update, found.is_failed(is_update)) {
        (_, true) => "FAILS",
        (true, false) => "written",
        (false, false) => "passes",
    };
    writeln!(text, "{} on {}: {outcome}", entry.command(), entry.gpu)?;
    for failure in &found.failures {
        writeln!(text, "  {}", sentence(failure, entry))?;
    }
    if let Some(baseline) = &entry.baseline {
        write_comparison(text, baseline, run, found)?;
    } else {
        let (allocated, reserved) = (size(run.peak_allocated), size(run.peak_reserved));
        writeln!(text, "  peak allocated: {allocated}; peak reserved: {reserved}")?;
        writeln!(text, "  the file has no baseline to compare with")?;
    }
    if let Some(budget) = entry.budget.filter(|budget| run.peak_reserved <= *budget) {
        let left = budget.saturating_sub(run.peak_reserved);
        writeln!(text, "  {left} are left of the budget of {budget}")?;
    }
    if found.is_lower {
        writeln!(text, "  a peak fell: `blockyard guard --update` stores the lower peak")?;
    }
    write_certainty(text, entry, run, found)
}

fn size(bytes: Bytes) -> String {
    format!("{} ({bytes})", counted(bytes.get(), "byte"))
}

fn sentence(failure: &GuardFailure, entry: &ProgramEntry) -> String {
    match failure {
        GuardFailure::OutOfMemory { at } => {
            let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("the program runs out of memory{at}; the peaks are those until then")
        }
        GuardFailure::Error { why } => format!("the run has no result: {why}"),
        GuardFailure::Budget { budget, reserved } => format!(
            "over the budget: the peak reserved is {}, which is {} more than {}",
            size(*reserved),
            counted(reserved.saturating_sub(*budget).get(), "byte"),
            budget
        ),
        GuardFailure::Allocated { before, after, allowed } => {
            grew("allocated", after.saturating_sub(*before), *allowed, entry)
        }
        GuardFailure::Reserved { before, after, allowed } => {
            grew("reserved", after.saturating_sub(*before), *allowed, entry)
        }
        // A failure that only later versions write.
        _ => "the run fails".to_owned(),
    }
}

fn grew(what: &str, change: Bytes, allowed: Bytes, entry: &ProgramEntry) -> String {
    let allowed = counted(allowed.get(), "byte");
    let allowed = match entry.tolerance {
        Tolerance::Bytes(_) => allowed,
        share @ Tolerance::Share(_) => format!("{share}, {allowed}"),
    };
    format!("the peak {what} grew by {}; the tolerance is {allowed}", size(change))
}

/// Writes a peak, and the baseline's peak if the two differ.
fn write_peak(text: &mut String, what: &str, before: Bytes, after: Bytes) -> fmt::Result {
    if before == after {
        return writeln!(text, "  peak {what}: {}, as before", size(after));
    }
    let change = signed(number(after).saturating_sub(number(before)), grouped);
    writeln!(text, "  peak {what}: {} instead of {} ({change})", size(after), size(before))
}

fn write_comparison(
    text: &mut String,
    baseline: &Baseline,
    run: &MeasuredRun,
    found: &GuardComparison,
) -> fmt::Result {
    write_peak(text, "allocated", baseline.peak_allocated, run.peak_allocated)?;
    write_rows(text, baseline, run, &found.rows)?;
    write_peak(text, "reserved", baseline.peak_reserved, run.peak_reserved)?;
    let allocated = number(run.peak_allocated).saturating_sub(number(baseline.peak_allocated));
    let reserved = number(run.peak_reserved).saturating_sub(number(baseline.peak_reserved));
    if reserved != 0 {
        writeln!(text, "    {:>16}  of the peak allocated", signed(allocated, grouped))?;
        let more = signed(reserved.saturating_sub(allocated), grouped);
        writeln!(text, "    {more:>16}  of segments beyond it")?;
    }
    let changed = found.iterations.iter().take(MAX_ROWS);
    for step in changed {
        let of = |bytes: Option<Bytes>| bytes.map_or_else(|| "no such iteration".to_owned(), size);
        writeln!(text, "  iteration {}: {} instead of {}", step.number, of(step.after), of(step.before))?;
    }
    if found.iterations.len() > MAX_ROWS {
        writeln!(text, "  and {} more iterations", found.iterations.len().saturating_sub(MAX_ROWS))?;
    }
    Ok(())
}

fn write_rows(text: &mut String, baseline: &Baseline, run: &MeasuredRun, rows: &[GuardRow]) -> fmt::Result {
    let change = |row: &GuardRow| i128::from(row.change.unwrap_or_default());
    let [changed @ .., rest] = rows else { return Ok(()) };
    if changed.is_empty() && change(rest) == 0 {
        return Ok(());
    }
    for row in changed.iter().take(MAX_ROWS) {
        let before = match (row.most_before, row.before, row.after) {
            (Some(most), ..) => format!(", not listed before: at most {most} then"),
            (None, Some(0), _) => ", new".to_owned(),
            (None, _, Some(0)) => ", gone".to_owned(),
            _ => String::new(),
        };
        writeln!(text, "    {:>16}  {}{before}", signed(change(row), grouped), line_text(row))?;
    }
    let hidden = changed.get(MAX_ROWS..).unwrap_or_default();
    if !hidden.is_empty() {
        let sum = hidden.iter().map(change).fold(0_i128, i128::saturating_add);
        writeln!(text, "    {:>16}  {} more lines", signed(sum, grouped), hidden.len())?;
    }
    let what = if run.holders.is_empty() && !baseline.holders.is_empty() {
        "everything else: the run left no lines"
    } else {
        "everything else"
    };
    writeln!(text, "    {:>16}  {what}", signed(change(rest), grouped))
}

/// The line of a row, with its function and its text where they are known.
fn line_text(row: &GuardRow) -> String {
    let known = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let function = known(&row.function).filter(|function| function != "<module>");
    let function = function.map(|function| format!(" {function}")).unwrap_or_default();
    let code = known(&row.code).map(|code| format!("  `{code}`")).unwrap_or_default();
    format!("{}{function}{code}", row.at.as_deref().unwrap_or_default())
}

pub(super) fn number(bytes: Bytes) -> i128 {
    i128::from(bytes.get())
}

fn write_certainty(
    text: &mut String,
    entry: &ProgramEntry,
    run: &MeasuredRun,
    found: &GuardComparison,
) -> fmt::Result {
    if let Some(baseline) = entry.baseline.as_ref().filter(|_| found.has_other_torch) {
        writeln!(
            text,
            "  the baseline was made with PyTorch {}, this run with {}: PyTorch may be the cause of a change",
            baseline.torch, run.torch
        )?;
    }
    for remark in &run.remarks {
        writeln!(text, "  {remark}")?;
    }
    if !found.is_estimate {
        return writeln!(text, "  exact: nothing was assumed except the order of the driver's addresses");
    }
    if run.notes.is_empty() {
        let whose = if run.is_exact { "the baseline's" } else { "this run's" };
        return writeln!(text, "  an estimate: {whose} numbers are marked");
    }
    writeln!(text, "  an estimate, because:")?;
    for note in run.notes.iter().take(MAX_ROWS) {
        writeln!(text, "    {note}")?;
    }
    if run.notes.len() > MAX_ROWS {
        writeln!(text, "    and {} more, in the JSON", run.notes.len().saturating_sub(MAX_ROWS))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use blockyard_answers::GuardHolder;

    use super::super::compare;
    use super::*;

    fn run(notes: &[&str]) -> MeasuredRun {
        MeasuredRun {
            torch: "2.11.0".into(),
            is_exact: notes.is_empty(),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..MeasuredRun::default()
        }
    }

    fn text_of(before: &MeasuredRun, after: &MeasuredRun) -> String {
        let entry = ProgramEntry {
            program: "train.py".into(),
            baseline: Some(before.baseline(10)),
            ..ProgramEntry::default()
        };
        text(&entry, after, &compare(&entry, after), false)
    }

    #[test]
    fn marks_are_in_the_report() {
        let marked = run(&["train.py:3: the program reads 4 bytes"]);
        assert!(
            text_of(&run(&[]), &run(&[]))
                .ends_with("exact: nothing was assumed except the order of the driver's addresses\n")
        );
        let text = text_of(&run(&[]), &marked);
        assert!(
            text.ends_with("an estimate, because:\n    train.py:3: the program reads 4 bytes\n"),
            "{text}"
        );
        assert!(text_of(&marked, &run(&[])).ends_with("an estimate: the baseline's numbers are marked\n"));
        let later = MeasuredRun { torch: "2.12.1".into(), ..run(&[]) };
        let words = "the baseline was made with PyTorch 2.11.0, this run with 2.12.1: PyTorch may be the cause of a change";
        assert!(
            text_of(&run(&[]), &later).contains(words)
                && !text_of(&later, &later).contains("the baseline was made with")
        );
    }

    #[test]
    fn many_rows_are_one_sum() {
        let holder = |line: u32| GuardHolder {
            bytes: Bytes::new(line.into()),
            at: format!("train.py:{line}"),
            function: String::new(),
            code: String::new(),
        };
        let after = MeasuredRun {
            holders: (1..=13).map(holder).collect(),
            peak_allocated: Bytes::new(100),
            ..run(&[])
        };
        let text = text_of(&run(&[]), &after);
        // The ten largest are 4 to 13; 1, 2 and 3 follow, and 9 bytes that no line holds.
        assert!(text.contains("              +6  3 more lines\n"), "{text}");
        assert!(text.contains("              +9  everything else\n"), "{text}");
        let listed: i64 = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix('+')?.split("  ").next()?.parse::<i64>().ok())
            .sum();
        assert_eq!(listed, 100, "{text}");
    }
}
