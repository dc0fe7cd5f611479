//! The answer of `blockyard compare-allocators`.

use blockyard_record::{Bytes, grouped};
use serde::{Deserialize, Serialize};

use crate::Limit;

/// The same requests through other allocators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatorsAnswer {
    /// How many requests the run has.
    pub requests: u64,
    /// The limit of the answer; null where nothing but the run's own device limits the run.
    pub limit: Option<Limit>,
    /// The allocators, PyTorch's first.
    pub allocators: Vec<AllocatorRow>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

/// The requests of a run through one allocator, up to the one that found no memory. Where only bounds of the
/// limit are known, the numbers are those at the lower bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatorRow {
    /// The name of the allocator.
    pub name: String,
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// The reserved bytes that serve no request, at the moment when most bytes are reserved.
    pub external_fragmentation: Bytes,
    /// The bytes that requests got and did not ask for, at the moment when most bytes are reserved.
    pub internal_fragmentation: Bytes,
    /// Calls of the device; null where the model does not count them.
    pub device_calls: Option<u64>,
    /// The request that found no memory, counted from 1; null where every request found memory.
    pub failed: Option<u64>,
    /// The request that found no memory at the upper bound of the limit, counted from 1, or null.
    pub failed_at_high: Option<u64>,
    /// Host time of a request in nanoseconds, of one run; null where no time was asked for, or where the run
    /// is too short for a clock.
    pub nanos_per_request: Option<f64>,
}

impl AllocatorRow {
    /// Which request ran out of memory, in words: `no`, `request 12`, or that this depends on the limit.
    #[must_use]
    pub fn out_of_memory(&self, limit: Option<Limit>) -> String {
        match (self.failed, self.failed_at_high, limit) {
            // The driver's own pool counts allocated bytes against the limit.
            (None, None, Some(limit)) if self.peak_reserved > limit.high => {
                "no: its limit is for allocated bytes".to_owned()
            }
            (None, None, _) => "no".to_owned(),
            (low, high, Some(limit)) if low.is_none() != high.is_none() => {
                format!("depends on the limit: {}", limit.range_text())
            }
            (low, high, _) => format!("request {}", grouped(low.or(high).unwrap_or_default())),
        }
    }
}
