mod notes;

use std::fmt;
use std::ops::{ControlFlow, Range};

use blockyard_record::{Bytes, Event, Recording};
use blockyard_replay::{RunError, RunSettings, run};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::{ParseError, Request, Workload};
use thiserror::Error;

use crate::condition::{Condition, missing_request};
use crate::document::{Fence, Field, Fields, PYTHON};
use crate::error::{Errors, LessonError, LessonErrorKind, MeasureError, Position};
use crate::lesson::{MOST_REQUESTS, config, fields, size};
use crate::markdown::{Piece, fill};
use crate::measure::Stretch;
use crate::program_end::ProgramEnd;
use crate::proof::{LessonNote, unproved};
use crate::text::Inline;

/// The comment before the lines that the reader may change.
pub(crate) const REGION_FROM: &str = "# edit from here";
/// The comment after them.
pub(crate) const REGION_TO: &str = "# edit to here";

/// A workload or a program that the reader changes until the allocator agrees with all goals.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// The goals.
    pub goals: Vec<Goal>,
    /// Hints, one after the other.
    pub hints: Vec<Vec<Inline>>,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub settings: String,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// What the reader writes.
    pub language: ExerciseLanguage,
    /// The id of the GPU that a program runs on, such as `h200`; a workload does not depend on it.
    pub profile: String,
    config: AllocatorConfig,
    hint_pieces: Vec<Vec<Piece>>,
    start: String,
    /// What the reader begins with; empty where this is a program.
    workload: Workload,
    region: Range<usize>,
    /// The lines that solve the exercise, and where they stand.
    solution: Option<(Position, String)>,
}

/// What the reader of an exercise writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExerciseLanguage {
    /// A workload, which [`Exercise::grade`] runs.
    Workload,
    /// A Python program, which the caller runs for [`Exercise::grade_program`].
    Python,
}

/// The parts of a lesson's front matter that hold for its exercises.
pub(crate) struct Surroundings<'a> {
    pub(crate) settings: Option<&'a Field>,
    pub(crate) capacity: Bytes,
    pub(crate) profile: Option<&'a str>,
}

/// The GPU of programs whose lesson names none: the one whose numbers are compared with recordings.
const DEFAULT_PROFILE: &str = "h200";

/// A goal of an exercise; prints as `peak reserved is at most 40 MiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal(Aim);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Aim {
    Condition(Condition),
    /// The program ends without an exception. Each exercise with a program has this goal first.
    Ends,
    /// Every tensor of the start is asked for, with its size and on its stream.
    SameRequests,
    /// No more statements of this kind than at the start.
    Without(Statement),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    Set,
    SetFraction,
    EmptyCache,
    Pool,
    ResetPeak,
}

const STATEMENTS: [(&str, Statement); 5] = [
    ("set", Statement::Set),
    ("set_fraction", Statement::SetFraction),
    ("empty_cache", Statement::EmptyCache),
    ("pool", Statement::Pool),
    ("reset_peak", Statement::ResetPeak),
];

impl Statement {
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
        match &self.0 {
            Aim::Condition(condition) => write!(f, "{condition}"),
            Aim::Ends => f.write_str("the program runs to its end"),
            Aim::SameRequests => f.write_str("no tensor is left out or made smaller"),
            Aim::Without(statement) => {
                write!(f, "no more lines with `{}` than at the beginning", statement.word())
            }
        }
    }
}

impl Goal {
    fn parse(field: &Field) -> Result<Self, LessonError> {
        if field.value == "same requests" {
            return Ok(Self(Aim::SameRequests));
        }
        if let Some(word) = field.value.strip_prefix("without ") {
            let found = STATEMENTS.iter().find(|row| row.0 == word.trim());
            let unexpected = || LessonErrorKind::Unexpected {
                expected: "set, set_fraction, empty_cache, pool or reset_peak",
                found: word.trim().to_owned(),
            };
            return found.map(|row| Self(Aim::Without(row.1))).ok_or_else(|| field.at.at(unexpected()));
        }
        let condition = Condition::parse(&field.value);
        condition
            .map(|condition| Self(Aim::Condition(condition)))
            .map_err(|error| field.at.at(LessonErrorKind::Measure(error)))
    }

    /// Whether a program, whose tensors have no names and whose statements are not counted, can have this goal.
    fn is_of_workload(&self) -> bool {
        match &self.0 {
            Aim::Condition(condition) => condition.is_of_workload(),
            Aim::Ends => false,
            Aim::SameRequests | Aim::Without(_) => true,
        }
    }

