//! The parts of statements: names, streams, sizes, labels.

use blockyard_record::{Bytes, StreamId};

use super::{Parser, ScopeKind};
use crate::error::{ParseError, ParseErrorKind};
use crate::names::{MAX_INDICES, shorten};
use crate::size::{
    SizeError, decimal_number, decimal_unit, dtype_size, scaled_number, unit_shift, whole_number,
};
use crate::syntax::{BaseRef, FreeTarget, Index, NameRef, Piece};
use crate::token::{Span, TokenKind};
use crate::words::is_reserved;

/// How many dimensions a shape may have.
const MAX_DIMENSIONS: usize = 5;

const SIZE: &str = "a size such as \"3 MiB\"";
const DTYPE: &str = "a dtype such as \"float32\"";
const NAME: &str = "a name";

impl<'t> Parser<'t> {
    /// `a`, `x[3]`, `x[i][j]`; `x[*]` too where that is allowed.
    pub(super) fn name_or_elements(&mut self, allows_elements: bool) -> Result<FreeTarget, ParseError> {
        let word = self.token.span;
        let text = self.free_word(NAME)?;
        let (base, inner) = match self.scope(text) {
            Some((depth, ScopeKind::Names { indices })) => (BaseRef::Variable(depth), indices),
            _ => (BaseRef::Base(self.bases.number(text)), 0),
        };
        let mut index = [Index::Absent; MAX_INDICES];
        let mut count = inner;
        while self.is_symbol('[') {
            let bracket = self.take();
            if count == inner && allows_elements && self.is_symbol('*') {
                if inner > 0 {
                    return Err(self.error(word, ParseErrorKind::TooManyIndices));
                }
                self.take();
                self.close_bracket()?;
                return Ok(FreeTarget::Elements { base, span: word.to(self.last) });
            }
            if count == MAX_INDICES {
                return Err(self.error(bracket, ParseErrorKind::TooManyIndices));
            }
            let value = self.index()?;
            if let Some(place) = index.get_mut(count - inner) {
                *place = value;
            }
            count += 1;
            self.close_bracket()?;
        }
        Ok(FreeTarget::Name(NameRef { base, index, span: word.to(self.last) }))
    }

    fn close_bracket(&mut self) -> Result<(), ParseError> {
        if !self.is_symbol(']') {
            return Err(self.unexpected("\"]\""));
        }
        self.take();
        Ok(())
    }

    fn index(&mut self) -> Result<Index, ParseError> {
        match self.token.kind {
            TokenKind::Number => self.index_number().map(Index::Number),
            TokenKind::Word => {
                let span = self.take();
                let variable = span.slice(self.text);
                match self.scope(variable) {
                    Some((depth, ScopeKind::Count)) => Ok(Index::Variable(depth)),
                    Some((_, ScopeKind::Names { .. })) => {
                        Err(self.error(span, ParseErrorKind::NotANumber { name: variable.to_owned() }))
                    }
                    None => {
                        Err(self.error(span, ParseErrorKind::UnknownVariable { name: variable.to_owned() }))
                    }
                }
            }
            _ => Err(self.unexpected("a number or the variable of a loop")),
        }
    }

    pub(super) fn index_number(&mut self) -> Result<u32, ParseError> {
        let span = self.token.span;
        let number = self.whole_number("a whole number")?;
        match u32::try_from(number) {
            Ok(index) if index < u32::MAX => Ok(index),
            _ => Err(self.error(span, ParseErrorKind::IndexTooLarge)),
        }
    }

    /// How many indices a name has at most once its variables have values.
    pub(super) fn index_count(&self, name: &NameRef) -> usize {
        let inner = match name.base {
            BaseRef::Base(_) => 0,
            BaseRef::Variable(depth) => match self.scopes.get(depth).map(|scope| scope.kind) {
                Some(ScopeKind::Names { indices }) => indices,
                _ => 0,
            },
        };
        inner + name.index.iter().filter(|index| !matches!(index, Index::Absent)).count()
    }

    /// The innermost loop with this variable, as its depth counted from the outside.
    fn scope(&self, variable: &str) -> Option<(usize, ScopeKind)> {
        let found = self.scopes.iter().enumerate().rev().find(|(_, scope)| scope.variable == variable);
        found.map(|(depth, scope)| (depth, scope.kind))
    }

