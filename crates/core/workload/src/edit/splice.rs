//! Puts lines into a text and takes statements out of it; knows spans, not requests.

use blockyard_record::index_u32;

use crate::token::Span;

/// Where a statement goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum InsertionPoint {
    /// Before this statement, the first on its line.
    Before(Span),
    /// After this statement and a comment that follows it.
    After(Span),
    /// After everything, indented like this statement.
    End(Option<Span>),
}

/// The text with one more statement, and the line of this statement, counted from 1.
pub(super) fn insert_line(text: &str, point: InsertionPoint, statement: &str) -> (String, u32) {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (at, inserted) = match point {
        InsertionPoint::Before(next) => {
            (next.line_start, format!("{}{statement}{newline}", indent(text, next.line_start)))
        }
        InsertionPoint::After(previous) => {
            let tail = text.get(previous.end..).unwrap_or_default();
            let line_end = tail.find('\n');
            let rest = tail.get(..line_end.unwrap_or(tail.len())).unwrap_or_default();
            let rest =
                rest.trim_start_matches(|character: char| character == ';' || character.is_whitespace());
            let indent = indent(text, previous.line_start);
            match line_end {
                _ if !rest.is_empty() && !rest.starts_with('#') => (previous.end, format!("; {statement}")),
                Some(line_end) => (previous.end + line_end + 1, format!("{indent}{statement}{newline}")),
                None => (text.len(), format!("{newline}{indent}{statement}")),
            }
        }
        InsertionPoint::End(last) => {
            let indent = last.map_or("", |last| indent(text, last.line_start));
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
            (text.len(), format!("{gap}{indent}{statement}{newline}"))
        }
    };
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    // The line is the one on which the inserted text ends, not counting its own end of line.
    let lines = before.matches('\n').count() + inserted.trim_end().matches('\n').count();
    (format!("{before}{inserted}{after}"), index_u32(lines + 1))
}

/// The blanks at the start of a line.
fn indent(text: &str, line_start: usize) -> &str {
    let line = text.get(line_start..).unwrap_or_default();
    let width = line.find(|character: char| !matches!(character, ' ' | '\t')).unwrap_or(line.len());
    line.get(..width).unwrap_or_default()
}

/// The text without one item of a list of several, and without its comma.
pub(super) fn remove_item(text: &str, items: &[Span], index: usize) -> String {
    let range = match (items.get(index), items.get(index + 1)) {
        (Some(item), Some(next)) => item.start..next.start,
        (Some(item), None) => {
            let previous = index.checked_sub(1).and_then(|index| items.get(index));
            previous.map_or(item.start, |previous| previous.end)..item.end
        }
        (None, _) => return text.to_owned(),
    };
    remove_span(text, range.start, range.end)
}

/// The text without a statement, its separator, and its line if nothing else is on it.
pub(super) fn remove_statement(text: &str, span: Span) -> String {
    let is_blank = |character: char| matches!(character, ' ' | '\t' | '\r');
    let before = text.get(span.line_start..span.start).unwrap_or_default();
    let line_end = text.get(span.end..).and_then(|tail| tail.find('\n')).map(|end| span.end + end);
    let after = text.get(span.end..line_end.unwrap_or(text.len())).unwrap_or_default();
    if before.trim().is_empty()
        && after.trim_matches(|character| is_blank(character) || character == ';').is_empty()
    {
        return remove_span(text, span.line_start, line_end.map_or(text.len(), |end| end + 1));
    }
    let rest = after.trim_start_matches(is_blank);
    if let Some(rest) = rest.strip_prefix(';') {
        let rest = rest.trim_start_matches(is_blank);
        return remove_span(text, span.start, span.end + after.len() - rest.len());
    }
    let before = before.trim_end_matches(is_blank);
    let before = before.strip_suffix(';').unwrap_or(before);
    remove_span(text, span.line_start + before.len(), span.end)
}

fn remove_span(text: &str, start: usize, end: usize) -> String {
    let (before, after) = (text.get(..start), text.get(end..));
    format!("{}{}", before.unwrap_or_default(), after.unwrap_or_default())
}
