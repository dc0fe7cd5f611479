//! The answers that compare a run under several settings: `blockyard what-if` and `blockyard search`.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::Limit;

/// A run under other settings, beside the same run under its own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIfAnswer {
    /// How many requests the run has.
    pub requests: u64,
    /// The limit of `settings`; null where nothing but the run's own device limits the run.
    pub limit: Option<Limit>,
    /// The run under its own settings and its own limit.
    pub baseline: SettingOutcome,
    /// The run under each of the settings, in the order of the question.
    pub settings: Vec<ComparedOutcome>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

/// A run under all sensible settings and pairs of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchAnswer {
    /// How many requests the run has.
    pub requests: u64,
    /// The limit of the answer; null where nothing but the run's own device limits the run.
    pub limit: Option<Limit>,
    /// The run under its own settings.
    pub baseline: SettingOutcome,
    /// Every setting that was tried.
    pub settings: Vec<SettingOutcome>,
    /// Indices in `settings`: those that fit at both bounds of the limit, and that no other setting beats in
    /// both peak reserved and device calls, by ascending peak reserved.
    pub front: Vec<u64>,
    /// The setting to take, as the verdict says: of single ones the first with which a run that goes out of
    /// memory fits, or the one that reserves least; where none of them helps, the setting of the front that
    /// reserves least; null where no setting is better than the run's own.
    pub best: Option<String>,
    /// The line to copy for `best`, or null.
    pub line: Option<String>,
    /// What `best` gains and costs.
    pub sentence: String,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

/// A run under settings, a capacity and a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingOutcome {
    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    pub conf: String,
    /// The release of PyTorch whose rules hold.
    pub release: String,
    /// The bytes of the device.
    pub capacity: Bytes,
    /// The most bytes that may be reserved, the lower bound where only bounds are known; null where only the
    /// device limits the run.
    pub limit: Option<Bytes>,
    /// The numbers of the replay, or why no replay was made.
    #[serde(flatten)]
    pub result: SettingResult,
}

/// A run under settings, and where it first differs from the run under its own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedOutcome {
    /// The run under the settings.
    #[serde(flatten)]
    pub outcome: SettingOutcome,
    /// The first request that leads to other events than under the run's own settings; null where every event
    /// is the same.
    pub first_difference: Option<FirstDifference>,
}

/// The numbers of a replay, or why no replay was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SettingResult {
    /// The run was replayed.
    Replayed(Box<ReplayedOutcome>),
    /// The settings are wrong.
    Failed {
        /// What is wrong, in a sentence.
        error: String,
    },
}

/// The numbers of a replay. Where only bounds of the limit are known, they are those at the lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayedOutcome {
    /// The most bytes allocated at a time.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// How many segments the device gave.
    pub device_allocs: u64,
    /// How many segments went back to the device.
    pub device_frees: u64,
    /// How many requests found memory only after the cache was released.
    pub alloc_retries: u64,
    /// How many requests failed.
    pub ooms: u64,
    /// How many requests failed at the upper bound of the limit.
    pub ooms_at_high: Option<u64>,
    /// The most bytes reserved at a time at the upper bound of the limit.
    pub peak_reserved_at_high: Option<Bytes>,
    /// The first request that failed, or null.
    pub first_oom: Option<FirstOom>,
    /// Parts of the run, each as `[requests so far, most allocated, most reserved]`, of the memory after each request;
    /// absent unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<(u64, Bytes, Bytes)>,
    /// What PyTorch warns about these settings; absent where PyTorch does not warn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A request that found no memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstOom {
    /// The request, counted from 1.
    pub request: u64,
    /// How many allocations came before the request.
    pub allocations_before: u64,
    /// The bytes that the request asked for.
    pub size: Bytes,
    /// PyTorch's text with the numbers of the replay, or a sentence where the file does not say how much
    /// memory the device has.
    pub message: String,
}

/// The first request that leads to other events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstDifference {
    /// The request, counted from 1.
    pub request: u64,
    /// What happens under the run's own settings, from the first event on that differs.
    pub baseline: String,
    /// What happens under the other settings.
    pub other: String,
}
