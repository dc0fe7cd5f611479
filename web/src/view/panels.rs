//! The menu that hides and shows the panels of the workbench, or shows one figure alone.

use leptos::ev;
use leptos::prelude::*;

use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, check, click, flag, text};
use crate::workbench::WorkbenchPanel;

/// The id of the menu's element, which the button opens.
const MENU_ID: &str = "panels-menu";

pub(crate) fn panels_menu(session: Session) -> AnyView {
    let rows = WorkbenchPanel::ALL.map(|panel| row(session, panel)).into_iter().collect::<Vec<_>>();
    let is_changed = flag(move || session.workbench().panels.get().is_changed());
    view! {
        <span class="panels" hidden=flag(move || session.navigation().place.get() != Place::Workbench)>
            <span hidden=flag(move || !is_changed.get())>
                {button("", "all-panels", "All panels", "Show every panel again", click(move || session.workbench().show_all()))}
            </span>
            <button
                type="button"
                popovertarget=MENU_ID
                data-testid="panels"
                title="Hide panels, or show one figure alone (keys 1 to 5, with Shift alone)"
            >
                "Panels …"
            </button>
            <div id=MENU_ID popover="auto" class="panels-menu" role="group" aria-label="Panels of the workbench">
                {rows}
                <p class="quiet">"Keys 1 to 5 hide and show, Shift + 1 to 4 show one alone. This browser remembers it."</p>
            </div>
        </span>
    }
    .into_any()
}

fn row(session: Session, panel: WorkbenchPanel) -> AnyView {
    let is_shown = flag(move || !session.workbench().panels.get().is_hidden(panel));
    let is_alone = text(move || (session.workbench().panels.get().alone == Some(panel)).to_string());
    let alone = panel.is_figure().then(|| {
        view! {
            <button
                type="button"
                data-testid=format!("alone-{}", panel.name())
                aria-pressed=is_alone
                aria-label=format!("{} alone", panel.title())
                on:click=click(move || session.workbench().toggle_alone(panel))
            >
                "Alone"
            </button>
        }
    });
    view! {
        <p class="panels-row">
            {check(format!("panel-{}", panel.name()), panel.title(), "Shown in the workbench", is_shown, move |_| session.workbench().toggle(panel))}
            {alone}
        </p>
    }
    .into_any()
}

/// Hides or shows the panel of a digit, or with Shift shows it alone. Returns whether the key belongs to a
/// panel.
pub(crate) fn panel_key(session: Session, event: &ev::KeyboardEvent) -> bool {
    // The code of the key, because with Shift a digit key types a different letter on each keyboard layout.
    let digit = event.code().strip_prefix("Digit").and_then(|digit| digit.parse::<usize>().ok());
    if digit == Some(0) && session.workbench().panels.get_untracked().is_changed() {
        session.workbench().show_all();
        return true;
    }
    let place = digit.and_then(|digit| digit.checked_sub(1));
    let Some(panel) = place.and_then(|place| WorkbenchPanel::ALL.get(place).copied()) else { return false };
    match event.shift_key() {
        true if panel.is_figure() => session.workbench().toggle_alone(panel),
        true => return false,
        false => session.workbench().toggle(panel),
    }
    session.workbench().note_hidden(panel);
    true
}
