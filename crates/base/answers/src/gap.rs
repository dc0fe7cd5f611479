//! The gap between the reserved and the requested bytes of a run, a part of the answer of `blockyard verdict`.

use blockyard_record::{Bytes, PoolId, StreamId};
use serde::{Deserialize, Serialize};

/// The bytes that are reserved and that no live tensor asked for, and what takes them away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The gap after the request at which most bytes are reserved; of several, the one at which most bytes are
    /// allocated. For a snapshot without requests, the gap in the snapshot.
    pub at_peak: GapAtMoment,
    /// The gap after the request that failed, where the allocator has given back what it could; null where no
    /// request failed.
    pub at_failure: Option<GapAtMoment>,
    /// The numbers of the run itself, beside which those of `remedies` stand; null for a snapshot without
    /// requests. The peak of a run that failed includes the segment that was refused.
    pub own: Option<GapOutcome>,
    /// The changes that lower the peak of reserved bytes, each proved by a replay. They are looked for where
    /// the gap is at least 5 % of the reserved bytes.
    pub remedies: Vec<GapRemedy>,
}

/// The gap at one moment: `requested` and all `parts` add up to `reserved`, to the byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapAtMoment {
    /// The request, counted from 1; 0 for a snapshot without requests.
    pub request: u64,
    /// The bytes that live tensors asked for.
    pub requested: Bytes,
    /// The bytes of all segments.
    pub reserved: Bytes,
    /// The names of the bytes between the two.
    pub parts: GapParts,
    /// The stream whose own bytes are `free_pieces` and `free_segments`: that of the request, or the stream
    /// that reserves most where the request asks for no memory.
    pub stream: StreamId,
    /// The memory pool whose own bytes are `free_pieces` and `free_segments`, found as `stream` is; `[0, 0]`
    /// is the default pool.
    pub pool_id: PoolId,
}

/// The bytes between requested and reserved. Each byte is in the first part whose words hold for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapParts {
    /// Bytes of live blocks that nobody asked for: rounding makes a block larger than its request.
    pub rounding: Bytes,
    /// Bytes of blocks that were freed and that another stream still uses.
    pub pending: Bytes,
    /// Free bytes of other memory pools: those of programs and of CUDA graphs or, for a request in one of
    /// these, the default pool.
    pub other_pools: Bytes,
    /// Free bytes of other streams.
    pub other_streams: Bytes,
    /// Free bytes in segments that have live or pending blocks too. In expandable segments, free bytes
    /// outside of whole free pages.
    pub free_pieces: Bytes,
    /// Bytes of segments that are free as a whole, and of free whole pages in expandable segments.
    pub free_segments: Bytes,
}

impl GapParts {
    /// All parts, added up.
    #[must_use]
    pub fn sum(&self) -> Bytes {
        self.named().iter().map(|(bytes, _)| *bytes).sum()
    }

    /// The parts, each with its name in a sentence, in the order in which they are looked at.
    #[must_use]
    pub fn named(&self) -> [(Bytes, &'static str); 6] {
        [
            (self.rounding, "rounding"),
            (self.pending, "freed but in use by another stream"),
            (self.other_pools, "cached in other memory pools"),
            (self.other_streams, "cached for other streams"),
            (self.free_pieces, "free pieces between live blocks"),
            (self.free_segments, "free segments"),
        ]
    }
}

/// What a replay reserves and costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapOutcome {
    /// The most bytes reserved at a time.
    pub peak_reserved: Bytes,
    /// How many segments the device gave and got back.
    pub device_calls: u64,
    /// How many requests found memory only after the cache was released.
    pub alloc_retries: u64,
}

/// A change that lowers the peak of reserved bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapRemedy {
    /// What the change is.
    pub kind: GapRemedyKind,
    /// For a setting: `PYTORCH_CUDA_ALLOC_CONF`; otherwise null.
    pub conf: Option<String>,
    /// For a preallocation: the bytes to ask for; otherwise null.
    pub size: Option<Bytes>,
    /// For a call of `empty_cache`: the request before which the call is made, counted from 1; otherwise null.
    pub request: Option<u64>,
    /// The line of the program that makes `request`, or null.
    pub line: Option<String>,
    /// The line that called the function of `line`, or null.
    pub caller: Option<String>,
    /// How often this line, called there, has asked for memory after another line did, `request` included; null
    /// where no stacks were recorded.
    pub occurrence: Option<u64>,
    /// The numbers of the replay.
    pub outcome: GapOutcome,
    /// The parts of the gap at the peak of the replay: what is left of each.
    pub parts: GapParts,
    /// The change and its result, in a sentence.
    pub sentence: String,
}

/// What a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GapRemedyKind {
    /// Another setting.
    Setting,
    /// One block that is allocated and freed before all others, so that one large segment exists.
    Preallocation,
    /// One call of `torch.cuda.empty_cache()`.
    EmptyCache,
}
