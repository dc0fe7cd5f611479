//! How the reader's program of an exercise runs: its state, its output, its traceback.

use leptos::prelude::*;

use crate::commands::sentence;
use crate::session::{AnswerRun, ProgramStatus, Session};
use crate::view::kit::{button, click, flag, text};

/// The state of the program in a line, and a button that ends it.
pub(super) fn answer_state(session: Session) -> AnyView {
    let words = text(move || session.lesson.with(|state| status(&state.answer_run)));
    let is_idle = flag(move || !session.lesson.with(|state| state.answer_run.is_busy()));
    view! {
        <span hidden=is_idle>
            {button("", "stop-answer", "Stop", "Stop the program at once", click(move || session.stop_answer()))}
        </span>
        <span class="quiet" role="status" data-testid="answer-status">{words}</span>
    }
    .into_any()
}

/// What the program printed.
pub(super) fn answer_output(session: Session) -> AnyView {
    let run = Memo::new(move |_| session.lesson.with(|state| state.answer_run.clone()));
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

fn status(run: &AnswerRun) -> String {
    match &run.status {
        ProgramStatus::Loading(bytes) => {
            format!("Loading the Python interpreter, once: {:.1} MB so far.", bytes / 1e6)
        }
        ProgramStatus::Building => {
            "The Python interpreter is being built; the program starts when it is there.".to_owned()
        }
        ProgramStatus::Running => "The program runs.".to_owned(),
        ProgramStatus::Failed(why) => sentence(why),
        ProgramStatus::Idle => String::new(),
    }
}
