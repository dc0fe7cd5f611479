//! The limit that an answer is for, and where the limit comes from.

use serde::{Deserialize, Serialize};

/// The limit that an answer is for: the most that may be reserved.
///
/// Where a file implies only bounds of the limit, `low` and `high` differ, and the run is replayed at both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitAnswer {
    /// The limit is at least this many bytes.
    pub low: u64,
    /// The limit is at most this many bytes.
    pub high: u64,
    /// How the limit is known.
    pub source: LimitSourceAnswer,
    /// What sets the limit.
    pub by: LimitKind,
    /// The bytes of the device that others hold: other processes, and what is not PyTorch's in this one.
    pub others: u64,
}

/// How a limit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitSourceAnswer {
    /// The file of a run that went out of memory implies the limit.
    Inferred,
    /// The question gives the limit.
    Given,
}

/// What sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitKind {
    /// `torch.cuda.set_per_process_memory_fraction`.
    MemoryFraction,
    /// The memory of the device.
    Device,
}
