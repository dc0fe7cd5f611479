//! The glossary: terms, each in a sentence.

use crate::document::{Document, Item};
use crate::error::{Errors, LessonError, LessonErrorKind};
use crate::markdown::{Part, Piece, without_values};
use crate::quantity::Quantity;
use crate::text::{Inline, plain};

/// The terms, each in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glossary {
    /// The terms, in the order of the file.
    pub entries: Vec<GlossaryEntry>,
}

/// A term with its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlossaryEntry {
    /// The end of links to the entry: `glossary.md#peak-reserved`.
    pub id: String,
    /// The term.
    pub term: String,
    /// How a program asks PyTorch for the term's value; may be empty.
    pub api: Vec<String>,
    /// The meaning, in a sentence or two.
    pub text: Vec<Inline>,
    /// The words that other texts have for it; may be empty.
    pub other_words: Vec<Inline>,
    /// The quantity of lesson files that has the meaning of the term; `None` if no quantity has.
    pub quantity: Option<Quantity>,
}

impl Glossary {
    /// Reads a glossary: a section for each term, with a list of items `API:` and `Also:`, and a paragraph.
    ///
    /// # Errors
    ///
    /// The first thing in the text that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, LessonError> {
        let mut errors = Errors::default();
        let document = Document::parse(text, &mut errors);
        if let Some(document) = &document {
            document.front.check("id, title, summary", &[], &mut errors);
        }
        let document = errors.first_or(document)?;
        let mut entries = Vec::new();
        for section in &document.sections {
            let term = plain(&without_values(&section.title)?);
            let mut entry = GlossaryEntry {
                id: term.to_lowercase().replace(' ', "-"),
                quantity: Quantity::named(&term.to_lowercase()),
                term,
                api: Vec::new(),
                text: Vec::new(),
                other_words: Vec::new(),
            };
            for item in &section.items {
                match item {
                    Item::Part(Part::Paragraph(pieces)) => {
                        if !entry.text.is_empty() {
                            entry.text.push(Inline::Text(" ".to_owned()));
                        }
                        entry.text.extend(without_values(pieces)?);
                    }
                    Item::Part(Part::List(items)) => {
                        for item in items {
                            entry.note(item)?;
                        }
                    }
                    Item::Part(Part::Code { .. }) => {
                        return Err(section
                            .at
                            .at(LessonErrorKind::Form { form: "a block of code in a glossary" }));
                    }
                    Item::Fence(fence) => {
                        return Err(fence
                            .at
                            .at(LessonErrorKind::Form { form: "a block of code in a glossary" }));
                    }
                }
            }
            if entry.text.is_empty() {
                return Err(section.at.at(LessonErrorKind::MissingKey { place: "a term", key: "sentence" }));
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    /// The entry that a link `glossary.md#id` means.
    pub fn entry(&self, id: &str) -> Option<&GlossaryEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

impl GlossaryEntry {
    /// Reads an item `API: ...` or `Also: ...`; others are part of the text.
    fn note(&mut self, item: &[Piece]) -> Result<(), LessonError> {
        let mut inlines = without_values(item)?;
        let first = match inlines.first() {
            Some(Inline::Text(text)) => text.clone(),
            _ => String::new(),
        };
        if first.starts_with("API:") {
            let codes = inlines.into_iter().filter_map(|inline| match inline {
                Inline::Code(code) => Some(code),
                _ => None,
            });
            self.api.extend(codes);
            return Ok(());
        }
        if let Some(rest) = first.strip_prefix("Also:") {
            if let Some(inline) = inlines.first_mut() {
                *inline = Inline::Text(rest.trim_start().to_owned());
            }
            self.other_words = inlines;
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push(Inline::Text(" ".to_owned()));
        }
        self.text.extend(inlines);
        Ok(())
    }
}
