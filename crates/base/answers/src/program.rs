//! The report of `blockyard python`.

use std::collections::BTreeMap;

use crate::Keeper;
use serde::{Deserialize, Serialize};

/// The report of `blockyard python --json`. The document has no version: no field has changed its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramAnswer {
    /// What the program printed on standard output.
    pub stdout: String,
    /// The exit status: 0, the argument of `sys.exit`, or 1 after an exception.
    pub status: i32,
    /// The traceback of an exception that the program did not catch, or null.
    pub traceback: Option<String>,
    /// Remarks about the program, in their order.
    pub notes: Vec<ProgramNote>,
    /// Operators whose allocations are unverified estimates.
    pub estimated: Vec<EstimatedOperator>,
    /// The objects of the program that keep more tensors from iteration to iteration, by descending growth.
    pub keepers: Vec<Keeper>,
    /// The devices, by ascending index.
    pub devices: Vec<ProgramDevice>,
}

/// A remark about a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramNote {
    /// The line of the program, counted from 1; 0 where no line ran.
    pub line: u32,
    /// The remark, in a sentence.
    pub text: String,
}

/// An operator whose allocations are an unverified estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimatedOperator {
    /// The line of the program, counted from 1; 0 where no line ran.
    pub line: u32,
    /// The name of the operator.
    pub operator: String,
    /// Why the allocations are not known.
    pub reason: String,
}

/// A device of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramDevice {
    /// How many requests the program made.
    pub requests: u64,
    /// `torch.cuda.memory_stats()` at the program's end.
    pub stats: BTreeMap<String, i64>,
}
