//! Text into tokens: the place of each token, not its meaning.

use crate::names::shorten;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A keyword, a name, a unit.
    Word,
    /// Digits and underscores, perhaps with decimals.
    Number,
    /// Text in double quotes.
    Quoted,
    /// Text whose closing quote is missing; reaches to the end of its line.
    OpenQuote,
    /// Between the sides of a shape.
    Times,
    /// Any other character.
    Symbol(char),
    LineEnd,
    End,
}

/// The place of something in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Byte offsets.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Counted from 1.
    pub(crate) line: u32,
    /// Byte offset of the line's start; columns are counted only when an error needs them.
    pub(crate) line_start: usize,
}

impl Span {
    /// From the start of this to the end of `last`.
    pub(crate) fn to(self, last: Self) -> Self {
        Self { end: last.end, ..self }
    }

    pub(crate) fn slice(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

impl Token {
    /// The token as a message names it.
    pub(crate) fn describe(self, text: &str) -> String {
        match self.kind {
            TokenKind::LineEnd => "the end of the line".to_owned(),
            TokenKind::End => "the end of the text".to_owned(),
            // These bring their own quotes.
            TokenKind::Quoted | TokenKind::OpenQuote => shorten(self.span.slice(text)).to_string(),
            _ => format!("\"{}\"", shorten(self.span.slice(text))),
        }
    }
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    line_start: usize,
    is_after_number: bool,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, line_start: 0, is_after_number: false }
    }

    /// The next token; always [`TokenKind::End`] after the end of the text.
    pub(crate) fn next(&mut self) -> Token {
        self.skip_blanks();
        let start = self.at;
        let mut span = Span { start, end: start, line: self.line, line_start: self.line_start };
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('\n') => self.line_end(),
            Some('"') => self.quoted(),
            Some(first) if self.is_after_number && self.is_times(first) => {
                self.at += first.len_utf8();
                TokenKind::Times
            }
            Some(first) if first.is_ascii_digit() => self.number(),
            Some(first) if is_word_start(first) => self.word(),
            Some(other) => {
                self.at += other.len_utf8();
                TokenKind::Symbol(other)
            }
        };
        span.end = self.at;
        self.is_after_number = kind == TokenKind::Number;
        Token { kind, span }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves to the first character that is not `wanted`.
    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|character| !wanted(character)).unwrap_or(rest.len());
    }

    fn skip_blanks(&mut self) {
        // Some editors write a byte order mark at the start of a file.
        self.skip_while(|character| {
            character != '\n' && (character.is_whitespace() || character == '\u{feff}')
        });
        if self.peek() == Some('#') {
            self.skip_while(|character| character != '\n');
        }
    }

    fn line_end(&mut self) -> TokenKind {
        self.at += 1;
        self.line = self.line.saturating_add(1);
        self.line_start = self.at;
        TokenKind::LineEnd
    }

    fn quoted(&mut self) -> TokenKind {
        let mut is_escaped = false;
        for (offset, character) in self.rest().char_indices().skip(1) {
            match character {
                '\n' => {
                    self.at += offset;
                    return TokenKind::OpenQuote;
                }
                '"' if !is_escaped => {
                    self.at += offset + 1;
                    return TokenKind::Quoted;
                }
                _ => is_escaped = character == '\\' && !is_escaped,
            }
        }
        self.at = self.text.len();
        TokenKind::OpenQuote
    }

    /// Whether `first` multiplies two numbers; `x` is a fine name everywhere else.
    fn is_times(&self, first: char) -> bool {
        let next = self.rest().get(first.len_utf8()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        matches!(first, 'x' | 'X' | '*' | '×')
            && next.starts_with(|character: char| character.is_ascii_digit())
    }

    fn number(&mut self) -> TokenKind {
        let is_digit = |character: char| character.is_ascii_digit() || character == '_';
        self.skip_while(is_digit);
        let has_decimals =
            self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if has_decimals {
            self.at += 1;
            self.skip_while(is_digit);
        }
        TokenKind::Number
    }

    fn word(&mut self) -> TokenKind {
        let is_part = |character: char| is_word_start(character) || character.is_alphanumeric();
        self.skip_while(is_part);
        // Names such as `encoder.0.weight`.
        while self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part)) {
            self.at += 1;
            self.skip_while(is_part);
        }
        TokenKind::Word
    }
}

fn is_word_start(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let token = lexer.next();
            found.push(format!("{:?} {:?}", token.kind, token.span.slice(text)));
            if token.kind == TokenKind::End {
                break;
            }
        }
        expected.assert_eq(&found.join("\n"));
    }

    #[test]
    fn numbers_words_and_shapes_are_distinguished() {
        check(
            "x=alloc 10_0x2 x3 MiB #c\nfc.0.w[1.5 \"a\\\"b\" \"open",
            &expect![[r#"
                Word "x"
                Symbol('=') "="
                Word "alloc"
                Number "10_0"
                Times "x"
                Number "2"
                Times "x"
                Number "3"
                Word "MiB"
                LineEnd "\n"
                Word "fc.0.w"
                Symbol('[') "["
                Number "1.5"
                Quoted "\"a\\\"b\""
                OpenQuote "\"open"
                End """#]],
        );
    }
}
