//! Finds the numbers and comparing words of a sentence that come from no value and no condition of a run.
//!
//! A sentence says what the allocator did, so each number and each comparison in it has to come from the run:
//! as a value, or as a claim whose condition the allocator was asked. Names of order ("the second step"), and
//! numbers in `code`, are not statements.

use std::collections::BTreeSet;

use crate::condition::{Condition, Facts, Relation};
use crate::document::Field;
use crate::error::Position;
use crate::markdown::{Part, Piece, holding};
use crate::measure::RunStretch;

/// A number or a comparing word in a lesson that comes from no value and no condition of its run, so that
/// nothing proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnprovedWord {
    /// The line in the file, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The note: the number or the word, and the missing value or claim.
    pub text: String,
}

impl UnprovedWord {
    /// Whether nothing proves the word; else it says something else than the run, or the exercise has a fault.
    pub fn is_without_proof(&self) -> bool {
        self.text.starts_with(UNPROVED) || self.text.starts_with(UNPROVABLE)
    }
}

/// Reads as `line 3, column 1: "enough" is a comparison ...`.
impl std::fmt::Display for UnprovedWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.text)
    }
}

/// The beginning of a note about a word that comes from no value and no claim.
const UNPROVED: &str = "nothing proves \"";
/// The beginning of a note about a word where no value can be.
const UNPROVABLE: &str = "nothing can prove \"";

/// The meaning of a word that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordMeaning {
    /// One is not below the other: `enough`, `fits`.
    Enough,
    /// One is above the other: `more`, `too small`.
    Above,
    /// One is the largest or the smallest of several.
    Extreme,
    /// One is a multiple of the other.
    Multiple,
    Rises,
    Falls,
    Stays,
    /// Both are equal.
    Equal,
    /// The number is 0.
    Nothing,
    /// The number is near another.
    Near,
}

const COMPARING: [(WordMeaning, &[&str]); 10] = [
    (WordMeaning::Enough, &["enough", "fit", "fits"]),
    (
        WordMeaning::Above,
        &["more", "less", "fewer", "larger", "smaller", "higher", "lower", "bigger", "longer", "exceeds"],
    ),
    (
        WordMeaning::Extreme,
        &["most", "least", "largest", "smallest", "highest", "lowest", "longest", "biggest"],
    ),
    (WordMeaning::Multiple, &["half", "twice", "double", "quarter"]),
    (WordMeaning::Rises, &["rises", "grows"]),
    (WordMeaning::Falls, &["falls", "shrinks", "drops"]),
    (WordMeaning::Stays, &["stays"]),
    (WordMeaning::Equal, &["equal", "equally"]),
    (WordMeaning::Nothing, &["nothing", "none"]),
    (WordMeaning::Near, &["nearly", "almost"]),
];

/// Words for numbers; `one` counts before the word for a part of memory, and is a pronoun elsewhere.
const NUMBER_WORDS: [(&str, u64); 14] = [
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("hundred", 100),
    ("thousand", 1_000),
    ("million", 1_000_000),
];

const AFTER_ONE: [&str; 7] = ["piece", "segment", "block", "tensor", "tensors", "call", "hole"];

const NEGATIONS: [&str; 6] = ["not", "no", "never", "cannot", "nobody", "without"];

/// Phrases whose words neither count nor compare, each with the reason.
const NAMES: [(&[&str], &str); 6] = [
    (&["no", "longer"], "a time"),
    (&["any", "more"], "a time"),
    (&["once", "more"], "a time"),
    (&["best", "fit"], "the name of a rule of allocators"),
    (&["power", "of", "two"], "the name of a kind of number"),
    (&["largest", "cached", "block"], "the name of a quantity"),
];

/// Phrases that compare as a whole.
const COMPARING_PHRASES: [(&[&str], WordMeaning); 10] = [
    (&["at", "least"], WordMeaning::Enough),
    (&["at", "most"], WordMeaning::Enough),
    (&["or", "more"], WordMeaning::Enough),
    (&["and", "more"], WordMeaning::Enough),
    (&["or", "less"], WordMeaning::Enough),
    (&["too", "small"], WordMeaning::Above),
    (&["too", "large"], WordMeaning::Above),
    (&["too", "many"], WordMeaning::Above),
    (&["too", "little"], WordMeaning::Above),
    (&["nearly", "equal"], WordMeaning::Near),
];

/// A word of a text that states something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedWord {
    /// The place in the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) word: String,
    what: StatedFact,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum StatedFact {
    Number(String),
    Compares(WordMeaning, bool),
}

