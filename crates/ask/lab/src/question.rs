//! Questions and answers as plain data, for a caller in another thread or process: a page asks its workers.

use blockyard_replay::OnProgress;
use serde::{Deserialize, Serialize};

use crate::{
    AllocatorRow, Autopsy, Bound, ChangeKind, Conditions, Diff, LabError, Leaks, QuestionKind, Run,
    RunSource, Verdict, WhatIf, autopsy, bound, compare_allocators, diff, leaks, try_change, verdict,
    what_if,
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
    WhatIf(Box<WhatIf>),
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
    pub const fn kind(&self) -> QuestionKind {
        match self {
            Self::Verdict(_) => QuestionKind::Verdict,
            Self::Autopsy(_) | Self::Change { .. } => QuestionKind::Autopsy,
            Self::WhatIf { .. } => QuestionKind::WhatIf,
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
                LabAnswer::WhatIf(Box::new(what_if(run, conditions, *samples, on_progress)?))
            }
            Self::Autopsy(conditions) => {
                LabAnswer::Autopsy(autopsy(run, conditions, on_progress)?.map(Box::new))
            }
            Self::Change { conditions, change, request, samples } => {
                let tried = try_change(run, conditions, change, *request, *samples, on_progress)?;
                LabAnswer::WhatIf(Box::new(tried))
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
