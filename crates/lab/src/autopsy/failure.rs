//! The moment of a failure: the request, the memory, and which request every live block serves.

use std::collections::HashMap;

use blockyard_record::{AllocationId, Bytes, Event, EventSink, MemoryAtFailure, PoolId, Snapshot, StreamId};
use blockyard_replay::{AllocatorConfig, size};
use blockyard_workload::Request;

use super::{FailedAllocation, Tell};
use crate::replay::ReplayTerms;
use crate::request_number;
use crate::{LabError, Run};

const INTERVAL: usize = 8192;

/// A failed request and what the memory looked like behind it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Which request, as an index.
    pub(super) index: usize,
    pub(super) request: FailedAllocation,
    pub(super) memory: MemoryAtFailure,
    pub(super) snapshot: Snapshot,
    /// The request that each allocation came from.
    served: HashMap<AllocationId, usize>,
}

/// Which request every allocation that is live came from.
#[derive(Default)]
struct Served {
    request: usize,
    of: HashMap<AllocationId, usize>,
}

impl EventSink for Served {
    fn record(&mut self, event: Event) {
        if let Event::Allocated { allocation, .. } = event {
            self.of.insert(allocation, self.request);
        }
    }
}

impl Failure {
    /// Replays the run up to and including the request at `index`, which fails under these terms.
    pub(super) fn replayed(
        run: &Run,
        terms: &ReplayTerms,
        config: &AllocatorConfig,
        index: usize,
        tell: Tell<'_>,
    ) -> Result<Self, LabError> {
        let mut replayer = terms.replayer(run, config, Served::default())?;
        for request in 0..=index {
            if request.is_multiple_of(INTERVAL) && tell(request).is_break() {
                return Err(LabError::Cancelled);
            }
            replayer.sink_mut().request = request;
            replayer.run_to(request + 1)?;
        }
        let snapshot = replayer.snapshot();
        let mut served = std::mem::take(&mut replayer.sink_mut().of);
        let blocks = snapshot.segments.iter().flat_map(|segment| &segment.blocks);
        let live: std::collections::HashSet<AllocationId> =
            blocks.filter_map(|block| block.allocation).collect();
        served.retain(|allocation, _| live.contains(allocation));
        let request = failed_allocation(run, config, index);
        let memory = MemoryAtFailure::of(&snapshot, &request.for_cause());
        Ok(Self { index, request, memory, snapshot, served })
    }

    /// The request that an allocation came from, as an index.
    pub(super) fn served(&self, allocation: Option<AllocationId>) -> Option<usize> {
        self.served.get(&allocation?).copied()
    }

    /// Whether a segment's free blocks are those that the request looks at.
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
        request: request_number(index),
        allocations_before: allocations as u64,
        size: requested,
        rounded,
        segment_size: size::segment_size(rounded, config),
        stream,
        pool_id: open_pool(requests.get(..index).unwrap_or_default()),
        pool: size::pool_kind(rounded),
        name: tensor.and_then(|tensor| run.workload().tensor_name(tensor)).map(std::borrow::Cow::into_owned),
        stack: run.stack(index),
    }
}

/// The pool that requests are directed to behind these requests.
fn open_pool(requests: &[Request]) -> PoolId {
    let mut open = Vec::new();
    for request in requests {
        match request {
            Request::EnterPool { pool } => open.push(*pool),
            Request::LeavePool { pool } => {
                if let Some(place) = open.iter().rposition(|other| other == pool) {
                    open.remove(place);
                }
            }
            _ => {}
        }
    }
    open.pop().unwrap_or(PoolId::DEFAULT)
}
