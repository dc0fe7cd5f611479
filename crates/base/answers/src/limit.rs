//! The limit that an answer is for, and where the limit comes from.

use blockyard_record::{Bytes, OomLimit};
use serde::{Deserialize, Serialize};

/// The limit that an answer is for: the most that may be reserved.
///
/// Where a file implies only bounds of the limit, `low` and `high` differ, and the run is replayed at both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The limit is at least this many bytes.
    pub low: Bytes,
    /// The limit is at most this many bytes.
    pub high: Bytes,
    /// How the limit is known.
    pub source: LimitSource,
    /// What sets the limit.
    pub by: LimitKind,
    /// The bytes of the device that others hold: other processes, and what is not PyTorch's in this one.
    pub others: Bytes,
}

/// How a limit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// The file of a run that went out of memory implies the limit.
    Inferred,
    /// The question gives the limit.
    Given,
}

/// What sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `torch.cuda.set_per_process_memory_fraction`.
    MemoryFraction,
    /// The memory of the device.
    Device,
}

impl Limit {
    /// A limit that is known exactly.
    #[must_use]
    pub fn exactly(limit: Bytes, source: LimitSource, by: LimitKind) -> Self {
        Self { low: limit, high: limit, source, by, others: Bytes::ZERO }
    }

    /// Both bounds, or one value if they are equal.
    #[must_use]
    pub fn bound_values(&self) -> Vec<Bytes> {
        if self.low == self.high { vec![self.low] } else { vec![self.low, self.high] }
    }

    /// Whether the limit follows from the file; otherwise the question or the run gives it.
    #[must_use]
    pub fn is_inferred(&self) -> bool {
        self.source == LimitSource::Inferred
    }

    /// Whether a memory fraction is the limit, without which PyTorch collects no garbage.
    #[must_use]
    pub fn is_fraction(&self) -> bool {
        self.by == LimitKind::MemoryFraction
    }

    /// Whether the limit is the memory of a device that the question or the run names.
    #[must_use]
    pub fn is_capacity(&self) -> bool {
        (self.source, self.by) == (LimitSource::Given, LimitKind::Device)
    }

    /// The limit in a few words: `600 MiB`, or `between 594 MiB and 614 MiB`.
    #[must_use]
    pub fn range_text(&self) -> String {
        self.bounds().range_text()
    }

    /// The limit with its bounds, in the form that [`OomCause`](crate::OomCause) takes.
    #[must_use]
    pub fn bounds(&self) -> OomLimit {
        OomLimit { lowest: self.low, highest: self.high, used_by_others: self.others }
    }

    /// How the limit is known, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match (self.source, self.by) {
            (LimitSource::Given, LimitKind::MemoryFraction) => {
                format!("at most {} may be reserved, as given", self.high)
            }
            (LimitSource::Inferred, LimitKind::MemoryFraction) if self.low == self.high => format!(
                "a memory fraction limits the reserved bytes; the recording does not name the limit, and {} is assumed",
                self.high
            ),
            (LimitSource::Inferred, LimitKind::MemoryFraction) => format!(
                "a memory fraction limits the reserved bytes; the recording does not name the limit, which is between {} and \
                 {} bytes, since the first was given and the second refused",
                self.low.get(),
                self.high.get()
            ),
            (LimitSource::Given, LimitKind::Device) => format!("the device has {}", self.high),
            (LimitSource::Inferred, LimitKind::Device) if self.others.is_zero() => {
                format!("the device had {} for PyTorch", self.high)
            }
            (LimitSource::Inferred, LimitKind::Device) => {
                format!("the device had {} for PyTorch, and {} were in use by others", self.high, self.others)
            }
        }
    }
}
