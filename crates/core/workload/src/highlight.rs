//! A line of a text in pieces, for colors.

use std::ops::Range;

use crate::size::{decimal_unit, dtype_size, unit_shift};
use crate::token::{Lexer, TokenKind};
use crate::words::is_keyword;

/// The kind of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Highlight {
    /// A word of the language, or a function of PyTorch.
    Keyword,
    /// The name of a tensor, a stream or a pool.
    Name,
    /// A number, a unit or a dtype.
    Size,
    /// A text in quotes.
    Quoted,
    /// From `#` to the end of the line.
    Comment,
    /// Blanks and signs.
    Other,
}

/// The pieces of one line, in order; together they are the line. Ranges are bytes.
///
/// ```
/// use blockyard_workload::{Highlight, highlight};
///
/// let line = "a = alloc 3 MiB # first";
/// let sizes: Vec<_> = highlight(line).into_iter().filter(|(_, kind)| *kind == Highlight::Size).collect();
/// assert_eq!(sizes.iter().map(|(range, _)| &line[range.clone()]).collect::<Vec<_>>(), ["3", "MiB"]);
/// ```
#[must_use]
pub fn highlight(line: &str) -> Vec<(Range<usize>, Highlight)> {
    let mut pieces: Vec<(Range<usize>, Highlight)> = Vec::new();
    let mut lexer = Lexer::new(line);
    let mut end = 0;
    let mut before = TokenKind::LineEnd;
    loop {
        let token = lexer.next();
        if matches!(token.kind, TokenKind::End | TokenKind::LineEnd) {
            break;
        }
        add(&mut pieces, end..token.span.start, Highlight::Other);
        let kind = match token.kind {
            TokenKind::Word => word_kind(token.span.slice(line), before),
            TokenKind::Number | TokenKind::Times => Highlight::Size,
            TokenKind::Quoted | TokenKind::OpenQuote => Highlight::Quoted,
            TokenKind::Symbol(_) | TokenKind::LineEnd | TokenKind::End => Highlight::Other,
        };
        add(&mut pieces, token.span.start..token.span.end, kind);
        (end, before) = (token.span.end, token.kind);
    }
    // The lexer skips comments: blanks and perhaps a comment are left after the last token.
    let comment = line.get(end..).and_then(|rest| rest.find('#')).map_or(line.len(), |start| end + start);
    add(&mut pieces, end..comment, Highlight::Other);
    add(&mut pieces, comment..line.len(), Highlight::Comment);
    pieces
}

fn add(pieces: &mut Vec<(Range<usize>, Highlight)>, range: Range<usize>, kind: Highlight) {
    match pieces.last_mut() {
        _ if range.is_empty() => {}
        Some((last, same)) if *same == kind && kind == Highlight::Other => last.end = range.end,
        _ => pieces.push((range, kind)),
    }
}

fn word_kind(word: &str, before: TokenKind) -> Highlight {
    let is_unit = unit_shift(word).is_some() || decimal_unit(word).is_some() || dtype_size(word).is_some();
    if before == TokenKind::Number && is_unit {
        Highlight::Size
    } else if is_keyword(word) || word.starts_with("torch.") {
        Highlight::Keyword
    } else {
        Highlight::Name
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(line: &str, expected: &Expect) {
        let found: Vec<_> = highlight(line)
            .into_iter()
            .map(|(range, kind)| format!("{kind:?} {:?}", line.get(range).unwrap_or_default()))
            .collect();
        expected.assert_eq(&found.join("\n"));
    }

    #[test]
    fn a_line_is_words_names_sizes_and_a_comment() {
        check(
            "x[i] = alloc 3 MiB on side  # why",
            &expect![[r##"
                Name "x"
                Other "["
                Name "i"
                Other "] = "
                Keyword "alloc"
                Other " "
                Size "3"
                Other " "
                Size "MiB"
                Other " "
                Keyword "on"
                Other " "
                Name "side"
                Other "  "
                Comment "# why""##]],
        );
    }

    #[test]
    fn quotes_hold_what_looks_like_a_comment() {
        check(
            "step \"a # b\"; del x # c",
            &expect![[r##"
                Keyword "step"
                Other " "
                Quoted "\"a # b\""
                Other "; "
                Keyword "del"
                Other " "
                Name "x"
                Other " "
                Comment "# c""##]],
        );
    }

    proptest::proptest! {
        #[test]
        fn pieces_are_the_line(line in "[a-z #\"\\[\\]=;0-9µ.]{0,40}") {
            let mut end = 0;
            for (range, _) in highlight(&line) {
                proptest::prop_assert_eq!(range.start, end);
                proptest::prop_assert!(line.get(range.clone()).is_some());
                end = range.end;
            }
            proptest::prop_assert_eq!(end, line.len());
        }
    }
}
