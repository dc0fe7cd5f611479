//! The text of the field, and which of its lines the field holds. Knows nothing of the page.

use std::ops::Range;

use super::{HELD_MARGIN, LEAST_MARGIN};
use crate::view::editor::lines::Lines;
use crate::view::editor::rows::{Marks, Rows};

#[derive(Default)]
pub(super) struct Content {
    pub(super) lines: Lines,
    /// The lines that the field holds: none yet, all of a text that wraps, else those around the caret.
    pub(super) window: Range<usize>,
    /// The caret's byte in the text.
    pub(super) caret: usize,
    /// The byte at the other end of the selection; the caret's where nothing is selected.
    pub(super) anchor: usize,
    /// Whether all of a long text is selected: in the field, that is all of what it holds.
    pub(super) is_all: bool,
    /// The line that was changed from elsewhere and is to be seen.
    pub(super) changed: Option<usize>,
    pub(super) rows: Rows,
    pub(super) marks: Marks,
}

impl Content {
    /// The lines that the field holds of a long text: those it holds already while they are enough and not far too many, else those
    /// around the selection.
    pub(super) fn window_for_caret(&self) -> Range<usize> {
        let count = self.lines.count();
        let from = self.lines.line_at(self.caret.min(self.anchor));
        let to = self.lines.line_at(self.caret.max(self.anchor));
        let around = |margin: usize| from.saturating_sub(margin)..(to + margin + 1).min(count);
        let least = around(LEAST_MARGIN);
        let is_enough = self.window.start <= least.start && self.window.end >= least.end;
        if is_enough && self.window.end <= count && self.window.len() <= 4 * HELD_MARGIN + to - from {
            self.window.clone()
        } else {
            around(HELD_MARGIN)
        }
    }
}