/// The numbers and comparing words of a text.
pub(crate) fn stated(text: &str) -> Vec<StatedWord> {
    let words = words(text);
    let lower: Vec<String> = words.iter().map(|(_, word)| word.to_lowercase()).collect();
    let mut found = Vec::new();
    let mut is_negated = false;
    let mut index = 0;
    while let Some((offset, first)) = words.get(index) {
        let rest = lower.get(index..).unwrap_or_default();
        is_negated |= rest.first().is_some_and(|word| NEGATIONS.contains(&word.as_str()));
        let (length, what) = statement(rest, is_negated);
        let last = words.get(index + length - 1).copied().unwrap_or((*offset, *first));
        let end = last.0 + last.1.len();
        if let Some(what) = what {
            let word = text.get(*offset..end).unwrap_or(first).to_owned();
            found.push(StatedWord { offset: *offset, word, what });
        }
        // A negation reaches to the next comma or stop.
        is_negated &= !text.get(end..).is_some_and(|rest| rest.starts_with([',', '.', ':', ';', '?', '!']));
        index += length;
    }
    found
}

/// How many of these words belong together, at least one, and their statement.
fn statement(words: &[String], is_negated: bool) -> (usize, Option<StatedFact>) {
    let begins = |phrase: &&[&str]| {
        words.len() >= phrase.len() && phrase.iter().zip(words).all(|(wanted, word)| wanted == word)
    };
    if let Some((phrase, _)) = NAMES.iter().find(|row| begins(&row.0)) {
        return (phrase.len(), None);
    }
    if let Some((phrase, says)) = COMPARING_PHRASES.iter().find(|row| begins(&row.0)) {
        return (phrase.len(), Some(StatedFact::Compares(*says, is_negated)));
    }
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let (this, next) = (at(0), at(1));
    if this.starts_with(|first: char| first.is_ascii_digit()) {
        return (1, Some(StatedFact::Number(number(this, next))));
    }
    let value = |word: &str| NUMBER_WORDS.iter().find(|row| row.0 == word).map(|row| row.1);
    if let Some(mut number) = value(this) {
        let mut length = 1;
        // A hundred million is one number.
        while let Some(scale) = value(at(length)).filter(|scale| *scale >= 100) {
            number = number.saturating_mul(scale);
            length += 1;
        }
        return (length, Some(StatedFact::Number(number.to_string())));
    }
    if this == "one" && AFTER_ONE.contains(&next) {
        return (1, Some(StatedFact::Number("1".to_owned())));
    }
    let says = COMPARING.iter().find(|row| row.1.contains(&this));
    (1, says.map(|row| StatedFact::Compares(row.0, is_negated)))
}

