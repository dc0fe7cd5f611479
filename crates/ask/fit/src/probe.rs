//! The result of one run of the program.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// The memory that a run with one value takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The value.
    pub value: u64,
    /// Whether no request ran out of memory.
    #[serde(rename = "is_fitting")]
    pub fits: bool,
    /// The most bytes of allocated blocks; if the run ran out of memory, until then.
    pub peak_allocated: Bytes,
    /// The most bytes of segments; if the run ran out of memory, until then.
    pub peak_reserved: Bytes,
    /// Whether nothing was assumed.
    pub is_exact: bool,
    /// The request that ran out of memory, if it is known.
    #[serde(default)]
    pub failed: Option<ProbeOom>,
    /// How many iterations the run made, counted by the steps of its first optimizer.
    #[serde(default, rename = "steps")]
    pub iterations: u32,
    /// Whether the last two iterations were equal; `None` for fewer than two iterations.
    #[serde(default)]
    pub is_steady: Option<bool>,
    /// The holders of the peak of the last iteration.
    #[serde(default)]
    pub holders: Vec<HolderBytes>,
    /// The lines of the program that held the peak of allocated memory, the line that held most first.
    #[serde(default)]
    pub sites: Vec<HolderBytes>,
    /// The non-PyTorch memory of the device with the largest peak reserved: an estimate that is in no other
    /// number.
    #[serde(default)]
    pub non_pytorch: Vec<HolderBytes>,
    /// Sentences about non-PyTorch memory that was not recorded, or not on this GPU.
    #[serde(default)]
    pub non_pytorch_unknown: Vec<String>,
    /// The assumptions, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Sentences that a person should read and that make no number an estimate.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The bytes of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderBytes {
    /// The holder.
    pub what: String,
    /// The bytes of whole blocks.
    pub bytes: Bytes,
}

/// A request that ran out of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeOom {
    /// The bytes that the allocator wanted for the request.
    pub bytes: Bytes,
    /// The line of the program, as `train.py:26`, if the line is known.
    pub at: Option<String>,
    /// Whether the request came from a thread without a line of the program, so that `at` is the line that
    /// waited for the thread.
    #[serde(rename = "is_below")]
    pub is_of_other_thread: bool,
}

impl Probe {
    /// A probe with these fields and no others.
    #[must_use]
    pub fn of(value: u64, is_fitting: bool, peak_allocated: Bytes, peak_reserved: Bytes) -> Self {
        Self { value, fits: is_fitting, peak_allocated, peak_reserved, is_exact: true, ..Self::default() }
    }
}
