//! Texts of lessons: paragraphs, lists and code, in parts that a page draws.

use crate::quantity::Quantity;

/// A paragraph, a list, or lines of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextBlock {
    /// Sentences.
    Paragraph(Vec<Inline>),
    /// The items of a list without numbers.
    List(Vec<Vec<Inline>>),
    /// Lines that are shown as they are.
    Code {
        /// The word after the opening fence, such as `python`; may be empty.
        language: String,
        /// The lines.
        text: String,
    },
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inline {
    /// Letters as they are.
    Text(String),
    /// `**strong**`
    Strong(Vec<Inline>),
    /// `*emphasis*`
    Emphasis(Vec<Inline>),
    /// `` `code` ``
    Code(String),
    /// `[text](target)`
    Link {
        /// The text that the reader sees.
        text: Vec<Inline>,
        /// An address, `glossary.md#term` for an entry of the glossary, or `#lesson=id`.
        target: String,
    },
    /// A value of the allocator: `{reserved}` in the file.
    Value {
        /// The answer for people: `20 MiB`.
        text: String,
        /// The quantity of the value, so that figures can point at the quantity.
        quantity: Quantity,
    },
}

/// A sentence whose code is between backticks, as the goals and verdicts of exercises are written.
pub fn with_code(text: &str) -> Vec<Inline> {
    let pieces = text.split('`').enumerate().filter(|(_, piece)| !piece.is_empty());
    pieces
        .map(|(place, piece)| match place % 2 {
            0 => Inline::Text(piece.to_owned()),
            _ => Inline::Code(piece.to_owned()),
        })
        .collect()
}

/// The sentence without any marks.
pub fn plain(text: &[Inline]) -> String {
    text.iter()
        .map(|inline| match inline {
            Inline::Text(text) | Inline::Code(text) | Inline::Value { text, .. } => text.clone(),
            Inline::Strong(text) | Inline::Emphasis(text) | Inline::Link { text, .. } => plain(text),
        })
        .collect()
}
