//! The colored lines under the text field. The field itself shows only the caret and the selection.

use std::fmt::Write as _;
use std::ops::Range;

use blockyard_workload::{Highlight, highlight};
use web_sys::Element;

use super::lines::Lines;
use crate::browser;

/// The marks of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The line of the step under the cursor, from 0.
    pub(super) current: Option<usize>,
    /// The line of an error, from 0, with the letters that are wrong.
    pub(super) error: Option<(usize, Range<usize>)>,
}

/// The elements of the lines that are drawn.
#[derive(Default)]
pub(super) struct Rows {
    /// Each line with its element, from `first` on.
    shown: Vec<(String, Element)>,
    /// The index of the first drawn line, from 0.
    first: usize,
    marks: Marks,
}

impl Rows {
    /// Shows these lines of the text below `parent`. Elements of unchanged lines stay.
    pub(super) fn show(&mut self, parent: &Element, lines: &Lines, range: Range<usize>, marks: &Marks) {
        let wanted: Vec<_> = range.clone().map(|index| lines.line(index)).collect();
        let shift = range.start != self.first;
        let same = |(known, line): &(&(String, Element), &&str)| known.0 == **line;
        let front = if shift { 0 } else { self.shown.iter().zip(&wanted).take_while(same).count() };
        let most = self.shown.len().min(wanted.len()) - front;
        let back = if shift {
            0
        } else {
            self.shown.iter().rev().zip(wanted.iter().rev()).take(most).take_while(same).count()
        };
        let end = self.shown.len() - back;
        let next = self.shown.get(end).map(|(_, element)| element.clone());
        let made = wanted.get(front..wanted.len() - back).unwrap_or_default().iter();
        let made: Vec<_> = made
            .filter_map(|line| {
                let element = browser::document()?.create_element("div").ok()?;
                element.set_class_name("row");
                element.set_inner_html(&row_html(line));
                let _ = parent.insert_before(&element, next.as_deref());
                Some(((*line).to_owned(), element))
            })
            .collect();
        for (_, element) in self.shown.splice(front..end, made) {
            element.remove();
        }
        // A marked element may show another line now, so all marks are set again.
        let before = std::mem::take(&mut self.marks);
        self.unmark(&before);
        self.first = range.start;
        self.marks = marks.clone();
        self.mark(lines);
    }

    /// The index of the line that an element shows.
    pub(super) fn line_of(&self, row: &Element) -> Option<usize> {
        self.shown.iter().position(|(_, element)| element == row).map(|place| self.first + place)
    }

    /// The element of a line, if the line is drawn.
    pub(super) fn element(&self, line: usize) -> Option<&Element> {
        self.shown.get(line.checked_sub(self.first)?).map(|(_, element)| element)
    }

    fn unmark(&self, marks: &Marks) {
        if marks.current.is_none() && marks.error.is_none() {
            return;
        }
        // Lines that were inserted or removed have moved the marked elements, so every element is checked.
        for (_, element) in &self.shown {
            if element.class_name() != "row" {
                element.set_class_name("row");
                if let Ok(Some(overlay)) = element.query_selector(".error-overlay") {
                    overlay.remove();
                }
            }
        }
    }

    fn mark(&self, lines: &Lines) {
        if let Some(element) = self.marks.current.and_then(|line| self.element(line)) {
            element.set_class_name("row is-current");
        }
        let Some((line, wrong)) = &self.marks.error else { return };
        let Some(element) = self.element(*line) else { return };
        element.set_class_name("row is-wrong");
        let _ = element.insert_adjacent_html("beforeend", &error_html(lines.line(*line), wrong));
    }
}

/// The colored pieces of a line.
fn row_html(line: &str) -> String {
    let mut html = String::new();
    for (range, kind) in highlight(line) {
        let text = escaped(line.get(range).unwrap_or_default());
        let class = match kind {
            Highlight::Keyword => "keyword",
            Highlight::Size => "size",
            Highlight::Quoted => "quoted",
            Highlight::Comment => "comment",
            Highlight::Name | Highlight::Other => {
                html.push_str(&text);
                continue;
            }
        };
        let _ = write!(html, "<span class=\"{class}\">{text}</span>");
    }
    html
}

/// A copy of the line in transparent letters, to be laid over the colored line. Both break at the same
/// letters; the wrong letters are underlined.
fn error_html(line: &str, wrong: &Range<usize>) -> String {
    let part =
        |range: Range<usize>| escaped(&line.chars().skip(range.start).take(range.len()).collect::<String>());
    let marked = part(wrong.clone());
    let marked = if marked.is_empty() { "&nbsp;".to_owned() } else { marked };
    format!("<div class=\"error-overlay\">{}<span>{marked}</span></div>", part(0..wrong.start))
}

// Every letter stays, unlike in `blockyard_figure::escaped`: the overlay covers the letters of the text area.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The left and the lower edge of a letter of a line, in pixels of the window; `letters` letters precede it.
pub(super) fn place_in(element: &Element, line: &str, letters: usize) -> Option<(f64, f64)> {
    let before: String = line.chars().take(letters).collect();
    let html = format!("<div class=\"error-overlay\">{}<span></span></div>", escaped(&before));
    element.insert_adjacent_html("beforeend", &html).ok()?;
    let probe = element.last_element_child()?;
    let rect = probe.last_element_child().map(|span| span.get_bounding_client_rect());
    probe.remove();
    rect.map(|rect| (rect.left(), rect.bottom()))
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_row_is_its_line_in_colors_and_no_markup() {
        assert_eq!(
            row_html("a = alloc 3 MiB # <b>&"),
            "a = <span class=\"keyword\">alloc</span> <span class=\"size\">3</span> \
             <span class=\"size\">MiB</span> <span class=\"comment\"># &lt;b&gt;&amp;</span>"
        );
        assert_eq!(row_html(""), "");
    }

    #[test]
    fn wrong_letters_are_marked_even_after_the_end_of_the_line() {
        assert_eq!(
            error_html("free <", &(5..6)),
            "<div class=\"error-overlay\">free <span>&lt;</span></div>"
        );
        assert_eq!(error_html("ab", &(2..3)), "<div class=\"error-overlay\">ab<span>&nbsp;</span></div>");
    }
}
