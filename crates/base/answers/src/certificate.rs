//! The certificate of a snapshot and the answer of `blockyard verify`: whether our allocator decides each
//! placement as PyTorch did.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What our allocator decides about each placement of a snapshot's trace, beside what PyTorch did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateAnswer {
    /// The certificate in a sentence.
    pub sentence: String,
    /// The release of PyTorch whose rules the allocator followed.
    pub release: String,
    /// The allocations of the trace.
    pub placements: u64,
    /// How many of these allocations our allocator puts at the same address.
    pub identical: u64,
    /// Whether frees, segments and the final blocks are the same too.
    pub is_complete: bool,
    /// The first difference, or null.
    pub first_difference: Option<Difference>,
    /// Why the replay may differ, or why nothing was compared.
    pub reasons: Vec<String>,
    /// What was inferred, in sentences.
    pub notes: Vec<String>,
}

/// A fact that differs between PyTorch and a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The step in which the fact differs, counted from 1; null where the fact belongs to no step.
    pub step: Option<u64>,
    /// The name of the fact.
    pub what: String,
    /// The fact as PyTorch recorded it.
    pub expected: String,
    /// The fact in the replay.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "request {step}: ")?;
        }
        write!(f, "{}: PyTorch {}, replay {}", self.what, self.expected, self.found)
    }
}

/// One line of `blockyard verify --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum VerifyLine {
    /// A run was compared with its replay.
    Compared(VerifyAnswer),
    /// A file was not replayed.
    Failed(VerifyError),
}

/// A recording of PyTorch compared with its replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyAnswer {
    /// The file as the command line names it, with its device where it has several.
    pub file: String,
    /// The release of PyTorch whose rules the allocator followed.
    pub release: String,
    /// The comparison with the replay.
    #[serde(flatten)]
    pub compared: ComparedFacts,
    /// The other releases under which the replay is identical; null unless asked for.
    pub identical_under: Option<Vec<String>>,
}

/// A recording's facts, beside those of its replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedFacts {
    /// Whether all facts are identical, and there is at least one.
    pub identical: bool,
    /// How many facts of each kind are identical.
    pub counts: BTreeMap<String, FactCount>,
    /// The first difference, or null. Its step is counted from 1.
    pub first_difference: Option<Difference>,
    /// What was inferred, what cannot be compared, and why.
    pub notes: Vec<String>,
}

/// How many facts of one kind are identical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactCount {
    /// How many facts are identical.
    pub identical: u64,
    /// How many the recording or the replay has, the larger number of the two.
    pub total: u64,
}

/// Why a file was not replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyError {
    /// The file as the command line names it.
    pub file: String,
    /// The reason, in a sentence.
    pub error: String,
}
