//! What all answers of `blockyard fit` have: the GPU, the option, the runs, and how bytes grow.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// A GPU, and how much of the GPU a program may reserve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitConditions {
    /// The GPU on which the program has to fit.
    pub gpu: FitGpu,
    /// The most bytes that may be reserved: without `--limit` the GPU's memory, of which each run's `outside`
    /// is taken off.
    pub limit: Bytes,
    /// The fraction of the GPU that is the limit, for `set_per_process_memory_fraction`; null without
    /// `--limit`.
    pub fraction: Option<f64>,
    /// `PYTORCH_CUDA_ALLOC_CONF`; null for the environment's.
    pub conf: Option<String>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitGpu {
    /// The name of the GPU.
    pub name: String,
    /// The short name of the GPU.
    pub id: String,
    /// All bytes of the GPU.
    pub total: Bytes,
}

/// Bytes of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitHolder {
    /// The name of the holder.
    pub what: String,
    /// The bytes of the holder.
    pub bytes: Bytes,
}

/// The option or variable whose values are searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitVary {
    /// What the values are given to.
    pub kind: FitVaryKind,
    /// The name and the values.
    #[serde(flatten)]
    pub values: FitValues,
}

/// What the values of a search are given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FitVaryKind {
    /// An option of the program.
    Option,
    /// A variable of the program's environment.
    Variable,
}

/// The values of an option or a variable: a range or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitValues {
    /// The option without hyphens, or the variable.
    pub name: String,
    /// The lowest value.
    pub low: u64,
    /// The highest value.
    pub high: u64,
    /// All values are multiples of this number; null for a list.
    pub multiple: Option<u64>,
    /// The values; null for a range.
    pub list: Option<Vec<u64>>,
}

/// A run of the program with one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitRun {
    /// The value of the option.
    pub value: u64,
    /// The run with the value.
    #[serde(flatten)]
    pub run: FitPeaks,
}

/// A run of the program. The peaks of a run that ran out of memory are those until then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitPeaks {
    /// Whether no request ran out of memory.
    pub fits: bool,
    /// The most bytes allocated at a time.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// Whether nothing was assumed in the run.
    pub exact: bool,
    /// The request that ran out of memory, or null.
    pub failed: Option<FitFailedRequest>,
    /// How many steps of its first optimizer the run made.
    pub steps: u32,
    /// Whether the last two steps were equal; null for fewer than two steps.
    pub steady: Option<bool>,
    /// The lines of the program that hold the peak allocated, those first that hold most; empty where the run
    /// does not fit.
    pub sites: Vec<FitHolder>,
    /// The non-PyTorch memory of the device with the largest peak reserved, by holder: an estimate that is in
    /// no other number.
    #[serde(rename = "outside")]
    pub non_pytorch: Vec<FitHolder>,
    /// Sentences about non-PyTorch memory that was not recorded, or not on this GPU.
    #[serde(rename = "outside_unknown")]
    pub unknown_non_pytorch: Vec<String>,
    /// The assumptions, in sentences.
    pub notes: Vec<String>,
    /// Sentences that a person should read and that make no number an estimate.
    pub remarks: Vec<String>,
}

/// A request that ran out of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitFailedRequest {
    /// The bytes that the allocator wanted for the request.
    pub bytes: Bytes,
    /// The line of the program, as `train.py:26`, or null.
    pub at: Option<String>,
    /// Whether the request came from a thread without a line of the program, so that `at` is the line that
    /// waited for the thread.
    pub is_of_other_thread: bool,
}

/// Two neighbors among the probes that contradict that memory grows with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitContradiction {
    /// Which number contradicts.
    pub kind: FitContradictionKind,
    /// The smaller value.
    pub value: u64,
    /// The larger value.
    pub larger: u64,
}

/// What contradicts that memory grows with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FitContradictionKind {
    /// The smaller value does not fit, and the larger value fits.
    Fits,
    /// The larger value has the lower peak allocated.
    Allocated,
    /// The larger value has the lower peak reserved.
    Reserved,
}

/// A rule by which bytes grow: they are `base + slope * value + square * value * value`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitGrowth {
    /// The form of the rule.
    pub kind: FitGrowthKind,
    /// The bytes of the value 0.
    pub base: f64,
    /// The bytes for each unit of the value.
    pub slope: f64,
    /// The bytes for each unit of the value's square.
    pub square: f64,
    /// The values that follow the rule.
    pub values: Vec<u64>,
    /// By how many bytes the rule is off at most, at these values.
    pub residual: Bytes,
    /// Whether the rule is met to the byte.
    pub exact: bool,
}

/// The rule by which bytes grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FitGrowthKind {
    /// The same bytes for each value.
    Constant,
    /// A straight line.
    Linear,
    /// With the square of the value.
    Quadratic,
}
