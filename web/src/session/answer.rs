//! The reader's answer to an exercise: a workload is graded at once, a Python program once the interpreter has run it.

use blockyard_figure::PlayerAction;
use blockyard_lessons::{Exercise, ExerciseLanguage, Grade, GradeError, ProgramEnd};
use blockyard_program::{ProgramJob, ProgramRun};
use blockyard_rules::Release;
use leptos::prelude::*;

use super::lesson::GradedExercise;
use super::{ProgramStatus, Session};
use crate::browser;
use crate::commands::sentence;
use crate::interpreter::{self, ProgramReport};
use crate::ptr_eq::PtrEq;
use crate::run::Run;

/// The reader's program of an exercise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AnswerRun {
    pub(crate) status: ProgramStatus,
    /// What it printed.
    pub(crate) printed: String,
    /// The traceback of an exception that nobody caught; empty without one.
    pub(crate) traceback: String,
}

impl AnswerRun {
    /// Whether the program runs, or waits for the interpreter.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.status, ProgramStatus::Running | ProgramStatus::Loading(_) | ProgramStatus::Building)
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

impl Session {
    /// Grades the reader's exercise, and shows its run.
    pub(crate) fn grade(self, exercise: &PtrEq<Exercise>) {
        let text = exercise.with_region(&self.lesson.with_untracked(|state| state.text.clone()));
        match exercise.language {
            ExerciseLanguage::Workload => self.take_grade(exercise.grade(&text)),
            ExerciseLanguage::Python => self.run_answer(exercise.clone(), text),
        }
    }

    /// Ends the reader's program.
    pub(crate) fn stop_answer(self) {
        interpreter::stop();
        self.set_answer_status(ProgramStatus::Failed("stopped; the output stays".to_owned()));
    }

    /// Runs the reader's program on the exercise's device. A program that still runs is stopped first.
    fn run_answer(self, exercise: PtrEq<Exercise>, text: String) {
        let Some(lesson) = untrack(|| self.open_lesson()) else { return };
        let card = self.lesson.with_untracked(|state| state.card);
        let job = ProgramJob {
            source: text.clone(),
            arguments: Vec::new(),
            gpu: exercise.profile.clone(),
            release: Release::OF_RECORDED_OPERATORS,
            capacity: Some(exercise.capacity),
            is_shared: false,
            config: exercise.settings.clone(),
            holders_at: None,
        };
        let run = AnswerRun { status: ProgramStatus::Running, ..AnswerRun::default() };
        self.lesson.update(|state| state.answer_run = run);
        interpreter::run(job, move |report| {
            let is_here = self.lesson.with_untracked(|state| state.card) == card;
            // The reader may have gone to another card, lesson or part of the page.
            if is_here && untrack(|| self.open_lesson()).is_some_and(|open| open == lesson) {
                self.follow_answer(&exercise, &text, report);
            }
        });
    }

    fn follow_answer(self, exercise: &Exercise, text: &str, report: ProgramReport) {
        match report {
            ProgramReport::Loading(bytes) => self.set_answer_status(ProgramStatus::Loading(bytes)),
            ProgramReport::Building => self.set_answer_status(ProgramStatus::Building),
            ProgramReport::Started => self.set_answer_status(ProgramStatus::Running),
            ProgramReport::Printed(pieces) => self.lesson.update(|state| {
                for piece in &pieces {
                    state.answer_run.printed.push_str(&piece.text);
                }
            }),
            ProgramReport::Done(done) => match *done {
                Ok(run) => self.grade_answer(exercise, text, run),
                Err(error) => self.set_answer_status(ProgramStatus::Failed(error.to_string())),
            },
            ProgramReport::Failed(why) => self.set_answer_status(ProgramStatus::Failed(why.to_string())),
        }
    }

    fn grade_answer(self, exercise: &Exercise, text: &str, run: ProgramRun) {
        let traceback = run.traceback.clone().unwrap_or_default();
        self.lesson.update(|state| state.answer_run.traceback = traceback);
        let Some(recording) = run.recording else {
            return self.set_answer_status(ProgramStatus::Failed(
                "the program's run could not be recorded".to_owned(),
            ));
        };
        self.set_answer_status(ProgramStatus::Idle);
        let end = ProgramEnd { recording, status: run.status, traceback: run.traceback };
        self.take_grade(exercise.grade_program(text, end));
    }

    fn set_answer_status(self, status: ProgramStatus) {
        self.lesson.update(|state| state.answer_run.status = status);
    }

    fn take_grade(self, grade: Result<Grade, GradeError>) {
        let graded = match grade {
            Ok(grade) => graded(grade),
            Err(error) => GradedExercise {
                is_passed: false,
                sentence: sentence(&error.to_string()),
                goals: Vec::new(),
                run: None,
            },
        };
        let (is_passed, has_run) = (graded.is_passed, graded.run.is_some());
        self.stop_at.set(None);
        self.lesson.update(|state| state.graded = Some(graded));
        if has_run {
            self.dispatch(PlayerAction::End);
        }
        if is_passed && let Some(lesson) = untrack(|| self.open_lesson()) {
            self.add_progress(&lesson.id, self.lesson.with_untracked(|state| state.card), true);
        }
    }
}

fn graded(grade: Grade) -> GradedExercise {
    let goals = grade.goals.iter().map(|goal| (goal.goal.clone(), goal.is_met)).collect();
    GradedExercise {
        is_passed: grade.is_passed,
        sentence: grade.sentence,
        goals,
        run: Some(PtrEq::new(Run::of(grade.workload, grade.recording))),
    }
}
