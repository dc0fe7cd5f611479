use proptest::prelude::*;

use super::super::Tolerance;
use super::*;

fn holder(number: u32, code: &str, bytes: u64) -> GuardHolder {
    GuardHolder {
        bytes: Bytes::new(bytes),
        at: format!("train.py:{number}"),
        function: "f".into(),
        code: code.into(),
    }
}

fn measured(holders: Vec<GuardHolder>, allocated: u64, reserved: u64) -> MeasuredRun {
    MeasuredRun {
        torch: "2.11".into(),
        is_exact: true,
        peak_allocated: Bytes::new(allocated),
        peak_reserved: Bytes::new(reserved),
        holders,
        ..MeasuredRun::default()
    }
}

fn entry(baseline: &MeasuredRun, lines: usize, tolerance: Tolerance) -> ProgramEntry {
    ProgramEntry { baseline: Some(baseline.baseline(lines)), tolerance, lines, ..ProgramEntry::default() }
}

fn sum(found: &GuardComparison) -> i128 {
    found.rows.iter().map(|row| i128::from(row.change.unwrap())).sum()
}

const NONE: Tolerance = Tolerance::Bytes(Bytes::ZERO);

#[test]
fn rows_add_up_to_the_byte() {
    let before =
        measured(vec![holder(3, "a()", 1000), holder(4, "b()", 500), holder(5, "c()", 1)], 1501, 2000);
    // The first line moved and grew, the second has no bytes any more, a new line came, the third is as
    // before.
    let after =
        measured(vec![holder(9, "d()", 1700), holder(4, "a()", 1003), holder(6, "c()", 1)], 2704, 3000);
    let found = compare(&entry(&before, 10, NONE), &after);
    assert_eq!(sum(&found), 2704 - 1501);
    let rows: Vec<(String, i128)> = found
        .rows
        .iter()
        .map(|row| (row.code.clone().unwrap_or("else".to_owned()), row.change.unwrap().into()))
        .collect();
    let expected = [("d()", 1700), ("b()", -500), ("a()", 3), ("else", 0)];
    assert_eq!(rows, expected.map(|(code, change)| (code.to_owned(), change)));
    assert_eq!(found.rows[0].most_before, None, "the baseline lists all lines");
}

#[test]
fn lines_that_the_baseline_does_not_list_are_in_everything_else() {
    let before =
        measured(vec![holder(1, "a()", 900), holder(2, "b()", 90), holder(3, "c()", 10)], 1000, 1000);
    let after = measured(
        vec![holder(1, "a()", 900), holder(3, "c()", 200), holder(2, "b()", 90), holder(7, "d()", 5)],
        1195,
        1195,
    );
    let found = compare(&entry(&before, 2, NONE), &after);
    // The bytes of the third line in the baseline are not known: the line counts whole, and everything else
    // has the opposite. The fourth line may have been as large before.
    assert_eq!((found.rows[0].change, found.rows[0].most_before), (Some(200), Some(Bytes::new(90))));
    assert_eq!((found.rows[1].at.as_ref(), found.rows[1].change), (None, Some(-5)));
    assert_eq!((found.rows.len(), sum(&found)), (2, 195));
}

#[test]
fn a_run_without_lines_has_one_row() {
    let before = measured(vec![holder(1, "a()", 900)], 1000, 1000);
    let found = compare(&entry(&before, 10, NONE), &measured(Vec::new(), 1200, 1200));
    assert_eq!((found.rows.len(), sum(&found), &found.rows[0].at), (1, 200, &None));
}

#[test]
fn lines_may_hold_more_than_is_allocated() {
    // Blocks that wait for another stream.
    let before = measured(vec![holder(1, "a()", 1100)], 1000, 2000);
    let found = compare(&entry(&before, 10, NONE), &measured(vec![holder(1, "a()", 900)], 1000, 2000));
    assert_eq!((found.rows[0].change, found.rows[1].change), (Some(-200), Some(200)));
    assert!(found.failures.is_empty() && !found.is_lower);
}

#[test]
fn a_growth_equal_to_the_tolerance_passes() {
    let before = measured(Vec::new(), 1000, 5000);
    let with = |allocated, reserved| {
        let found =
            compare(&entry(&before, 10, "1%".parse().unwrap()), &measured(Vec::new(), allocated, reserved));
        (found.failures, found.is_lower)
    };
    assert_eq!(with(1010, 5050), (Vec::new(), false));
    let growth = GuardFailure::Allocated {
        before: Bytes::new(1000),
        after: Bytes::new(1011),
        allowed: Bytes::new(10),
    };
    assert_eq!(with(1011, 5050).0, [growth]);
    let growth =
        GuardFailure::Reserved { before: Bytes::new(5000), after: Bytes::new(5051), allowed: Bytes::new(50) };
    assert_eq!(with(1000, 5051).0, [growth]);
    assert_eq!(with(990, 4950), (Vec::new(), false));
    assert_eq!(with(989, 5000), (Vec::new(), true));
    assert!(!with(989, 5051).1, "what fails is no reason to write the file again");
}

