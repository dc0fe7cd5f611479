//! The questions that the panel shows, and the answers about one run.

use blockyard_lab::{
    AllocatorRow, Autopsy, Bound, ChangeKind, Conditions, Diff, Leaks, QuestionKind, Row, SearchResult,
    Verdict, WhatIf,
};
use blockyard_replay::Progress;
use blockyard_worker::questions::RunSummary;

use crate::ptr_eq::PtrEq;

/// The questions that can be unfolded below the verdict, in the order in which a reader asks them. The verdict
/// says why a run went out of memory.
pub(crate) fn sections() -> impl Iterator<Item = QuestionKind> {
    let is_answered = |kind: &QuestionKind| matches!(kind, QuestionKind::Verdict | QuestionKind::Autopsy);
    QuestionKind::ALL.into_iter().filter(move |kind| !is_answered(kind))
}

/// The question that is being answered, and its progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabWork {
    pub(crate) kind: QuestionKind,
    pub(crate) progress: Progress,
}

/// A search for the best setting, complete or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SettingSearch {
    /// A row for the run's own settings first, then a row for each setting that is tried; `None` until the
    /// row has arrived.
    pub(super) rows: Vec<Option<Row>>,
    /// The result, when all rows have arrived.
    pub(crate) found: Option<PtrEq<SearchResult>>,
}

impl SettingSearch {
    /// The rows that have arrived, the run's own settings first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }

    /// How many rows have arrived, and the number of all rows.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (self.rows().count(), self.rows.len())
    }
}

/// A change that was tried, with the run before and after the change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) title: String,
    /// The change, if the workload can be changed in this way.
    pub(crate) change: Option<ChangeKind>,
    pub(crate) before: Row,
    pub(crate) after: Row,
    pub(crate) requests: u64,
}

/// The answers about one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    pub(crate) what_if: Vec<PtrEq<WhatIf>>,
    pub(crate) search: Option<SettingSearch>,
    pub(crate) autopsy: Option<PtrEq<Option<Box<Autopsy>>>>,
    pub(crate) bound: Option<PtrEq<Bound>>,
    pub(crate) compare: Option<PtrEq<Vec<AllocatorRow>>>,
    pub(crate) leaks: Option<PtrEq<Leaks>>,
    pub(crate) diff: Option<(String, PtrEq<Diff>)>,
    pub(crate) trial: Option<PtrEq<Trial>>,
    pub(crate) runs: Vec<RunSummary>,
    pub(crate) verdict: Option<PtrEq<Verdict>>,
    /// The conditions that the verdict is for.
    pub(crate) verdict_for: Conditions,
    /// Whether another question ended the verdict before it was made.
    pub(super) is_verdict_due: bool,
    pub(crate) failed: Option<(QuestionKind, String)>,
}

impl Answers {
    /// The result of the search of settings, if it was made for the conditions of the verdict.
    pub(crate) fn searched(&self) -> Option<&PtrEq<SearchResult>> {
        let found = self.search.as_ref()?.found.as_ref()?;
        (found.best.is_some() && found.baseline.conditions == self.verdict_for).then_some(found)
    }

    /// The run that questions are about: the run of the device, or the one that the worker takes.
    pub(crate) fn run(&self, device: Option<usize>) -> Option<&RunSummary> {
        let first = || self.runs.iter().rev().max_by_key(|run| run.device_order);
        device.map_or_else(first, |device| self.runs.get(device))
    }
}
