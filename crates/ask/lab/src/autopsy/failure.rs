//! The moment of a failure: the request, the memory, and which request every live block serves.

use std::collections::BTreeMap;

use blockyard_record::{
    AllocationId, BlockState, Bytes, MemoryAtFailure, OnDone, OomCause, PoolId, PoolKind, StreamId,
};
use blockyard_rules::{AllocatorConfig, size};
use blockyard_workload::Request;

use crate::limited_run::FixedConditions;
use crate::live::LiveMemory;
use crate::{CacheKeeper, FailedAllocation, LabError, Run};

/// A failed request and the memory after it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The index of the request.
    pub(super) index: usize,
    pub(super) request: FailedAllocation,
    pub(super) memory: MemoryAtFailure,
    pub(super) live: LiveMemory,
}

impl Failure {
    /// Replays the run up to and including the request at `index`, which fails under these conditions.
    pub(super) fn replayed(
        run: &Run,
        fixed: &FixedConditions,
        config: &AllocatorConfig,
        index: usize,
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let live = LiveMemory::after(run, fixed, config, index.saturating_add(1), on_done)?;
        let request = failed_allocation(run, config, index);
        let memory = MemoryAtFailure::of(&live.snapshot, &request.for_cause());
        Ok(Self { index, request, memory, live })
    }

    /// The other stream or memory pool that keeps the most cached bytes, if that is the cause.
    pub(super) fn cached_by(&self, cause: OomCause) -> Option<CacheKeeper> {
        let mut sums: BTreeMap<CacheKeeper, Bytes> = BTreeMap::new();
        for segment in &self.live.snapshot.segments {
            let is_same_pool = segment.pool_id == self.request.pool_id;
            let keeper = match cause {
                OomCause::CachedInAnotherStream if is_same_pool && segment.stream != self.request.stream => {
                    CacheKeeper::Stream(segment.stream)
                }
                OomCause::CachedInPrivatePool if !is_same_pool => {
                    CacheKeeper::Pool { id: segment.pool_id, pool: segment.pool }
                }
                _ => continue,
            };
            let cached = segment.blocks.iter().filter(|block| block.state == BlockState::Inactive);
            let sum = sums.entry(keeper).or_default();
            *sum = cached.fold(*sum, |sum, block| sum.saturating_add(block.size));
        }
        let cached = sums.into_iter().filter(|(_, bytes)| !bytes.is_zero());
        cached.max_by_key(|(_, bytes)| *bytes).map(|(keeper, _)| keeper)
    }

    /// The index of the request that an allocation served.
    pub(super) fn served(&self, allocation: Option<AllocationId>) -> Option<usize> {
        self.live.served(allocation)
    }

    /// Whether the request may use the free blocks of a segment: same stream, same memory pool.
    pub(super) fn is_own(&self, stream: StreamId, pool_id: PoolId) -> bool {
        stream == self.request.stream && pool_id == self.request.pool_id
    }
}

fn failed_allocation(run: &Run, config: &AllocatorConfig, index: usize) -> FailedAllocation {
    let requests = run.requests();
    let (tensor, requested, stream) = match requests.get(index) {
        Some(Request::Allocate { tensor, size, stream }) => (Some(*tensor), *size, *stream),
        _ => (None, Bytes::ZERO, StreamId::DEFAULT),
    };
    let rounded = size::rounded(requested, config);
    let before = requests.iter().take(index);
    let allocations = before.filter(|request| matches!(request, Request::Allocate { .. })).count();
    FailedAllocation {
        request: run.request_number(index),
        allocations_before: allocations as u64,
        size: requested,
        rounded,
        segment_size: size::segment_size(rounded, config),
        stream,
        pool_id: open_pool(requests.get(..index).unwrap_or_default()),
        pool: PoolKind::serving(rounded),
        name: tensor.and_then(|tensor| run.workload().tensor_name(tensor)).map(std::borrow::Cow::into_owned),
        stack: run.stack(index),
    }
}

/// The pool that requests are directed to after these requests.
pub(crate) fn open_pool(requests: &[Request]) -> PoolId {
    let mut open = Vec::new();
    for request in requests {
        match request {
            Request::EnterPool { pool_id } => open.push(*pool_id),
            Request::LeavePool { pool_id } => {
                if let Some(place) = open.iter().rposition(|other| other == pool_id) {
                    open.remove(place);
                }
            }
            _ => {}
        }
    }
    open.pop().unwrap_or(PoolId::DEFAULT)
}
