//! The answer of `blockyard fit --vary conf=...`: which settings of the allocator a program fits under.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::{FitConditions, FitRun, FitRunEnd};

/// Which settings of the allocator a program fits under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitSettingsAnswer {
    /// The answer about the first GPU.
    #[serde(flatten)]
    pub first: FitSettingsOnGpu,
    /// The answers about further GPUs.
    pub others: Vec<FitSettingsOnGpu>,
}

/// Which settings of the allocator a program fits a GPU under: replays of the requests of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitSettingsOnGpu {
    /// The GPU and the limit.
    #[serde(flatten)]
    pub conditions: FitConditions,
    /// How many requests were replayed.
    pub requests: u64,
    /// The settings that fit with the least peak reserved; null where none fit.
    pub best: Option<String>,
    /// The settings, the program's own first.
    pub settings: Vec<FitSetting>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
    /// Why a run ended the question, or null.
    pub error: Option<FitRunEnd>,
}

/// Settings, and what their replay says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitSetting {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The result of the replay.
    #[serde(flatten)]
    pub result: FitReplay,
    /// A run of the program under these settings and the limit, whose `value` is 0; null where none was made.
    pub run: Option<FitRun>,
}

/// The numbers of a replay, or why no replay was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FitReplay {
    /// The requests were replayed.
    Replayed(FitReplayResult),
    /// The settings are wrong.
    Failed {
        /// What is wrong, in a sentence; absent where the requests were replayed.
        error: String,
    },
}

/// The numbers of a replay: of several devices the largest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitReplayResult {
    /// Whether all requests find memory.
    pub fits: bool,
    /// The most bytes allocated at a time.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// The first request that found no memory, or null.
    pub first_oom: Option<FitOom>,
    /// What PyTorch warns about these settings.
    pub warnings: Vec<String>,
}

/// A request of a replay that found no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitOom {
    /// The request, counted from 1.
    pub request: u64,
    /// The bytes that the request asked for.
    pub bytes: Bytes,
}
