//! The reader's answer to an exercise: a workload is graded at once, a Python program once Python
//! has run it.

use std::ops::Range;

use blockyard_figure::PlayerAction;
use blockyard_lessons::{
    EndedProgram, Exercise, ExerciseLanguage, GoalResult, Grade, GradeError, Mistake, RunOfLines,
};
use blockyard_program::{ProgramJob, ProgramRun};
use blockyard_rules::Release;
use leptos::prelude::*;

use super::LessonSignals;
use crate::browser;
use crate::interpreter::{self, ProgramReport};
use crate::messages::sentence;
use crate::program::ProgramStatus;
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Feature;

/// The result of an exercise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GradedExercise {
    pub(crate) is_passed: bool,
    pub(crate) sentence: String,
    /// The first difference between the reader's text and the lesson's solution.
    pub(crate) mistake: Option<Mistake>,
    /// The goals in the order of the exercise. The sentence has the numbers.
    pub(crate) goals: Vec<GoalResult>,
    /// The run of the reader's text; `None` if the text could not be run.
    pub(crate) run: Option<PtrEq<Run>>,
}

/// The reader's program of an exercise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExerciseRun {
    pub(crate) status: ProgramStatus,
    /// The output of the program.
    pub(crate) printed: String,
    /// The traceback of an exception that the program did not catch; empty without an exception.
    pub(crate) traceback: String,
}

impl ExerciseRun {
    /// Whether the program runs, or waits for Python.
    pub(crate) fn is_busy(&self) -> bool {
        self.status.is_busy()
    }
}

/// The storage key of the reader's lines of an exercise.
fn key(lesson: &str, card: usize) -> String {
    format!("blockyard.exercise/{lesson}/{card}")
}

/// The reader's lines of an earlier visit.
pub(super) fn recall_draft(lesson: &str, card: usize) -> Option<String> {
    browser::recall(&key(lesson, card))
}

/// Keeps the reader's lines for the next visit, on the reader's machine only.
pub(super) fn remember_draft(lesson: &str, card: usize, text: &str) {
    browser::remember(&key(lesson, card), text);
}

/// The lines of an exercise that the reader may change.
pub(crate) fn region(exercise: &Exercise) -> String {
    let Range { start, end } = exercise.region();
    let lines: Vec<_> = exercise.start().lines().collect();
    lines.get(start..end).unwrap_or_default().join("\n")
}

impl Feature<LessonSignals> {
    /// Takes the reader's lines of the card's exercise. They are kept when another card is shown, and for the
    /// next visit.
    pub(crate) fn write_exercise(self, text: String) {
        let Some(id) = untrack(|| self.session.open_lesson()).map(|lesson| lesson.id.clone()) else { return };
        let (card, is_given) =
            self.state.with_untracked(|state| (state.exercise_card, state.given.is_some()));
        if self.session.navigation().embed.is_none() && !is_given {
            remember_draft(&id, card, &text);
        }
        self.state.update(|state| {
            if !is_given {
                state.drafts.insert((id, card), text.clone());
            }
            state.text = text;
        });
    }

    /// Shows the lines of a link in the card's exercise.
    pub(crate) fn show_given(self, lines: String) {
        self.state.update(|state| {
            state.text.clone_from(&lines);
            state.given = Some(lines);
        });
    }

    /// Shows the reader's own lines again.
    pub(crate) fn leave_given(self) {
        let card = self.state.with_untracked(|state| state.card);
        self.show_card(card);
    }

    /// Grades the reader's exercise, and shows its run.
    pub(crate) fn grade(self, exercise: &PtrEq<Exercise>) {
        let text = exercise.with_region(&self.state.with_untracked(|state| state.text.clone()));
        // The hint of another mistake waits until the reader asks for it.
        let count = exercise.hints.len();
        self.state.update(|state| state.hints = state.hints.min(count));
        match exercise.language {
            ExerciseLanguage::Workload => self.take_grade(exercise.grade(&text)),
            ExerciseLanguage::Python => self.run_exercise(exercise.clone(), text),
        }
    }

    /// Ends the reader's program.
    pub(crate) fn stop_exercise(self) {
        interpreter::stop();
        self.set_exercise_status(ProgramStatus::Failed("stopped; the output stays".to_owned()));
    }

    /// Runs the reader's program on the exercise's device. A program that still runs is stopped first.
    fn run_exercise(self, exercise: PtrEq<Exercise>, text: String) {
        let Some(lesson) = untrack(|| self.session.open_lesson()) else { return };
        let card = self.state.with_untracked(|state| state.exercise_card);
        let job = exercise_job(&exercise, text.clone());
        let run = ExerciseRun { status: ProgramStatus::Starting, ..ExerciseRun::default() };
        self.state.update(|state| state.exercise_run = run);
        interpreter::run(job, move |report| {
            let is_here = self.state.with_untracked(|state| state.exercise_card) == card;
            // The reader may have gone to another card, lesson or part of the page.
            if is_here && untrack(|| self.session.open_lesson()).is_some_and(|open| open == lesson) {
                self.follow_exercise(&exercise, &text, report);
            }
        });
    }

    fn follow_exercise(self, exercise: &PtrEq<Exercise>, text: &str, report: ProgramReport) {
        match report {
            ProgramReport::Status(status) => self.set_exercise_status(status),
            ProgramReport::Printed(pieces) => self.state.update(|state| {
                for piece in &pieces {
                    state.exercise_run.printed.push_str(&piece.text);
                }
            }),
            ProgramReport::Done(run) => self.grade_program(exercise, text, *run),
        }
    }

