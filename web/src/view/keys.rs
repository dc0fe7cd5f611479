//! Keys that work everywhere on the page except in text fields.

use blockyard_figure::PlayerAction;
use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use crate::browser;
use crate::element_ids::WORKLOAD_TEXT;
use crate::navigation::Place;
use crate::session::Session;
use crate::view::{Help, panel_key, present_key, takes_key};
use crate::workbench::WorkbenchPanel;

/// The factor by which one key press zooms.
const ZOOM: f64 = 1.6;
/// The part of the width or height by which one key press moves the shown part.
const PAN: f64 = 0.2;

pub(crate) fn listen(session: Session, help: Help) {
    let Some(document) = browser::document() else { return };
    browser::listen(&document, "keydown", move |event: ev::KeyboardEvent| {
        let target = browser::target_of(&event);
        let is_presented = takes_key(session, &event.key());
        let is_taken = !is_presented && target.as_ref().is_some_and(|element| takes(element, &event.key()));
        let is_of_menu = event.key() == "Escape" && browser::find("[popover]:popover-open").is_some();
        if event.default_prevented()
            || event.alt_key()
            || is_of_menu
            || browser::find("dialog[open]").is_some()
        {
            return;
        }
        let is_done = if event.ctrl_key() || event.meta_key() {
            // Undo and redo work in the workload's text field too: the history of the page contains typed
            // edits and requests by hand.
            let is_foreign = target
                .as_ref()
                .is_some_and(|element| browser::is_text_field(element) && element.id() != WORKLOAD_TEXT);
            !is_foreign && edit_key(session, &event)
        } else {
            !is_taken && plain_key(session, help, &event)
        };
        if is_done {
            event.prevent_default();
        }
    });
}

/// Whether the element that has the focus uses the key.
fn takes(element: &Element, key: &str) -> bool {
    if browser::is_text_field(element) {
        return key != "Escape";
    }
    let role = element.get_attribute("role");
    match (element.tag_name().as_str(), key) {
        ("BUTTON" | "SUMMARY" | "A", " " | "Enter") => true,
        ("BUTTON", "ArrowLeft" | "ArrowRight" | "Home" | "End") => role.as_deref() == Some("tab"),
        ("INPUT", " ") => matches!(element.get_attribute("type").as_deref(), Some("checkbox" | "radio")),
        ("INPUT", "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown" | "Home" | "End") => {
            matches!(element.get_attribute("type").as_deref(), Some("range" | "radio"))
        }
        _ => false,
    }
}

fn edit_key(session: Session, event: &ev::KeyboardEvent) -> bool {
    match (event.key().to_ascii_lowercase().as_str(), event.shift_key()) {
        ("z", false) => session.workload().undo(),
        ("z", true) | ("y", false) => session.workload().redo(),
        _ => return false,
    }
    true
}

fn plain_key(session: Session, help: Help, event: &ev::KeyboardEvent) -> bool {
    if present_key(session, event) {
        return true;
    }
    if untrack(|| session.navigation().place.get()) == Place::Workbench && panel_key(session, event) {
        return true;
    }
    // The keys of a run would take those that scroll.
    let is_scrolled = untrack(|| match session.navigation().place.get() {
        Place::Lesson { .. } | Place::OwnLesson => session.lessons().is_chapter(),
        place => matches!(place, Place::Home | Place::Practice),
    });
    if is_scrolled {
        match event.key().as_str() {
            "Escape" => escape(session),
            "?" => help.open(),
            _ => return false,
        }
        return true;
    }
    let is_far = event.shift_key();
    let of_block =
        |action: fn(blockyard_record::BlockId) -> PlayerAction| session.figures().selected_now().map(action);
    let action = match event.key().as_str() {
        "ArrowRight" | "ArrowDown" if is_far => PlayerAction::ForwardMany,
        "ArrowLeft" | "ArrowUp" if is_far => PlayerAction::BackMany,
        "ArrowRight" | "ArrowDown" => PlayerAction::Forward,
        "ArrowLeft" | "ArrowUp" => PlayerAction::Back,
        "Home" => PlayerAction::Start,
        "End" => PlayerAction::End,
        " " => PlayerAction::Toggle,
        "[" => PlayerAction::PreviousDeviceCall,
        "]" => PlayerAction::NextDeviceCall,
        "{" => PlayerAction::PreviousFailedStep,
        "}" => PlayerAction::NextFailedStep,
        "<" => PlayerAction::PreviousLabel,
        ">" => PlayerAction::NextLabel,
        "n" | "N" => match of_block(PlayerAction::NextOfBlock) {
            Some(action) => action,
            None => return false,
        },
        "p" | "P" => match of_block(PlayerAction::PreviousOfBlock) {
            Some(action) => action,
            None => return false,
        },
        _ => return other_key(session, help, event),
    };
    session.dispatch(action);
    true
}

