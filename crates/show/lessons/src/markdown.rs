//! The few forms of Markdown that lessons have.

use blockyard_record::index_u32;

use crate::condition::Condition;
use crate::error::{Errors, LessonError, LessonErrorKind, Position};
use crate::measure::{Measure, RunStretch};
use crate::proof::stated;
use crate::text::{Inline, TextBlock};

/// A piece of a sentence whose values are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Strong(Vec<Piece>),
    Emphasis(Vec<Piece>),
    Code(String),
    Link {
        text: Vec<Piece>,
        target: String,
    },
    Value {
        measure: Measure,
        at: Position,
    },
    /// Words that are shown because the condition holds.
    Claim {
        condition: Condition,
        words: Vec<Piece>,
        at: Position,
    },
    /// Claims, of which the first that holds is shown.
    Cases(Vec<Piece>),
    /// A number or a comparing word of the text before this piece, which comes from no condition.
    Unbound {
        word: String,
        at: Position,
    },
}

/// A block whose values are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Paragraph(Vec<Piece>),
    List(Vec<Vec<Piece>>),
    Code { language: String, text: String },
}

/// Lines of a file that make one paragraph, one item or one value of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prose {
    text: String,
    /// Where in `text` each line starts, and where that is in the file.
    lines: Vec<(usize, Position)>,
}

impl Prose {
    /// The prose of one line, which begins at this place of the file.
    pub(crate) fn line(at: Position, text: &str) -> Self {
        let mut prose = Self::default();
        prose.push(at, text);
        prose
    }

    pub(crate) fn push(&mut self, at: Position, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), at));
        self.text.push_str(text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Where the byte at `offset` is in the file.
    fn position(&self, offset: usize) -> Position {
        let next = self.lines.partition_point(|(start, _)| *start <= offset);
        let Some((start, at)) = next.checked_sub(1).and_then(|index| self.lines.get(index)) else {
            return Position::default();
        };
        let before = self.text.get(*start..offset).unwrap_or_default().chars().count();
        Position { line: at.line, column: at.column.saturating_add(index_u32(before)) }
    }

    /// Reads the marks. After a mark that is never closed nothing is read.
    pub(crate) fn parse(&self, errors: &mut Errors) -> Vec<Piece> {
        let mut parser =
            Parser { prose: self, at: 0, is_claim: false, has_next_case: false, errors: &mut *errors };
        let pieces = parser.until("", 0);
        errors.keep(pieces).unwrap_or_default()
    }
}

/// How deep marks may be nested.
const MAX_DEPTH: usize = 8;

struct Parser<'t, 'e> {
    prose: &'t Prose,
    at: usize,
    /// Whether the words have a condition.
    is_claim: bool,
    /// Whether the words ended before another case.
    has_next_case: bool,
    /// The errors after which the rest can still be read.
    errors: &'e mut Errors,
}

