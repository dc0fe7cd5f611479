//! The page's parts.

mod breakdown;
mod editor;
mod gpu;
mod hand;
mod header;
mod help;
mod icon;
pub(crate) mod kit;
mod map;
mod map_actions;
mod messages;
mod numbers;
mod opened;
mod pinch;
mod player;
mod step;
mod table;
mod tabs;
mod terms;
mod timeline;
mod tip;

pub(crate) use editor::TEXT_ID;
pub(crate) use help::Help;
use kit::effect;

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::files::Samples;
use crate::session::Session;
use crate::{browser, draft, jobs, keys};

/// Puts the page into its document.
pub(crate) fn mount() {
    let Some(document) = browser::document() else { return };
    if let (Some(head), Ok(style)) = (document.head(), document.create_element("style")) {
        style.set_text_content(Some(&blockyard_figure::theme_css()));
        let _ = head.append_child(&style);
    }
    let Some(root) = document.get_element_by_id("app").and_then(|root| root.dyn_into::<HtmlElement>().ok())
    else {
        return;
    };
    root.set_text_content(None);
    mount_to(root, page).forget();
}

fn page() -> impl IntoView {
    let session = Session::new();
    let samples = Samples::new();
    let help = help::Help::new();
    keys::listen(session, help);
    follow_looks(session);
    draft::follow(session);
    session.run_first();
    // Once the page stands: what it needs later, so that the network may go.
    let _ = browser::after_millis(200, move || {
        spawn_local(async move {
            jobs::prepare().await;
            samples.prefetch().await;
            session.ask_for_gpu().await;
        });
    });
    view! {
        <div class="app">
            {header::header(session, samples, help)}
            {messages::messages(session)}
            <main class="stage">
                <div class="figures">
                    <div class="pair">
                        {breakdown::breakdown(session)}
                        {timeline::timeline(session)}
                    </div>
                    {player::player(session)}
                    {map::map(session)}
                </div>
                <div class="side">
                    {step::step(session)}
                    {tabs::tabs(session)}
                </div>
            </main>
        </div>
        {help.dialog()}
        {messages::drop_zone(session)}
        {messages::live_region(session)}
    }
}

/// Notices when colors or the pixel ratio change.
fn follow_looks(session: Session) {
    effect(move || session.theme.get().put());
    let changed = move || session.looks.update(|version| *version += 1);
    for query in ["(prefers-color-scheme: dark)", "(forced-colors: active)"] {
        if let Some(list) = browser::media(query) {
            browser::listen(&list, "change", move |_: web_sys::Event| changed());
        }
    }
    if let Some(window) = browser::window() {
        let ratio = StoredValue::new(browser::pixel_ratio());
        browser::listen(&window, "resize", move |_: web_sys::Event| {
            let now = browser::pixel_ratio();
            if (now - ratio.get_value()).abs() > f64::EPSILON {
                ratio.set_value(now);
                changed();
            }
        });
    }
}
