//! A text and where its lines begin. This module knows nothing about the page.

use std::ops::Range;

/// A text and where its lines begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    text: String,
    /// The first byte of each line, ascending. An empty text has one line.
    starts: Vec<usize>,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(String::new())
    }
}

impl Lines {
    pub(super) fn new(text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line with this index, from 0, without its line break; empty if there is no such line.
    pub(super) fn line(&self, index: usize) -> &str {
        self.slice(index..index + 1)
    }

    /// The first byte of the line; the end of the text for an index after the last line.
    pub(super) fn start(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }

    /// Some lines of the text, without the line break of the last one.
    pub(super) fn slice(&self, lines: Range<usize>) -> &str {
        self.text.get(self.bytes(lines)).unwrap_or_default()
    }

    /// The bytes of [`Lines::slice`] in the text.
    pub(super) fn bytes(&self, lines: Range<usize>) -> Range<usize> {
        let (start, next) = (self.start(lines.start), self.start(lines.end));
        let has_end = lines.end < self.count() && next > start;
        start..if has_end { next - 1 } else { next.max(start) }
    }

    /// The line, from 0, that the byte is in.
    pub(super) fn line_at(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// Replaces some lines by a text.
    pub(super) fn replace(&mut self, lines: Range<usize>, text: &str) {
        let bytes = self.bytes(lines);
        let mut whole = std::mem::take(&mut self.text);
        whole.replace_range(bytes, text);
        *self = Self::new(whole);
    }

    /// The bytes of the longest line, which has at most as many letters.
    pub(super) fn longest(&self) -> usize {
        (0..self.count()).map(|index| self.line(index).len()).max().unwrap_or(0)
    }
}

/// The first line in which two texts differ, if at most [`MAX_CHANGED`] neighboring lines differ.
pub(super) fn changed_line(before: &Lines, after: &Lines) -> Option<usize> {
    let shared = before.count().min(after.count());
    let is_same = |one: usize, other: usize| before.line(one) == after.line(other);
    let front = (0..shared).take_while(|line| is_same(*line, *line)).count();
    let from_end = |line: usize| is_same(before.count() - 1 - line, after.count() - 1 - line);
    let back = (0..shared - front).take_while(|line| from_end(*line)).count();
    let changed = before.count().max(after.count()) - front - back;
    (1..=MAX_CHANGED).contains(&changed).then(|| front.min(after.count() - 1))
}

/// If more lines than this differ, the texts count as different texts, not as an edit.
const MAX_CHANGED: usize = 4;

/// How many bytes the first `units` UTF-16 units take. A text field counts in these units.
pub(super) fn bytes_of_units(text: &str, units: usize) -> usize {
    let mut left = units;
    for (at, letter) in text.char_indices() {
        if left == 0 {
            return at;
        }
        left = left.saturating_sub(letter.len_utf16());
    }
    text.len()
}

/// How many UTF-16 units the first `bytes` bytes take.
pub(super) fn units_of_bytes(text: &str, bytes: usize) -> usize {
    text.get(..bytes).map_or_else(|| text.encode_utf16().count(), |part| part.encode_utf16().count())
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn lines_are_found_and_replaced() {
        let mut lines = Lines::new("a\nbb\n\nc".to_owned());
        assert_eq!(lines.count(), 4);
        assert_eq!((lines.line(1), lines.line(2), lines.line(3), lines.line(9)), ("bb", "", "c", ""));
        assert_eq!(lines.slice(1..4), "bb\n\nc");
        assert_eq!([0, 1, 2, 4, 5, 6, 99].map(|byte| lines.line_at(byte)), [0, 0, 1, 1, 2, 3, 3]);
        lines.replace(1..3, "x\ny\nz");
        assert_eq!((lines.text(), lines.count()), ("a\nx\ny\nz\nc", 5));
        lines.replace(0..5, "");
        assert_eq!((lines.text(), lines.count(), lines.longest()), ("", 1, 0));
    }

    #[test]
    fn a_text_that_ends_with_a_line_end_has_an_empty_last_line() {
        let lines = Lines::new("a\n".to_owned());
        assert_eq!((lines.count(), lines.line(0), lines.line(1)), (2, "a", ""));
        assert_eq!((lines.slice(0..1), lines.slice(0..2)), ("a", "a\n"));
    }

    #[test]
    fn a_change_of_few_lines_has_a_place() {
        let change = |before: &str, after: &str| {
            changed_line(&Lines::new(before.to_owned()), &Lines::new(after.to_owned()))
        };
        assert_eq!(change("# a\n\nb\nc", "# a\n\nstream side\n\nb\nc"), Some(2));
        assert_eq!(change("a\nb\nc", "a\nc"), Some(1));
        assert_eq!(change("a\nb", "a\nb\nc"), Some(2));
        assert_eq!(change("a", "a"), None);
        assert_eq!(change("a\nb\nc\nd\ne", "v\nw\nx\ny\nz"), None);
    }

    #[test]
    fn units_and_bytes_are_converted_both_ways() {
        let text = "aµ😀b";
        assert_eq!([0, 1, 2, 4, 5, 9].map(|units| bytes_of_units(text, units)), [0, 1, 3, 7, 8, 8]);
        assert_eq!([0, 1, 3, 7, 8].map(|bytes| units_of_bytes(text, bytes)), [0, 1, 2, 4, 5]);
    }
}
