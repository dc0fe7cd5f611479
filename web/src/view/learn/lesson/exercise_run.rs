//! The run of the reader's program of an exercise: its state, its output, its traceback, and the buttons to
//! hand the answer in.

use blockyard_lessons::{Exercise, ExerciseLanguage};
use leptos::prelude::*;

use crate::browser;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::export;
use crate::view::kit::{button, click, flag, text};

/// The state of the program in a line, and a button that ends it.
pub(super) fn answer_state(session: Session) -> AnyView {
    let words = text(move || session.lessons().state.with(|state| state.exercise_run.status.text()));
    let is_idle = flag(move || !session.lessons().state.with(|state| state.exercise_run.is_busy()));
    view! {
        <span hidden=is_idle>
            {button("", "stop-answer", "Stop", "Stop the program at once", click(move || session.lessons().stop_exercise()))}
        </span>
        <span class="quiet" role="status" data-testid="answer-status">{words}</span>
    }
    .into_any()
}

/// The output of the program.
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

/// A note that the exercise shows the lines of a link and not the reader's own; empty for the reader's own
/// lines.
pub(super) fn given_line(session: Session) -> AnyView {
    let is_own = flag(move || session.lessons().state.with(|state| state.given.is_none()));
    view! {
        <p class="quiet" hidden=is_own data-testid="given-line">
            "These lines came in the link. Run them to check the goals; your own lines are kept. "
            {button("link", "leave-given", "Show my own lines", "", click(move || session.lessons().leave_given()))}
        </p>
    }
    .into_any()
}

/// The buttons for handing an answer in: a link with the lines in it, or a file that the command grades.
/// Shown once the lines have run.
pub(super) fn hand_in(session: Session, exercise: PtrEq<Exercise>) -> AnyView {
    let is_off = flag(move || session.lessons().state.with(|state| !state.has_run()));
    let is_unlinked = flag(move || {
        session.lessons().state.track();
        !export::has_link(session)
    });
    let copy = click(move || {
        browser::copy(&export::link(session));
        session.show_note(
            "The link is copied. It has your lines in it: a teacher who opens it can run and check them.",
        );
    });
    let ending = match exercise.language {
        ExerciseLanguage::Workload => "workload",
        ExerciseLanguage::Python => "py",
    };
    let save = click(move || {
        let lesson = untrack(|| session.open_lesson()).map_or_else(String::new, |lesson| lesson.id.clone());
        let text = exercise.with_region(&session.lessons().state.with_untracked(|state| state.text.clone()));
        browser::download(&format!("{lesson}.{ending}"), &text, "text/plain");
    });
    let name = text(move || {
        let lesson = session.open_lesson().map_or_else(String::new, |lesson| lesson.id.clone());
        format!("For a class, put your name before the file's: anna_{lesson}.{ending}")
    });
    view! {
        <p class="cluster no-print" hidden=is_off data-testid="hand-in">
            <span hidden=is_unlinked>
                {button("", "copy-solution", "Copy my solution as a link", "The link has your lines in it", copy)}
            </span>
            {button("", "save-solution", "Save it as a file", "The whole program, to hand in: the command blockyard lesson checks it", save)}
            <span class="quiet">{name}</span>
        </p>
    }
    .into_any()
}
