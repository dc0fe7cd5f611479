//! The answer of `blockyard fit --mesh`: which layouts of ranks fit.

use std::collections::BTreeMap;

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::{FitConditions, FitHolder, FitPeaks, FitRunEnd};

/// Which layouts of ranks fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitLayoutsAnswer {
    /// The answer about the first GPU.
    #[serde(flatten)]
    pub first: FitLayoutsOnGpu,
    /// The answers about further GPUs.
    pub others: Vec<FitLayoutsOnGpu>,
}

/// Which layouts of ranks fit a kind of GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitLayoutsOnGpu {
    /// The GPU and the limit.
    #[serde(flatten)]
    pub conditions: FitConditions,
    /// How many ranks each layout has.
    pub ranks: u32,
    /// The names of the dimensions.
    pub mesh: Vec<String>,
    /// The layout that fits with the least peak reserved, by dimension; null where none fits.
    pub best: Option<BTreeMap<String, u64>>,
    /// The layouts of ranks.
    pub layouts: Vec<FitLayout>,
    /// Why the question ended before its end, or null.
    pub error: Option<FitRunEnd>,
}

/// A layout of ranks. The fields but `layout` are null where the program failed or was not run; where it was
/// not run, `error` is null too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitLayout {
    /// How many ranks each dimension has, by name.
    pub layout: BTreeMap<String, u64>,
    /// Whether all ranks that ran fit.
    pub fits: Option<bool>,
    /// The most bytes allocated at a time in a rank, in the run that decides.
    pub peak_allocated: Option<Bytes>,
    /// The most bytes reserved at a time in a rank, in the run that decides.
    pub peak_reserved: Option<Bytes>,
    /// Whether nothing was assumed in the run that decides.
    pub exact: Option<bool>,
    /// The ranks that ran on a GPU without an end.
    pub ranks: Option<Vec<FitRank>>,
    /// The ranks of the run under the limit; null where there was no such run.
    pub under_limit: Option<Vec<FitRank>>,
    /// Why the program failed, or null.
    pub error: Option<String>,
}

/// The run of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitRank {
    /// The number of the rank.
    pub rank: u64,
    /// Who holds the peak of the last step.
    pub holders: Vec<FitHolder>,
    /// The run of the rank.
    #[serde(flatten)]
    pub run: FitPeaks,
}
