//! The answer of `blockyard autopsy`.

use serde::{Deserialize, Serialize};

use crate::LimitAnswer;

/// Why a run went out of memory, and which changes let the request pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutopsyAnswer {
    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    pub conf: String,
    /// Why the request failed; null where the run does not go out of memory.
    pub cause: Option<OomCauseAnswer>,
    /// The limit of the answer; null where nothing but the run's own device limits a run that fits.
    pub limit: Option<LimitAnswer>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
    /// The failure; absent where the run does not go out of memory.
    #[serde(flatten)]
    pub failure: Option<AutopsyFailure>,
}

/// The first failure of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutopsyFailure {
    /// The cause in a sentence.
    pub sentence: String,
    /// The request that failed.
    pub request: FailedAllocationAnswer,
    /// What the memory was used for then.
    pub memory: MemoryAtFailureAnswer,
    /// The segments whose free bytes could not serve the request, with the blocks that keep them.
    pub pinned_by: Vec<PinnedSegmentAnswer>,
    /// What lets the request pass, each proved by a replay; of every kind the smallest first.
    pub changes: Vec<ChangeAnswer>,
    /// What was replayed too and does not help at every bound of the limit.
    pub in_vain: Vec<ChangeAnswer>,
}

/// Why a request found no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OomCauseAnswer {
    /// The request alone is larger than the limit.
    RequestAboveLimit,
    /// The request and the live bytes do not fit together.
    LiveBytesAtLimit,
    /// Enough bytes are free, but live blocks lie between them.
    FragmentationByLiveBlocks,
    /// Enough bytes are cached for another stream.
    CachedInAnotherStream,
    /// Enough bytes are cached in another memory pool.
    CachedInPrivatePool,
    /// Enough bytes were freed, but wait for another stream that used them.
    WaitingForAnotherStream,
    /// A large enough block came free only while the allocator released its cache, after which PyTorch does
    /// not search the pool again.
    PoolNotSearchedAgain,
    /// A setting rounds requests up so far that they do not fit.
    RoundingBySetting,
    /// Others use so much of the device that too little is left.
    MemoryOfOthers,
}

/// The request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedAllocationAnswer {
    /// The request, counted from 1.
    pub request: u64,
    /// How many allocations came before the request.
    pub allocations_before: u64,
    /// The bytes that the request asked for.
    pub size: u64,
    /// The bytes of `size` after rounding.
    pub rounded: u64,
    /// The bytes of the segment that was wanted for the request.
    pub segment_size: u64,
    /// The stream that the request is on.
    pub stream: u64,
    /// The memory pool, as PyTorch numbers pools of graphs and of programs; `[0, 0]` is the default pool.
    pub pool_id: (u64, u64),
    /// The block pool: `small` or `large`.
    pub pool: String,
    /// The name of the tensor, or null.
    pub name: Option<String>,
    /// The stack, innermost frame first; empty where none was recorded.
    pub stack: Vec<String>,
}

/// The bytes of the memory at a failure, after everything was released that could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryAtFailureAnswer {
    /// Bytes of all segments.
    pub reserved: u64,
    /// Bytes of allocated blocks.
    pub allocated: u64,
    /// The requested bytes of allocated blocks, rounded up to 512 bytes for each block.
    pub live: u64,
    /// Bytes that were freed while another stream used them.
    pub pending: u64,
    /// Bytes that are cached for the stream and the pool of the request.
    pub cached_here: u64,
    /// The largest block among `cached_here` in the block pool (small or large) of the request.
    pub largest_cached_here: u64,
    /// Bytes that are cached for other streams.
    pub cached_other_streams: u64,
    /// Bytes that are cached in other pools.
    pub cached_other_pools: u64,
}

/// A segment whose free bytes could not serve the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinnedSegmentAnswer {
    /// Where the segment starts, in the replay.
    pub addr: u64,
    /// The bytes of the segment.
    pub size: u64,
    /// The stream of the segment.
    pub stream: u64,
    /// The memory pool that owns the segment.
    pub pool_id: (u64, u64),
    /// The block pool: `small` or `large`.
    pub pool: String,
    /// The free bytes of the segment.
    pub free: u64,
    /// The largest free block of the segment.
    pub largest_free: u64,
    /// The live bytes of the segment.
    pub live: u64,
    /// How many live blocks the segment has.
    pub block_count: u64,
    /// The live blocks by ascending address; the first 64.
    pub blocks: Vec<PinningBlockAnswer>,
}

/// A live block that keeps a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinningBlockAnswer {
    /// Where the block starts, in the replay.
    pub addr: u64,
    /// The bytes of the block.
    pub size: u64,
    /// The request that the block serves, counted from 1, or null.
    pub request: Option<u64>,
    /// The name of the tensor, or null.
    pub name: Option<String>,
    /// The stack of that request, innermost frame first; empty where none was recorded.
    pub stack: Vec<String>,
}

/// A change that was replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeAnswer {
    /// What the change is about.
    pub kind: ChangeKindAnswer,
    /// What is set or freed: a text for `setting`, bytes for `limit`, requests and their bytes for
    /// `free_tensors`, else null.
    pub value: Option<ChangeValue>,
    /// Whether the request passes at both bounds of the limit.
    pub proved: bool,
    /// Whether the request passes at one bound of the limit and not at the other.
    pub depends_on_limit: bool,
    /// The change and its result, in a sentence.
    pub sentence: String,
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKindAnswer {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    Setting,
    /// Tensors are freed right before the request.
    FreeTensors,
    /// More memory may be reserved.
    Limit,
    /// Everything comes from the default pool.
    DefaultPool,
    /// Everything is on the stream of the request.
    OneStream,
    /// `torch.cuda.synchronize()` right before the request.
    Synchronize,
}

/// What a change sets or frees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChangeValue {
    /// A text of `PYTORCH_CUDA_ALLOC_CONF`.
    Setting(String),
    /// The most bytes that may be reserved.
    Limit(u64),
    /// The tensors that are freed.
    Tensors {
        /// The requests of the tensors, counted from 1.
        requests: Vec<u64>,
        /// The bytes of their blocks.
        bytes: u64,
    },
}
