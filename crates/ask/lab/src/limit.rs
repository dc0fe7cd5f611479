//! The limit of a run: the most memory that it could get.

use blockyard_record::{Bytes, OomLimit};
use serde::{Deserialize, Serialize};

/// The most memory that a run could get, with bounds if it is not known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit is at least this many bytes.
    pub lowest: Bytes,
    /// The limit is at most this many bytes.
    pub highest: Bytes,
    /// How the limit is known.
    pub source: LimitSource,
    /// Bytes of the device that others use: other processes, and non-PyTorch memory of this process.
    pub used_by_others: Bytes,
}

/// How a limit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitSource {
    /// The question gives the limit.
    Given,
    /// The question, or the run itself, says how much memory the device has.
    Capacity,
    /// A memory fraction, which a recording does not name: the bounds follow from the requests that were
    /// served and those that were refused.
    Fraction,
    /// The device had no more, as the recording shows.
    Device,
}

impl Limit {
    /// A limit that is known exactly.
    #[must_use]
    pub fn exactly(limit: Bytes, source: LimitSource) -> Self {
        Self { lowest: limit, highest: limit, source, used_by_others: Bytes::ZERO }
    }

    /// Both bounds, or one value if they are equal.
    #[must_use]
    pub fn bound_values(&self) -> Vec<Bytes> {
        if self.lowest == self.highest { vec![self.lowest] } else { vec![self.lowest, self.highest] }
    }

    /// Whether the limit follows from the file; otherwise the question or the run gives it.
    #[must_use]
    pub fn is_inferred(&self) -> bool {
        matches!(self.source, LimitSource::Fraction | LimitSource::Device)
    }

    /// Whether a memory fraction is the limit, without which PyTorch collects no garbage.
    #[must_use]
    pub fn is_fraction(&self) -> bool {
        matches!(self.source, LimitSource::Fraction | LimitSource::Given)
    }

    /// The limit in a few words: `600 MiB`, or `between 594 MiB and 614 MiB`.
    #[must_use]
    pub fn range_text(&self) -> String {
        self.bounds().range_text()
    }

    /// The limit with `highest` as its known value.
    pub(crate) fn at(&self, highest: Bytes) -> OomLimit {
        OomLimit::known(highest, self.used_by_others)
    }

    /// The limit with its bounds, in the form that [`OomCause`](blockyard_record::OomCause) takes.
    pub(crate) fn bounds(&self) -> OomLimit {
        OomLimit { lowest: self.lowest, highest: self.highest, used_by_others: self.used_by_others }
    }

    /// How the limit is known, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.source {
            LimitSource::Given => format!("at most {} may be reserved, as given", self.highest),
            LimitSource::Fraction if self.lowest == self.highest => format!(
                "a memory fraction limits the reserved bytes; the recording does not name the limit, and {} is assumed",
                self.highest
            ),
            LimitSource::Fraction => format!(
                "a memory fraction limits the reserved bytes; the recording does not name the limit, which is between {} and \
                 {} bytes, since the first was given and the second refused",
                self.lowest.get(),
                self.highest.get()
            ),
            LimitSource::Capacity => format!("the device has {}", self.highest),
            LimitSource::Device if self.used_by_others.is_zero() => {
                format!("the device had {} for PyTorch", self.highest)
            }
            LimitSource::Device => format!(
                "the device had {} for PyTorch, and {} were in use by others",
                self.highest, self.used_by_others
            ),
        }
    }
}
