//! A verdict as a few lines of plain text, for a chat.

use std::fmt::Write as _;

use blockyard_record::counted;

use super::Verdict;
use crate::forecast::forecast_end;
use crate::{Change, ChangeKind, FindingTopic};

/// At most this many changes are listed.
const MAX_FIXES: usize = 3;

/// At most this many lines that hold memory are listed.
const MAX_LINES: usize = 5;

impl Verdict {
    /// The verdict about the run of this name in a few lines of plain text: the cause with its line, the
    /// numbers, at most three changes with their outcome, and who held the memory.
    #[must_use]
    pub fn summary(&self, name: &str) -> String {
        let mut text = format!("{name}: {}\n", self.headline);
        let about = |about: FindingTopic| {
            self.findings.iter().filter(move |finding| finding.about == about).map(|found| found.text.clone())
        };
        if let Some(numbers) = about(FindingTopic::Happened).next_back() {
            let _ = writeln!(text, "{numbers}");
        }
        let fixes: Vec<String> = match &self.autopsy {
            Some(autopsy) => one_of_each_kind(&autopsy.changes).into_iter().map(fix_text).collect(),
            None => about(FindingTopic::Helps).collect(),
        };
        write_list(&mut text, "What helps:", fixes.into_iter().take(MAX_FIXES));
        let held = self
            .held
            .iter()
            .take(MAX_LINES)
            .map(|held| format!("{} in {}: {}", held.bytes, counted(held.blocks, "block"), held.text()));
        let when = if self.autopsy.is_none() { "at the peak" } else { "at the failure" };
        write_list(&mut text, &format!("What held the memory {when}:"), held);
        if let Some(rest) = self.held.len().checked_sub(MAX_LINES).filter(|rest| *rest > 0) {
            let _ = writeln!(text, "- and {}", counted(rest, "more line"));
        }
        text
    }
}

fn write_list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        let _ = writeln!(text, "{title}");
    }
    for item in items {
        let _ = writeln!(text, "- {item}");
    }
}

fn fix_text(change: &Change) -> String {
    let end = change.forecast.as_ref().and_then(forecast_end);
    match end {
        Some(end) if !change.sentence.contains(&end) => format!("{}, {end}", change.sentence),
        _ => change.sentence.clone(),
    }
}

/// The first change of a setting, of the program, and of the memory, in the order of `changes`.
#[must_use]
pub fn one_of_each_kind(changes: &[Change]) -> Vec<&Change> {
    let kind = |change: &Change| match change.kind {
        ChangeKind::Setting(_) => 0,
        ChangeKind::Limit(_) => 1,
        _ => 2,
    };
    let mut best: Vec<&Change> = Vec::new();
    for change in changes {
        if best.iter().all(|known| kind(known) != kind(change)) {
            best.push(change);
        }
    }
    best
}
