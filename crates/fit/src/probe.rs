//! What one run of the program said.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// What a run with one value took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The value.
    pub value: u64,
    /// Whether no request ran out of memory.
    pub is_fitting: bool,
    /// Most bytes of allocated blocks; of a run that ran out of memory, until then.
    pub peak_allocated: Bytes,
    /// Most bytes of segments; of a run that ran out of memory, until then.
    pub peak_reserved: Bytes,
    /// Whether nothing was assumed.
    pub is_exact: bool,
    /// The request that ran out of memory, where it is known.
    #[serde(default)]
    pub failed: Option<FailedRequest>,
    /// How many steps of the first optimizer it made.
    #[serde(default)]
    pub steps: u32,
    /// Whether its last two steps were equal; none where there were not two.
    #[serde(default)]
    pub is_steady: Option<bool>,
    /// Who held the peak of its last step.
    #[serde(default)]
    pub holders: Vec<Held>,
    /// The lines of the program that held the peak of allocated memory, those first that held most.
    #[serde(default)]
    pub sites: Vec<Held>,
    /// What the driver and CUDA's libraries take beside the segments of the device with the most: an estimate, in no other number.
    #[serde(default)]
    pub outside: Vec<Held>,
    /// What they take too, of which no bytes were recorded.
    #[serde(default)]
    pub outside_unknown: Vec<String>,
    /// What was assumed.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What a person should know and what makes no number an estimate.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Bytes that something holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What holds them.
    pub what: String,
    /// Whole blocks.
    pub bytes: Bytes,
}

/// A request that ran out of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequest {
    /// Bytes that the allocator wanted for it.
    pub bytes: Bytes,
    /// The line of the program, `train.py:26`, where it is known.
    pub at: Option<String>,
    /// Whether the request came from a thread without a line of the program, so that the line is the one that waited.
    pub is_below: bool,
}

impl Probe {
    /// A probe of which no more than this is known.
    #[must_use]
    pub fn of(value: u64, is_fitting: bool, peak_allocated: Bytes, peak_reserved: Bytes) -> Self {
        Self { value, is_fitting, peak_allocated, peak_reserved, is_exact: true, ..Self::default() }
    }
}
