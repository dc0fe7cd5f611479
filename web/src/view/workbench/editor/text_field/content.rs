//! The whole text, the caret in it, and which lines the field holds. This module knows nothing about the
//! page.

use std::ops::Range;

use super::{FIELD_MARGIN, MIN_MARGIN};
use crate::view::workbench::editor::lines::Lines;
use crate::view::workbench::editor::rows::{Marks, Rows};

/// The state of the text field.
#[derive(Default)]
pub(super) struct Content {
    pub(super) lines: Lines,
    /// The lines that the field holds: none at first, then all lines of a text that wraps, or the lines
    /// around the caret.
    pub(super) window: Range<usize>,
    /// The caret's byte in the text.
    pub(super) caret: usize,
    /// The byte at the other end of the selection. It equals `caret` if nothing is selected.
    pub(super) anchor: usize,
    /// Whether the whole of a long text is selected. The field can show this only for the lines that it
    /// holds.
    pub(super) is_all: bool,
    /// A line, counted from 0, that was changed outside of the field and has to be scrolled into sight.
    pub(super) changed: Option<usize>,
    pub(super) rows: Rows,
    pub(super) marks: Marks,
}

impl Content {
    /// The lines of a long text that the field should hold. These are the present lines while they are enough
    /// and not far too many, and otherwise the lines around the selection.
    pub(super) fn window_for_caret(&self) -> Range<usize> {
        let count = self.lines.count();
        let from = self.lines.line_at(self.caret.min(self.anchor));
        let to = self.lines.line_at(self.caret.max(self.anchor));
        let around = |margin: usize| from.saturating_sub(margin)..(to + margin + 1).min(count);
        let least = around(MIN_MARGIN);
        let is_enough = self.window.start <= least.start && self.window.end >= least.end;
        if is_enough && self.window.end <= count && self.window.len() <= 4 * FIELD_MARGIN + to - from {
            self.window.clone()
        } else {
            around(FIELD_MARGIN)
        }
    }
}
