//! The goals of an exercise, and whether a run meets them.

use std::fmt;

use blockyard_record::counted;
use blockyard_workload::{Request, Workload};

use super::ExerciseLanguage;
use crate::condition::{Condition, missing_request};
use crate::document::{Field, Fields};
use crate::error::{Errors, KnownNames, LessonError, LessonErrorKind, MeasureError};
use crate::measure::{Measure, RunStretch};

/// A goal of an exercise; prints as `peak reserved is at most 40 MiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    pub(super) kind: GoalKind,
    /// The author's words for a goal that only says what may not be left out.
    words: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoalKind {
    Condition(Condition),
    /// The program ends without an exception. Each exercise with a program has this goal first.
    Ends,
    /// Every tensor of the start is asked for, with its size and on its stream.
    SameRequests,
    /// No more statements of this kind than at the start.
    Without(CountedStatement),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedStatement {
    Set,
    SetFraction,
    EmptyCache,
    Pool,
    ResetPeak,
}

const STATEMENTS: [(&str, CountedStatement); 5] = [
    ("set", CountedStatement::Set),
    ("set_fraction", CountedStatement::SetFraction),
    ("empty_cache", CountedStatement::EmptyCache),
    ("pool", CountedStatement::Pool),
    ("reset_peak", CountedStatement::ResetPeak),
];

/// The forms of goals, as an error lists them.
const GOALS: [&str; 9] = [
    "same requests",
    "without set",
    "without set_fraction",
    "without empty_cache",
    "without pool",
    "without reset_peak",
    "peak reserved at most 40 MiB (at least, exactly, less than, more than)",
    "reserved falls (rises, stays)",
    "x passes (fails)",
];

impl CountedStatement {
    fn word(self) -> &'static str {
        STATEMENTS.iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }

    fn count(self, workload: &Workload) -> usize {
        let is_one = |request: &&Request| match self {
            Self::Set => matches!(request, Request::Set { .. }),
            Self::SetFraction => matches!(request, Request::SetFraction { .. }),
            Self::EmptyCache => matches!(request, Request::EmptyCache),
            Self::Pool => matches!(request, Request::CreatePool { .. }),
            Self::ResetPeak => matches!(request, Request::ResetPeak),
        };
        workload.requests().iter().filter(is_one).count()
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(words) = &self.words {
            return f.write_str(words);
        }
        match &self.kind {
            GoalKind::Condition(condition) => write!(f, "{condition}"),
            GoalKind::Ends => f.write_str("the program runs to its end"),
            GoalKind::SameRequests => f.write_str("no tensor is left out or made smaller"),
            GoalKind::Without(statement) => {
                write!(f, "no more lines with `{}` than at the beginning", statement.word())
            }
        }
    }
}

impl From<GoalKind> for Goal {
    fn from(kind: GoalKind) -> Self {
        Self { kind, words: None }
    }
}

impl Goal {
    /// Reads `CONDITION` or `CONDITION => WORDS`, `same requests`, or `without STATEMENT`.
    fn parse(field: &Field) -> Result<Self, LessonError> {
        if field.value == "same requests" {
            return Ok(GoalKind::SameRequests.into());
        }
        if let Some(word) = field.value.strip_prefix("without ") {
            let found = STATEMENTS.iter().find(|row| row.0 == word.trim());
            let unexpected = || LessonErrorKind::Unexpected {
                expected: "set, set_fraction, empty_cache, pool or reset_peak",
                found: word.trim().to_owned(),
            };
            return found.map(|row| GoalKind::Without(row.1).into()).ok_or_else(|| field.at.at(unexpected()));
        }
        let (condition, words) = match field.value.split_once("=>") {
            Some((condition, words)) => (condition, Some(words.trim().to_owned())),
            None => (&*field.value, None),
        };
        Condition::parse(condition)
            .map(|condition| Self { kind: GoalKind::Condition(condition), words })
            .map_err(|error| {
                field.at.at(match error {
                    MeasureError::NotACondition { found } => {
                        let known = KnownNames::of(&found, GOALS);
                        LessonErrorKind::UnknownGoal { found, known }
                    }
                    error => LessonErrorKind::Measure(error),
                })
            })
    }

