//! Interning: equal values are stored once.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::TextId;
use crate::encoding::EncodingError;

/// A hash table from values to their numbers. At most half of the entries are in use, and an entry is four
/// bytes.
///
/// The table stores only numbers; the caller stores the values and compares them. A map with copies of the
/// keys would take four times the memory, which matters for a file with ten million stacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Each entry is the number plus one; zero is a vacant entry. The length is a power of two.
    entries: Vec<u32>,
    count: usize,
}

impl Index {
    /// The number that `is_equal` accepts, among the numbers with this hash.
    pub(crate) fn find(&self, hash: u64, is_equal: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.start(hash)?;
        loop {
            let number = self.entries.get(place)?.checked_sub(1)?;
            if is_equal(number) {
                return Some(number);
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    /// Adds a number that is not in the table yet; `hash_of` returns the hash of any number in the table.
    pub(crate) fn insert(&mut self, number: u32, hash: u64, hash_of: impl Fn(u32) -> u64) {
        if (self.count + 1) * 2 > self.entries.len() {
            let larger = (self.entries.len() * 2).max(16);
            let old = std::mem::replace(&mut self.entries, vec![0; larger]);
            for number in old.into_iter().filter_map(|place| place.checked_sub(1)) {
                self.put(number, hash_of(number));
            }
        }
        self.put(number, hash);
        self.count += 1;
    }

    fn put(&mut self, number: u32, hash: u64) {
        let Some(mut place) = self.start(hash) else { return };
        // Half of the entries are vacant, so this loop ends.
        while self.entries.get(place).is_some_and(|taken| *taken != 0) {
            place = (place + 1) & (self.entries.len() - 1);
        }
        if let Some(vacant) = self.entries.get_mut(place) {
            *vacant = number.saturating_add(1);
        }
    }

    fn start(&self, hash: u64) -> Option<usize> {
        let mask = self.entries.len().checked_sub(1)?;
        // The high bits of the hash are better mixed than the low ones.
        Some((hash >> 20) as usize & mask)
    }

    pub(crate) fn size(&self) -> usize {
        self.entries.capacity() * size_of::<u32>()
    }
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    mixed(hasher.finish())
}

pub(crate) fn hash_numbers(numbers: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for number in numbers {
        hasher.write_u32(*number);
    }
    mixed(hasher.finish())
}

fn mixed(hash: u64) -> u64 {
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
        if let Some(found) = self.index.find(hash, |number| self.get(TextId::new(number)) == text) {
            return Some(TextId::new(found));
        }
        let number = u32::try_from(self.ends.len()).ok().filter(|number| *number < u32::MAX)?;
        let end = u32::try_from(self.content.len().checked_add(text.len())?).ok()?;
        self.content.push_str(text);
        self.ends.push(end);
        let Self { content, ends, index } = self;
        index.insert(number, hash, |number| hash_bytes(part(content, ends, number).as_bytes()));
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
        self.content.capacity() + self.ends.capacity() * size_of::<u32>() + self.index.size()
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
