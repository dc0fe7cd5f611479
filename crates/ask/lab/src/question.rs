//! Questions and answers as plain data, for a caller in another thread or process: a page asks its workers.

use blockyard_replay::{OnProgress, Progress};
use serde::{Deserialize, Serialize};

use crate::outcome::replay_under;
use crate::{
    AllocatorRow, Autopsy, Bound, ChangeKind, Conditions, Diff, LabError, Leaks, QuestionKind, Row, Run,
    RunSource, SearchResult, Verdict, WhatIf, autopsy, bound, candidates, compare_allocators, diff, leaks,
    try_change, verdict, what_if,
};

/// A question about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// The outcome of the run under other conditions: [`what_if`].
    WhatIf {
        /// The conditions of each replay.
        conditions: Vec<Conditions>,
        /// About how many parts each timeline has.
        samples: usize,
    },
    /// Which settings a search tries: [`candidates`].
    Candidates(Conditions),
    /// One of the rows of a search: [`replay_under`].
    ReplayUnder(Conditions),
    /// Which of the rows of a search is best: [`SearchResult::of`].
    Recommend {
        /// The conditions of the run itself.
        conditions: Conditions,
        /// The run under its own settings.
        baseline: Box<Row>,
        /// The run under each setting.
        rows: Vec<Row>,
    },
    /// Why the run goes out of memory: [`autopsy`].
    Autopsy(Conditions),
    /// The outcome of a change that an autopsy names: [`try_change`]. Answered as [`Question::WhatIf`] is.
    Change {
        /// The other conditions of the replay.
        conditions: Conditions,
        /// The change.
        change: ChangeKind,
        /// The request that fails without the change, counted from 1.
        request: u64,
        /// About how many parts each timeline has.
        samples: usize,
    },
    /// How little memory any allocator could need: [`bound`].
    Bound,
    /// What other allocators do: [`compare_allocators`].
    CompareAllocators(Conditions),
    /// What grows: [`leaks`].
    Leaks,
    /// What changed since another run: [`diff`].
    Diff(RunSource),
    /// What happened in the run: [`verdict`].
    Verdict(Conditions),
}

/// The answer to a [`Question`] of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LabAnswer {
    /// The answer to [`Question::WhatIf`] and [`Question::Change`].
    WhatIf(WhatIf),
    /// The answer to [`Question::Candidates`]: settings texts.
    Candidates(Vec<String>),
    /// The answer to [`Question::ReplayUnder`].
    ReplayUnder(Row),
    /// The answer to [`Question::Recommend`].
    Search(Box<SearchResult>),
    /// The answer to [`Question::Autopsy`]; `None` if the run does not go out of memory.
    Autopsy(Option<Box<Autopsy>>),
    /// The answer to [`Question::Bound`].
    Bound(Bound),
    /// The answer to [`Question::CompareAllocators`].
    CompareAllocators(Vec<AllocatorRow>),
    /// The answer to [`Question::Leaks`].
    Leaks(Leaks),
    /// The answer to [`Question::Diff`].
    Diff(Diff),
    /// The answer to [`Question::Verdict`].
    Verdict(Box<Verdict>),
}

impl Question {
    /// The question of a reader that this one is a part of.
    #[must_use]
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Self::Verdict(_) => QuestionKind::Verdict,
            Self::Autopsy(_) | Self::Change { .. } => QuestionKind::Autopsy,
            Self::WhatIf { .. } => QuestionKind::WhatIf,
            Self::Candidates(_) | Self::ReplayUnder(_) | Self::Recommend { .. } => QuestionKind::Search,
            Self::Leaks => QuestionKind::Leaks,
            Self::Diff(_) => QuestionKind::Diff,
            Self::CompareAllocators(_) => QuestionKind::CompareAllocators,
            Self::Bound => QuestionKind::Bound,
        }
    }

    /// Answers the question; `now` is a clock in nanoseconds.
    ///
    /// # Errors
    ///
    /// The errors of the function that answers the question.
    pub fn ask(
        &self,
        run: &Run,
        now: &mut dyn FnMut() -> u64,
        on_progress: OnProgress,
    ) -> Result<LabAnswer, LabError> {
        Ok(match self {
            Self::WhatIf { conditions, samples } => {
                LabAnswer::WhatIf(what_if(run, conditions, *samples, on_progress)?)
            }
            Self::Candidates(conditions) => LabAnswer::Candidates(candidates(run, conditions)),
            Self::ReplayUnder(conditions) => {
                let total = run.requests().len();
                let mut tell = |done| on_progress(Progress::new("replaying", done, total));
                LabAnswer::ReplayUnder(replay_under(run, conditions, 0, &mut tell)?)
            }
            Self::Recommend { conditions, baseline, rows } => {
                let mut tell = |_: usize| on_progress(Progress::new("replaying forward", 0, 0));
                let (baseline, rows) = ((**baseline).clone(), rows.clone());
                let found = SearchResult::of(run, conditions, baseline, rows, &mut tell)?;
                LabAnswer::Search(Box::new(found))
            }
            Self::Autopsy(conditions) => {
                LabAnswer::Autopsy(autopsy(run, conditions, on_progress)?.map(Box::new))
            }
            Self::Change { conditions, change, request, samples } => {
                LabAnswer::WhatIf(try_change(run, conditions, change, *request, *samples, on_progress)?)
            }
            Self::Bound => LabAnswer::Bound(bound(run, on_progress)?),
            Self::CompareAllocators(conditions) => {
                LabAnswer::CompareAllocators(compare_allocators(run, conditions, now, on_progress)?)
            }
            Self::Leaks => LabAnswer::Leaks(leaks(run, on_progress)?),
            Self::Verdict(conditions) => LabAnswer::Verdict(Box::new(verdict(run, conditions, on_progress)?)),
            Self::Diff(other) => {
                let others = other.runs(on_progress)?;
                let other = others.first().ok_or(LabError::NoTrace)?;
                LabAnswer::Diff(diff(run, other, on_progress)?)
            }
        })
    }
}
