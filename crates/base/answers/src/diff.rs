//! The answer of `blockyard diff`.

use blockyard_record::{Bytes, frame_text, own_line};
use serde::{Deserialize, Serialize};

use crate::Limit;

/// What changed from one run to another, or from one step of a run to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffAnswer {
    /// The name of the first run.
    pub before: String,
    /// The limit of the second run, or null.
    pub limit: Option<Limit>,
    /// The limit of the first run, or null.
    pub limit_before: Option<Limit>,
    /// What changed.
    #[serde(flatten)]
    pub diff: Diff,
    /// The two steps, counted from 1; absent where two runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<(u64, u64)>,
}

/// Two runs, or two steps of a run, and why one needs more memory at its peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// The allocations of both, in order, by size, call site and whether they are on the default stream.
    pub alignment: Alignment,
    /// The change of the most bytes allocated.
    pub allocated: PeakDiff,
    /// The change of the most bytes reserved.
    pub reserved: PeakDiff,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

impl Diff {
    /// Whether both make the same allocations and have the same peaks.
    #[must_use]
    pub fn is_same(&self) -> bool {
        (self.alignment.only_before, self.alignment.only_after) == (0, 0)
            && self.allocated.terms.is_empty()
            && self.reserved.terms.is_empty()
    }
}

/// The allocations of two runs side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alignment {
    /// How many are in both.
    pub same: u64,
    /// How many are in the first only.
    pub only_before: u64,
    /// How many are in the second only.
    pub only_after: u64,
    /// The first request that is in the first only, counted from 1, or null.
    pub first_only_before: Option<u64>,
    /// The first request that is in the second only, counted from 1, or null.
    pub first_only_after: Option<u64>,
}

/// The change of a peak as a sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeakDiff {
    /// The peak of the first run, in bytes.
    pub before: Bytes,
    /// The peak of the second run, in bytes.
    pub after: Bytes,
    /// `after` minus `before`.
    pub change: i64,
    /// The request at which the first run has its peak, counted from 1.
    pub request_before: u64,
    /// The request at which the second run has its peak, counted from 1.
    pub request_after: u64,
    /// What the change consists of, the largest first; the terms add up to `change`.
    pub terms: Vec<PeakChange>,
}

/// A part of the change of a peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeakChange {
    /// The call site, innermost frame first; or `cached` or `pending`, for bytes in nobody's hands.
    pub site: Vec<String>,
    /// More bytes (or less) at the peak of the second run.
    pub change: i64,
    /// How many allocations of the site are live at the peak of the first run.
    pub count_before: u64,
    /// How many allocations of the site are live at the peak of the second run.
    pub count_after: u64,
}

/// The parts of a change that come from one line of the program. A line may have many call sites, each with a
/// small change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The line in words; for a site without a stack, the name of the site, such as a size.
    pub line: String,
    /// The bytes at the peak of the second run minus those at the peak of the first run.
    pub change: i64,
    /// Live allocations of the line at the peak of the first run.
    pub count_before: u64,
    /// Live allocations of the line at the peak of the second run.
    pub count_after: u64,
    /// The call sites, the one with the largest change first.
    pub sites: Vec<Vec<String>>,
}

impl PeakDiff {
    /// The changes summed by lines of the program, the largest first; they add up as the changes do. Lines
    /// whose parts add up to zero are left out.
    #[must_use]
    pub fn by_line(&self) -> Vec<LineChange> {
        let is_size = |site: &[String]| site.first().is_some_and(|line| line.starts_with("requests of "));
        let is_cache = |site: &[String]| matches!(site, [only] if only == "cached" || only == "pending");
        // A file without stacks has only sizes.
        let has_stacks = self.terms.iter().any(|part| !is_size(&part.site) && !is_cache(&part.site));
        let mut lines: Vec<LineChange> = Vec::new();
        for part in &self.terms {
            let of = match own_line(&part.site) {
                Some(_) if has_stacks && is_size(&part.site) => "requests without a stack".to_owned(),
                Some(line) => frame_text(line),
                None => "no stack was recorded".to_owned(),
            };
            match lines.iter_mut().find(|known| known.line == of) {
                Some(known) => {
                    known.change = known.change.saturating_add(part.change);
                    known.count_before = known.count_before.saturating_add(part.count_before);
                    known.count_after = known.count_after.saturating_add(part.count_after);
                    known.sites.push(part.site.clone());
                }
                None => lines.push(LineChange {
                    line: of,
                    change: part.change,
                    count_before: part.count_before,
                    count_after: part.count_after,
                    sites: vec![part.site.clone()],
                }),
            }
        }
        lines.retain(|line| line.change != 0);
        lines.sort_by_key(|line| std::cmp::Reverse(line.change.abs()));
        lines
    }
}