    /// The quantities that the goal is about.
    pub(super) fn measures(&self) -> Vec<&Measure> {
        match &self.kind {
            GoalKind::Condition(condition) => condition.measures(),
            GoalKind::Ends | GoalKind::SameRequests | GoalKind::Without(_) => Vec::new(),
        }
    }

    /// Whether a program, whose tensors have no names and whose statements are not counted, can have this
    /// goal.
    fn is_of_workload(&self) -> bool {
        match &self.kind {
            GoalKind::Condition(condition) => condition.is_of_workload(),
            GoalKind::Ends => false,
            GoalKind::SameRequests | GoalKind::Without(_) => true,
        }
    }

    /// The result; `failure` says how a program failed.
    pub(super) fn grade(
        &self,
        start: &Workload,
        stretch: &RunStretch<'_>,
        failure: Option<&str>,
    ) -> GoalResult {
        let (is_met, mut because) = match &self.kind {
            GoalKind::Ends => match failure {
                None => (true, "the program runs to its end".to_owned()),
                Some(failure) => (false, failure.to_owned()),
            },
            // If the reader's workload lacks the tensor or the label of a goal, the goal is not met; that is
            // not an error.
            GoalKind::Condition(condition) => {
                condition.holds(stretch).unwrap_or_else(|error: MeasureError| (false, error.to_string()))
            }
            GoalKind::SameRequests => match missing_request(start, stretch.workload) {
                None => (true, self.to_string()),
                Some(tensor) => (false, format!("the tensor {tensor} is not made any more")),
            },
            GoalKind::Without(statement) => {
                let (now, before) = (statement.count(stretch.workload), statement.count(start));
                let word = statement.word();
                if now <= before {
                    (true, self.to_string())
                } else {
                    (
                        false,
                        format!(
                            "`{word}` occurs {}, at the beginning {}",
                            counted(now, "time"),
                            counted(before, "time")
                        ),
                    )
                }
            }
        };
        let goal = self.to_string();
        if is_met && self.words.is_some() {
            because.clone_from(&goal);
        }
        GoalResult { goal, is_met, is_known: true, because }
    }
}

/// The result of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalResult {
    /// The goal: `peak reserved is at most 40 MiB`.
    pub goal: String,
    /// Whether the goal is met.
    pub is_met: bool,
    /// Whether the run decides the goal: a program that ended early leaves all goals open but its end.
    pub is_known: bool,
    /// The values: `peak reserved is 60 MiB, 20 MiB more than 40 MiB`.
    pub because: String,
}

impl GoalResult {
    /// Misses a goal of a program that made no tensor on the GPU; that the program ends is not about the GPU.
    pub(super) fn miss_without_tensors(&mut self) {
        if self.is_met && self.goal != Goal::from(GoalKind::Ends).to_string() {
            self.is_met = false;
            "nothing was done on the GPU".clone_into(&mut self.because);
        }
    }

    /// Misses a goal of a program that did not run to its end.
    pub(super) fn miss_without_end(&mut self) {
        self.is_known = self.goal == Goal::from(GoalKind::Ends).to_string();
        if self.is_met {
            self.is_met = false;
            "the program did not run to its end".clone_into(&mut self.because);
        }
    }

    /// Why the goal is met or not, where that says more than the goal: a program that runs to its end needs
    /// no reason.
    pub fn reason(&self) -> Option<&str> {
        (self.because != self.goal).then_some(&*self.because)
    }
}

/// The goals of the block; for a program, the goal that it ends comes first.
pub(super) fn goals(fields: &Fields, language: ExerciseLanguage, errors: &mut Errors) -> Vec<Goal> {
    let mut goals = Vec::new();
    if language == ExerciseLanguage::Python {
        goals.push(GoalKind::Ends.into());
    }
    for field in fields.all("goal") {
        let Some(goal) = errors.keep(Goal::parse(field)) else { continue };
        if language == ExerciseLanguage::Python && goal.is_of_workload() {
            errors.push(field.at.at(LessonErrorKind::GoalOfWorkload { goal: field.value.clone() }));
        }
        goals.push(goal);
    }
    goals
}
