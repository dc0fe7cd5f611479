//! The text of lessons and of the glossary as views.

use blockyard_figure::Term;
use blockyard_lessons::{Inline, Quantity, TextBlock};
use leptos::ev;
use leptos::prelude::*;

use crate::session::{Place, Session};
use crate::view::kit::on;

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

/// A link. Pointing at a link to the glossary lights up the term in the figures; any other link opens in another tab.
fn link(session: Session, text: &[Inline], target: &str) -> AnyView {
    let words = inlines(session, text);
    let Some(entry) = target.strip_prefix("glossary.md#") else {
        // Lessons are files that anyone may write, so links to other schemes than the web's (`javascript:`) lead nowhere.
        let is_web = target.starts_with("https://") || target.starts_with("http://");
        let href = if is_web { target.to_owned() } else { "#".to_owned() };
        return view! { <a href=href rel="noopener noreferrer" target="_blank">{words}</a> }.into_any();
    };
    let term = Term::ALL.into_iter().find(|term| term.name().replace(' ', "-") == entry);
    let entry = entry.to_owned();
    let href = format!("#glossary={entry}");
    let go = on(move |event: ev::MouseEvent| {
        event.prevent_default();
        session.go_to(Place::Glossary(entry.clone()));
    });
    view! {
        <a
            class="glossary-link"
            href=href
            on:click=go
            on:pointerenter=on(move |_: ev::PointerEvent| session.lit.set(term))
            on:pointerleave=on(move |_: ev::PointerEvent| session.lit.set(None))
            on:focus=on(move |_: ev::FocusEvent| session.lit.set(term))
            on:blur=on(move |_: ev::FocusEvent| session.lit.set(None))
        >
            {words}
        </a>
    }
    .into_any()
}

/// A number from the run of the card. Pointing at the number lights up its term in the figures.
fn value(session: Session, text: &str, quantity: Quantity) -> AnyView {
    let term = quantity.term();
    view! {
        <b
            class="value"
            on:pointerenter=on(move |_: ev::PointerEvent| session.lit.set(term))
            on:pointerleave=on(move |_: ev::PointerEvent| session.lit.set(None))
        >
            {text.to_owned()}
        </b>
    }
    .into_any()
}
