//! Exercises: the start, the goals, and the grade of an answer.

mod given;
mod goal;
mod grade;
mod handed;
mod mistake;
mod mutation;
mod notes;
mod outcome;

pub use self::goal::{Goal, GoalResult};
pub use self::grade::{Grade, GradeError};
pub use self::mistake::{Mistake, RunOfLines};
pub use self::mutation::Mutant;

use std::ops::{ControlFlow, Range};

use blockyard_record::{Bytes, Recording};
use blockyard_replay::{RunError, RunSettings, run};
use blockyard_rules::{AllocatorConfig, Release};
use blockyard_workload::Workload;

use self::goal::goals;
use self::mistake::KnownMistake;
use crate::document::{Fence, Field, PYTHON};
use crate::error::{Errors, LessonError, LessonErrorKind, Position};
use crate::lesson::{MAX_REQUESTS, config, fields, size};
use crate::markdown::{Piece, fill};
use crate::measure::RunStretch;
use crate::proof::{UnprovedWord, unproved};
use crate::text::Inline;

/// The comment before the lines that the reader may change.
pub(crate) const REGION_FROM: &str = "# edit from here";
/// The comment after the lines that the reader may change.
pub(crate) const REGION_TO: &str = "# edit to here";

/// A workload or a program that the reader changes until the allocator agrees with all goals.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// The goals.
    pub goals: Vec<Goal>,
    /// Hints, one after the other.
    pub hints: Vec<Vec<Inline>>,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// The language that the reader writes.
    pub language: ExerciseLanguage,
    /// The id of the GPU that a program runs on, such as `h200`; a workload does not depend on it.
    pub profile: String,
    config: AllocatorConfig,
    hint_pieces: Vec<Vec<Piece>>,
    mistakes: Vec<KnownMistake>,
    start: String,
    /// The workload that the reader begins with; empty for a program.
    workload: Workload,
    region: Range<usize>,
    /// The lines that solve the exercise, and their place in the file.
    solution: Option<(Position, String)>,
}

/// The language that the reader of an exercise writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExerciseLanguage {
    /// A workload, which [`Exercise::grade`] runs.
    Workload,
    /// A Python program, which the caller runs for [`Exercise::grade_program`].
    Python,
}

/// The parts of a lesson that apply to its exercises.
pub(crate) struct ExerciseDefaults<'a> {
    pub(crate) settings: Option<&'a Field>,
    pub(crate) capacity: Bytes,
    pub(crate) profile: Option<&'a str>,
}

/// The GPU of programs whose lesson names none: the GPU whose numbers are compared with recordings.
const DEFAULT_PROFILE: &str = "h200";

impl Exercise {
    pub(crate) fn parse(
        fence: &Fence<'_>,
        start: &Fence<'_>,
        solution: Option<&Fence<'_>>,
        around: &ExerciseDefaults<'_>,
        errors: &mut Errors,
    ) -> Result<Self, LessonError> {
        let fields =
            fields(fence, "goal, hint, mistake, settings, capacity", &["goal", "hint", "mistake"], errors);
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
            mistakes: fields
                .all("mistake")
                .filter_map(|field| errors.keep(KnownMistake::parse(field)))
                .collect(),
            conf: settings.map(|field| field.value.clone()).unwrap_or_default(),
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

    /// The lines that solve the exercise in place of the reader's lines ([`Exercise::with_region`]); `None`
    /// if the lesson has no solution.
    pub fn solution(&self) -> Option<&str> {
        self.solution.as_ref().map(|(_, lines)| lines.as_str())
    }

    /// The mistakes that the author expects: the code that a line ends with, and the author's sentence.
    pub fn expected_mistakes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.mistakes.iter().map(|known| (known.code.as_str(), known.sentence.as_str()))
    }

    /// Checks that the solution of a workload meets the goals. A program is not run here.
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

    /// The whole workload or program that the reader begins with, the comments around the reader's lines
    /// included.
    pub fn start(&self) -> &str {
        &self.start
    }

    pub(crate) fn start_workload(&self) -> &Workload {
        &self.workload
    }

    /// The run of the workload that the reader begins with; `None` for a program.
    pub(crate) fn play_start(&self) -> Option<Result<Recording, RunError>> {
        (self.language == ExerciseLanguage::Workload).then(|| self.run(&self.workload))
    }

    /// The allocator's settings, parsed.
    pub fn config(&self) -> &AllocatorConfig {
        &self.config
    }

    fn run(&self, workload: &Workload) -> Result<Recording, RunError> {
        let settings =
            RunSettings { title: String::new(), config: self.config.clone(), capacity: self.capacity };
        run(workload, &settings, &mut |_| ControlFlow::Continue(()))
    }

    /// The hints with their values; adds a note for each number and comparing word in them that is not
    /// proved.
    pub(crate) fn ask_hints(
        &self,
        stretch: &RunStretch<'_>,
        notes: &mut Vec<UnprovedWord>,
        errors: &mut Errors,
    ) -> Vec<Vec<Inline>> {
        self.add_notes(notes);
        self.hint_pieces.iter().for_each(|hint| unproved(hint, stretch, notes));
        self.hint_pieces.iter().map(|hint| fill(hint, stretch, errors)).collect()
    }

    /// The lines of [`Exercise::start`], from 0, that the reader may change; all other lines belong to the
    /// task.
    pub fn region(&self) -> Range<usize> {
        self.region.clone()
    }

    /// The lines of a whole answer, from 0, that the reader wrote: the answer may have more lines than the
    /// start, and the lines of the task after them stay.
    pub fn own_lines(&self, answer: &str) -> Range<usize> {
        let after = self.start.trim_end().lines().count().saturating_sub(self.region.end);
        self.region.start..answer.trim_end().lines().count().saturating_sub(after)
    }

    /// The text of these lines.
    pub fn own_text<'a>(&self, answer: &'a str) -> Vec<&'a str> {
        let all: Vec<&str> = answer.lines().collect();
        all.get(self.own_lines(answer)).unwrap_or_default().to_vec()
    }

    /// The whole workload or program with these lines in place of the reader's.
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
}

fn parse_start(start: &Fence<'_>, text: &str) -> Result<Workload, LessonError> {
    if Workload::length(text).is_ok_and(|length| length > MAX_REQUESTS) {
        return Err(start.at.at(LessonErrorKind::TooLong { most: MAX_REQUESTS }));
    }
    Workload::parse(text).map_err(|error| {
        let (line, column, _) = error.position();
        let at = Position { line: start.at.line + line, column };
        at.at(LessonErrorKind::Workload(error.kind().clone()))
    })
}

/// The lines between the two comments, or all lines if the text has neither comment. `None` if only one
/// comment exists, if one is repeated, or if they are in the wrong order.
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
