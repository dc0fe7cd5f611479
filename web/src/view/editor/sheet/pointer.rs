//! Clicks and strokes of the pointer, in a long text also beside the lines that the field holds.
//!
//! A stroke that begins in the field selects as the browser does it; the field takes on more lines before the selection reaches
//! its border. A stroke that begins or goes beside the field is followed here.

use leptos::ev;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::Element;

use super::{Sheet, whole, whole_px};
use crate::browser;
use crate::frames;
use crate::view::editor::TEXT_ID;
use crate::view::editor::rows::place_in;

/// A stroke of the pointer that selects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    /// Where the pointer is in the window.
    place: (f64, f64),
    /// Whether the browser selects by itself, since the stroke began in the field.
    is_native: bool,
}

/// How often a text scrolls while the pointer is held above or below the text.
const SCROLL_MILLIS: i32 = 50;

impl Sheet {
    pub(super) fn pressed(self, event: &ev::PointerEvent) {
        // Fingers scroll.
        if event.button() != 0 || event.pointer_type() == "touch" || self.is_wrapped.get_untracked() {
            return;
        }
        self.update(|content| content.is_all = false);
        let is_native = is_field(event.target());
        let place = (f64::from(event.client_x()), f64::from(event.client_y()));
        self.stroke.set_value(Some(Stroke { place, is_native }));
        if is_native {
            return;
        }
        self.suggestions.close();
        // Outside of the text too.
        let text = event.current_target().and_then(|target| target.dyn_into::<Element>().ok());
        if let Some(text) = text {
            let _ = text.set_pointer_capture(event.pointer_id());
        }
        if event.shift_key() {
            self.look_at_caret();
        }
        let row = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        let row = row.and_then(|element| element.closest(".row").ok().flatten());
        self.move_caret(self.byte_under(place, row.as_ref()), event.shift_key());
    }

    pub(super) fn stroked(self, event: &ev::PointerEvent) {
        let Some(before) = self.stroke.get_value() else { return };
        if event.buttons() & 1 == 0 {
            return self.released();
        }
        let place = (f64::from(event.client_x()), f64::from(event.client_y()));
        self.stroke.set_value(Some(Stroke { place, ..before }));
        if before.is_native {
            self.hold_while_selecting();
            if is_field(event.target()) {
                return;
            }
        }
        self.move_caret(self.byte_under(place, None), true);
        self.scroll_to_pointer();
    }

    pub(super) fn released(self) {
        self.stroke.set_value(None);
    }

    /// Lets the field hold more lines while the browser selects, before the selection comes to its border.
    pub(super) fn hold_while_selecting(self) {
        if self.stroke.get_value().is_some_and(|stroke| stroke.is_native) {
            self.look_at_caret();
            self.hold();
        }
    }

    /// Scrolls as long as the pointer is held above or below the text, and selects on.
    fn scroll_to_pointer(self) {
        let (Some(stroke), Some(sheet)) = (self.stroke.get_value(), self.scroller.get_untracked()) else {
            return;
        };
        let rect = sheet.get_bounding_client_rect();
        let beyond = (stroke.place.1 - rect.bottom()).max(0.0) + (stroke.place.1 - rect.top()).min(0.0);
        if stroke.is_native || beyond.abs() < 1.0 {
            return;
        }
        sheet.set_scroll_top(sheet.scroll_top() + whole_px(beyond));
        let _ = browser::after_millis(SCROLL_MILLIS, move || {
            // Another place of the pointer scrolls by itself.
            if self.stroke.try_get_value().flatten() == Some(stroke) {
                self.move_caret(self.byte_under(stroke.place, None), true);
                self.scroll_to_pointer();
            }
        });
    }

    /// Behind a click: the caret is where the browser or [`Sheet::pressed`] put it, and the text has the focus.
    pub(super) fn clicked(self, event: &ev::MouseEvent) {
        self.suggestions.close();
        if is_field(event.target()) {
            self.look_at_caret();
            return self.hold();
        }
        if let Some(area) = self.area.get_untracked() {
            let options = web_sys::FocusOptions::new();
            options.set_prevent_scroll(true);
            let _ = area.focus_with_options(&options);
            self.look_at_caret();
        }
    }

    /// The byte of the text at a place of the window, which is in `row` where that is known; lines of a long text do not wrap.
    fn byte_under(self, (x, y): (f64, f64), row: Option<&Element>) -> usize {
        let Some(sheet) = self.scroller.get_untracked() else { return 0 };
        let pad = browser::style_of(&sheet, "--sheet-pad");
        let pad_px = pad.and_then(|pad| pad.trim().trim_end_matches("px").parse::<f64>().ok()).unwrap_or(0.0);
        let top = sheet.get_bounding_client_rect().top() + pad_px - f64::from(sheet.scroll_top());
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

fn is_field(target: Option<web_sys::EventTarget>) -> bool {
    let element = target.and_then(|target| target.dyn_into::<Element>().ok());
    element.is_some_and(|element| element.id() == TEXT_ID)
}

/// Before which letter of the row the place is; all letters are equally wide.
fn column_at(row: &Element, words: &str, x: f64) -> Option<usize> {
    let letters = words.chars().count();
    let (left, _) = place_in(row, words, 0)?;
    let (right, _) = place_in(row, words, letters)?;
    let letter_px = (right - left) / frames::count(letters.max(1));
    Some(if letter_px > 0.0 { whole(((x - left) / letter_px).round()) } else { 0 })
}
