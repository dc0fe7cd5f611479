//! Keys and the clipboard. In a long text they also work on the lines that the field does not hold.

use leptos::ev;
use leptos::prelude::*;

use super::TextField;
use crate::view::indent;
use crate::view::workbench::editor::suggestions::KeyMeaning;

impl TextField {
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
                self.insert(&item);
            }
            return;
        }
        if is_command && matches!(event.key().as_str(), "z" | "Z" | "y" | "Y") {
            self.flush();
        }
        if !self.is_wrapped.get_untracked() {
            self.key_in_long_text(event, is_command);
        }
        indent::key(event);
    }

    /// Gives the field the lines that a key needs before the browser handles the key, or handles the key
    /// itself.
    fn key_in_long_text(self, event: &ev::KeyboardEvent, is_command: bool) {
        self.read_caret();
        let is_all = self.with(|content| content.is_all);
        let end = match (event.key().as_str(), is_command) {
            ("a" | "A", true) => {
                event.prevent_default();
                if let Some(area) = self.area.get_untracked() {
                    area.select();
                }
                return self.update(|content| content.is_all = true);
            }
            // When everything is selected, these keys move the caret to one end of the text.
            ("ArrowLeft" | "ArrowUp" | "Home" | "PageUp", false) if is_all => Some(0),
            ("ArrowRight" | "ArrowDown" | "End" | "PageDown", false) if is_all => {
                Some(self.with(|content| content.lines.text().len()))
            }
            // Other keys replace, cut or copy the whole text.
            _ if is_all => return,
            ("Home" | "ArrowUp", true) => Some(0),
            ("End" | "ArrowDown", true) => Some(self.with(|content| content.lines.text().len())),
            // The browser knows pages only in a field that scrolls. Here the element around the field
            // scrolls.
            ("PageUp", false) => Some(self.byte_of_page(false)),
            ("PageDown", false) => Some(self.byte_of_page(true)),
            _ => None,
        };
        let Some(end) = end else { return self.fill_around_caret() };
        event.prevent_default();
        self.update(|content| content.is_all = false);
        self.move_caret(end, event.shift_key());
        self.reveal(self.with(|content| content.lines.line_at(content.caret)));
    }

    /// The byte that is a page of lines above or below the caret, in the column of the caret.
    fn byte_of_page(self, is_down: bool) -> usize {
        // Two lines stay in sight, and one of `lines_in_sight` is cut off.
        let page = self.lines_in_sight().len().saturating_sub(3).max(1);
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

    /// If the whole of a long text is selected, copies the text and returns true.
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

    /// If the whole of a long text is selected, copies and removes the text.
    pub(super) fn cut_all(self, event: &web_sys::ClipboardEvent) {
        if let (true, Some(area)) = (self.copy_all(event), self.area.get_untracked()) {
            area.set_value("");
            self.typed();
        }
    }
}