/// The words of a text with their places in bytes, without the marks around them.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '.' | ',' | '_');
    let mut found = Vec::new();
    let mut start = None;
    for (offset, character) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, is_part(character)) {
            (None, true) => start = Some(offset),
            (Some(from), false) => {
                let word = text.get(from..offset).unwrap_or_default().trim_end_matches(['.', ',']);
                if !word.is_empty() {
                    found.push((from, word));
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn is_unit(word: &str) -> bool {
    ["b", "bytes", "kib", "mib", "gib"].contains(&word.to_lowercase().as_str())
}

/// `20 MiB` as bytes, `1,024` as a count: as [`Facts`] write numbers.
fn number(digits: &str, unit: &str) -> String {
    let plain = digits.replace(',', "");
    let unit = if unit == "bytes" { "b" } else { unit };
    match blockyard_workload::parse_size(&format!("{plain} {unit}")) {
        Ok(size) if ["b", "kib", "mib", "gib"].contains(&unit) => size.get().to_string(),
        _ => plain,
    }
}

impl WordMeaning {
    fn agrees(self, is_negated: bool, facts: &Facts) -> bool {
        use Relation::{Above, Equal, Extreme, Fails, Falls, Multiple, NotBelow, Passes, Rises, Stays};
        match (self, is_negated) {
            (Self::Enough, false) | (Self::Above, true) => facts.has_any(&[NotBelow, Passes]),
            (Self::Enough, true) => facts.has_any(&[Above, Fails]),
            (Self::Above, false) => facts.has_any(&[Above, Rises, Falls, Fails]),
            (Self::Extreme, _) => facts.has_any(&[Extreme, Above]),
            (Self::Multiple, _) => facts.has(Multiple),
            (Self::Rises, false) => facts.has(Rises),
            (Self::Falls, false) => facts.has(Falls),
            (Self::Rises, true) => facts.has_any(&[Stays, Falls]),
            (Self::Falls, true) => facts.has_any(&[Stays, Rises]),
            (Self::Stays, is_negated) => facts.has(Stays) != is_negated,
            (Self::Equal, _) => facts.has(Equal),
            (Self::Nothing, _) => facts.has(Stays) || facts.numbers.iter().any(|number| number == "0"),
            (Self::Near, _) => facts.has_any(&[Above, NotBelow]),
        }
    }
}

/// Adds a note for each number and comparing word of the sentence that is not proved at this moment.
pub(crate) fn unproved(pieces: &[Piece], stretch: &RunStretch<'_>, notes: &mut Vec<UnprovedWord>) {
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Unbound { word, .. } if is_name(word, pieces.get(index..).unwrap_or_default()) => {}
            Piece::Unbound { word, at } => {
                let text = format!(
                    "{UNPROVED}{word}\": write a value, or a claim such as {{tensors exactly 2 => two}}"
                );
                notes.push(note(*at, text));
            }
            Piece::Strong(pieces) | Piece::Emphasis(pieces) | Piece::Link { text: pieces, .. } => {
                unproved(pieces, stretch, notes);
            }
            Piece::Cases(cases) => unproved(holding(cases, stretch), stretch, notes),
            Piece::Claim { condition, words, at } => disagreeing(words, condition, *at, stretch, notes),
            Piece::Text(_) | Piece::Code(_) | Piece::Value { .. } => {}
        }
    }
}

/// Whether a word such as `highest` belongs to the value after it, which is the highest of its kind.
fn is_name(word: &str, rest: &[Piece]) -> bool {
    let word = word.to_lowercase();
    let is_extreme =
        |row: &&(WordMeaning, &[&str])| row.0 == WordMeaning::Extreme && row.1.contains(&word.as_str());
    let value = rest.iter().find_map(|piece| match piece {
        Piece::Value { measure, .. } => Some(measure),
        _ => None,
    });
    COMPARING.iter().any(|row| is_extreme(&row)) && value.is_some_and(|measure| measure.quantity.is_extreme())
}

/// Adds the words that say something other than their condition.
pub(crate) fn disagreeing(
    words: &[Piece],
    condition: &Condition,
    at: Position,
    stretch: &RunStretch<'_>,
    notes: &mut Vec<UnprovedWord>,
) {
    let Ok(facts) = condition.facts(stretch) else { return };
    for StatedWord { word, what, .. } in stated(&text_of(words)) {
        let agrees = match &what {
            StatedFact::Number(number) => facts.numbers.contains(number),
            StatedFact::Compares(says, is_negated) => says.agrees(*is_negated, &facts),
        };
        if !agrees {
            notes.push(note(
                at,
                format!("\"{word}\" says something other than its condition \"{condition}\""),
            ));
        }
    }
}

pub(crate) fn unproved_part(part: &Part, stretch: &RunStretch<'_>, notes: &mut Vec<UnprovedWord>) {
    match part {
        Part::Paragraph(pieces) => unproved(pieces, stretch, notes),
        Part::List(items) => items.iter().for_each(|item| unproved(item, stretch, notes)),
        Part::Code { .. } => {}
    }
}

/// Notes about amounts of memory in a field that is shown as it is and without a run. Other numbers in such
/// fields are names or times: `Week 7`, `Two tensors`, `in 3 cards`.
pub(crate) fn unproved_field(field: &Field) -> Vec<UnprovedWord> {
    let is_amount = |stated: &StatedWord| {
        let after = field.value.get(stated.offset + stated.word.len()..).unwrap_or_default();
        matches!(stated.what, StatedFact::Number(_))
            && is_unit(words(after).first().map_or("", |word| word.1))
    };
    let words = stated(&field.value).into_iter().filter(is_amount);
    words.map(|StatedWord { word, .. }| note(field.at, format!("{UNPROVABLE}{word}\" here"))).collect()
}

/// The words of these texts that state something, in small letters: a word that a goal of an exercise says
/// may also be in its task.
pub(crate) fn stated_words<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    texts.flat_map(stated).map(|stated| stated.word.to_lowercase()).collect()
}

/// Removes the notes from `from` on that are about words in `said`.
pub(crate) fn forgive(notes: &mut Vec<UnprovedWord>, from: usize, said: &BTreeSet<String>) {
    let mut place = 0;
    notes.retain(|note| {
        place += 1;
        let is_said = || note.text.strip_prefix(UNPROVED).and_then(|rest| rest.split('"').next());
        place <= from || !is_said().is_some_and(|word| said.contains(&word.to_lowercase()))
    });
}

pub(crate) fn note(at: Position, text: String) -> UnprovedWord {
    UnprovedWord { line: at.line, column: at.column, text }
}

fn text_of(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Strong(pieces) | Piece::Emphasis(pieces) | Piece::Link { text: pieces, .. } => {
                text_of(pieces)
            }
            Piece::Claim { words, .. } => text_of(words),
            Piece::Code(_) | Piece::Value { .. } | Piece::Cases(_) | Piece::Unbound { .. } => " ".to_owned(),
        })
        .collect()
}