    /// The result; `failure` says how a program failed.
    fn grade(&self, start: &Workload, stretch: &Stretch<'_>, failure: Option<&str>) -> GoalResult {
        let (is_met, because) = match &self.0 {
            Aim::Ends => match failure {
                None => (true, "the program runs to its end".to_owned()),
                Some(failure) => (false, failure.to_owned()),
            },
            // If the reader's workload lacks the tensor or the label of a goal, the goal is not met; that is no error.
            Aim::Condition(condition) => {
                condition.holds(stretch).unwrap_or_else(|error: MeasureError| (false, error.to_string()))
            }
            Aim::SameRequests => match missing_request(start, stretch.workload) {
                None => (true, self.to_string()),
                Some(tensor) => (false, format!("the tensor {tensor} is not made any more")),
            },
            Aim::Without(statement) => {
                let (now, before) = (statement.count(stretch.workload), statement.count(start));
                let times = |count| if count == 1 { "1 time".to_owned() } else { format!("{count} times") };
                let word = statement.word();
                if now <= before {
                    (true, self.to_string())
                } else {
                    (false, format!("`{word}` occurs {}, at the beginning {}", times(now), times(before)))
                }
            }
        };
        GoalResult { goal: self.to_string(), is_met, because }
    }
}

/// The result of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalResult {
    /// The goal: `peak reserved is at most 40 MiB`.
    pub goal: String,
    /// Whether it is met.
    pub is_met: bool,
    /// The values: `peak reserved is 60 MiB, 20 MiB more than 40 MiB`.
    pub because: String,
}

impl GoalResult {
    /// Why the goal is met or not, where that says more than the goal: a program that runs to its end needs no reason.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        (self.because != self.goal).then_some(&*self.because)
    }
}

/// The result of a solution.
#[derive(Clone, Debug)]
pub struct Grade {
    /// Whether every goal is met.
    pub is_passed: bool,
    /// The verdict in a sentence, with the reason where it is not passed.
    pub sentence: String,
    /// All goals, in the order of the file.
    pub goals: Vec<GoalResult>,
    /// The answer's requests; none of a program.
    pub workload: Workload,
    /// The run of the requests, or of the program.
    pub recording: Recording,
}

