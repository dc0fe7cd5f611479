//! A program on one of the two sides, cut into its calls.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A line that a program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedLine {
    /// The text, without its end.
    pub text: String,
    /// How many allocations and frees came before the line.
    pub requests: usize,
    /// How many results were estimated before the line.
    pub estimated: u64,
    /// How often PyTorch's run read a value that is not known, or took a size that is assumed, before the
    /// line.
    pub unsure: u64,
}

/// The output of a program, and its requests to the allocator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRun {
    /// The lines in order.
    pub lines: Vec<PrintedLine>,
    /// Bytes of each allocation, and of each free with a minus.
    pub events: Vec<i64>,
    /// Ranges of `events` whose order PyTorch leaves to a hash table.
    pub unordered: Vec<Range<usize>>,
    /// The exception that ended the program.
    pub error: Option<String>,
}

/// The part of a program's run that belongs to one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallRun {
    /// Bytes of each allocation, and of each free with a minus.
    pub events: Vec<i64>,
    /// Ranges of `events` whose order PyTorch leaves to a hash table.
    pub unordered: Vec<Range<usize>>,
    /// What the call printed.
    pub printed: Vec<String>,
    /// The exception that the call raised: its type and the first line of its text.
    pub error: Option<String>,
    /// Whether a result of the call was estimated.
    pub is_estimated: bool,
    /// Whether PyTorch's run of the call read a value that is not known, or took a size that is assumed.
    pub is_unsure: bool,
}

impl ProgramRun {
    /// The calls that ended, by number.
    pub fn calls(&self) -> BTreeMap<usize, CallRun> {
        let mut calls = BTreeMap::new();
        let (mut begin, mut estimated, mut unsure, mut error) = (0, 0, 0, None);
        let mut printed = Vec::new();
        for line in &self.lines {
            if let Some(text) = line.text.strip_prefix("! ") {
                error = Some(text.to_owned());
                continue;
            }
            let Some(number) = line.text.strip_prefix("# ") else {
                printed.push(line.text.clone());
                continue;
            };
            let events = self.events.get(begin..line.requests).unwrap_or_default().to_vec();
            let inside = |range: &&Range<usize>| range.start >= begin && range.end <= line.requests;
            let unordered =
                self.unordered.iter().filter(inside).map(|range| range.start - begin..range.end - begin);
            let call = CallRun {
                events,
                unordered: unordered.collect(),
                printed: std::mem::take(&mut printed),
                error: error.take(),
                is_estimated: line.estimated > estimated,
                is_unsure: line.unsure > unsure,
            };
            if let Ok(number) = number.parse() {
                calls.insert(number, call);
            }
            (begin, estimated, unsure) = (line.requests, line.estimated, line.unsure);
        }
        calls
    }
}

/// How a call of ours compares with PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallComparison {
    /// The events and the printed lines are the same.
    Equal,
    /// The events or the lines differ, and the call is estimated.
    Estimated,
    /// The events or the lines differ without a mark.
    Different,
    /// PyTorch runs the call, and the call is refused here.
    Refused,
    /// PyTorch runs the call, and the call raises another exception here.
    Raises,
    /// PyTorch raises an exception, and the call runs here.
    Accepts,
    /// Both raise an exception.
    Invalid,
}

/// Compares a call with PyTorch's.
pub fn compare(ours: &CallRun, theirs: &CallRun) -> CallComparison {
    match (&ours.error, &theirs.error) {
        (Some(_), Some(_)) => return CallComparison::Invalid,
        (None, Some(_)) => return CallComparison::Accepts,
        (Some(error), None) if error.contains("NotImplementedError") => return CallComparison::Refused,
        (Some(_), None) => return CallComparison::Raises,
        (None, None) => {}
    }
    let (mut here, mut there) = (ours.events.clone(), theirs.events.clone());
    for range in &ours.unordered {
        for events in [&mut here, &mut there] {
            if let Some(events) = events.get_mut(range.clone()) {
                events.sort_unstable();
            }
        }
    }
    if here == there && ours.printed == theirs.printed {
        CallComparison::Equal
    } else if ours.is_estimated {
        CallComparison::Estimated
    } else {
        CallComparison::Different
    }
}