    /// A word that may be a name.
    pub(super) fn free_word(&mut self, expected: &'static str) -> Result<&'t str, ParseError> {
        if self.token.kind != TokenKind::Word {
            return Err(self.unexpected(expected));
        }
        let word = self.token.span.slice(self.text);
        if is_reserved(word) {
            let kind = ParseErrorKind::ReservedWord { word: word.to_owned() };
            return Err(self.error(self.token.span, kind));
        }
        self.take();
        Ok(word)
    }

    pub(super) fn variable(&mut self) -> Result<&'t str, ParseError> {
        self.free_word("a name for the loop's variable, such as \"i\"")
    }

    pub(super) fn new_stream(&mut self) -> Result<StreamId, ParseError> {
        let span = self.token.span;
        let name = self.free_word("a name for the stream")?;
        let line = match self.streams.find(name) {
            Some(number) => self.stream_lines.get(number as usize).copied(),
            None if name == "default" => None,
            None => {
                let number = self.streams.number(name);
                self.stream_lines.push(span.line);
                return Ok(StreamId::new(u64::from(number) + 1));
            }
        };
        Err(self.error(span, ParseErrorKind::StreamExists { name: shorten(name).to_string(), line }))
    }

    pub(super) fn stream_name(&mut self) -> Result<StreamId, ParseError> {
        let span = self.token.span;
        let name = self.free_word("a stream such as \"default\"")?;
        if name == "default" {
            return Ok(StreamId::DEFAULT);
        }
        if let Some(number) = self.streams.find(name) {
            return Ok(StreamId::new(u64::from(number) + 1));
        }
        let declared = self.streams.names.iter().map(|known| (*known).to_owned());
        let known = std::iter::once("default".to_owned()).chain(declared).collect();
        Err(self.error(span, ParseErrorKind::UnknownStream { name: shorten(name).to_string(), known }))
    }

    pub(super) fn whole_number(&mut self, expected: &'static str) -> Result<u64, ParseError> {
        if self.token.kind != TokenKind::Number {
            return Err(self.unexpected(expected));
        }
        let number = whole_number(self.token.span.slice(self.text));
        let number = number.ok_or_else(|| self.unexpected(expected))?;
        self.take();
        Ok(number)
    }

    /// A number with or without a unit, or a shape with a dtype.
    pub(super) fn size(&mut self) -> Result<Bytes, ParseError> {
        if self.token.kind != TokenKind::Number {
            return Err(self.unexpected(SIZE));
        }
        let number = self.take();
        if self.token.kind == TokenKind::Times {
            return self.shape(number);
        }
        let word = self.token.span;
        let text = word.slice(self.text);
        if self.token.kind != TokenKind::Word || text == "on" {
            return self.scaled(number, 0, number);
        }
        if let Some(multiple) = decimal_unit(text) {
            self.take();
            return self.scaled_decimal(number, multiple, number.to(word));
        }
        if let Some(shift) = unit_shift(text) {
            self.take();
            return self.scaled(number, shift, number.to(word));
        }
        if dtype_size(text).is_some() {
            return self.shape(number);
        }
        let span = number.to(word);
        let found = self.quote(span);
        Err(self.error(span, ParseErrorKind::Unexpected { expected: SIZE, found }))
    }

    /// `3 GB`: units of a thousand, as vendors of GPUs write them.
    fn scaled_decimal(&self, number: Span, multiple: u64, span: Span) -> Result<Bytes, ParseError> {
        let bytes = decimal_number(number.slice(self.text), multiple);
        bytes.map(Bytes::new).map_err(|problem| self.size_error(problem, span))
    }

    fn scaled(&self, number: Span, shift: u32, span: Span) -> Result<Bytes, ParseError> {
        let bytes = scaled_number(number.slice(self.text), shift);
        bytes.map(Bytes::new).map_err(|problem| self.size_error(problem, span))
    }

    fn size_error(&self, problem: SizeError, span: Span) -> ParseError {
        let found = self.quote(span);
        let kind = match problem {
            SizeError::TooLarge => ParseErrorKind::SizeTooLarge { found },
            SizeError::NotWhole => ParseErrorKind::NotWholeBytes { found },
        };
        self.error(span, kind)
    }

