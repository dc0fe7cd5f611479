//! Keys and the clipboard, in a long text also for what the field does not hold.

use leptos::ev;
use leptos::prelude::*;

use super::Sheet;
use crate::view::editor::suggestions::KeyMeaning;

impl Sheet {
    pub(super) fn key(self, event: &ev::KeyboardEvent) {
        let is_command = event.ctrl_key() || event.meta_key();
        if is_command && event.key() == " " {
            event.prevent_default();
            return self.suggest(true);
        }
        let meaning = self.suggestions.key(event);
        if meaning != KeyMeaning::Nothing {
            event.prevent_default();
            event.stop_propagation();
            if let KeyMeaning::Entry(item) = meaning {
                self.put(&item);
            }
            return;
        }
        if is_command && matches!(event.key().as_str(), "z" | "Z" | "y" | "Y") {
            self.flush();
        }
        if !self.is_wrapped.get_untracked() {
            self.key_of_part(event, is_command);
        }
    }

    /// Gives the field the lines that a key needs, before the browser does what the key means.
    fn key_of_part(self, event: &ev::KeyboardEvent, is_command: bool) {
        self.look_at_caret();
        let is_all = self.with(|content| content.is_all);
        let end = match (event.key().as_str(), is_command) {
            ("a" | "A", true) => {
                event.prevent_default();
                if let Some(area) = self.area.get_untracked() {
                    area.select();
                }
                return self.update(|content| content.is_all = true);
            }
            // Of all that is selected, the caret leaves at one end.
            ("ArrowLeft" | "ArrowUp" | "Home" | "PageUp", false) if is_all => Some(0),
            ("ArrowRight" | "ArrowDown" | "End" | "PageDown", false) if is_all => {
                Some(self.with(|content| content.lines.text().len()))
            }
            // What is typed, cut or copied is of all.
            _ if is_all => return,
            ("Home" | "ArrowUp", true) => Some(0),
            ("End" | "ArrowDown", true) => Some(self.with(|content| content.lines.text().len())),
            // A field that does not scroll itself knows no pages.
            ("PageUp", false) => Some(self.byte_of_page(false)),
            ("PageDown", false) => Some(self.byte_of_page(true)),
            _ => None,
        };
        let Some(end) = end else { return self.hold() };
        event.prevent_default();
        self.update(|content| content.is_all = false);
        self.move_caret(end, event.shift_key());
        self.reveal(self.with(|content| content.lines.line_at(content.caret)));
    }

    /// The byte a page of lines above or below the caret, in the caret's column.
    fn byte_of_page(self, is_down: bool) -> usize {
        // Two lines stay in sight, and `seen` counts one that is cut off.
        let page = self.seen().len().saturating_sub(3).max(1);
        self.with(|content| {
            let lines = &content.lines;
            let line = lines.line_at(content.caret);
            let column =
                lines.text().get(lines.start(line)..content.caret).map_or(0, |part| part.chars().count());
            let to = if is_down { line + page } else { line.saturating_sub(page) };
            let to = to.min(lines.count() - 1);
            lines.start(to) + lines.line(to).chars().take(column).map(char::len_utf8).sum::<usize>()
        })
    }

    /// Copies all of a long text, where all is selected; returns whether that was so.
    pub(super) fn copy_all(self, event: &web_sys::ClipboardEvent) -> bool {
        let data = event.clipboard_data();
        let is_copied = self.with(|content| {
            content.is_all
                && data.is_some_and(|data| data.set_data("text/plain", content.lines.text()).is_ok())
        });
        if is_copied {
            event.prevent_default();
        }
        is_copied
    }

    /// As [`Sheet::copy_all`], and nothing is left of the text.
    pub(super) fn cut_all(self, event: &web_sys::ClipboardEvent) {
        if let (true, Some(area)) = (self.copy_all(event), self.area.get_untracked()) {
            area.set_value("");
            self.typed(false);
        }
    }
}
