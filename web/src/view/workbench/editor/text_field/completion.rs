//! Completions at the caret.

use leptos::prelude::*;

use super::{COMPLETION_BYTES, MAX_BYTES_AT_ONCE, TextField};
use crate::view::workbench::editor::lines::units_of_bytes;
use crate::view::workbench::editor::rows::place_in;

impl TextField {
    /// Opens the list of completions at the caret, or closes it if there are none. Unless `is_asked`, a list
    /// opens only after the beginning of an unfinished word.
    pub(super) fn suggest(self, is_asked: bool) {
        let Some(area) = self.area.get_untracked() else { return };
        let (start, end) = (area.selection_start(), area.selection_end());
        if start.ok().flatten() != end.ok().flatten() {
            return self.suggestions.close();
        }
        let found = self.with(|content| {
            let line = content.lines.line_at(content.caret);
            // In a long text, only names near the caret are offered, because reading the whole text would
            // delay the key.
            let from =
                content.lines.start(content.lines.line_at(content.caret.saturating_sub(COMPLETION_BYTES)));
            let to = content.lines.bytes(line..line + 1).end;
            let near = if to > MAX_BYTES_AT_ONCE { from..to } else { 0..content.lines.text().len() };
            let mut found = blockyard_workload::complete(
                content.lines.text().get(near.clone())?,
                content.caret - near.start,
            );
            found.start += near.start;
            let letters = content.lines.text().get(content.lines.start(line)..found.start)?.chars().count();
            let place = place_in(content.rows.element(line)?, content.lines.line(line), letters)?;
            Some((found, content.caret, place))
        });
        match found {
            Some((found, caret, place)) if is_asked || (!found.is_whole_word && found.start < caret) => {
                self.suggestions.open(found, place);
            }
            _ => self.suggestions.close(),
        }
    }

    /// Replaces the word before the caret by a completion.
    pub(super) fn insert(self, item: &str) {
        let Some(area) = self.area.get_untracked() else { return };
        let Some(start) = self.suggestions.start() else { return };
        let units = self.with(|content| {
            let held = content.lines.slice(content.window.clone());
            let at = content.lines.start(content.window.start);
            Some((
                units_of_bytes(held, start.checked_sub(at)?),
                units_of_bytes(held, content.caret.checked_sub(at)?),
            ))
        });
        let Some((from, to)) = units else { return };
        let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) else { return };
        let _ = area.set_selection_range(from, to);
        let _ = area.set_range_text(item);
        // After a completion that ends in quotes, the caret goes between the quotes.
        let back = usize::from(item.ends_with("\"\""));
        let caret = from + u32::try_from(item.encode_utf16().count() - back).unwrap_or(0);
        let _ = area.set_selection_range(caret, caret);
        self.suggestions.close();
        self.typed();
        self.suggestions.close();
    }
}
