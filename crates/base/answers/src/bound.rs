//! The answer of `blockyard bound`.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

use crate::Limit;

/// How good any allocator could be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundAnswer {
    /// How many requests the run has.
    pub requests: u64,
    /// The limit of the run; null where nothing but the run's own device limits the run.
    pub limit: Option<Limit>,
    /// The most bytes that are ever live, each request rounded up to 512.
    pub lower_bound: Bytes,
    /// The request at which the bytes of `lower_bound` are live, counted from 1.
    pub request: u64,
    /// The bytes of a layout that knows all lifetimes beforehand.
    pub layout_peak: Bytes,
    /// The most bytes that the run's own settings reserve, up to the request that finds no memory; null where
    /// they are wrong.
    pub peak_reserved: Option<Bytes>,
    /// How many requests fail under the run's own settings; null where they are wrong.
    pub ooms: Option<u64>,
    /// How many requests fail at the upper bound of the limit; null where the settings are wrong.
    pub ooms_at_high: Option<u64>,
    /// What is to be known about the answer, in sentences.
    pub notes: Vec<String>,
    /// Each allocation of the layout as `[request, until, offset, size]`; absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Vec<(u64, u64, Bytes, Bytes)>>,
}
