//! A verdict as a few lines of plain text, for a chat.

use std::fmt::Write as _;

use blockyard_record::counted;

use super::{GrowthAdvice, Verdict};
use crate::{Change, ChangeKind, CodeFix, CodeFixKind, FindingTopic, Forecast};

/// At most this many changes are listed.
const MAX_FIXES: usize = 3;

/// At most this many lines that hold memory are listed.
const MAX_LINES: usize = 5;

impl Verdict {
    /// The verdict about the run of this name in a few lines of plain text: the cause with its line, the
    /// numbers, at most three changes with their outcome, and who held the memory.
    pub fn summary(&self, name: &str) -> String {
        let mut text = format!("{name}: {}\n", self.answer.headline);
        let about = |about: FindingTopic| {
            let findings = self.answer.findings.iter().filter(move |finding| finding.about == about);
            findings.map(|found| found.text.clone())
        };
        if let Some(numbers) = about(FindingTopic::Happened).next_back() {
            let _ = writeln!(text, "{numbers}");
        }
        let helps: Vec<String> = if self.autopsy.is_some() {
            self.answer.fixes.clone()
        } else {
            let code = self.answer.code_fixes.first().map(|fix| fix.sentence.clone());
            code.into_iter().chain(about(FindingTopic::Helps)).collect()
        };
        write_list(&mut text, "What helps:", helps.into_iter().take(MAX_FIXES));
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

    /// At most three changes of a run that failed: of a setting, of the code and of the memory. First those after
    /// which no later iteration is known to fail, of these the one that costs least; a tensor to free is last.
    /// Empty for a run without a failure.
    pub fn fixes(&self) -> Vec<Fix<'_>> {
        let Some(autopsy) = &self.autopsy else { return Vec::new() };
        let mut all: Vec<Fix<'_>> = autopsy.failure.changes.iter().map(Fix::Change).collect();
        all.extend(self.answer.code_fixes.iter().filter(|fix| fix.passes == Some(true)).map(Fix::Code));
        all.extend(self.advice.map(Fix::Advice));
        let order = |fix: &Fix<'_>| (fix.is_to_free(), fix.fails_later(), fix.cost());
        all.sort_by_key(order);
        let mut best: Vec<Fix<'_>> = Vec::new();
        for fix in &all {
            if !best.iter().any(|known| known.cost().is_like(fix.cost())) {
                best.push(*fix);
            }
        }
        // A tensor is easily freed in a replay, and the program still needs it.
        if best.iter().any(|fix| !fix.is_to_free() && fix.cost() != Cost::Memory && !fix.fails_later()) {
            best.retain(|fix| !fix.is_to_free());
        }
        let other = all.iter().find(|fix| matches!(fix, Fix::Code(_)) && !best.contains(fix));
        best.extend(other.filter(|_| best.len() < MAX_FIXES));
        best.sort_by_key(order);
        best
    }
}

/// A change that helps a run that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fix<'a> {
    /// A change of the program's code, whose effect is an estimate.
    Code(&'a CodeFix),
    /// A change that a replay proved.
    Change(&'a Change),
    /// What to do about tensors that iterations keep.
    Advice(GrowthAdvice),
}

impl Fix<'_> {
    /// The change and its effect, in a sentence without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            Self::Code(fix) => fix.sentence.clone(),
            Self::Change(change) => change.sentence.clone(),
            Self::Advice(advice) => advice.text().to_owned(),
        }
    }

    fn fails_later(&self) -> bool {
        let rest = match self {
            Self::Change(Change { forecast: Some(Forecast::Fails { .. }), .. }) => return true,
            Self::Change(change) => &change.rest,
            Self::Code(fix) => &fix.rest,
            Self::Advice(_) => &None,
        };
        rest.as_ref().is_some_and(|rest| rest.fails.is_some())
    }

    fn is_to_free(&self) -> bool {
        matches!(self, Self::Change(change) if matches!(change.kind, ChangeKind::FreeTensors { .. }))
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Change(change) => match change.kind {
                ChangeKind::Setting(_) => Cost::Setting,
                ChangeKind::Limit(_) => Cost::Memory,
                _ => Cost::Requests,
            },
            Self::Advice(_) => Cost::Requests,
            Self::Code(fix) => match fix.kind {
                CodeFixKind::FreedGradients => Cost::FreedGradients,
                CodeFixKind::NoForeach => Cost::NoForeach,
                CodeFixKind::Checkpoint => Cost::Checkpoint,
                CodeFixKind::ChunkedLoss => Cost::ChunkedLoss,
                CodeFixKind::InPieces => Cost::InPieces,
                CodeFixKind::SmallerBatch => Cost::SmallerBatch,
                _ => Cost::OtherTraining,
            },
        }
    }
}

/// What a change costs, the least first: a setting costs nothing; then come changes that keep every number that the
/// program computes, changes of how it trains, and more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    Setting,
    /// When and where memory is asked for and freed.
    Requests,
    FreedGradients,
    NoForeach,
    Checkpoint,
    ChunkedLoss,
    InPieces,
    SmallerBatch,
    OtherTraining,
    Memory,
}

impl Cost {
    /// Whether one of two changes is shown in place of both: of settings, of memory, and of all others one is.
    fn is_like(self, other: Self) -> bool {
        let kind = |cost: Self| (cost == Self::Setting, cost == Self::Memory);
        kind(self) == kind(other)
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