impl<'t> Parser<'t, '_> {
    fn rest(&self) -> &'t str {
        self.prose.text.get(self.at..).unwrap_or_default()
    }

    /// The pieces up to the closing mark, which is used up; up to the end of the text for an empty one.
    fn until(&mut self, mark: &'static str, depth: usize) -> Result<Vec<Piece>, LessonError> {
        let opened = self.prose.position(self.at.saturating_sub(mark.len().max(1)));
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut start = self.at;
        while let Some(character) = self.rest().chars().next() {
            let rest = self.rest();
            if !mark.is_empty() && rest.starts_with(mark) {
                self.flush(&mut pieces, &mut text, start);
                self.at += mark.len();
                return Ok(pieces);
            }
            if mark == "}" && rest.starts_with("||") {
                text.truncate(text.trim_end().len());
                self.flush(&mut pieces, &mut text, start);
                self.at += 2;
                self.has_next_case = true;
                return Ok(pieces);
            }
            if let Some(literal) = literal(rest) {
                text.push(literal.0);
                self.at += literal.1;
                continue;
            }
            if depth < MAX_DEPTH && matches!(character, '*' | '`' | '[' | '{') {
                self.flush(&mut pieces, &mut text, start);
                pieces.push(self.marked(character, depth)?);
                start = self.at;
                continue;
            }
            text.push(character);
            self.at += character.len_utf8();
        }
        self.flush(&mut pieces, &mut text, start);
        if mark.is_empty() { Ok(pieces) } else { Err(opened.at(LessonErrorKind::Unclosed { mark })) }
    }

    fn marked(&mut self, character: char, depth: usize) -> Result<Piece, LessonError> {
        let is_strong = self.rest().starts_with("**");
        self.at += if is_strong { 2 } else { 1 };
        match character {
            '*' if is_strong => Ok(Piece::Strong(self.until("**", depth + 1)?)),
            '*' => Ok(Piece::Emphasis(self.until("*", depth + 1)?)),
            '`' => Ok(Piece::Code(self.raw("`")?.to_owned())),
            '[' => {
                let text = self.until("]", depth + 1)?;
                if !self.rest().starts_with('(') {
                    return Err(self.prose.position(self.at).at(LessonErrorKind::Unexpected {
                        expected: "an address in parentheses after \"[text]\"",
                        found: self.rest().chars().take(1).collect(),
                    }));
                }
                self.at += 1;
                Ok(Piece::Link { text, target: self.raw(")")?.to_owned() })
            }
            _ if self.is_before_claim() => self.cases(depth),
            _ => {
                let at = self.prose.position(self.at);
                let measure = Measure::parse(self.raw("}")?);
                let measure = measure.map_err(|error| at.at(LessonErrorKind::Measure(error)));
                let value = self.errors.keep(measure).map(|measure| Piece::Value { measure, at });
                Ok(value.unwrap_or_else(|| Piece::Text(String::new())))
            }
        }
    }

    /// Ends a text that began at `start`.
    fn flush(&self, pieces: &mut Vec<Piece>, text: &mut String, start: usize) {
        if text.is_empty() {
            return;
        }
        let found = if self.is_claim { Vec::new() } else { stated(text) };
        pieces.push(Piece::Text(std::mem::take(text)));
        pieces.extend(found.into_iter().map(|stated| {
            let at = self.prose.position(start.saturating_add(stated.offset));
            Piece::Unbound { word: stated.word, at }
        }));
    }

    /// Whether a brace is open whose condition and arrow come before any other brace.
    fn is_before_claim(&self) -> bool {
        let rest = self.rest();
        let arrow = rest.find("=>");
        arrow.is_some_and(|arrow| rest.find(['{', '}']).is_none_or(|brace| arrow < brace))
    }

    /// Reads `condition => words}`, or several with `||` between them.
    fn cases(&mut self, depth: usize) -> Result<Piece, LessonError> {
        let first = self.claim(depth)?;
        if !self.has_next_case {
            return Ok(first);
        }
        let mut cases = vec![first];
        while std::mem::take(&mut self.has_next_case) {
            cases.push(self.claim(depth)?);
        }
        Ok(Piece::Cases(cases))
    }

    /// Reads `condition => words`, and the mark after it.
    fn claim(&mut self, depth: usize) -> Result<Piece, LessonError> {
        let at = self.prose.position(self.at);
        let condition = Condition::parse(self.raw("=>")?);
        let condition = condition.map_err(|error| at.at(LessonErrorKind::Measure(error)));
        let condition = self.errors.keep(condition);
        self.at += self.rest().len() - self.rest().trim_start().len();
        let outer = std::mem::replace(&mut self.is_claim, true);
        let words = self.until("}", depth + 1);
        self.is_claim = outer;
        let words = words?;
        Ok(match condition {
            Some(condition) => Piece::Claim { condition, words, at },
            None => Piece::Text(String::new()),
        })
    }

    /// The characters up to the closing mark, which is used up.
    fn raw(&mut self, mark: &'static str) -> Result<&'t str, LessonError> {
        let rest = self.rest();
        let Some(end) = rest.find(mark) else {
            let mark = match mark {
                ")" => "(",
                "}" => "{",
                other => other,
            };
            return Err(self
                .prose
                .position(self.at.saturating_sub(1))
                .at(LessonErrorKind::Unclosed { mark }));
        };
        self.at += end + mark.len();
        Ok(rest.get(..end).unwrap_or_default())
    }
}

/// A character that stands for itself, and how many bytes of the text it takes.
fn literal(rest: &str) -> Option<(char, usize)> {
    for (text, character) in [("{{", '{'), ("}}", '}')] {
        if rest.starts_with(text) {
            return Some((character, text.len()));
        }
    }
    let escaped = rest.strip_prefix('\\')?.chars().next()?;
    escaped.is_ascii_punctuation().then_some((escaped, 2))
}

