//! The page's messages: errors, progress, and texts for screen readers.

use blockyard_figure::partial_timeline;
use blockyard_record::{Bytes, grouped};
use blockyard_replay::Progress;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::FileList;

use crate::browser::{self, Delay};
use crate::effect::effect;
use crate::frames;
use crate::messages::{MessageKind, RunningJob};
use crate::navigation::{Place, TeachersPage};
use crate::numbers::percent_done;
use crate::session::Session;
use crate::surface;
use crate::view::icon::Icon;
use crate::view::kit::{button, click, icon_button, text};
use crate::view::parts;
use crate::view::workbench::step::spoken;

pub(crate) fn messages(session: Session) -> AnyView {
    let message = move || {
        session.messages().message.get().map(|message| {
            let (class, role) = if message.kind == MessageKind::Error { ("message is-error", "alert") } else { ("message", "status") };
            view! {
                <div class=class role=role data-testid="message">
                    <p>{message.text}</p>
                    {icon_button("icon plain", "dismiss", Icon::Close, "Dismiss (Esc)", click(move || session.messages().message.set(None)))}
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

/// A sentence that the browser keeps a copy of the reader's file, and a button that deletes the copy; empty
/// if there is no copy.
pub(crate) fn kept_file(session: Session, id: &'static str) -> AnyView {
    let content = move || {
        session.files().has_kept_file.get().then(|| {
            view! {
                <p class="quiet kept-file">
                    "A copy of the last file is in this browser's cache, on this machine only, until the next file. "
                    {button("link", id, "Forget", "Delete the copy from this browser's cache", click(move || session.files().forget_kept()))}
                </p>
            }
            .into_any()
        })
    };
    view! { {content} }.into_any()
}

fn progress(session: Session) -> AnyView {
    let is_shown = Memo::new(move |_| {
        session.messages().work.with(|work| work.as_ref().is_some_and(|work| work.is_shown))
    });
    let words = text(move || {
        session.messages().work.with(|work| {
            let words = work.as_ref().map(|work| match (work.progress.phase.as_str(), work.progress.total) {
                ("", _) => format!("{} …", work.title),
                (phase, 0) => format!("{}: {phase} …", work.title),
                (phase, total) => {
                    format!("{}: {phase}, {}%", work.title, percent_done(work.progress.done, total))
                }
            });
            words.unwrap_or_default()
        })
    });
    let bar = move || {
        let work = session.messages().work.get();
        let Progress { done, total, .. } = work.map(|work| work.progress).unwrap_or_default();
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
                    {button("", "cancel", "Cancel", "Stop; what is open stays", click(move || session.workload().cancel_work()))}
                </div>
                {growing(session)}
            }
            .into_any()
        })
    };
    view! { {content} }.into_any()
}

/// Memory over time while a long file is read. The figure grows until the file is open.
fn growing(session: Session) -> AnyView {
    let is_growing = Memo::new(move |_| {
        session.messages().work.with(|work| work.as_ref().is_some_and(|work| work.read.is_some()))
    });
    let figure = move || is_growing.get().then(|| parts::growing_timeline(session));
    view! { {figure} }.into_any()
}

/// The figure of the part of the file that has been read, with its caption.
pub(crate) fn growing_timeline(session: Session) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    surface::keep_drawn(session, canvas, size, move |size| {
        session.messages().work.with(|work| {
            let work = work.as_ref()?;
            let share = frames::fraction(work.progress.done, work.progress.total);
            work.read.as_ref().map(|read| partial_timeline(&read.columns, share, size))
        })
    });
    let caption =
        text(move || session.messages().work.with(|work| work.as_ref().map_or_else(String::new, caption)));
    view! {
        <figure class="message growing" data-testid="growing-timeline">
            <figcaption>{caption}</figcaption>
            <div class="canvas-box" node_ref=area>
                <canvas node_ref=canvas role="img" aria-label="Memory over time of what has been read"></canvas>
            </div>
        </figure>
    }
    .into_any()
}

/// `Memory over time, as far as it is read: 2,801,112 entries, 312 of 777 MB; at most 18.2 GiB reserved, 15.1
/// GiB requested`.
fn caption(work: &RunningJob) -> String {
    let Some(read) = &work.read else { return String::new() };
    let most = |bytes: fn(&(Bytes, Bytes)) -> Bytes| read.columns.iter().map(bytes).max().unwrap_or_default();
    format!(
        "Memory over time, reading: {} entries, {} of {} MB. At most {} reserved and {} requested so far, counted from the first entry.",
        grouped(read.entries),
        grouped(work.progress.done / 1_000_000),
        grouped(work.progress.total / 1_000_000),
        most(|column| column.1),
        most(|column| column.0),
    )
}

/// The page with the result of `blockyard fit`, over the rest of the page.
pub(crate) fn fit_page(session: Session) -> AnyView {
    let fit = session.lab().fit;
    let content = move || {
        let html = fit.get()?;
        let close = button("primary", "fit-close", "Close", "", click(move || fit.set(None)));
        Some(view! { <div class="fit-page">{close}<iframe title="What fits" sandbox="" srcdoc=html></iframe></div> }.into_any())
    };
    view! { {content} }.into_any()
}

/// Whether dropped files are those of a class: on the page for teachers all files are, except a lesson.
fn is_for_class(session: Session, files: &FileList) -> bool {
    let is_lesson =
        files.length() == 1 && files.get(0).is_some_and(|file| file.name().to_lowercase().ends_with(".md"));
    matches!(session.navigation().place.get_untracked(), Place::Teachers(_)) && !is_lesson
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
            let Some(files) = event.data_transfer().and_then(|data| data.files()) else { return };
            if is_for_class(session, &files) {
                session.navigation().place.set(Place::Teachers(TeachersPage::HandOut));
                session.lessons().class.hand_in(&files);
            } else {
                session.files().open_files(&files);
            }
        });
    }
    let veil = move || {
        is_over.get().then(|| {
            let words = match session.navigation().place.get_untracked() {
                Place::Teachers(_) => "Drop the files of a class to grade them, or a lesson (.md) to play it",
                _ => "Drop a snapshot, a recording, a workload or a lesson to open it in this page",
            };
            view! { <div class="drop-veil" aria-hidden="true"><p>{words}</p></div> }.into_any()
        })
    };
    view! { {veil} }.into_any()
}

/// The step is announced when the cursor has rested for this long.
const PAUSE_MILLIS: i32 = 450;

/// The element whose text screen readers announce: the step when the cursor rests, and other short messages.
pub(crate) fn live_region(session: Session) -> AnyView {
    let node = NodeRef::<html::Div>::new();
    let delay = Delay::new();
    let write = move |text: String| {
        if let Some(region) = node.get_untracked() {
            region.set_text_content(Some(&text));
        }
    };
    let mut is_first = true;
    effect(move || {
        // A running program moves by itself, too.
        let is_playing = session.player.with(|player| player.is_playing) || session.live().moves();
        let _ = session.run.get();
        delay.cancel();
        // Nothing has to be read out when the page opens, or while it plays.
        let is_opening = std::mem::replace(&mut is_first, false);
        if !is_opening && !is_playing {
            let text = move || write(untrack(|| spoken(session)));
            delay.start(PAUSE_MILLIS, text);
        }
    });
    effect(move || {
        let text = session.messages().spoken.get();
        if !text.is_empty() {
            write(text);
        }
    });
    view! { <div node_ref=node class="visually-hidden" aria-live="polite" data-testid="live"></div> }
        .into_any()
}
