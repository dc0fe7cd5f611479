//! The workload's text, with the line of the step under the cursor and the place of an error.

use blockyard_workload::presets::presets;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::commands::sentence;
use crate::files::save_workload;
use crate::frames::{self, Slot};
use crate::run::{Attempt, InputError};
use crate::session::Session;
use crate::view::icon::Icon;
use crate::view::kit::{click, effect, flag, icon_button, limited_button, on, text};

/// The name of the text's element, by which keys find it.
pub(crate) const TEXT_ID: &str = "workload-text";

/// The height of a line and the space above the first one; the style sheet says the same.
const LINE_PX: i32 = 20;
const PADDING_PX: i32 = 6;

pub(crate) fn editor(session: Session) -> AnyView {
    view! {
        <section class="editor" aria-label="Workload">
            {bar(session)}
            {sheet(session)}
            {verdict(session)}
        </section>
    }
    .into_any()
}

fn bar(session: Session) -> AnyView {
    let can_undo = Memo::new(move |_| session.history.with(crate::history::History::can_undo));
    let can_redo = Memo::new(move |_| session.history.with(crate::history::History::can_redo));
    let summary = text(move || {
        session.history.with(|history| {
            let preset = presets().iter().find(|preset| preset.text == history.text());
            preset.map(|preset| preset.summary.to_owned()).unwrap_or_default()
        })
    });
    view! {
        <div class="bar">
            <h2><label for=TEXT_ID>"Text"</label></h2>
            <span class="preset-summary quiet" title=summary>{summary}</span>
            {limited_button("undo", Icon::Undo, "Undo (Ctrl+Z)", flag(move || !can_undo.get()), click(move || session.undo()))}
            {limited_button("redo", Icon::Redo, "Redo (Ctrl+Shift+Z)", flag(move || !can_redo.get()), click(move || session.redo()))}
            {icon_button("icon plain", "save", Icon::Save, "Save the text as a file", click(move || save_workload(session)))}
        </div>
    }
    .into_any()
}

/// `1`, `2`, `3` and so on, a line each.
fn numbers_to(lines: usize) -> String {
    let mut numbers = String::with_capacity(lines.saturating_mul(7));
    for line in 1..=lines {
        numbers.push_str(&line.to_string());
        numbers.push('\n');
    }
    numbers
}

/// The error in the text, with its place.
fn flaw(session: Session) -> Option<(String, (u32, u32, u32))> {
    session.attempt.with(|attempt| match attempt {
        Attempt::Failed(InputError::Text { message, place }) => Some((message.clone(), *place)),
        _ => None,
    })
}

