//! The report of `blockyard guard`.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::DryRunAnswer;

/// The report of `blockyard guard --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardAnswer {
    /// 1; the version grows when a field changes its meaning or goes.
    pub version: u32,
    /// The file with the baselines.
    pub file: String,
    /// PyTorch's version.
    pub torch: String,
    /// Whether all programs pass.
    pub passed: bool,
    /// The programs, in the order of the file.
    pub programs: Vec<GuardedProgram>,
}

/// A program, compared with its entry.
#[expect(clippy::struct_excessive_bools, reason = "the fields of the document")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardedProgram {
    /// The program, from the folder of the file.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The short name of the GPU.
    pub gpu: String,
    /// After how many steps of its first optimizer the run ends; null where it runs to its end.
    pub steps: Option<u32>,
    /// `PYTORCH_CUDA_ALLOC_CONF`; null for the environment's.
    pub conf: Option<String>,
    /// The most bytes that may be reserved; null without a budget.
    pub budget: Option<Bytes>,
    /// How much more than the baseline the peaks may be, as the file writes it.
    pub tolerance: String,
    /// Whether the program passes. With `--update` a growth passes.
    pub passed: bool,
    /// Why the program fails, or would fail without `--update`.
    pub failures: Vec<GuardFailure>,
    /// The report for people.
    pub text: String,
    /// Whether something was assumed in the run or in the baseline's.
    pub estimate: bool,
    /// Whether the baseline was made with another version of PyTorch.
    pub other_torch: bool,
    /// Whether a peak fell by more than the tolerance.
    pub lower: bool,
    /// The most bytes allocated at a time in the run.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time in the run.
    pub peak_reserved: Bytes,
    /// The peak allocated of each step of the run.
    pub peak_by_step: Vec<Bytes>,
    /// All lines that hold something at the peak allocated, most first.
    pub holders: Vec<GuardHolder>,
    /// The baseline; null where the file has none.
    pub baseline: Option<GuardBaseline>,
    /// The change of the peak allocated as a sum: a row for each line that changed, and one for everything
    /// else. Empty without a baseline.
    pub rows: Vec<GuardRow>,
    /// The steps whose peak changed.
    pub steps_changed: Vec<GuardStep>,
    /// The report of the dry run, whose fields are in docs/dry-run-json.md.
    pub dry_run: DryRunAnswer,
}

/// Why a program fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardFailure {
    /// The peak reserved is more than the budget.
    Budget {
        /// The budget in bytes.
        budget: Bytes,
        /// The peak reserved of the run, in bytes.
        reserved: Bytes,
    },
    /// The peak allocated grew by more than the tolerance.
    Allocated {
        /// The baseline's bytes.
        before: Bytes,
        /// The run's bytes.
        after: Bytes,
        /// How many bytes it may grow by.
        allowed: Bytes,
    },
    /// The peak reserved grew by more than the tolerance.
    Reserved {
        /// The baseline's bytes.
        before: Bytes,
        /// The run's bytes.
        after: Bytes,
        /// How many bytes it may grow by.
        allowed: Bytes,
    },
    /// The program ran out of memory.
    OutOfMemory {
        /// The line, where it is known.
        at: Option<String>,
    },
    /// The program failed for another reason.
    Error {
        /// The reason, in a sentence.
        why: String,
    },
}

/// What a line holds at the peak allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardHolder {
    /// The bytes of its blocks.
    pub bytes: Bytes,
    /// The file and the number of the line, or a sentence where the stack had no line of the program.
    pub at: String,
    /// The function; empty where it is not known.
    pub function: String,
    /// The text of the line; empty where it was not read.
    pub code: String,
}

/// What a program took when the file was written last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardBaseline {
    /// PyTorch's version.
    pub torch: String,
    /// Whether nothing was assumed in the run of the baseline.
    pub exact: bool,
    /// The most bytes allocated at a time.
    pub peak_allocated: Bytes,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// How many bytes the peak allocated may grow by.
    pub allowed_allocated: Bytes,
    /// How many bytes the peak reserved may grow by.
    pub allowed_reserved: Bytes,
    /// The peak allocated of each step.
    pub peak_by_step: Vec<Bytes>,
    /// The lines that hold most at the peak allocated, most first.
    pub holders: Vec<GuardHolder>,
    /// How many further lines there are.
    pub further_lines: u64,
}

/// The change of one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardRow {
    /// The line; null for everything else, the last row.
    pub at: Option<String>,
    /// The function; null for everything else.
    pub function: Option<String>,
    /// The text of the line; null for everything else.
    pub code: Option<String>,
    /// The baseline's bytes.
    pub before: Option<i64>,
    /// The run's bytes.
    pub after: Option<i64>,
    /// `after` minus `before`.
    pub change: Option<i64>,
    /// The most that the line held before, where the baseline does not list it; else null.
    pub most_before: Option<Bytes>,
}

/// A step whose peak changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardStep {
    /// The number of the step, counted from 1.
    pub number: u64,
    /// The baseline's peak allocated; null where it has no such step.
    pub before: Option<Bytes>,
    /// The run's peak allocated; null where it has no such step.
    pub after: Option<Bytes>,
}