#[test]
fn a_peak_equal_to_the_budget_passes() {
    let entry = ProgramEntry { budget: Some(Bytes::new(5000)), ..ProgramEntry::default() };
    assert!(compare(&entry, &measured(Vec::new(), 1, 5000)).failures.is_empty());
    let over = GuardFailure::Budget { budget: Bytes::new(5000), reserved: Bytes::new(5001) };
    assert_eq!(compare(&entry, &measured(Vec::new(), 1, 5001)).failures, [over]);
}

#[test]
fn a_run_that_ended_early_is_failed_and_its_lower_peak_is_none() {
    let before = measured(Vec::new(), 1000, 1000);
    let ended = Some(GuardFailure::OutOfMemory { at: Some("train.py:3".into()) });
    let after = MeasuredRun { failure: ended.clone(), ..measured(Vec::new(), 10, 10) };
    let found = compare(&entry(&before, 10, NONE), &after);
    assert_eq!((found.failures, found.is_lower), (ended.into_iter().collect(), false));
}

#[test]
fn marks_and_versions_are_told_of_both() {
    let exact = measured(Vec::new(), 1, 1);
    let marked = MeasuredRun { is_exact: false, torch: "2.12".into(), ..exact.clone() };
    for (before, after) in [(&exact, &marked), (&marked, &exact)] {
        let found = compare(&entry(before, 10, NONE), after);
        assert!(found.is_estimate && found.has_other_torch);
    }
    let found = compare(&entry(&exact, 10, NONE), &exact);
    assert!(!found.is_estimate && !found.has_other_torch);
}

#[test]
fn steps_that_changed_or_are_missing_are_told() {
    let steps = |steps: &[u64]| MeasuredRun {
        iteration_peaks: steps.iter().map(|step| Bytes::new(*step)).collect(),
        ..measured(Vec::new(), 9, 9)
    };
    let found = compare(&entry(&steps(&[5, 9]), 10, NONE), &steps(&[5, 8, 9]));
    let of = |number, before: Option<u64>, after: Option<u64>| GuardStep {
        number,
        before: before.map(Bytes::new),
        after: after.map(Bytes::new),
    };
    assert_eq!(found.iterations, [of(2, Some(9), Some(8)), of(3, None, Some(9))]);
}

/// Lines of three functions and few texts, so that some are alike, some moved and some are missing.
fn holders() -> impl Strategy<Value = Vec<GuardHolder>> {
    let holder =
        (1..9_u32, 0..3_usize, 0..4_usize, 1..1_000_000_u64).prop_map(|(number, function, code, bytes)| {
            let code = ["", "x = self.block(x)", "return self.block(x)", "loss.backward()"][code];
            GuardHolder { function: format!("f{function}"), ..holder(number, code, bytes) }
        });
    prop::collection::vec(holder, 0..12)
}

/// The place, the function and the code of a row.
type Line = (Option<String>, Option<String>, Option<String>);

proptest! {
    #[test]
    fn rows_of_any_two_runs_add_up(
        before in holders(), after in holders(), lines in 0..12_usize, old in 0..9_000_000_u64, new in 0..9_000_000_u64
    ) {
        let (before, after) = (measured(before, old, old), measured(after, new, new));
        let entry = entry(&before, lines, NONE);
        let found = compare(&entry, &after);
        prop_assert_eq!(sum(&found), i128::from(new) - i128::from(old));
        prop_assert!(found.rows.last().is_some_and(|row| row.at.is_none()));
        let of_row = |row: &GuardRow| (row.at.clone(), row.function.clone(), row.code.clone());
        let listed: Vec<Line> = found.rows.iter().filter(|row| row.at.is_some()).map(of_row).collect();
        let count = |holders: &[GuardHolder], line: &Line| {
            let of = |holder: &GuardHolder| {
                (Some(holder.at.clone()), Some(holder.function.clone()), Some(holder.code.clone()))
            };
            holders.iter().filter(|holder| of(holder) == *line).count()
        };
        for line in &listed {
            let listed = listed.iter().filter(|other| *other == line).count();
            let most = count(&after.holders, line) + count(&before.holders, line);
            prop_assert!(listed <= most, "{line:?} counts too often");
        }
        // The same run compared with its own baseline has one row, without a change.
        let again = compare(&ProgramEntry { baseline: Some(after.baseline(lines)), ..entry }, &after);
        prop_assert!(lines < after.holders.len() || again.rows.len() == 1);
        prop_assert_eq!(sum(&again), 0);
    }
}
