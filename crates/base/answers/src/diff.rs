//! The answer of `blockyard diff`.

use serde::{Deserialize, Serialize};

use crate::LimitAnswer;

/// What changed from one run to another, or from one step of a run to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffAnswer {
    /// The name of the first run.
    pub before: String,
    /// The limit of the second run, or null.
    pub limit: Option<LimitAnswer>,
    /// The limit of the first run, or null.
    pub limit_before: Option<LimitAnswer>,
    /// The allocations of both, in order, by size, call site and whether they are on the default stream.
    pub alignment: AlignmentAnswer,
    /// The change of the most bytes allocated.
    pub allocated: PeakDiffAnswer,
    /// The change of the most bytes reserved.
    pub reserved: PeakDiffAnswer,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
    /// The two steps, counted from 1; absent where two runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<(u64, u64)>,
}

/// The allocations of two runs side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlignmentAnswer {
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
pub struct PeakDiffAnswer {
    /// The peak of the first run, in bytes.
    pub before: u64,
    /// The peak of the second run, in bytes.
    pub after: u64,
    /// `after` minus `before`.
    pub change: i64,
    /// The request at which the first run has its peak, counted from 1.
    pub request_before: u64,
    /// The request at which the second run has its peak, counted from 1.
    pub request_after: u64,
    /// What the change consists of, the largest first; the terms add up to `change`.
    pub terms: Vec<PeakChangeAnswer>,
}

/// A part of the change of a peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeakChangeAnswer {
    /// The call site, innermost frame first; or `cached` or `pending`, for bytes in nobody's hands.
    pub site: Vec<String>,
    /// More bytes (or less) at the peak of the second run.
    pub change: i64,
    /// How many allocations of the site are live at the peak of the first run.
    pub count_before: u64,
    /// How many allocations of the site are live at the peak of the second run.
    pub count_after: u64,
}
