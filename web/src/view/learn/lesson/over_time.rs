//! A run of a chapter over time: of a card, or of the reader's lines in the exercise.

use blockyard_figure::{Role, Series};
use blockyard_lessons::PlayedLesson;
use blockyard_record::{Bytes, Recording};

use crate::lessons::training_groups;
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// A run over time.
#[derive(Debug)]
pub(super) struct OverTime {
    source: RunOverTime,
    pub(super) series: Series,
    pub(super) groups: Vec<(Role, Vec<Bytes>)>,
    /// The allocated bytes of an earlier run of the exercise after each number of steps.
    pub(super) before: Vec<Bytes>,
}

#[derive(Debug)]
enum RunOverTime {
    /// A run of the lesson, by its index.
    Played(PtrEq<PlayedLesson>, usize),
    /// The run of the reader's lines.
    Own(PtrEq<Run>),
}

impl OverTime {
    pub(super) fn of(played: PtrEq<PlayedLesson>, index: usize) -> Option<Self> {
        let run = played.runs.get(index)?;
        let (series, groups) = (Series::new(&run.recording), training_groups(&run.workload, &run.recording));
        Some(Self { source: RunOverTime::Played(played, index), series, groups, before: Vec::new() })
    }

    /// The run of the reader's lines, and the run before it.
    pub(super) fn of_exercise(run: PtrEq<Run>, before: Option<&Run>) -> Self {
        let before = before.map(|before| {
            let after = before.recording.breakdowns_from(0).map(|breakdown| breakdown.allocated());
            std::iter::once(Bytes::ZERO).chain(after).collect()
        });
        let series = Series::new(&run.recording);
        Self { source: RunOverTime::Own(run), series, groups: Vec::new(), before: before.unwrap_or_default() }
    }

    pub(super) fn recording(&self) -> Option<&Recording> {
        match &self.source {
            RunOverTime::Played(played, index) => Some(&played.runs.get(*index)?.recording),
            RunOverTime::Own(run) => Some(&run.recording),
        }
    }
}
