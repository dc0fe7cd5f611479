//! The views of the page. This file mounts the page and chooses the view of each [`Place`]. A folder is for a
//! kind of reader: [`learn`], [`teach`], [`workbench`] and [`program`]; [`figure`] is what they all show.

mod embed;
pub(crate) mod export;
mod figure;
mod header;
mod help;
mod home;
mod icon;
mod indent;
pub(crate) mod keys;
pub(crate) mod kit;
mod learn;
mod messages;
mod paper;
pub(crate) mod parts;
pub(crate) mod program;
mod prose;
mod share;
mod teach;
pub(crate) mod workbench;

pub(crate) use self::messages::growing_timeline;
pub(crate) use figure::stage::scene_now as stage_scene;
pub(crate) use help::{Help, content as help_content};
pub(crate) use teach::present::{key as present_key, takes_key};
pub(crate) use workbench::panels::panel_key;

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::appearance::ThemeChoice;
use crate::effect::effect;
use crate::files::Samples;
use crate::navigation::Place;
use crate::session::Session;
use crate::{browser, frames, jobs, navigation, workers};

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

fn page() -> AnyView {
    let session = Session::new();
    let samples = Samples::new();
    let help = help::Help::new();
    keys::listen(session, help);
    figure::gesture::follow_wheel();
    follow_appearance(session);
    if session.navigation().embed.is_none() {
        crate::workload::follow_draft(session);
    }
    follow_printing(session);
    teach::present::follow(session);
    navigation::keep_address(session, samples);
    workbench::player::play_by_itself(session);
    // Everything that is needed later is fetched once the first screen is complete, so that the page works
    // without the network.
    let _ = browser::after_millis(200, move || {
        spawn_local(async move {
            parts::prepare().await;
            jobs::prepare().await;
            workers::fetch(&workers::QUESTIONS).await;
            session.files().look_for_kept().await;
            samples.prefetch().await;
            session.workload().ask_for_gpu().await;
        });
    });
    if let Some(embed) = session.navigation().embed {
        return embed::embedded(session, embed);
    }
    workbench::divider::recall();
    let share = share::Share::new(session);
    // All cards of a lesson count as one place here: the view of the lesson stays when the card changes.
    let part = Memo::new(move |_| match session.navigation().place.get() {
        Place::Lesson { .. } => Place::OwnLesson,
        other => other,
    });
    let content = move || {
        let place = part.get();
        on_cleanup(frames::forget);
        match place {
            Place::Home => home::home(session, samples),
            Place::Lesson { .. } | Place::OwnLesson => parts::lesson(session),
            Place::Lessons => parts::lessons(session, String::new()),
            Place::Plan(ids) => parts::lessons(session, ids),
            Place::Glossary(entry) => parts::words(session, entry),
            Place::Practice => parts::practice(session),
            Place::Teachers(page) => parts::teachers(session, page),
            Place::MakeLesson => parts::make_lesson(session),
            Place::Handout(ids) => parts::handout(session, ids),
            Place::Program => parts::program(session),
            Place::Workbench => parts::workbench(session, samples),
        }
    };
    view! {
        <div class="app">
            {header::header(session, help, share)}
            {messages::messages(session)}
            {content}
            {paper::sheet()}
        </div>
        {help.dialog(session)}
        {share.dialog()}
        {messages::drop_zone(session)}
        {messages::fit_page(session)}
        {messages::live_region(session)}
    }
    .into_any()
}

/// While the page is printed, figures have light colors, and patterns in addition to the colors.
fn follow_printing(session: Session) {
    let Some(window) = browser::window() else { return };
    let turn = move |is_paper: bool| {
        if is_paper {
            ThemeChoice::Light.apply();
        } else {
            session.appearance().theme.get_untracked().apply();
        }
        session.appearance().is_on_paper.set(is_paper);
        paper::turn(session, is_paper);
        session.appearance().redraw();
    };
    browser::listen(&window, "beforeprint", move |_: web_sys::Event| turn(true));
    browser::listen(&window, "afterprint", move |_: web_sys::Event| turn(false));
}

/// Counts up [`AppearanceSignals::version`] when colors or the pixel ratio change.
fn follow_appearance(session: Session) {
    effect(move || session.appearance().theme.get().apply());
    // While hues belong to groups of allocations, the style sheet gives states of memory grey.
    let is_grey = Memo::new(move |_| session.figures().colors_blocks());
    effect(move || {
        let is_grey = is_grey.get();
        if let Some(root) = browser::document().and_then(|document| document.document_element()) {
            let _ = root.toggle_attribute_with_force("data-grey-states", is_grey);
        }
        let _ = browser::after_millis(0, move || session.appearance().redraw());
    });
    let changed = move || session.appearance().redraw();
    for query in ["(prefers-color-scheme: dark)", "(forced-colors: active)"] {
        if let Some(list) = browser::media(query) {
            browser::listen(&list, "change", move |_: web_sys::Event| changed());
        }
    }
    // The width is that at which the style sheet changes to one column.
    if let Some(list) = browser::media("(max-width: 960px)") {
        session.appearance().is_narrow.set(list.matches());
        let now = list.clone();
        browser::listen(&list, "change", move |_: web_sys::Event| {
            session.appearance().is_narrow.set(now.matches());
        });
    }
    if let Some(document) = browser::document() {
        // When the browser's GPU process ends, every canvas is empty and has to be drawn again.
        browser::listen_within(&document, "contextrestored", move |_: web_sys::Event| changed());
    }
    if let Some(window) = browser::window() {
        let ratio = StoredValue::new(browser::canvas_ratio());
        browser::listen(&window, "resize", move |_: web_sys::Event| {
            let now = browser::canvas_ratio();
            if (now - ratio.get_value()).abs() > f64::EPSILON {
                ratio.set_value(now);
                changed();
            }
        });
    }
}
