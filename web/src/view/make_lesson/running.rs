//! Runs the program of a lesson while its author writes, and keeps the requests of its cards.

use blockyard_lessons::{LessonProgram, exception};
use blockyard_program::{ProgramJob, ProgramRun};
use blockyard_rules::Release;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::LessonEditor;
use crate::interpreter;
use crate::messages::sentence;
use crate::program::loading_sentence;

impl LessonEditor {
    /// Runs the program, if the lesson has one that has not run as it is now.
    pub(super) fn run_program(self) {
        // The author may have left the editor.
        let Some(program) = self.content.try_with_untracked(|text| LessonProgram::of(text)) else { return };
        let has_run = |program: &LessonProgram| self.requests.with_untracked(|block| program.has_run(block));
        let Some(program) = program.filter(|program| !has_run(program)) else {
            return self.said.set(String::new());
        };
        self.said.set("The program runs.".to_owned());
        let job = ProgramJob {
            source: program.source.clone(),
            arguments: Vec::new(),
            gpu: program.profile.clone().unwrap_or_else(|| "h200".to_owned()),
            release: Release::OF_RECORDED_OPERATORS,
            capacity: Some(program.capacity),
            counts_non_pytorch: false,
            conf: program.conf.clone(),
            referrers_at: None,
        };
        spawn_local(async move {
            let say = move |words: String| drop(self.said.try_set(words));
            let run = interpreter::run_answer(job, move |bytes| say(loading_sentence(bytes))).await;
            // The author may have written on, or left the editor.
            let is_same =
                self.content.try_with_untracked(|text| LessonProgram::of(text).as_ref() == Some(&program));
            if is_same != Some(true) {
                return;
            }
            match run.and_then(|run| requests(&program, run)) {
                Ok(block) => {
                    self.requests.set(block);
                    say(String::new());
                    self.keep();
                    let _ = self.check();
                }
                Err(why) => say(sentence(&why)),
            }
        });
    }
}

/// The requests of a run. A program that ran out of memory has them, too: a lesson may be about that.
fn requests(program: &LessonProgram, run: ProgramRun) -> Result<String, String> {
    let traceback = run.traceback.unwrap_or_default();
    if let Some(why) = exception(&traceback).filter(|why| !why.contains("OutOfMemoryError")) {
        return Err(format!("the program ends: {why}"));
    }
    let recording = run.recording.ok_or("the program's run could not be recorded")?;
    program.record(&recording, &run.step_lines).map_err(|error| error.to_string())
}