    fn grade_program(self, exercise: &PtrEq<Exercise>, text: &str, run: ProgramRun) {
        let traceback = run.traceback.clone().unwrap_or_default();
        self.state.update(|state| state.exercise_run.traceback = traceback);
        let Some(recording) = run.recording else {
            return self.set_exercise_status(ProgramStatus::Failed(
                "the program's run could not be recorded".to_owned(),
            ));
        };
        self.set_exercise_status(ProgramStatus::Idle);
        // The error of a program that fails for another reason explains itself; a program that ran out of
        // memory is compared, since the steps before the failure say why.
        let may_be_compared = run.traceback.as_deref().is_none_or(|text| text.contains("OutOfMemoryError"));
        let end = EndedProgram { recording, status: run.status, traceback: run.traceback };
        self.take_grade(exercise.grade_program(text, end));
        if may_be_compared {
            self.compare_with_solution(exercise.clone(), text.to_owned(), run.step_lines);
        }
    }

    /// Runs the solution of the lesson if the reader's program has missed a goal, and adds the first
    /// difference between both programs.
    fn compare_with_solution(self, exercise: PtrEq<Exercise>, text: String, lines: Vec<u32>) {
        let missed = |graded: &GradedExercise| !graded.is_passed && graded.mistake.is_none();
        let graded = self.state.with_untracked(|state| state.graded.clone()).filter(missed);
        let (Some(own), Some(solution)) = (graded.and_then(|graded| graded.run), exercise.solution()) else {
            return;
        };
        let job = exercise_job(&exercise, exercise.with_region(solution));
        interpreter::try_out(&job, move |end| {
            let Some((recording, solved)) = end.ok().and_then(|run| Some((run.recording?, run.step_lines)))
            else {
                return;
            };
            let own_run = RunOfLines { recording: &own.recording, lines: &lines };
            let solved_run = RunOfLines { recording: &recording, lines: &solved };
            let Some(found) = exercise.mistake(&text, &own_run, &solved_run) else { return };
            self.state.update(|state| {
                // The reader may have run other lines in the meantime.
                if let Some(graded) = state.graded.as_mut().filter(|graded| graded.run.as_ref() == Some(&own))
                {
                    graded.mistake = Some(found);
                }
            });
        });
    }

    fn set_exercise_status(self, status: ProgramStatus) {
        self.state.update(|state| state.exercise_run.status = status);
    }

    fn take_grade(self, grade: Result<Grade, GradeError>) {
        let graded = match grade {
            Ok(grade) => graded(grade),
            Err(error) => GradedExercise {
                is_passed: false,
                sentence: sentence(&error.to_string()),
                mistake: None,
                goals: Vec::new(),
                run: None,
            },
        };
        let (is_passed, has_run) = (graded.is_passed, graded.run.is_some());
        self.session.stop_at.set(None);
        self.state.update(|state| {
            let before = state.graded.replace(graded).and_then(|before| before.run);
            state.run_before = before.or_else(|| state.run_before.take());
        });
        if has_run {
            self.session.dispatch(PlayerAction::End);
        }
        let is_own = self.state.with_untracked(|state| state.given.is_none());
        if is_passed
            && is_own
            && let Some(lesson) = untrack(|| self.session.open_lesson())
        {
            self.add_progress(&lesson.id, self.state.with_untracked(|state| state.exercise_card), true);
        }
    }
}

/// A program with the reader's lines, on the exercise's device and under its settings.
fn exercise_job(exercise: &Exercise, source: String) -> ProgramJob {
    let own = exercise.own_lines(&source);
    let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    let own_lines = Some((number(own.start), number(own.end)));
    ProgramJob {
        source,
        arguments: Vec::new(),
        gpu: exercise.profile.clone(),
        release: Release::OF_RECORDED_OPERATORS,
        capacity: Some(exercise.capacity),
        counts_non_pytorch: false,
        conf: exercise.conf.clone(),
        referrers_at: None,
        own_lines,
    }
}

/// Runs a whole answer and grades it. `on_bytes` is called while Python is fetched, with the number of bytes that
/// have arrived.
///
/// # Errors
///
/// Why the answer has no grade.
pub(crate) async fn grade_answer(
    exercise: &Exercise,
    text: String,
    on_bytes: impl Fn(f64),
) -> Result<Grade, String> {
    if exercise.language == ExerciseLanguage::Workload {
        return exercise.grade(&text).map_err(|error| error.to_string());
    }
    exercise.check_locked(&text).map_err(|error| error.to_string())?;
    let run = interpreter::run_answer(exercise_job(exercise, text.clone()), on_bytes).await?;
    let recording = run.recording.ok_or_else(|| "the program's run could not be recorded".to_owned())?;
    let end = EndedProgram { recording, status: run.status, traceback: run.traceback };
    exercise.grade_program(&text, end).map_err(|error| error.to_string())
}

fn graded(grade: Grade) -> GradedExercise {
    GradedExercise {
        is_passed: grade.is_passed,
        sentence: grade.sentence,
        mistake: grade.mistake,
        goals: grade.goals,
        run: Some(PtrEq::new(Run::of(grade.workload, grade.recording))),
    }
}