fn sheet(session: Session) -> AnyView {
    let area = NodeRef::<html::Textarea>::new();
    let content = Memo::new(move |_| session.history.with(|history| history.text().to_owned()));
    let scroll = RwSignal::new((0, 0));
    let line = Memo::new(move |_| {
        let run = session.run.get();
        session.player.with(|player| player.current_step(&run.recording)).and_then(|step| run.line(step))
    });
    let top_of = move |line: u32| {
        i32::try_from(line)
            .unwrap_or(i32::MAX)
            .saturating_sub(1)
            .saturating_mul(LINE_PX)
            .saturating_add(PADDING_PX)
    };
    // The line of the step comes into sight, unless the reader is at work in the text.
    effect(move || {
        let (Some(area), Some(line)) = (area.get(), line.get()) else { return };
        // Once the box is laid out.
        frames::plan(Slot::Text, move || {
            let active = browser::document().and_then(|document| document.active_element());
            let is_edited = active.is_some_and(|element| element.id() == TEXT_ID);
            let (top, height) = (top_of(line), area.client_height());
            let seen = area.scroll_top();
            if !is_edited && (top < seen || top + LINE_PX > seen + height) {
                area.set_scroll_top(top - height / 2);
            }
        });
    });
    let gutter = Memo::new(move |_| {
        let lines = content.with(|text| text.matches('\n').count() + 1);
        numbers_to(lines)
    });
    let shift = text(move || format!("transform:translateY({}px)", -scroll.get().1));
    let current = move || {
        let shown = line.get().filter(|_| session.attempt.with(|attempt| matches!(attempt, Attempt::Ran(_))));
        shown.map(|line| {
            let style = text(move || format!("top:{}px", top_of(line) - scroll.get().1));
            view! { <div class="line" style=style></div> }.into_any()
        })
    };
    let underline = move || {
        flaw(session).map(|(_, (line, column, length))| {
            let (before, wrong) = content.with(|text| {
                let line = text.split('\n').nth(line.saturating_sub(1) as usize).unwrap_or_default();
                let before: String = line.chars().take(column.saturating_sub(1) as usize).collect();
                let wrong: String =
                    line.chars().skip(column.saturating_sub(1) as usize).take(length as usize).collect();
                (before, if wrong.is_empty() { " ".to_owned() } else { wrong })
            });
            let style = text(move || {
                let (left, top) = scroll.get();
                format!("top:{}px;transform:translateX({}px)", top_of(line) - top, -left)
            });
            view! { <div class="flaw" style=style>{before}<span>{wrong}</span></div> }.into_any()
        })
    };
    let scrolled = move |_: ev::Event| {
        if let Some(area) = area.get_untracked() {
            scroll.set((area.scroll_left(), area.scroll_top()));
        }
    };
    view! {
        <div class="sheet">
            <div class="gutter" aria-hidden="true"><div style=shift>{text(move || gutter.get())}</div></div>
            <div class="page">
                {current}
                {underline}
                <textarea
                    id=TEXT_ID
                    node_ref=area
                    data-testid=TEXT_ID
                    spellcheck="false"
                    autocomplete="off"
                    autocapitalize="off"
                    wrap="off"
                    aria-invalid=text(move || flaw(session).is_some().to_string())
                    aria-describedby="verdict"
                    prop:value=text(move || content.get())
                    on:input=on(move |event: ev::Event| session.type_text(event_target_value(&event)))
                    on:scroll=on(scrolled)
                ></textarea>
            </div>
        </div>
    }
    .into_any()
}

fn verdict(session: Session) -> AnyView {
    let content = move || match session.attempt.get() {
        Attempt::Ran(run) => {
            let count = run.recording.step_count();
            let failed = run.recording.failed_steps().len();
            let steps = if count == 1 {
                "1 step".to_owned()
            } else {
                format!("{} steps", crate::view::numbers::grouped_count(count))
            };
            let failures = match failed {
                0 => String::new(),
                1 => ", 1 of them failed".to_owned(),
                many => format!(", {} of them failed", crate::view::numbers::grouped_count(many)),
            };
            view! { <span class="quiet">{steps}{failures}</span> }.into_any()
        }
        Attempt::Long => {
            let words = if session.on_gpu.get() {
                "It runs on the GPU."
            } else {
                "A long workload: it runs in the background."
            };
            view! { <span class="quiet">{words}</span> }.into_any()
        }
        Attempt::Failed(failure) => {
            let words = match failure {
                InputError::Text { message, place: (line, column, _) } => {
                    format!("Error in line {line}, column {column}: {}.", message.trim_end_matches('.'))
                }
                InputError::Device(message) | InputError::Other(message) => sentence(&message),
                InputError::Config(_) => "PYTORCH_CUDA_ALLOC_CONF is wrong: see above.".to_owned(),
                InputError::Capacity(_) => "The capacity is wrong: see above.".to_owned(),
            };
            view! {
                <span class="error" data-testid="text-error">{words}</span>
                <span class="quiet">" The figure shows the last valid run."</span>
            }
            .into_any()
        }
    };
    view! { <p class="verdict" id="verdict" role="status" data-testid="verdict">{content}</p> }.into_any()
}
