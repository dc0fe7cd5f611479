//! What the page has to say: errors, progress, and what a screen reader announces.

use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::files::{forget_kept, open_files};
use crate::session::Session;
use crate::view::icon::Icon;
use crate::view::kit::{button, click, effect, icon_button, text};
use crate::view::step::spoken;

pub(crate) fn messages(session: Session) -> AnyView {
    let message = move || {
        session.message.get().map(|message| {
            let (class, role) = if message.is_error { ("message is-error", "alert") } else { ("message", "status") };
            view! {
                <div class=class role=role data-testid="message">
                    <p>{message.text}</p>
                    {icon_button("icon plain", "dismiss", Icon::Close, "Dismiss (Esc)", click(move || session.message.set(None)))}
                </div>
            }
            .into_any()
        })
    };
    view! {
        <div class="messages">
            {message}
            {progress(session)}
        </div>
    }
    .into_any()
}

/// That the browser keeps a copy of the reader's file, and the button that deletes the copy.
pub(crate) fn kept_file(session: Session, id: &'static str) -> AnyView {
    let content = move || {
        session.has_kept_file.get().then(|| {
            view! {
                <p class="quiet kept-file">
                    "A copy of the last file is in this browser's cache, on this machine only. "
                    {button("link", id, "Forget", "Delete the copy from this browser's cache", click(move || forget_kept(session)))}
                </p>
            }
            .into_any()
        })
    };
    view! { {content} }.into_any()
}

fn progress(session: Session) -> AnyView {
    let is_shown =
        Memo::new(move |_| session.work.with(|work| work.as_ref().is_some_and(|work| work.is_shown)));
    let words = text(move || {
        session.work.with(|work| {
            let words = work.as_ref().map(|work| match (work.phase.as_str(), work.total) {
                ("", _) => format!("{} …", work.title),
                (phase, 0) => format!("{}: {phase} …", work.title),
                (phase, total) => {
                    format!("{}: {phase}, {} %", work.title, work.done.saturating_mul(100) / total)
                }
            });
            words.unwrap_or_default()
        })
    });
    let bar = move || {
        let (done, total) =
            session.work.with(|work| work.as_ref().map_or((0, 0), |work| (work.done, work.total)));
        if total == 0 {
            view! { <progress aria-label="Progress"></progress> }.into_any()
        } else {
            view! { <progress aria-label="Progress" value=done.to_string() max=total.to_string()></progress> }
                .into_any()
        }
    };
    let content = move || {
        is_shown.get().then(|| {
            view! {
                <div class="message" data-testid="progress">
                    <p>{words}</p>
                    {bar}
                    {button("", "cancel", "Cancel", "Stop; what is open stays", click(move || session.cancel_work()))}
                </div>
            }
            .into_any()
        })
    };
    view! { {content} }.into_any()
}

/// Takes files that are dropped anywhere on the page.
pub(crate) fn drop_zone(session: Session) -> AnyView {
    let is_over = RwSignal::new(false);
    if let Some(document) = browser::document() {
        browser::listen(&document, "dragover", move |event: ev::DragEvent| {
            event.prevent_default();
            if !is_over.get_untracked() {
                is_over.set(true);
            }
        });
        browser::listen(&document, "dragleave", move |event: ev::DragEvent| {
            if event.related_target().is_none() {
                is_over.set(false);
            }
        });
        browser::listen(&document, "drop", move |event: ev::DragEvent| {
            event.prevent_default();
            is_over.set(false);
            if let Some(files) = event.data_transfer().and_then(|data| data.files()) {
                open_files(session, &files);
            }
        });
    }
    let veil = move || {
        is_over.get().then(|| {
            view! { <div class="drop-veil" aria-hidden="true"><p>"Drop a snapshot, a recording, a workload or a lesson to open it in this page"</p></div> }.into_any()
        })
    };
    view! { {veil} }.into_any()
}

const PAUSE_MILLIS: i32 = 450;

/// Tells screen readers about the step, once the cursor rests.
pub(crate) fn live_region(session: Session) -> AnyView {
    let node = NodeRef::<html::Div>::new();
    let timer = StoredValue::new(None::<i32>);
    let write = move |text: String| {
        if let Some(region) = node.get_untracked() {
            region.set_text_content(Some(&text));
        }
    };
    let mut is_first = true;
    effect(move || {
        let is_playing = session.player.with(|player| player.is_playing);
        let _ = session.run.get();
        browser::cancel(timer.get_value());
        // Nothing has to be read out when the page opens, or while it plays.
        let is_opening = std::mem::replace(&mut is_first, false);
        if !is_opening && !is_playing {
            let text = move || write(untrack(|| spoken(session)));
            timer.set_value(browser::after_millis(PAUSE_MILLIS, text));
        }
    });
    effect(move || {
        let text = session.spoken.get();
        if !text.is_empty() {
            write(text);
        }
    });
    view! { <div node_ref=node class="visually-hidden" aria-live="polite" data-testid="live"></div> }
        .into_any()
}
