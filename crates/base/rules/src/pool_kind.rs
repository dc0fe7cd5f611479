//! The small and the large block pool.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::size::SMALL_SIZE;

/// Whether a segment belongs to the small or to the large block pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Requests of at most 1 MiB after rounding, served from segments of 2 MiB.
    Small,
    /// All other requests.
    Large,
}

crate::schema_as!(PoolKind, String);

impl PoolKind {
    /// Both pools, small first.
    pub const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// The pool that serves a request of this size after rounding, as PyTorch's `get_pool`.
    #[inline]
    #[must_use]
    pub fn serving(rounded: Bytes) -> Self {
        if rounded <= SMALL_SIZE { Self::Small } else { Self::Large }
    }
}

/// `small` or `large`, as PyTorch's snapshot writes it.
impl fmt::Display for PoolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Small => "small",
            Self::Large => "large",
        })
    }
}