fn other_key(session: Session, help: Help, event: &ev::KeyboardEvent) -> bool {
    match event.key().as_str() {
        "W" => drop(session.figures().zoom_bytes(0.5, ZOOM)),
        "S" => drop(session.figures().zoom_bytes(0.5, 1.0 / ZOOM)),
        "A" => session.figures().pan_bytes(-PAN),
        "D" => session.figures().pan_bytes(PAN),
        "w" | "+" | "=" => drop(session.figures().zoom_timeline_at_cursor(ZOOM)),
        "s" | "-" | "_" => drop(session.figures().zoom_timeline_at_cursor(1.0 / ZOOM)),
        "a" => drop(session.figures().pan_memory(-PAN)),
        "d" => drop(session.figures().pan_memory(PAN)),
        "m" | "M" => session.figures().brush_by_key(),
        "k" => session.seek_peak(false),
        "K" => session.seek_peak(true),
        "0" => session.figures().show_whole(),
        "z" | "Z" => return session.figures().zoom_to_range(),
        key @ ("," | ".") => match session.figures().block_in_hand() {
            Some(block) => return session.workload().resize_by_key(block, key == "."),
            None => return false,
        },
        "f" | "F" | "Delete" => match session.figures().block_in_hand() {
            Some(block) => session.workload().free_block(block),
            None => return false,
        },
        "Escape" => escape(session),
        "?" => help.open(),
        "/" if untrack(|| session.shows_recording()) => session.workbench().filter_holders(),
        "/" => {
            session.workbench().reveal(WorkbenchPanel::Side);
            // The panel exists only after the effects of this change.
            let _ = browser::after_millis(0, || browser::focus(WORKLOAD_TEXT));
        }
        _ => return false,
    }
    true
}

/// Closes the message, the range, the choice, the zoom or the single panel: one of them at each press, in
/// this order.
fn escape(session: Session) {
    let view = session.figures().map_view.get_untracked();
    if session.workload().cancel_resize() {
        // The drag is cancelled: the size is as it was before the drag.
    } else if session.workbench().dismiss_hint() {
        // The panel that a key has hidden is shown again.
    } else if session.messages().message.with_untracked(Option::is_some) {
        session.messages().message.set(None);
    } else if session.figures().let_go_of_range() {
        // The range has been released.
    } else if session.figures().unpick() {
        // `unpick` has released the chosen allocations.
    } else if view.selected.is_some() {
        session.figures().select(None);
    } else if session.figures().is_event_chosen.get_untracked() {
        session.figures().is_event_chosen.set(false);
    } else if view.zoom.is_some() || view.hovered.is_some() {
        session.figures().map_view.update(|view| (view.zoom, view.hovered) = (None, None));
    } else if let Some(panel) = session.workbench().panels.get_untracked().alone {
        session.workbench().toggle_alone(panel);
    } else if let Some(element) = browser::document().and_then(|document| document.active_element()) {
        let _ = element.dyn_into::<HtmlElement>().map(|element| element.blur());
    }
}