    /// `10000 x 10000 float32`, of which `first` is used up.
    fn shape(&mut self, first: Span) -> Result<Bytes, ParseError> {
        let mut sides = vec![self.side(first)?];
        while self.token.kind == TokenKind::Times {
            self.take();
            let side = self.take();
            if sides.len() == MAX_DIMENSIONS {
                return Err(self.error(side, ParseErrorKind::TooManyDimensions));
            }
            sides.push(self.side(side)?);
        }
        let dtype =
            dtype_size(self.token.span.slice(self.text)).filter(|_| self.token.kind == TokenKind::Word);
        let element = dtype.ok_or_else(|| self.unexpected(DTYPE))?;
        let span = first.to(self.take());
        self.shape_size(&sides, element, span)
    }

    /// The bytes of a tensor with these sides; `element` is the bytes of one element.
    pub(super) fn shape_size(&self, sides: &[u64], element: u64, span: Span) -> Result<Bytes, ParseError> {
        // A side of zero makes no bytes, whatever the others are.
        let product = if sides.contains(&0) {
            Some(0)
        } else {
            sides.iter().try_fold(element, |product: u64, side| product.checked_mul(*side))
        };
        product.map(Bytes::new).ok_or_else(|| self.size_error(SizeError::TooLarge, span))
    }

    fn side(&self, span: Span) -> Result<u64, ParseError> {
        let digits = span.slice(self.text);
        match whole_number(digits) {
            Some(u64::MAX) if scaled_number(digits, 0).is_err() => {
                Err(self.error(span, ParseErrorKind::SizeTooLarge { found: self.quote(span) }))
            }
            Some(side) => Ok(side),
            None => {
                let found = self.quote(span);
                Err(self.error(span, ParseErrorKind::Unexpected { expected: "a whole number", found }))
            }
        }
    }

    pub(super) fn quote(&self, span: Span) -> String {
        format!("\"{}\"", shorten(span.slice(self.text)))
    }

    /// The text of a label in quotes: `{i}` for a variable, `{{`, `}}`, `\"` and `\\` for themselves.
    pub(super) fn label_pieces(&self, quoted: Span) -> Result<Vec<Piece>, ParseError> {
        let start = quoted.start + 1;
        let inner = self.text.get(start..quoted.end.saturating_sub(1)).unwrap_or_default();
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = inner.char_indices().peekable();
        while let Some((offset, character)) = rest.next() {
            let next = rest.peek().map(|(_, next)| *next);
            match (character, next) {
                ('\\', Some(escaped @ ('"' | '\\'))) => {
                    literal.push(escaped);
                    rest.next();
                }
                ('{' | '}', Some(doubled)) if doubled == character => {
                    literal.push(character);
                    rest.next();
                }
                ('{', _) => {
                    let depth = self.label_variable(quoted, start + offset, inner.len() - offset)?;
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    pieces.push(Piece::Variable(depth));
                    while rest.next_if(|(_, skipped)| *skipped != '}').is_some() {}
                    rest.next();
                }
                _ => literal.push(character),
            }
        }
        pieces.push(Piece::Literal(literal));
        pieces.retain(|piece| !matches!(piece, Piece::Literal(literal) if literal.is_empty()));
        Ok(pieces)
    }

    /// The variable in the braces that open at `start`; `length` bytes from there are inside the quotes.
    fn label_variable(&self, quoted: Span, start: usize, length: usize) -> Result<usize, ParseError> {
        let inner = self.text.get(start + 1..start + length).unwrap_or_default();
        let Some(end) = inner.find('}') else {
            let span = Span { start, end: start + length, ..quoted };
            let expected = "a variable in braces such as \"{i}\" (write \"{{\" for a brace)";
            return Err(self.error(span, ParseErrorKind::Unexpected { expected, found: self.quote(span) }));
        };
        let name = inner.get(..end).unwrap_or_default().trim();
        let span = Span { start, end: start + end + 2, ..quoted };
        let unknown =
            || self.error(span, ParseErrorKind::UnknownVariable { name: shorten(name).to_string() });
        self.scope(name).filter(|_| !name.is_empty()).map(|(depth, _)| depth).ok_or_else(unknown)
    }
}