/// Why an answer cannot be graded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GradeError {
    /// The answer is not a workload.
    #[error(transparent)]
    Text(ParseError),
    /// A line was changed that belongs to the task.
    #[error("line {line} belongs to the task and was changed: it reads \"{expected}\"")]
    Locked {
        /// The line of the answer, from 1.
        line: usize,
        /// The text that is expected there.
        expected: String,
    },
    /// The answer makes more requests than an exercise may.
    #[error("an exercise makes at most {most} requests")]
    TooLong {
        /// The most that it may make.
        most: u64,
    },
    /// The answer is a program, which the caller runs for [`Exercise::grade_program`].
    #[error("the answer is a Python program, which is run before it is graded")]
    IsProgram,
    /// The allocator had no result.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Exercise {
    pub(crate) fn parse(
        fence: &Fence<'_>,
        start: &Fence<'_>,
        solution: Option<&Fence<'_>>,
        around: &Surroundings<'_>,
        errors: &mut Errors,
    ) -> Result<Self, LessonError> {
        let fields = fields(fence, "goal, hint, settings, capacity", &["goal", "hint"], errors);
        fields.require("an exercise", "goal")?;
        let settings = fields.get("settings").or(around.settings);
        let lines: Vec<&str> = start.lines.clone();
        let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
        let (language, workload) = match start.language {
            PYTHON => (ExerciseLanguage::Python, Workload::default()),
            _ => (ExerciseLanguage::Workload, parse_start(start, &text)?),
        };
        let release = match language {
            ExerciseLanguage::Python => Release::OF_RECORDED_OPERATORS,
            ExerciseLanguage::Workload => Release::LATEST,
        };
        // The lines of a workload solve no program.
        if let Some(other) = solution.filter(|lines| (lines.language == PYTHON) != (start.language == PYTHON))
        {
            return Err(other.at.at(LessonErrorKind::HalfExercise));
        }
        Ok(Self {
            goals: goals(&fields, language, errors),
            hints: Vec::new(),
            hint_pieces: fields.all("hint").map(|field| field.prose.parse(errors)).collect(),
            settings: settings.map(|field| field.value.clone()).unwrap_or_default(),
            capacity: fields.get("capacity").map(size).transpose()?.unwrap_or(around.capacity),
            language,
            profile: around.profile.unwrap_or(DEFAULT_PROFILE).to_owned(),
            config: match settings {
                Some(field) => config(field.at, &field.value, release)?,
                None => AllocatorConfig::of(release),
            },
            region: region(&lines).ok_or_else(|| start.at.at(LessonErrorKind::Region))?,
            start: text,
            workload,
            solution: solution.map(|lines| (lines.at, lines.lines.join("\n"))),
        })
    }

    /// The lines that solve the exercise, in the place of the reader's ([`Exercise::with_region`]), where the lesson has them.
    #[must_use]
    pub fn solution(&self) -> Option<&str> {
        self.solution.as_ref().map(|(_, lines)| lines.as_str())
    }

    /// Holds that the solution of a workload is one. A program is not run here.
    pub(crate) fn check_solution(&self) -> Result<(), LessonError> {
        let Some((at, lines)) = self.solution.as_ref().filter(|_| self.language != ExerciseLanguage::Python)
        else {
            return Ok(());
        };
        let why = match self.grade(&self.with_region(lines)) {
            Ok(grade) if grade.is_passed => return Ok(()),
            Ok(grade) => grade.sentence,
            Err(error) => error.to_string(),
        };
        Err(at.at(LessonErrorKind::Solution { why }))
    }

    /// The whole workload or program that the reader begins with, the comments around the reader's lines included.
    #[must_use]
    pub fn start(&self) -> &str {
        &self.start
    }

    pub(crate) fn start_workload(&self) -> &Workload {
        &self.workload
    }

    /// The run of the workload that the reader begins with; none of a program.
    pub(crate) fn play_start(&self) -> Option<Result<Recording, RunError>> {
        (self.language == ExerciseLanguage::Workload).then(|| self.run(&self.workload))
    }

    /// The allocator's settings, parsed.
    #[must_use]
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    fn run(&self, workload: &Workload) -> Result<Recording, RunError> {
        let settings =
            RunSettings { title: String::new(), config: self.config.clone(), capacity: self.capacity };
        run(workload, &settings, &mut |_| ControlFlow::Continue(()))
    }

    /// The hints with their values, and what in them is not proved.
    pub(crate) fn ask_hints(
        &self,
        stretch: &Stretch<'_>,
        notes: &mut Vec<LessonNote>,
        errors: &mut Errors,
    ) -> Vec<Vec<Inline>> {
        self.add_notes(notes);
        self.hint_pieces.iter().for_each(|hint| unproved(hint, stretch, notes));
        self.hint_pieces.iter().map(|hint| fill(hint, stretch, errors)).collect()
    }

    /// The lines of [`Exercise::start`], from 0, that the reader may change; all other lines belong to the task.
    #[must_use]
    pub fn region(&self) -> Range<usize> {
        self.region.clone()
    }

    /// The whole workload or program with these lines in place of the reader's.
    #[must_use]
    pub fn with_region(&self, lines: &str) -> String {
        let all: Vec<&str> = self.start.lines().collect();
        let before = all.get(..self.region.start).unwrap_or_default();
        let after = all.get(self.region.end..).unwrap_or_default();
        let mut text = String::new();
        for line in before.iter().copied().chain(lines.lines()).chain(after.iter().copied()) {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Runs the reader's whole workload and says which goals are met.
    ///
    /// The same text always has the same grade.
    ///
    /// # Errors
    /// [`GradeError::Locked`] where a line of the task was changed, [`GradeError::Text`] where the text is not a workload,
    /// [`GradeError::TooLong`] where it makes too many requests, [`GradeError::IsProgram`] where the exercise is in Python.
    pub fn grade(&self, text: &str) -> Result<Grade, GradeError> {
        if self.language == ExerciseLanguage::Python {
            return Err(GradeError::IsProgram);
        }
        self.check_locked(text)?;
        if Workload::length(text).is_ok_and(|length| length > MOST_REQUESTS) {
            return Err(GradeError::TooLong { most: MOST_REQUESTS });
        }
        let workload = Workload::parse(text).map_err(GradeError::Text)?;
        let recording = self.run(&workload)?;
        Ok(self.grade_run(workload, recording, None))
    }

    /// Says which goals a program has met that is run already.
    ///
    /// # Errors
    /// [`GradeError::Locked`] where a line of the task was changed, [`GradeError::TooLong`] where the run has too many steps.
    pub fn grade_program(&self, text: &str, end: ProgramEnd) -> Result<Grade, GradeError> {
        self.check_locked(text)?;
        if end.recording.step_count() as u64 > MOST_REQUESTS {
            return Err(GradeError::TooLong { most: MOST_REQUESTS });
        }
        let failure = end.failure();
        Ok(self.grade_run(Workload::default(), end.recording, failure.as_deref()))
    }

    fn grade_run(&self, workload: Workload, recording: Recording, failure: Option<&str>) -> Grade {
        let to = recording.step_count();
        let stretch = Stretch { from: 0, to, ..Stretch::of(&workload, &recording) };
        let grade = |goal: &Goal| goal.grade(&self.workload, &stretch, failure);
        let mut goals: Vec<_> = self.goals.iter().map(grade).collect();
        if failure.is_some() {
            // A program that stopped halfway has not earned what it happens to meet.
            goals.retain(|goal| !goal.is_met);
        }
        let missed: Vec<&str> =
            goals.iter().filter(|goal| !goal.is_met).map(|goal| goal.because.as_str()).collect();
        let is_passed = missed.is_empty();
        let has_tensors = recording.events_from(0).any(|event| matches!(event, Event::Allocated { .. }));
        // A goal without a reason is in the list of goals alone.
        let found: Vec<&str> = goals.iter().filter_map(GoalResult::reason).collect();
        let sentence = match (is_passed, found.as_slice()) {
            (true, []) => "Passed.".to_owned(),
            (true, found) => format!("Passed: {}.", found.join("; ")),
            (false, _) if self.language == ExerciseLanguage::Python && failure.is_none() && !has_tensors => {
                "Not yet: the program makes no tensor on the GPU. `device=\"cuda\"` puts a tensor there."
                    .to_owned()
            }
            (false, _) => format!("Not yet: {}.", missed.join("; ")),
        };
        Grade { is_passed, sentence, goals, workload, recording }
    }

    /// Holds that the lines of the task are unchanged; blank lines and spaces at the ends of lines do not count.
    ///
    /// # Errors
    /// [`GradeError::Locked`] with the first line that was changed.
    pub fn check_locked(&self, text: &str) -> Result<(), GradeError> {
        let task: Vec<&str> = self.start.lines().collect();
        let answer: Vec<&str> = text.lines().map(str::trim_end).collect();
        let before = task.get(..self.region.start).unwrap_or_default();
        for (index, expected) in before.iter().enumerate() {
            if answer.get(index) != Some(&expected.trim_end()) {
                return Err(GradeError::Locked { line: index + 1, expected: (*expected).to_owned() });
            }
        }
        let end = answer.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let after = task.get(self.region.end..).unwrap_or_default();
        let mut line = end;
        for expected in after.iter().rev().skip_while(|line| line.trim().is_empty()) {
            line = line.saturating_sub(1);
            let is_theirs = line < self.region.start || answer.get(line) != Some(&expected.trim_end());
            if is_theirs {
                return Err(GradeError::Locked { line: line + 1, expected: (*expected).to_owned() });
            }
        }
        Ok(())
    }
}

fn parse_start(start: &Fence<'_>, text: &str) -> Result<Workload, LessonError> {
    if Workload::length(text).is_ok_and(|length| length > MOST_REQUESTS) {
        return Err(start.at.at(LessonErrorKind::TooLong { most: MOST_REQUESTS }));
    }
    Workload::parse(text).map_err(|error| {
        let (line, column, _) = error.position();
        let at = Position { line: start.at.line + line, column };
        at.at(LessonErrorKind::Workload(error.kind().clone()))
    })
}

/// The goals of the block, for a program after the one that it ends.
fn goals(fields: &Fields, language: ExerciseLanguage, errors: &mut Errors) -> Vec<Goal> {
    let mut goals = Vec::new();
    if language == ExerciseLanguage::Python {
        goals.push(Goal(Aim::Ends));
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

/// The lines between the two comments, or all where there are none.
fn region(lines: &[&str]) -> Option<Range<usize>> {
    let places = |mark: &str| -> Vec<usize> {
        (0..lines.len()).filter(|index| lines.get(*index).is_some_and(|line| line.trim() == mark)).collect()
    };
    match (places(REGION_FROM).as_slice(), places(REGION_TO).as_slice()) {
        ([], []) => Some(0..lines.len()),
        ([from], [to]) if from < to => Some(from + 1..*to),
        _ => None,
    }
}
