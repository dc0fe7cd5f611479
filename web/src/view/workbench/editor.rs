//! The workload's text, with the line of the step under the cursor and the place of an error.

mod lines;
mod rows;
mod suggestions;
mod text_field;

use blockyard_record::counted;
use blockyard_workload::decimal_size;
use blockyard_workload::presets::presets;
use leptos::prelude::*;

use crate::element_ids::WORKLOAD_TEXT;
use crate::messages::sentence;
use crate::numbers::grouped_count;
use crate::run::{Attempt, InputError};
use crate::session::Session;
use crate::view::icon::Icon;
use crate::view::kit::{button, click, flag, icon_button, limited_button, text};
use crate::workload::History;
use text_field::TextField;

pub(crate) fn editor(session: Session) -> AnyView {
    let field = TextField::new(session);
    view! {
        <section class="editor" aria-label="Text of the workload">
            {bar(session)}
            {field.view()}
            {run_status(session, field)}
        </section>
    }
    .into_any()
}

fn bar(session: Session) -> AnyView {
    let can_undo = Memo::new(move |_| session.workload().history.with(History::can_undo));
    let can_redo = Memo::new(move |_| session.workload().history.with(History::can_redo));
    let summary = text(move || {
        session.workload().history.with(|history| {
            let preset = presets().iter().find(|preset| preset.text == history.text());
            preset.map(|preset| preset.summary.to_owned()).unwrap_or_default()
        })
    });
    view! {
        <div class="bar">
            <h2><label for=WORKLOAD_TEXT>"Text"</label></h2>
            <span class="preset-summary quiet">{summary}</span>
            {limited_button("undo", Icon::Undo, "Undo (Ctrl+Z)", flag(move || !can_undo.get()), click(move || session.workload().undo()))}
            {limited_button("redo", Icon::Redo, "Redo (Ctrl+Shift+Z)", flag(move || !can_redo.get()), click(move || session.workload().redo()))}
            {icon_button("icon plain", "save", Icon::Save, "Save the text as a file", click(move || session.workload().save()))}
        </div>
    }
    .into_any()
}

/// The index, from 0, of a line or a column that an error counts from 1.
fn index_of(number: u32) -> usize {
    (number as usize).saturating_sub(1)
}

fn requests_text(count: usize, failed: usize) -> String {
    let requests = counted(count, "request");
    match failed {
        0 => requests,
        many => format!("{requests}, {} of them failed", grouped_count(many)),
    }
}

fn run_status(session: Session, field: TextField) -> AnyView {
    let quiet = |words: String| view! { <span class="quiet">{words}</span> }.into_any();
    let content = move || match session.workload().attempt.get() {
        Attempt::Ran(run) => {
            quiet(requests_text(run.recording.step_count(), run.recording.failed_steps().len()))
        }
        Attempt::Long if session.workload().is_on_gpu.get() => quiet("It runs on the GPU.".to_owned()),
        Attempt::Long => quiet("A long workload: it runs in the background.".to_owned()),
        Attempt::Failed(failure) => {
            let (words, place) = match failure {
                InputError::Text { message, place: (line, column, _) } => {
                    let message = message.trim_end_matches('.');
                    (format!("Error in line {line}, column {column}: {message}."), Some((line, column)))
                }
                InputError::Device(message) | InputError::Other(message) => (sentence(&message), None),
                InputError::Config(_) => ("PYTORCH_CUDA_ALLOC_CONF is wrong: see above.".to_owned(), None),
                InputError::Capacity(_) => ("The capacity is wrong: see above.".to_owned(), None),
            };
            let show = place.map(|(line, column)| {
                let go = click(move || field.go_to(index_of(line), index_of(column)));
                button("link", "to-error", "Show it", "", go)
            });
            view! {
                <span class="error" data-testid="text-error">{words}</span>
                " "
                {show}
                <span class="quiet">" The figure shows the last valid run."</span>
            }
            .into_any()
        }
    };
    let hint = text(move || {
        let hint = field.caret_line.with(|line| decimal_size(line));
        hint.map(|hint| format!("{hint}.")).unwrap_or_default()
    });
    view! {
        <div class="verdict">
            <p id="verdict" role="status" data-testid="verdict">{content}</p>
            <p class="quiet" data-testid="decimal-hint" hidden=flag(move || hint.with(String::is_empty))>{hint}</p>
        </div>
    }
    .into_any()
}
