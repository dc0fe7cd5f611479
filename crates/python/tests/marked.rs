//! A line that differs from what an H200 printed has to be marked before it, in every recorded program of the
//! repository.
//!
//! A mark anywhere in a long program would excuse every line after it. So a line counts as marked only by a
//! mark that can have made it differ: each number of a line has a difference (ours less the GPU's), and where
//! the difference becomes another one than on the line before, other than none, an operator has to have been
//! marked since the last line whose allocated bytes were equal. A peak that stays, or whose difference
//! shrinks, is excused by the mark that excused it first. What is left is pinned in `marked.txt`, line by
//! line and each program with its reason: a line more or a line less fails.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests, and a list for people")]

use std::collections::BTreeMap;

#[path = "support/marked.rs"]
mod marked;
#[path = "support/run.rs"]
#[allow(dead_code, reason = "other tests run programs in more ways")]
mod support;

use marked::{all_programs, compare_all, pinned, unmarked};

#[test]
fn no_line_that_differs_from_the_recording_lacks_a_mark() {
    if !support::has_python_of_recordings() {
        return;
    }
    let only = std::env::var("COMPARE").ok();
    let (mut all, first_random) = all_programs();
    if let Some(only) = &only {
        all.retain(|program| only.split(',').any(|only| program["name"] == only));
    }
    let comparisons = compare_all(&all);
    let (pinned_equal, pinned) = pinned();
    let equal = comparisons.iter().skip(first_random).filter(|comparison| comparison.is_equal).count();
    let (mut count, mut under_mark) = (0, 0);
    for (_, is_marked, text) in comparisons.iter().flat_map(|comparison| &comparison.differing) {
        count += 1;
        under_mark += usize::from(*is_marked);
        println!("{} {text}", if *is_marked { "marked" } else { "without a mark" });
    }
    println!("{count} lines differ, {under_mark} of them under a mark");
    if only.is_some() {
        return;
    }
    println!("{equal} of {} random programs are equal in every line", all.len() - first_random);
    let expected: BTreeMap<String, String> =
        pinned.into_iter().map(|(name, (lines, _))| (name, lines)).collect();
    assert_eq!(
        (equal, unmarked(&comparisons)),
        (pinned_equal, expected),
        "not what marked.txt has; where it is better, `cargo xtask update programs` writes it"
    );
}
