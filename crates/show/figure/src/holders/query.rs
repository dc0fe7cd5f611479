//! The search for allocations, as a person types it.

use blockyard_record::{Recording, StackId, StreamId};
use rustc_hash::FxHashMap;

use crate::allocations::Allocations;

/// A search for allocations, as a person types it: words that all have to match.
///
/// `attn` matches stacks (function, file, `file:line`, in any case), `0x7f…` an address inside the block,
/// `>10MiB` and `<1 KiB` sizes, `20MiB` an exact size, `stream:1` a stream by its name, number or handle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocationQuery {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Stack(String),
    Address(u64),
    Sizes { from: u64, to: u64 },
    Stream(String),
}

impl AllocationQuery {
    /// Reads the search. Everything means something: a word that is not an address, size or stream is looked
    /// for in stacks.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        let mut parts = text.split_whitespace().peekable();
        while let Some(part) = parts.next() {
            // `20 MiB` and `> 20 MiB` are written with spaces too.
            let mut whole = part.to_owned();
            let is_sign = matches!(part, ">" | "<");
            if (is_sign || part.trim_start_matches(['>', '<']).parse::<f64>().is_ok())
                && let Some(next) = parts.peek()
                && (is_sign || unit(next).is_some())
            {
                whole.push_str(next);
                parts.next();
                if let Some(next) = parts.next_if(|next| is_sign && unit(next).is_some()) {
                    whole.push_str(next);
                }
            }
            words.push(Word::parse(&whole));
        }
        Self { words }
    }

    /// Whether the search has no word, so that every allocation matches.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The rows among `rows` whose allocations match all words, in their order.
    pub fn filter(&self, allocations: &Allocations, recording: &Recording, rows: &[usize]) -> Vec<usize> {
        let mut stacks = FxHashMap::default();
        rows.iter().copied().filter(|row| self.matches(allocations, recording, *row, &mut stacks)).collect()
    }

    fn matches(
        &self,
        allocations: &Allocations,
        recording: &Recording,
        row: usize,
        stacks: &mut FxHashMap<StackId, bool>,
    ) -> bool {
        let Some(allocation) = allocations.get(row) else { return false };
        let is_plain_match = self.words.iter().all(|word| match word {
            Word::Stack(_) => true,
            Word::Address(addr) => {
                let base = allocation.addr.get();
                (base..base.saturating_add(allocation.size.get())).contains(addr)
            }
            Word::Sizes { from, to } => (*from..=*to).contains(&allocation.size.get()),
            Word::Stream(name) => {
                let shown = recording.stream_name(allocation.stream).to_lowercase();
                let is_default = allocation.stream == StreamId::DEFAULT && name == "0";
                is_default
                    || shown == *name
                    || shown.strip_prefix("stream ") == Some(name.as_str())
                    || allocation.stream.to_string() == *name
            }
        });
        let stack = recording.allocation_stack(allocation.id);
        is_plain_match && *stacks.entry(stack).or_insert_with(|| self.matches_stack(recording, stack))
    }

    fn matches_stack(&self, recording: &Recording, stack: StackId) -> bool {
        let frames = recording.stacks();
        self.words.iter().all(|word| {
            let Word::Stack(wanted) = word else { return true };
            frames.frames(stack).any(|frame| {
                let frame = frames.frame(frame);
                let text = format!("{} {}:{}", frame.name, frame.filename, frame.line).to_lowercase();
                text.contains(wanted.as_str())
            })
        })
    }
}

impl Word {
    fn parse(text: &str) -> Self {
        let lower = text.to_lowercase();
        if let Some(addr) = lower.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            return Self::Address(addr);
        }
        if let Some(name) = lower.strip_prefix("stream:") {
            return Self::Stream(name.to_owned());
        }
        if let Some(size) = lower.strip_prefix('>').and_then(bytes) {
            return Self::Sizes { from: size.saturating_add(1), to: u64::MAX };
        }
        if let Some(size) = lower.strip_prefix('<').and_then(bytes) {
            return Self::Sizes { from: 0, to: size.saturating_sub(1) };
        }
        match bytes(&lower).filter(|_| lower.starts_with(|letter: char| letter.is_ascii_digit())) {
            Some(size) => Self::Sizes { from: size, to: size },
            None => Self::Stack(lower),
        }
    }
}

/// `20mib` in bytes; a unit is needed, or a plain number would never be looked for in stacks.
fn bytes(text: &str) -> Option<u64> {
    let at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, name) = text.split_at(at);
    let number: f64 = number.parse().ok()?;
    let whole = number * crate::conversions::bytes_f64(blockyard_record::Bytes::new(unit(name)?));
    whole.is_finite().then(|| crate::conversions::round_bytes(whole).get())
}

fn unit(text: &str) -> Option<u64> {
    Some(match text.to_lowercase().as_str() {
        "b" | "byte" | "bytes" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_addresses_sizes_streams_or_parts_of_stacks() {
        let mib = 1 << 20;
        for (text, words) in [
            ("attn", vec![Word::Stack("attn".to_owned())]),
            ("0x7F00", vec![Word::Address(0x7f00)]),
            ("20 MiB", vec![Word::Sizes { from: 20 * mib, to: 20 * mib }]),
            (
                "> 1.5MiB conv",
                vec![Word::Sizes { from: mib + mib / 2 + 1, to: u64::MAX }, Word::Stack("conv".to_owned())],
            ),
            ("<512b stream:1", vec![Word::Sizes { from: 0, to: 511 }, Word::Stream("1".to_owned())]),
            ("model.py:12 3", vec![Word::Stack("model.py:12".to_owned()), Word::Stack("3".to_owned())]),
            ("", vec![]),
        ] {
            assert_eq!(AllocationQuery::parse(text).words, words, "{text}");
        }
    }
}
