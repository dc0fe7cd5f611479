//! The answer of `blockyard autopsy`.

use blockyard_record::{
    Bytes, DeviceAddr, MemoryAtFailure, OomCause, OomRequest, PoolId, PoolKind, StreamId,
};
use serde::{Deserialize, Serialize};

use crate::{Forecast, GapOutcome, Limit, RestOfIteration};

/// Why a run went out of memory, and which changes let the request pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutopsyAnswer {
    /// The settings, as `PYTORCH_CUDA_ALLOC_CONF` writes them.
    pub conf: String,
    /// Why the request failed; null where the run does not go out of memory.
    pub cause: Option<OomCause>,
    /// The limit of the answer; null where nothing but the run's own device limits a run that fits.
    pub limit: Option<Limit>,
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
    pub request: FailedAllocation,
    /// The most bytes reserved up to the request, and the calls of the device up to it.
    pub outcome: GapOutcome,
    /// What the memory was used for then.
    pub memory: MemoryAtFailure,
    /// The other stream or memory pool that keeps the most cached bytes, where that is the cause; null for other causes.
    #[serde(default)]
    pub cached_by: Option<CacheKeeper>,
    /// The segments whose free bytes could not serve the request, with the blocks that keep them.
    pub pinned_by: Vec<PinnedSegment>,
    /// What lets the request pass, each proved by a replay; of every kind the smallest first.
    pub changes: Vec<Change>,
    /// What was replayed too and does not help at every bound of the limit.
    pub in_vain: Vec<Change>,
}

/// A stream or a memory pool with cached bytes that a request cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CacheKeeper {
    /// A stream.
    Stream(StreamId),
    /// A memory pool.
    Pool {
        /// The memory pool, as PyTorch numbers pools of graphs and of programs.
        id: PoolId,
        /// The block pool: `small` or `large`.
        pool: PoolKind,
    },
}

/// The request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedAllocation {
    /// The request, counted from 1.
    pub request: u64,
    /// How many allocations came before the request.
    pub allocations_before: u64,
    /// The bytes that the request asked for.
    pub size: Bytes,
    /// The bytes of `size` after rounding.
    pub rounded: Bytes,
    /// The bytes of the segment that was wanted for the request.
    pub segment_size: Bytes,
    /// The stream that the request is on.
    pub stream: StreamId,
    /// The memory pool, as PyTorch numbers pools of graphs and of programs; `[0, 0]` is the default pool.
    pub pool_id: PoolId,
    /// The block pool: `small` or `large`.
    pub pool: PoolKind,
    /// The name of the tensor, or null.
    pub name: Option<String>,
    /// The stack, innermost frame first; empty where none was recorded.
    pub stack: Vec<String>,
}

impl FailedAllocation {
    /// The request in the form that [`OomCause`] takes.
    #[must_use]
    pub fn for_cause(&self) -> OomRequest {
        OomRequest {
            size: self.size,
            rounded: self.rounded,
            segment_size: self.segment_size,
            stream: self.stream,
            pool_id: self.pool_id,
        }
    }
}

/// A segment whose free bytes could not serve the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinnedSegment {
    /// Where the segment starts, in the replay.
    pub addr: DeviceAddr,
    /// The bytes of the segment.
    pub size: Bytes,
    /// The stream of the segment.
    pub stream: StreamId,
    /// The memory pool that owns the segment.
    pub pool_id: PoolId,
    /// The block pool: `small` or `large`.
    pub pool: PoolKind,
    /// The free bytes of the segment.
    pub free: Bytes,
    /// The largest free block of the segment.
    pub largest_free: Bytes,
    /// The live bytes of the segment.
    pub live: Bytes,
    /// How many live blocks the segment has.
    pub block_count: u64,
    /// The live blocks by ascending address; the first 64.
    pub blocks: Vec<PinningBlock>,
}

/// A live block that keeps a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinningBlock {
    /// Where the block starts, in the replay.
    pub addr: DeviceAddr,
    /// The bytes of the block.
    pub size: Bytes,
    /// The request that the block serves, counted from 1; null for a block from before the recording.
    pub request: Option<u64>,
    /// The place of a block among those from before the recording, by ascending address, counted from 1; null for
    /// other blocks.
    pub earlier: Option<u64>,
    /// The name of the tensor, or null.
    pub name: Option<String>,
    /// The stack of that request, innermost frame first; empty where none was recorded.
    pub stack: Vec<String>,
}

/// A change that was replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What the change is: `default_pool`, `one_stream`, `synchronize`, or an object with one field: `setting`
    /// with its text, `limit` with its bytes, `free_tensors` with `requests` and `bytes`.
    pub kind: ChangeKind,
    /// Whether the request passes at both bounds of the limit.
    pub proved: bool,
    /// Whether the request passes at one bound of the limit and not at the other.
    pub depends_on_limit: bool,
    /// Whether the request passes at the lower bound of the limit.
    pub passes_at_lower_bound: bool,
    /// The change and its result, in a sentence.
    pub sentence: String,
    /// The most bytes reserved up to the request, and the calls of the device up to it; null for other changes
    /// than settings, and where the request fails.
    pub outcome: Option<GapOutcome>,
    /// What becomes of the run with the change if its iterations go on; null where the iterations before the
    /// failure do not explain it, and for changes of the requests.
    pub forecast: Option<Forecast>,
    /// What becomes of the iteration that failed with the change; null where there is a forecast, and where nothing
    /// shows what comes after the failure.
    #[serde(default)]
    pub rest: Option<RestOfIteration>,
}

/// How a run is changed before it is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// `PYTORCH_CUDA_ALLOC_CONF` has this text.
    Setting(String),
    /// These tensors are freed right before the request that fails.
    FreeTensors {
        /// The requests that allocate the tensors, counted from 1.
        requests: Vec<u64>,
        /// The tensors from before the recording, by ascending address, counted from 1.
        earlier: Vec<u64>,
        /// The bytes of the blocks of these tensors.
        bytes: Bytes,
    },
    /// At least this many bytes may be reserved.
    Limit(Bytes),
    /// All memory comes from the default pool, none from pools of programs or graphs.
    DefaultPool,
    /// All memory is on the stream of the request that fails.
    OneStream,
    /// `torch.cuda.synchronize()` right before the request that fails, so that frees which wait for other
    /// streams are complete.
    Synchronize,
}
