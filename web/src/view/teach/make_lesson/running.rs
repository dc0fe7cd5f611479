//! Runs the program of a lesson, and keeps the requests of its cards: while its author writes, and where a
//! teacher gives its file to be graded.

use blockyard_lessons::{ExerciseLanguage, LessonProgram, RecordedError, split_recorded, with_recorded};
use blockyard_program::{ProgramJob, ProgramRun};
use blockyard_rules::Release;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::LessonEditor;
use crate::interpreter;
use crate::lessons::grade_answer;
use crate::messages::sentence;
use crate::program::loading_sentence;

/// Why a program has no requests for its lesson.
struct RunFailure {
    /// The line of the program, from 1.
    line: Option<u32>,
    why: String,
}

impl From<String> for RunFailure {
    fn from(why: String) -> Self {
        Self { line: None, why }
    }
}

impl From<RecordedError> for RunFailure {
    fn from(error: RecordedError) -> Self {
        Self { line: error.line(), why: error.to_string() }
    }
}

impl LessonEditor {
    /// Runs the program, if the lesson has one that has not run as it is now.
    pub(super) fn run_program(self) {
        // The author may have left the editor.
        let Some(program) = self.content.try_with_untracked(|text| LessonProgram::of(text)) else { return };
        let has_run = |program: &LessonProgram| self.requests.with_untracked(|block| program.has_run(block));
        let Some(program) = program.filter(|program| !has_run(program)) else {
            self.said.set(String::new());
            return self.run_solution();
        };
        self.said.set("The program runs.".to_owned());
        spawn_local(async move {
            let say = move |words: String| drop(self.said.try_set(words));
            let block = requests(&program, move |bytes| say(loading_sentence(bytes))).await;
            // The author may have written on, or left the editor.
            let is_same =
                self.content.try_with_untracked(|text| LessonProgram::of(text).as_ref() == Some(&program));
            if is_same != Some(true) {
                return;
            }
            say(String::new());
            match block {
                Ok(block) => {
                    self.requests.set(block);
                    self.keep();
                    if self.check() {
                        self.run_solution();
                    }
                }
                Err(RunFailure { line, why }) => {
                    let line = self.content.with_untracked(|text| LessonProgram::line_in(text, line?));
                    self.checked.update(|checked| {
                        checked.headline =
                            String::from("This is not a lesson yet: its program does not run.");
                        checked.findings.insert(0, (line.unwrap_or(1), sentence(&why)));
                    });
                }
            }
        });
    }
}

/// The beginnings of the lines before a solution and before the reader's lines in Python.
const SOLUTION: &str = "```python solution";
const START: &str = "```python start";

impl LessonEditor {
    /// Runs the solution of the exercise, if it is in Python, and says which goal it misses; then the start, which
    /// must miss a goal. The text of the lesson proves both in the small language.
    fn run_solution(self) {
        let lesson = self.checked.with_untracked(|checked| checked.lesson.clone());
        let exercise = lesson.and_then(|lesson| lesson.cards.iter().find_map(|card| card.exercise.clone()));
        let Some(exercise) = exercise.filter(|exercise| exercise.language == ExerciseLanguage::Python) else {
            return;
        };
        let before = untrack(|| self.whole());
        self.said.set("The solution runs.".to_owned());
        spawn_local(async move {
            let say = move |words: String| drop(self.said.try_set(words));
            let loading = move |bytes| say(loading_sentence(bytes));
            let mut found = None;
            if let Some(answer) = exercise.solution().map(|lines| exercise.with_region(lines)) {
                let why = match grade_answer(&exercise, answer, loading).await {
                    Ok(grade) if grade.is_passed => None,
                    Ok(grade) => Some(grade.sentence),
                    Err(why) => Some(sentence(&why)),
                };
                found = why.map(|why| (SOLUTION, "its solution does not solve the exercise", why));
            }
            if found.is_none() {
                let grade = grade_answer(&exercise, exercise.start().to_owned(), loading).await;
                let why = "These lines meet all goals: a student who changes nothing passes.".to_owned();
                found = grade.is_ok_and(|grade| grade.is_passed).then_some((
                    START,
                    "its exercise is solved before the reader begins",
                    why,
                ));
            }
            // The author may have written on, or left the editor.
            if untrack(|| self.try_whole()).as_ref() != Some(&before) {
                return;
            }
            say(String::new());
            let Some((block, what, why)) = found else { return };
            let at = before.lines().position(|line| line.starts_with(block)).unwrap_or_default();
            self.checked.update(|checked| {
                checked.headline = format!("It plays, but {what}.");
                checked.findings.insert(0, (u32::try_from(at).unwrap_or_default().saturating_add(1), why));
            });
        });
    }
}

/// The text of a lesson with the requests of its program, which runs if it has not run as it is now.
///
/// # Errors
///
/// Why it does not run, with the line of the text.
pub(crate) async fn with_requests(text: String, on_bytes: impl Fn(f64)) -> Result<String, String> {
    let (own, block) = split_recorded(&text);
    let Some(program) = LessonProgram::of(&own).filter(|program| !program.has_run(&block)) else {
        return Ok(text);
    };
    match requests(&program, on_bytes).await {
        Ok(block) => Ok(with_recorded(&own, &block)),
        Err(RunFailure { line, why }) => {
            let line = line.and_then(|line| LessonProgram::line_in(&own, line));
            Err(line.map_or_else(|| why.clone(), |line| format!("line {line}: {why}")))
        }
    }
}

async fn requests(program: &LessonProgram, on_bytes: impl Fn(f64)) -> Result<String, RunFailure> {
    let job = ProgramJob {
        source: program.source.clone(),
        arguments: Vec::new(),
        gpu: program.profile.clone().unwrap_or_else(|| "h200".to_owned()),
        release: Release::OF_RECORDED_OPERATORS,
        capacity: Some(program.capacity),
        counts_non_pytorch: false,
        conf: program.conf.clone(),
        referrers_at: None,
        own_lines: None,
    };
    block_of(program, &interpreter::run_answer(job, on_bytes).await?)
}

fn block_of(program: &LessonProgram, run: &ProgramRun) -> Result<String, RunFailure> {
    let Some(recording) = &run.recording else {
        return Err("the program's run could not be recorded".to_owned().into());
    };
    Ok(program.record(recording, &run.step_lines, run.traceback.as_deref())?)
}
