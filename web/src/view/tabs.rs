//! The panels of which one is shown at a time: the workload or the recording, the holders of the bytes, the lab's questions, the
//! statistics, the table.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::browser;
use crate::session::Session;
use crate::view::kit::{choice, choices, click, flag, on, text};
use crate::view::{editor, hand, holders, lab, numbers, opened, table};

/// One of the panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Holders,
    Source,
    Lab,
    Numbers,
    Table,
}

impl Tab {
    const ALL: [Self; 5] = [Self::Source, Self::Holders, Self::Lab, Self::Numbers, Self::Table];

    fn id(self) -> &'static str {
        match self {
            Self::Holders => "holders",
            Self::Source => "source",
            Self::Lab => "lab",
            Self::Numbers => "numbers",
            Self::Table => "table",
        }
    }
}

pub(crate) fn tabs(session: Session) -> AnyView {
    let current = session.tab;
    let title = move |tab: Tab| match tab {
        Tab::Source if session.shows_recording() => "Recording",
        Tab::Source => "Workload",
        Tab::Holders => "Who holds it",
        Tab::Lab => "Lab",
        Tab::Numbers => "Numbers",
        Tab::Table => "Table",
    };
    let key = on(move |event: ev::KeyboardEvent| {
        let place = Tab::ALL.iter().position(|tab| *tab == current.get_untracked()).unwrap_or(0);
        let count = Tab::ALL.len();
        let next = match event.key().as_str() {
            "ArrowRight" => (place + 1) % count,
            "ArrowLeft" => (place + count - 1) % count,
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
    });
    let buttons = Tab::ALL
        .map(move |tab| {
            let is_current = move || current.get() == tab;
            view! {
                <button
                    type="button"
                    role="tab"
                    id=format!("tab-{}", tab.id())
                    data-testid=format!("tab-{}", tab.id())
                    aria-controls=format!("panel-{}", tab.id())
                    aria-selected=text(move || is_current().to_string())
                    tabindex=text(move || if is_current() { "0" } else { "-1" }.to_owned())
                    on:click=click(move || current.set(tab))
                >
                    {text(move || title(tab).to_owned())}
                </button>
            }
            .into_any()
        })
        .into_iter()
        .collect::<Vec<_>>();
    let panel = move |tab: Tab, content: AnyView| {
        view! {
            <div
                role="tabpanel"
                id=format!("panel-{}", tab.id())
                aria-labelledby=format!("tab-{}", tab.id())
                hidden=flag(move || current.get() != tab)
            >
                {content}
            </div>
        }
        .into_any()
    };
    // Hidden panels are removed, so that no work is done to keep them up to date.
    let holders = move || (current.get() == Tab::Holders).then(|| holders::holders(session));
    let lab = move || (current.get() == Tab::Lab).then(|| lab::lab(session));
    let numbers = move || (current.get() == Tab::Numbers).then(|| numbers::numbers(session));
    let table = move || (current.get() == Tab::Table).then(|| table::table(session));
    view! {
        <section class="panel tabs" aria-label="Workload and numbers">
            <div role="tablist" aria-label="Panels" on:keydown=key>{buttons}</div>
            <div class="tab-panels">
                {panel(Tab::Source, source(session))}
                {panel(Tab::Holders, view! { {holders} }.into_any())}
                {panel(Tab::Lab, view! { {lab} }.into_any())}
                {panel(Tab::Numbers, view! { {numbers} }.into_any())}
                {panel(Tab::Table, view! { {table} }.into_any())}
            </div>
        </section>
    }
    .into_any()
}

fn source(session: Session) -> AnyView {
    let has_opened = Memo::new(move |_| session.opened.with(Option::is_some));
    let switch = move |opened: bool, label: &'static str, id: &'static str| {
        choice(
            id,
            label,
            flag(move || session.shows_recording() == opened),
            click(move || session.show_opened(opened)),
        )
    };
    let switches =
        vec![switch(false, "Workload", "show-workload"), switch(true, "Recording", "show-recording")];
    view! {
        <div class="source">
            <div class="switch" hidden=flag(move || !has_opened.get())>
                {choices("What the figure shows", Signal::stored(false), switches)}
            </div>
            // The editor stays in place, so that its caret and its scroll position do.
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
