//! The panels of which one is shown at a time: the workload or the recording, the holders of the bytes, the
//! lab's questions, the statistics.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::browser;
use crate::session::Session;
use crate::view::figure::{holders, memory_stats};
use crate::view::kit::{button, click, flag, on, text};
use crate::view::workbench::{editor, hand, lab, opened};
use crate::workbench::Tab;

pub(crate) fn tabs(session: Session) -> AnyView {
    let buttons = Tab::ALL.map(|tab| tab_button(session, tab)).into_iter().collect::<Vec<_>>();
    // Hidden panels are removed, so that no work is done to keep them up to date. The editor stays, with its
    // caret and its scroll position.
    let when_current = move |tab: Tab, content: fn(Session) -> AnyView| {
        let shown = move || (session.workbench().tab.get() == tab).then(|| content(session));
        tab_panel(session, tab, view! { {shown} }.into_any())
    };
    view! {
        <section class="panel tabs" aria-label="Workload and numbers">
            <div role="tablist" aria-label="Panels" on:keydown=on(move |event: ev::KeyboardEvent| key(session, &event))>
                {buttons}
            </div>
            <div class="tab-panels">
                {tab_panel(session, Tab::Source, source(session))}
                {when_current(Tab::Holders, holders::holders)}
                {when_current(Tab::Lab, lab::lab)}
                {when_current(Tab::Numbers, memory_stats::memory_stats)}
            </div>
        </section>
    }
    .into_any()
}

/// The label of a tab. Reads signals.
fn title(session: Session, tab: Tab) -> &'static str {
    match tab {
        Tab::Source if session.shows_recording() => "Recording",
        Tab::Source => "Workload",
        Tab::Holders => "Who holds it",
        Tab::Lab => "Answers",
        Tab::Numbers => "Numbers",
    }
}

/// The arrow keys go from tab to tab, as ARIA asks of a list of tabs.
fn key(session: Session, event: &ev::KeyboardEvent) {
    let current = session.workbench().tab;
    let index = Tab::ALL.iter().position(|tab| *tab == current.get_untracked()).unwrap_or(0);
    let count = Tab::ALL.len();
    let next = match event.key().as_str() {
        "ArrowRight" => (index + 1) % count,
        "ArrowLeft" => (index + count - 1) % count,
        "Home" => 0,
        "End" => count - 1,
        _ => return,
    };
    event.prevent_default();
    let tab = Tab::ALL[next];
    current.set(tab);
    let button =
        browser::document().and_then(|document| document.get_element_by_id(&format!("tab-{}", tab.id())));
    if let Some(button) = button.and_then(|button| button.dyn_into::<HtmlElement>().ok()) {
        let _ = button.focus();
    }
}

fn tab_button(session: Session, tab: Tab) -> AnyView {
    let is_current = move || session.workbench().tab.get() == tab;
    view! {
        <button
            type="button"
            role="tab"
            id=format!("tab-{}", tab.id())
            data-testid=format!("tab-{}", tab.id())
            aria-controls=format!("panel-{}", tab.id())
            aria-selected=text(move || is_current().to_string())
            tabindex=text(move || if is_current() { "0" } else { "-1" }.to_owned())
            on:click=click(move || session.workbench().tab.set(tab))
        >
            {text(move || title(session, tab).to_owned())}
        </button>
    }
    .into_any()
}

fn tab_panel(session: Session, tab: Tab, content: AnyView) -> AnyView {
    view! {
        <div
            role="tabpanel"
            id=format!("panel-{}", tab.id())
            aria-labelledby=format!("tab-{}", tab.id())
            hidden=flag(move || session.workbench().tab.get() != tab)
        >
            {content}
        </div>
    }
    .into_any()
}

fn source(session: Session) -> AnyView {
    let has_opened = Memo::new(move |_| session.files().opened.with(Option::is_some));
    let is_hidden = flag(move || session.shows_recording() || !has_opened.get());
    view! {
        <div class="source">
            <p class="back" hidden=is_hidden>
                {button("link", "show-recording", "Back to the recording", "", click(move || session.files().show_opened(true)))}
            </p>
            // The editor stays in the page, so that its caret and its scroll position are kept.
            <div class="workload" hidden=flag(move || session.shows_recording())>
                <details class="hand-fold" open>
                    <summary>"By hand"</summary>
                    {hand::hand(session)}
                </details>
                {editor::editor(session)}
            </div>
            {opened::card(session)}
        </div>
    }
    .into_any()
}