/// The first of these claims that holds, or else the last, whose error says why.
pub(crate) fn holding<'p>(cases: &'p [Piece], stretch: &RunStretch<'_>) -> &'p [Piece] {
    let holds = |piece: &Piece| matches!(piece, Piece::Claim { condition, .. } if condition.holds(stretch).is_ok_and(|(holds, _)| holds));
    let place = cases.iter().position(holds).unwrap_or(cases.len().saturating_sub(1));
    cases.get(place..=place).unwrap_or_default()
}

/// Fills in the values of the run, and checks that each claim holds. A piece without a value is left out.
pub(crate) fn fill(pieces: &[Piece], stretch: &RunStretch<'_>, errors: &mut Errors) -> Vec<Inline> {
    let mut filled = Vec::new();
    for piece in pieces {
        filled.push(match piece {
            Piece::Text(text) => Inline::Text(text.clone()),
            Piece::Code(text) => Inline::Code(text.clone()),
            Piece::Strong(pieces) => Inline::Strong(fill(pieces, stretch, errors)),
            Piece::Emphasis(pieces) => Inline::Emphasis(fill(pieces, stretch, errors)),
            Piece::Link { text, target } => {
                Inline::Link { text: fill(text, stretch, errors), target: target.clone() }
            }
            Piece::Value { measure, at } => {
                let answer = measure.answer(stretch);
                let answer = answer.map_err(|error| at.at(LessonErrorKind::Measure(error)));
                let Some(answer) = errors.keep(answer) else { continue };
                Inline::Value { text: answer.to_string(), quantity: measure.quantity }
            }
            Piece::Claim { condition, words, at } => {
                let holds = condition.holds(stretch);
                let holds = holds.map_err(|error| at.at(LessonErrorKind::Measure(error)));
                if let Some((false, found)) = errors.keep(holds) {
                    let claim = condition.to_string();
                    errors.push(at.at(LessonErrorKind::Claim { claim, found }));
                }
                filled.extend(fill(words, stretch, errors));
                continue;
            }
            Piece::Cases(cases) => {
                filled.extend(fill(holding(cases, stretch), stretch, errors));
                continue;
            }
            Piece::Unbound { .. } => continue,
        });
    }
    filled
}

pub(crate) fn fill_part(part: &Part, stretch: &RunStretch<'_>, errors: &mut Errors) -> TextBlock {
    match part {
        Part::Paragraph(pieces) => TextBlock::Paragraph(fill(pieces, stretch, errors)),
        Part::List(items) => TextBlock::List(items.iter().map(|item| fill(item, stretch, errors)).collect()),
        Part::Code { language, text } => TextBlock::Code { language: language.clone(), text: text.clone() },
    }
}

/// The pieces of a text that may have no values, such as a title. The words of claims are taken without
/// asking; constants of the allocator need no run.
pub(crate) fn without_values(pieces: &[Piece]) -> Result<Vec<Inline>, LessonError> {
    let mut words = Vec::new();
    for piece in pieces {
        words.push(match piece {
            Piece::Text(text) => Inline::Text(text.clone()),
            Piece::Code(text) => Inline::Code(text.clone()),
            Piece::Strong(pieces) => Inline::Strong(without_values(pieces)?),
            Piece::Emphasis(pieces) => Inline::Emphasis(without_values(pieces)?),
            Piece::Link { text, target } => {
                Inline::Link { text: without_values(text)?, target: target.clone() }
            }
            Piece::Value { measure, at } => match measure.constant() {
                Some(answer) => Inline::Value { text: answer.to_string(), quantity: measure.quantity },
                None => return Err(at.at(LessonErrorKind::ValueInTitle)),
            },
            Piece::Claim { words: claimed, .. } => {
                words.extend(without_values(claimed)?);
                continue;
            }
            Piece::Cases(cases) => match cases.first() {
                Some(Piece::Claim { at, .. }) => return Err(at.at(LessonErrorKind::ValueInTitle)),
                _ => continue,
            },
            Piece::Unbound { .. } => continue,
        });
    }
    Ok(words)
}

/// A form of Markdown that a line of text would begin and that lessons do not have.
pub(crate) fn foreign_form(line: &str) -> Option<&'static str> {
    let numbered = || {
        let rest = line.trim_start_matches(|character: char| character.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(". ")
    };
    Some(match line {
        _ if line.starts_with('#') => "a heading other than \"## Title\"",
        _ if line.starts_with('>') => "a quotation",
        _ if line.starts_with('|') => "a table",
        _ if line.starts_with("![") => "a picture",
        _ if line.starts_with("* ") || line.starts_with("+ ") => "a list with \"*\" or \"+\"",
        _ if numbered() => "a list with numbers",
        _ => return None,
    })
}
