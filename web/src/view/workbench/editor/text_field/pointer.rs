//! Clicks, and selections by the pointer. In a long text they also work on the lines that the field does not
//! hold.
//!
//! If a drag begins in the field, the browser selects, and the field gets more lines before the selection
//! reaches its first or last line. If a drag begins or continues outside of the field, the selection is made
//! here.

use leptos::ev;
use leptos::prelude::*;
use web_sys::Element;

use super::{TextField, whole, whole_px};
use crate::browser;
use crate::element_ids::WORKLOAD_TEXT;
use crate::frames;
use crate::view::kit::capture;
use crate::view::workbench::editor::rows::place_in;

/// A drag of the pointer that selects text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PointerSelection {
    /// Where the pointer is in the window.
    place: (f64, f64),
    /// Whether the browser selects, because the drag began in the field.
    is_native: bool,
}

/// The time between two scrolls while the pointer is held above or below the text.
const SCROLL_MILLIS: i32 = 50;

impl TextField {
    pub(super) fn pointer_pressed(self, event: &ev::PointerEvent) {
        // A finger scrolls the text; only other pointers select.
        if event.button() != 0 || event.pointer_type() == "touch" || self.is_wrapped.get_untracked() {
            return;
        }
        self.update(|content| content.is_all = false);
        let is_native = is_field(event);
        let place = (f64::from(event.client_x()), f64::from(event.client_y()));
        self.pointer_selection.set_value(Some(PointerSelection { place, is_native }));
        if is_native {
            return;
        }
        self.suggestions.close();
        // While the pointer is captured, the events of moves outside of the text arrive here too.
        capture(event);
        if event.shift_key() {
            self.read_caret();
        }
        let row = browser::target_of(event).and_then(|element| element.closest(".row").ok().flatten());
        self.move_caret(self.byte_under(place, row.as_ref()), event.shift_key());
    }

    /// Keeps the browser from making another selection where the selection is made here. Such a stroke begins
    /// on a colored line, and the browser would take the focus from the field and end the stroke with the
    /// field's selection empty: the line is replaced while the text scrolls, so that no click follows that
    /// would restore the selection.
    pub(super) fn mouse_pressed(self, event: &ev::MouseEvent) {
        if self.pointer_selection.get_value().is_some_and(|selection| !selection.is_native) {
            event.prevent_default();
            self.focus();
        }
    }

    fn focus(self) {
        if let Some(area) = self.area.get_untracked() {
            let options = web_sys::FocusOptions::new();
            options.set_prevent_scroll(true);
            let _ = area.focus_with_options(&options);
        }
    }

    pub(super) fn pointer_moved(self, event: &ev::PointerEvent) {
        let Some(before) = self.pointer_selection.get_value() else { return };
        if event.buttons() & 1 == 0 {
            return self.pointer_released();
        }
        let place = (f64::from(event.client_x()), f64::from(event.client_y()));
        self.pointer_selection.set_value(Some(PointerSelection { place, ..before }));
        if before.is_native {
            self.fill_while_selecting();
            if is_field(event) {
                return;
            }
        }
        self.move_caret(self.byte_under(place, None), true);
        self.scroll_to_pointer();
    }

    pub(super) fn pointer_released(self) {
        self.pointer_selection.set_value(None);
    }

    /// Gives the field more lines while the browser selects, before the selection reaches the first or last
    /// line of the field.
    pub(super) fn fill_while_selecting(self) {
        if self.pointer_selection.get_value().is_some_and(|selection| selection.is_native) {
            self.read_caret();
            self.fill_around_caret();
        }
    }

    /// Scrolls and extends the selection for as long as the pointer is held above or below the text.
    fn scroll_to_pointer(self) {
        let (Some(selection), Some(scroller)) =
            (self.pointer_selection.get_value(), self.scroller.get_untracked())
        else {
            return;
        };
        let rect = scroller.get_bounding_client_rect();
        let beyond = (selection.place.1 - rect.bottom()).max(0.0) + (selection.place.1 - rect.top()).min(0.0);
        if selection.is_native || beyond.abs() < 1.0 {
            return;
        }
        scroller.set_scroll_top(scroller.scroll_top() + whole_px(beyond));
        let _ = browser::after_millis(SCROLL_MILLIS, move || {
            // If the pointer has moved since, the event of that move has started another timer.
            if self.pointer_selection.try_get_value().flatten() == Some(selection) {
                self.move_caret(self.byte_under(selection.place, None), true);
                self.scroll_to_pointer();
            }
        });
    }

    /// After a click: takes over the caret of the browser, or focuses the field after a click beside it.
    pub(super) fn clicked(self, event: &ev::MouseEvent) {
        self.suggestions.close();
        if is_field(event) {
            self.read_caret();
            return self.fill_around_caret();
        }
        self.focus();
        self.read_caret();
    }

    /// The byte of a long text at a place of the window. `row` is the element of the line at this place, if
    /// it is known.
    fn byte_under(self, (x, y): (f64, f64), row: Option<&Element>) -> usize {
        let Some(scroller) = self.scroller.get_untracked() else { return 0 };
        let pad = browser::style_of(&scroller, "--sheet-pad");
        let pad_px = pad.and_then(|pad| pad.trim().trim_end_matches("px").parse::<f64>().ok()).unwrap_or(0.0);
        let top = scroller.get_bounding_client_rect().top() + pad_px - f64::from(scroller.scroll_top());
        let line_of_y = whole((y - top) / self.line_px());
        self.with(|content| {
            let line = row.and_then(|row| content.rows.line_of(row)).unwrap_or(line_of_y);
            if line >= content.lines.count() {
                return content.lines.text().len();
            }
            let start = content.lines.start(line);
            let words = content.lines.line(line);
            let column = content.rows.element(line).and_then(|row| column_at(row, words, x)).unwrap_or(0);
            start + words.chars().take(column).map(char::len_utf8).sum::<usize>()
        })
    }
}

fn is_field(event: &web_sys::Event) -> bool {
    browser::target_of(event).is_some_and(|element| element.id() == WORKLOAD_TEXT)
}

/// How many letters of the row are to the left of `x`. All letters are equally wide.
fn column_at(row: &Element, words: &str, x: f64) -> Option<usize> {
    let letters = words.chars().count();
    let (left, _) = place_in(row, words, 0)?;
    let (right, _) = place_in(row, words, letters)?;
    let letter_px = (right - left) / frames::count(letters.max(1));
    Some(if letter_px > 0.0 { whole(((x - left) / letter_px).round()) } else { 0 })
}
