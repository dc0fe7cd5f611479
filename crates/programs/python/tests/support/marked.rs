//! Recorded programs line by line: which lines differ, and whether a mark explains each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use blockyard_python::{PrintedLine, ProgramOutcome};
use serde_json::Value;

/// The lines that differ without a mark, by program and number, each program with what is known of the cause;
/// before them how many random programs are equal in every line. `cargo xtask update programs` writes the
/// numbers, a person the reasons.
pub(crate) fn pinned_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/marked.txt")
}

/// `3-5 9`, and back.
fn ranges(lines: &BTreeSet<usize>) -> String {
    let mut texts: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match texts.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => texts.push((*line, *line)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    texts.into_iter().map(text).collect::<Vec<_>>().join(" ")
}

/// What is pinned: the count of equal random programs, and of each program its lines and the reason.
pub(crate) fn pinned() -> (usize, BTreeMap<String, (String, String)>) {
    let text = std::fs::read_to_string(pinned_file()).unwrap_or_default();
    let mut equal = 0;
    let mut programs = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split(" | ").map(str::to_owned);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(lines), Some(reason)) => {
                programs.insert(name, (lines, reason));
            }
            (Some(text), ..) => {
                equal = text.split(' ').find_map(|part| part.parse().ok()).unwrap_or(equal);
            }
            _ => {}
        }
    }
    (equal, programs)
}

/// A printed line, and how often an operator had been marked when the line began.
struct Line {
    text: String,
    marked: u64,
}

/// What our numbers have more than the GPU's, number by number; `None` where the lines differ in anything
/// else.
fn differences(recorded: &str, here: &str) -> Option<Vec<i128>> {
    let numbers = |line: &str| -> Vec<i128> {
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    let words = |line: &str| -> String { line.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let (theirs, ours) = (numbers(recorded), numbers(here));
    if words(recorded) != words(here) || theirs.len() != ours.len() {
        return None;
    }
    Some(ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect())
}

/// Whether each difference is as large as before or smaller, and of the same sign.
fn has_not_grown(before: Option<&[i128]>, now: Option<&[i128]>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return false };
    // A line of other numbers has nothing to compare with from its front, so numbers are compared from the
    // end.
    let pairs = || now.iter().rev().zip(before.iter().rev());
    before.len() == now.len() && pairs().all(|(now, before)| now * before >= 0 && now.abs() <= before.abs())
}

/// Whether the bytes that are allocated differ: of a line of three numbers or more the third from the end,
/// before the peak and what is reserved.
fn differs_now(difference: Option<&[i128]>) -> bool {
    match difference {
        None => true,
        Some([.., allocated, _, _]) => *allocated != 0,
        Some(numbers) => numbers.iter().any(|number| *number != 0),
    }
}

/// A program beside its recording.
pub(crate) struct Comparison {
    pub(crate) name: String,
    /// The lines that differ: the number, whether a mark explains it, and both texts.
    pub(crate) differing: Vec<(usize, bool, String)>,
    /// Whether every line is equal and none is missing.
    pub(crate) is_equal: bool,
}

/// Compares what a program printed with its recording.
pub(crate) fn compare(program: &Value, printed: &str, finished: &ProgramOutcome) -> Comparison {
    let line = |line: PrintedLine<'_>| Line { text: line.text.to_owned(), marked: line.begin.estimates };
    let lines: Vec<Line> = finished.lines(printed).into_iter().map(line).collect();
    let name = program["name"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    // The difference of the line before, and whether it had a mark.
    let mut before = (Some(Vec::new()), true);
    let mut last_equal = 0;
    let recorded_lines = program["stdout"].as_str().unwrap_or_default().lines();
    for (number, (recorded, line)) in recorded_lines.clone().zip(&lines).enumerate() {
        let difference = differences(recorded, &line.text);
        if recorded == line.text {
            last_equal = line.marked;
            before = (difference, true);
            continue;
        }
        let is_as_before = has_not_grown(before.0.as_deref(), difference.as_deref());
        let is_marked = if is_as_before { before.1 } else { line.marked > last_equal };
        found.push((
            number + 1,
            is_marked,
            format!(
                "{name}, line {}: an H200 printed {recorded:?}, printed here: {:?}",
                number + 1,
                line.text
            ),
        ));
        if !differs_now(difference.as_deref()) {
            last_equal = line.marked;
        }
        before = (difference, is_marked);
    }
    if std::env::var_os("MARKS").is_some() && !found.is_empty() {
        println!("{name}: {:#?}", finished.estimates);
    }
    Comparison {
        name: name.to_owned(),
        is_equal: found.is_empty() && recorded_lines.count() == lines.len(),
        differing: found,
    }
}

/// The lines that differ without a mark, by program.
pub(crate) fn unmarked<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> BTreeMap<String, String> {
    let lines = |comparison: &Comparison| -> BTreeSet<usize> {
        comparison
            .differing
            .iter()
            .filter(|(_, is_marked, _)| !is_marked)
            .map(|(number, ..)| *number)
            .collect()
    };
    let programs = comparisons.map(|comparison| (&comparison.name, lines(comparison)));
    let programs = programs.filter(|(_, lines)| !lines.is_empty());
    programs.map(|(name, lines)| (name.clone(), ranges(&lines))).collect()
}
