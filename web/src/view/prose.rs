//! The text of lessons and of the glossary as views.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use blockyard_figure::Term;
use blockyard_lessons::{Glossary, Inline, Quantity, TextBlock, glossary, plain};
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use crate::browser;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{self, on};
use crate::view::learn::lessons::place_link;

pub(crate) fn blocks(session: Session, blocks: &[TextBlock]) -> Vec<AnyView> {
    blocks
        .iter()
        .map(|block| match block {
            TextBlock::Paragraph(text) => view! { <p>{inlines(session, text)}</p> }.into_any(),
            TextBlock::List(items) => {
                let items = items
                    .iter()
                    .map(|item| view! { <li>{inlines(session, item)}</li> }.into_any())
                    .collect::<Vec<_>>();
                view! { <ul class="bullets">{items}</ul> }.into_any()
            }
            TextBlock::Code { text, .. } => view! { <pre class="code">{text.clone()}</pre> }.into_any(),
        })
        .collect()
}

pub(crate) fn inlines(session: Session, text: &[Inline]) -> Vec<AnyView> {
    text.iter().map(|inline| one(session, inline)).collect()
}

fn one(session: Session, inline: &Inline) -> AnyView {
    match inline {
        Inline::Text(text) => view! { {text.clone()} }.into_any(),
        Inline::Strong(text) => view! { <strong>{inlines(session, text)}</strong> }.into_any(),
        Inline::Emphasis(text) => view! { <em>{inlines(session, text)}</em> }.into_any(),
        Inline::Code(text) => view! { <code>{text.clone()}</code> }.into_any(),
        Inline::Link { text, target } => link(session, text, target),
        Inline::Value { text, quantity } => value(session, text, *quantity),
    }
}

/// A link. A link to the glossary opens the entry in place, and pointing at the link lights up the term in
/// the figures. A link to a lesson opens the lesson; any other link opens in another tab.
fn link(session: Session, text: &[Inline], target: &str) -> AnyView {
    let words = inlines(session, text);
    let Some(entry) = target.strip_prefix("glossary.md#") else {
        if target.starts_with("#lesson=") {
            return view! { <a href=target.to_owned()>{words}</a> }.into_any();
        }
        // Lessons are files that anyone may write, so links to other schemes than the web's (`javascript:`)
        // lead nowhere.
        let is_web = target.starts_with("https://") || target.starts_with("http://");
        let href = if is_web { target.to_owned() } else { "#".to_owned() };
        return view! { <a href=href rel="noopener noreferrer" target="_blank">{words}</a> }.into_any();
    };
    let term = Term::ALL.into_iter().find(|term| term.name().replace(' ', "-") == entry);
    let id = format!("word-{}", NEXT_POPUP.fetch_add(1, Ordering::Relaxed));
    let place = RwSignal::new(String::new());
    let open = on(move |event: ev::MouseEvent| {
        let button = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
        if let Some(button) = button {
            place.set(beside(&button));
        }
    });
    view! {
        <button
            type="button"
            class="glossary-link"
            popovertarget=id.clone()
            on:click=open
            on:pointerenter=on(move |_: ev::PointerEvent| session.figures().lit.set(term))
            on:pointerleave=on(move |_: ev::PointerEvent| session.figures().lit.set(None))
            on:focus=on(move |_: ev::FocusEvent| session.figures().lit.set(term))
            on:blur=on(move |_: ev::FocusEvent| session.figures().lit.set(None))
        >
            {words}
        </button>
        <span id=id popover="auto" class="word-popup" style=kit::text(move || place.get())>
            {meaning(session, entry)}
        </span>
    }
    .into_any()
}

/// Ids have to be unique in the page.
static NEXT_POPUP: AtomicUsize = AtomicUsize::new(0);

/// The widest popup, and its distance from the window's edge and from its word.
const POPUP_PX: f64 = 360.0;
const GAP_PX: f64 = 8.0;

/// The place of a popup: below its word, or above a word in the lower half of the window.
fn beside(word: &Element) -> String {
    let (width, height) = browser::window_size();
    let word = word.get_bounding_client_rect();
    // The last gap is room for a scroll bar of the window.
    let left = word.left().min(width - POPUP_PX - 3.0 * GAP_PX).max(GAP_PX);
    if word.top() > height / 2.0 {
        format!("left:{left}px;bottom:{}px", height - word.top() + GAP_PX)
    } else {
        format!("left:{left}px;top:{}px", word.bottom() + GAP_PX)
    }
}

/// The entry of the glossary for a word, and the link to the glossary.
fn meaning(session: Session, id: &str) -> AnyView {
    static GLOSSARY: OnceLock<Option<Glossary>> = OnceLock::new();
    let glossary = GLOSSARY.get_or_init(|| glossary().ok());
    let Some(entry) = glossary.as_ref().and_then(|glossary| glossary.entry(id)) else {
        return ().into_any();
    };
    let api =
        entry.api.iter().map(|name| view! { <code>{name.clone()}</code> }.into_any()).collect::<Vec<_>>();
    let all = place_link(session, Place::Glossary(id.to_owned()), "All the words".to_owned());
    view! {
        <b>{entry.term.clone()}</b>
        <span>{plain(&entry.text)}</span>
        <span class="api">{api}</span>
        <span class="quiet">{all}</span>
    }
    .into_any()
}

/// A number from the run of the card. Pointing at the number lights up its term in the figures.
fn value(session: Session, text: &str, quantity: Quantity) -> AnyView {
    let term = quantity.term();
    view! {
        <b
            class="value"
            on:pointerenter=on(move |_: ev::PointerEvent| session.figures().lit.set(term))
            on:pointerleave=on(move |_: ev::PointerEvent| session.figures().lit.set(None))
        >
            {text.to_owned()}
        </b>
    }
    .into_any()
}
