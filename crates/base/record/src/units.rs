//! Addresses, indices of 32 bits, and numbers as people read them.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The index of a list, or its length, as a number of 32 bits.
///
/// Lists of a run are shorter than 2^32: a recorder refuses more events and steps, a workload has a limit,
/// and the entries of a longer trace would not fit in memory. A longer list is a bug: a debug build panics,
/// and a release build returns the largest number.
#[must_use]
pub fn index_u32(index: usize) -> u32 {
    debug_assert!(u32::try_from(index).is_ok(), "a list of 2^32 entries should have been refused");
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Returns the next id, which is `count`, and adds one to `count`.
///
/// There are fewer than 2^32 ids, for the reasons at [`index_u32`].
pub fn next_u32(count: &mut u32) -> u32 {
    let number = *count;
    debug_assert!(number < u32::MAX, "2^32 ids should have been refused");
    *count = number.saturating_add(1);
    number
}

/// The number, or a length or an index, with a comma before every three digits: `52,141`.
#[must_use]
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A change with its sign, and its size as `text` writes it: `+1,024`.
#[must_use]
pub fn signed(change: impl Into<i128>, text: impl FnOnce(u64) -> String) -> String {
    let change = change.into();
    let size = text(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX));
    if change < 0 { format!("-{size}") } else { format!("+{size}") }
}

/// How many of something: `1 segment`, `2,000 segments`. The plural of `noun` ends in an s.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let number = grouped(count);
    if count == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}

/// A size for people, with its bytes: `2.86 MiB (3,000,000 bytes)`, or `512 bytes`.
#[must_use]
pub fn exact_size(bytes: Bytes) -> String {
    let exact = counted(bytes.get(), "byte");
    if bytes < Bytes::kib(1) { exact } else { format!("{bytes} ({exact})") }
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn joined(parts: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match texts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The text of an error and of all its causes, `: ` between them.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    // A transparent error has the text of its source, which must not appear twice.
    let mut texts = vec![error.to_string()];
    texts.extend(causes.map(ToString::to_string));
    texts.dedup();
    texts.join(": ")
}

/// The text as a sentence: with a full stop, and a capital letter if the first word is not a name.
#[must_use]
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::with_capacity(text.len().saturating_add(1));
    let first_word =
        text.split(' ').next().unwrap_or_default().trim_end_matches([',', ':', ';', '.', '!', '?']);
    let is_plain = first_word.bytes().all(|letter| letter.is_ascii_lowercase());
    match letters.next() {
        Some(first) if is_plain => out.push(first.to_ascii_uppercase()),
        Some(first) => out.push(first),
        None => return out,
    }
    out.push_str(letters.as_str());
    if !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    out
}

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(u64);

        impl $name {
            /// The address `addr`.
            #[must_use]
            pub const fn new(addr: u64) -> Self {
                Self(addr)
            }

            /// The plain number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The address `size` bytes higher; saturates at 2^64-1.
            #[must_use]
            pub const fn offset(self, size: Bytes) -> Self {
                Self(self.0.saturating_add(size.get()))
            }
        }

        /// `0x7f0000000000`.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{:#x}", self.0))
            }
        }
    };
}

address!(
    /// An address on a device, in bytes.
    DeviceAddr
);
address!(
    /// An address in host memory, a number of 64 bits on every target. 0 is not a valid address.
    HostAddr
);
blockyard_rules::schema_as!(DeviceAddr, u64);

impl DeviceAddr {
    /// How many bytes this address is above `base`; zero if the address is below.
    #[must_use]
    pub const fn offset_from(self, base: Self) -> Bytes {
        Bytes::new(self.0.saturating_sub(base.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_letter_but_names_stay() {
        assert_eq!(sentence("the run ended"), "The run ended.");
        assert_eq!(sentence("a limit"), "A limit.");
        assert_eq!(sentence("loss_1 is live."), "loss_1 is live.");
        assert_eq!(sentence("max_split_size_mb is too small"), "max_split_size_mb is too small.");
        assert_eq!(sentence("failed: no GPU!"), "Failed: no GPU!");
        assert_eq!(sentence("stopped; the output stays"), "Stopped; the output stays.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn digits_are_grouped_by_threes() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (52_141, "52,141"), (1_000_000, "1,000,000")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn lists_are_read_as_people_write_them() {
        let none: [&str; 0] = [];
        assert_eq!((joined(&none), joined(&["a"])), (String::new(), "a".to_owned()));
        assert_eq!((joined(&["a", "b"]), joined(&["a", "b", "c"])), ("a and b".into(), "a, b and c".into()));
    }

    #[test]
    fn a_size_has_its_bytes_beside_it() {
        assert_eq!(exact_size(Bytes::new(1)), "1 byte");
        assert_eq!(exact_size(Bytes::mib(20)), "20 MiB (20,971,520 bytes)");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(counted(1, "block"), "1 block");
        assert_eq!((counted(0, "block"), counted(1200, "block")), ("0 blocks".into(), "1,200 blocks".into()));
    }
}
