//! The keys that hide and show the panels of the workbench, or show one figure alone.

use leptos::ev;
use leptos::prelude::*;

use crate::navigation::Place;
use crate::session::Session;
use crate::view::kit::{button, click, flag};
use crate::workbench::WorkbenchPanel;

/// The button that shows every panel again, once a key has hidden one.
pub(crate) fn all_panels(session: Session) -> AnyView {
    let is_hidden = flag(move || {
        session.navigation().place.get() != Place::Workbench || !session.workbench().panels.get().is_changed()
    });
    view! {
        <span class="panels" hidden=is_hidden>
            {button("", "all-panels", "All panels", "Show every panel again", click(move || session.workbench().show_all()))}
        </span>
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
