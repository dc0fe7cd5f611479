//! Names of tensors without their text, and names that are shortened for an error.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How many indices a name may have.
pub(crate) const MAX_INDICES: usize = 2;

/// A tensor's name without its text: the number of its base name and its indices, each plus one, zero for
/// none.
///
/// The order is that of the base's number, then the plain name, then the elements in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TensorName {
    pub(crate) base: u32,
    pub(crate) index: [u32; MAX_INDICES],
}

impl TensorName {
    pub(crate) fn is_plain(self) -> bool {
        self.index == [0; MAX_INDICES]
    }

    /// The text, given that of the base.
    pub(crate) fn with_base(self, base: &str) -> Cow<'_, str> {
        if self.is_plain() {
            return Cow::Borrowed(base);
        }
        let written = self.index.iter().filter(|index| **index > 0);
        Cow::Owned(
            written.fold(base.to_owned(), |text, index| format!("{text}[{}]", index.saturating_sub(1))),
        )
    }
}

/// `text` in at most 40 characters, so that a message stays a line.
pub(crate) fn shorten(text: &str) -> ShortName<'_> {
    ShortName(text)
}

pub(crate) struct ShortName<'t>(&'t str);

impl fmt::Display for ShortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(40) {
            Some((end, _)) => write!(f, "{}...", self.0.get(..end).unwrap_or_default()),
            None => f.write_str(self.0),
        }
    }
}
