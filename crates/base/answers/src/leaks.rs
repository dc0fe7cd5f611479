//! The answer of `blockyard leaks`.

use blockyard_record::Bytes;
use serde::{Deserialize, Serialize};

/// What grows from iteration to iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaksAnswer {
    /// How many iterations there are, how they were found, and how many call sites grow, in a sentence.
    pub sentence: String,
    /// How the iterations were found.
    pub steps: IterationSource,
    /// The requests after which iterations end, counted from 1.
    pub boundaries: Vec<u64>,
    /// The live bytes at each boundary.
    pub live: Vec<Bytes>,
    /// The call sites that grow.
    pub growing: Vec<GrowingCallSite>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
}

/// How the iterations of a run were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IterationSource {
    /// Markers of the recording, or labels of the workload.
    Markers,
    /// The same requests come again and again.
    Repetition,
    /// Neither is known: the run is divided into eight parts with equally many requests.
    Parts,
}

/// A call site whose live bytes never fall from one iteration to the next, and grow in more than half of
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrowingCallSite {
    /// The call site, innermost frame first.
    pub site: Vec<String>,
    /// The live bytes of the site at each boundary.
    pub live: Vec<Bytes>,
    /// More bytes at the last boundary than at the second.
    pub growth: Bytes,
    /// The first request of the site after the second boundary whose bytes are live at the end, counted from
    /// 1; 0 where no request is known.
    pub first_request: u64,
    /// The last request of the site whose bytes are live at the end, counted from 1.
    pub last_request: u64,
}
