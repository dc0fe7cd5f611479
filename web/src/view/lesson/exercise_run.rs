//! How the reader's program of an exercise runs: its state, its output, its traceback.

use leptos::prelude::*;

use crate::lessons::ExerciseRun;
use crate::messages::sentence;
use crate::program::ProgramStatus;
use crate::session::Session;
use crate::view::kit::{button, click, flag, text};

/// The state of the program in a line, and a button that ends it.
pub(super) fn answer_state(session: Session) -> AnyView {
    let words = text(move || session.lessons().state.with(|state| status(&state.exercise_run)));
    let is_idle = flag(move || !session.lessons().state.with(|state| state.exercise_run.is_busy()));
    view! {
        <span hidden=is_idle>
            {button("", "stop-answer", "Stop", "Stop the program at once", click(move || session.lessons().stop_exercise()))}
        </span>
        <span class="quiet" role="status" data-testid="answer-status">{words}</span>
    }
    .into_any()
}

/// What the program printed.
pub(super) fn answer_output(session: Session) -> AnyView {
    let run = Memo::new(move |_| session.lessons().state.with(|state| state.exercise_run.clone()));
    view! {
        <pre class="code locked" data-testid="answer-output" hidden=flag(move || run.with(|run| run.printed.is_empty()))>
            {text(move || run.with(|run| run.printed.clone()))}
        </pre>
        <pre class="code" data-testid="answer-traceback" hidden=flag(move || run.with(|run| run.traceback.is_empty()))>
            {text(move || run.with(|run| run.traceback.clone()))}
        </pre>
    }
    .into_any()
}

fn status(run: &ExerciseRun) -> String {
    match &run.status {
        ProgramStatus::Loading(bytes) => {
            format!("Loading the Python interpreter, once: {:.1} MB so far.", bytes / 1e6)
        }
        ProgramStatus::Building => {
            "The Python interpreter is being built; the program starts when it is built.".to_owned()
        }
        ProgramStatus::Running => "The program runs.".to_owned(),
        ProgramStatus::Failed(why) => sentence(why),
        ProgramStatus::Idle => String::new(),
    }
}
