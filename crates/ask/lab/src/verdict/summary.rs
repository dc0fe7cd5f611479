//! A verdict as a few lines of plain text, for a chat.

use std::fmt::Write as _;

use blockyard_record::counted;

use super::Verdict;
use crate::forecast::forecast_end;
use crate::{Change, ChangeKind, FindingTopic, Forecast};

/// At most this many changes are listed.
const MAX_FIXES: usize = 3;

/// At most this many lines that hold memory are listed.
const MAX_LINES: usize = 5;

impl Verdict {
    /// The verdict about the run of this name in a few lines of plain text: the cause with its line, the
    /// numbers, at most three changes with their outcome, and who held the memory.
    #[must_use]
    pub fn summary(&self, name: &str) -> String {
        let mut text = format!("{name}: {}\n", self.answer.headline);
        let about = |about: FindingTopic| {
            let findings = self.answer.findings.iter().filter(move |finding| finding.about == about);
            findings.map(|found| found.text.clone())
        };
        if let Some(numbers) = about(FindingTopic::Happened).next_back() {
            let _ = writeln!(text, "{numbers}");
        }
        let code = self.answer.code_fixes.first().map(|fix| fix.sentence.clone());
        let others: Vec<String> = match &self.autopsy {
            Some(_) => self.best_changes().into_iter().map(fix_text).collect(),
            None => about(FindingTopic::Helps).collect(),
        };
        write_list(&mut text, "What helps:", code.into_iter().chain(others).take(MAX_FIXES));
        let held = &self.answer.held;
        let lines = held
            .iter()
            .take(MAX_LINES)
            .map(|held| format!("{} in {}: {}", held.bytes, counted(held.blocks, "block"), held.text()));
        let when = if self.autopsy.is_none() { "at the peak" } else { "at the failure" };
        write_list(&mut text, &format!("What held the memory {when}:"), lines);
        if let Some(rest) = held.len().checked_sub(MAX_LINES).filter(|rest| *rest > 0) {
            let _ = writeln!(text, "- and {}", counted(rest, "more line"));
        }
        text
    }

    /// The first change of a setting, of the program, and of the memory that a replay proved, those after which
    /// a later iteration fails at the end; none of the program where [an
    /// estimate](blockyard_answers::VerdictAnswer::code_fixes) is about its code. Empty for a run without a
    /// failure.
    #[must_use]
    pub fn best_changes(&self) -> Vec<&Change> {
        const PROGRAM: u8 = 2;
        let kind = |change: &Change| match change.kind {
            ChangeKind::Setting(_) => 0,
            ChangeKind::Limit(_) => 1,
            _ => PROGRAM,
        };
        let mut changes: Vec<&Change> =
            self.autopsy.iter().flat_map(|autopsy| &autopsy.failure.changes).collect();
        changes.sort_by_key(|change| matches!(change.forecast, Some(Forecast::Fails { .. })));
        let mut best: Vec<&Change> = Vec::new();
        for change in changes {
            let is_wanted = kind(change) != PROGRAM || self.answer.code_fixes.is_empty();
            if is_wanted && best.iter().all(|known| kind(known) != kind(change)) {
                best.push(change);
            }
        }
        best
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
