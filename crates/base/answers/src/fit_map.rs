//! The answer of `blockyard fit` with two options: the largest value of one for each value of the other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FitConditions, FitContradiction, FitRun, FitRunEnd, FitValues, FitVary};

/// The largest value of an option, by another option, by settings or by layouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitMapAnswer {
    /// The option or variable whose largest value is searched.
    pub vary: FitVary,
    /// What the rows differ in. `kind` is `option` or `variable`, with the fields of `vary`, or `settings`
    /// with a `list` of texts, or `layouts` with a `list` of layouts and the number of `ranks`.
    pub by: FitBy,
    /// The answer about the first GPU.
    #[serde(flatten)]
    pub first: FitMapOnGpu,
    /// The answers about further GPUs.
    pub others: Vec<FitMapOnGpu>,
}

/// What the rows of a map differ in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FitBy {
    /// An option of the program.
    Option(FitValues),
    /// A variable of the program's environment.
    Variable(FitValues),
    /// Settings of the allocator.
    Settings {
        /// `conf`.
        name: String,
        /// The settings, the program's own first.
        list: Vec<String>,
    },
    /// Layouts of ranks.
    Layouts {
        /// `mesh`.
        name: String,
        /// The layouts: how many ranks each dimension has, by name.
        list: Vec<BTreeMap<String, u64>>,
        /// How many ranks each layout has.
        ranks: u32,
    },
}

/// The rows of a map on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitMapOnGpu {
    /// The GPU and the limit.
    #[serde(flatten)]
    pub conditions: FitConditions,
    /// The rows of the map.
    pub rows: Vec<FitMapRow>,
}

/// The largest value for one value of another option, under one setting or for one layout: a row has `value`,
/// `conf` or `layout`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitMapRow {
    /// The value of the other option. Absent in rows of settings and layouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The settings. Absent in other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conf: Option<String>,
    /// The layout: how many ranks each dimension has, by name. Absent in other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<BTreeMap<String, u64>>,
    /// The largest value that fits and whose next one does not; null where no value fits, or the search ended
    /// before.
    pub largest: Option<u64>,
    /// The run of the next value, which runs out of memory; of the lowest value where none fits; null where
    /// the highest fits.
    pub next: Option<FitRun>,
    /// Whether nothing was assumed in the runs of `largest` and `next`.
    pub exact: bool,
    /// The runs under the limit, in the order in which they were made.
    pub probes: Vec<FitRun>,
    /// Neighbors among the probes that contradict that memory grows with the value.
    pub contradictions: Vec<FitContradiction>,
    /// The value whose run ended the search, or null.
    pub failed_at: Option<u64>,
    /// Why the run ended the search, or null.
    pub error: Option<FitRunEnd>,
}
