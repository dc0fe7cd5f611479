//! The report of `blockyard fit`: the call, and the largest value of an option. The answers to its other
//! questions are in modules beside this one.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    FitConditions, FitContradiction, FitGrowth, FitHolder, FitLayoutsAnswer, FitMapAnswer, FitRun, FitRunEnd,
    FitSettingsAnswer, FitVary,
};

/// The report of `blockyard fit --json`: the call, and the answer to one of four questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitAnswer {
    /// The call of the command, and its runs.
    #[serde(flatten)]
    pub call: FitCall,
    /// The answer. The answer about the first GPU is at the top, those about further GPUs are in `others`.
    #[serde(flatten)]
    pub result: FitResult,
}

/// The call of `blockyard fit`, and the runs that the call took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitCall {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The program, as the command line names it.
    pub program: String,
    /// The program's arguments, as the command line has them.
    pub arguments: Vec<String>,
    /// After how many steps of its first optimizer each run ends.
    pub steps: u32,
    /// PyTorch's version.
    pub torch: String,
    /// The file of kept runs.
    pub kept: String,
    /// How many runs were made.
    pub runs: u64,
    /// How many runs were known from earlier calls.
    pub known: u64,
}

/// The answer to one of the questions of `blockyard fit`, with the question's name; the first question has no
/// name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "question", rename_all = "snake_case")]
pub enum FitResult {
    /// The largest value of an option for each value of another option, under each of several settings or for
    /// each layout.
    Map(Box<FitMapAnswer>),
    /// Which settings of the allocator a program fits under.
    Settings(Box<FitSettingsAnswer>),
    /// Which layouts of ranks fit.
    Layouts(Box<FitLayoutsAnswer>),
    /// The largest value of an option that fits.
    #[serde(untagged)]
    Largest(Box<FitLargestAnswer>),
}

/// The largest value of an option that fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitLargestAnswer {
    /// The option or variable whose values are searched.
    pub vary: FitVary,
    /// The answer about the first GPU.
    #[serde(flatten)]
    pub first: FitLargestOnGpu,
    /// The answers about further GPUs.
    pub others: Vec<FitLargestOnGpu>,
}

/// The largest value of an option that fits a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitLargestOnGpu {
    /// The GPU and the limit.
    #[serde(flatten)]
    pub conditions: FitConditions,
    /// The largest value that fits and whose next one does not; null where no value fits, or the search ended
    /// before.
    pub largest: Option<u64>,
    /// A value whose run leaves `reserve` bytes of `limit` free, nearly the largest such value; null where no
    /// run did.
    #[serde(default)]
    pub safe: Option<u64>,
    /// The bytes that a safe value leaves free: 5 % of `limit`.
    #[serde(default)]
    pub reserve: Bytes,
    /// The run of the next value, which runs out of memory; of the lowest value where none fits; null where
    /// the highest fits.
    pub next: Option<FitRun>,
    /// Whether nothing was assumed in the runs of `largest` and `next`.
    pub exact: bool,
    /// The run of the next value on a GPU without an end, or null.
    pub needs: Option<FitRun>,
    /// The runs under the limit, by value.
    pub probes: Vec<FitRun>,
    /// Neighbors among the probes that contradict that memory grows with the value.
    pub contradictions: Vec<FitContradiction>,
    /// How the peak allocated grows with the value; null where no rule was found.
    pub growth: Option<FitGrowth>,
    /// The lines that hold most at the largest value, up to 12.
    pub sites: Vec<FitSite>,
    /// Who holds the peak of the last step of the largest value; null where no value fits.
    pub holders: Option<Vec<FitHolder>>,
    /// The bytes at the largest value that changes of the program are about; null where no value fits.
    pub advice: Option<Vec<FitHolder>>,
    /// Settings that were tried with the next value.
    pub settings: Vec<FitTriedSetting>,
    /// The value whose run ended the search, or null.
    pub failed_at: Option<u64>,
    /// Why the run ended the search, or null.
    pub error: Option<FitRunEnd>,
}

/// A line of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitSite {
    /// The line of the program.
    pub what: String,
    /// The bytes that the line holds at the peak allocated of the largest value.
    pub bytes: Bytes,
    /// How the bytes grow with the value; null where no rule was found.
    pub growth: Option<FitGrowth>,
}

/// Settings that were tried with a value that does not fit without them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FitTriedSetting {
    /// The variable of the environment.
    pub variable: String,
    /// The text of the variable.
    pub conf: String,
    /// The value that was tried.
    pub value: u64,
    /// Whether the value fits with the setting.
    pub fits: bool,
    /// The largest value that fits; null where no search was made.
    pub largest: Option<u64>,
}
