//! Interning: equal values are stored once.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::TextId;
use crate::encoding::EncodingError;

/// A hash table from values to their numbers.
///
/// The table stores only numbers; the caller stores the values and compares them. A map with copies of the
/// keys would take four times the memory, which matters for a file with ten million stacks.
pub(crate) type Index = HashTable<u32>;

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

pub(crate) fn hash_numbers(numbers: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for number in numbers {
        hasher.write_u32(*number);
    }
    hasher.finish()
}

/// Interned texts: equal texts are stored once and have one number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTexts")]
pub struct Texts {
    content: String,
    /// Where each text ends in the content.
    ends: Vec<u32>,
    #[serde(skip)]
    index: Index,
}

/// The encoded form, before it is checked.
#[derive(Deserialize)]
struct UncheckedTexts {
    content: String,
    ends: Vec<u32>,
}

impl TryFrom<UncheckedTexts> for Texts {
    type Error = EncodingError;

    fn try_from(UncheckedTexts { content, ends }: UncheckedTexts) -> Result<Self, Self::Error> {
        let is_sound = ends.is_sorted() && ends.iter().all(|end| content.is_char_boundary(*end as usize));
        if !is_sound || ends.last().is_some_and(|end| *end as usize != content.len()) {
            return Err(EncodingError::Texts);
        }
        Ok(Self { content, ends, index: Index::default() })
    }
}

impl Texts {
    /// The number of the text; `None` once there are 4 GiB of texts.
    pub fn intern(&mut self, text: &str) -> Option<TextId> {
        let hash = hash_bytes(text.as_bytes());
        if let Some(found) = self.index.find(hash, |number| self.get(TextId::new(*number)) == text) {
            return Some(TextId::new(*found));
        }
        let number = u32::try_from(self.ends.len()).ok().filter(|number| *number < u32::MAX)?;
        let end = u32::try_from(self.content.len().checked_add(text.len())?).ok()?;
        self.content.push_str(text);
        self.ends.push(end);
        let Self { content, ends, index } = self;
        index.insert_unique(hash, number, |number| hash_bytes(part(content, ends, *number).as_bytes()));
        Some(TextId::new(number))
    }

    /// The text with this number; the empty text if no such number exists.
    #[must_use]
    pub fn get(&self, id: TextId) -> &str {
        part(&self.content, &self.ends, id.get())
    }

    /// The number of different texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no text is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.content.capacity() + self.ends.capacity() * size_of::<u32>() + self.index.allocation_size()
    }
}

fn part<'a>(content: &'a str, ends: &[u32], number: u32) -> &'a str {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
    let end = ends.get(number).map_or(start, |end| *end as usize);
    content.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let mut texts = Texts::default();
        let words: Vec<String> = (0..1000).map(|number| format!("text {}", number % 300)).collect();
        let ids: Vec<TextId> = words.iter().map(|word| texts.intern(word).unwrap()).collect();
        assert_eq!(texts.len(), 300);
        for (word, id) in words.iter().zip(&ids) {
            assert_eq!(texts.get(*id), word);
        }
        assert_eq!(texts.intern(""), texts.intern(""));
        assert_eq!(texts.get(TextId::new(9999)), "");
        let again: Texts = postcard::from_bytes(&postcard::to_allocvec(&texts).unwrap()).unwrap();
        assert_eq!(again.get(ids[7]), "text 7");
    }

    #[test]
    fn damaged_texts_are_refused() {
        for ends in [vec![3, 1], vec![9], vec![1, 3]] {
            let bytes = postcard::to_allocvec(&("aé", ends)).unwrap();
            let is_whole = bytes.last() == Some(&3);
            assert_eq!(postcard::from_bytes::<Texts>(&bytes).is_ok(), is_whole, "{bytes:?}");
        }
    }
}
