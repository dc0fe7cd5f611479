//! The requests of a recorded run, inferred from its trace.

mod driver;
mod from_trace;
mod reclaims;

use std::collections::HashMap;

use crate::{AllocationResult, LineError, OperationKind, ReadError, RecordedOperation, RecordedRun};
use blockyard_record::{
    Backend, Bytes, DeviceAddr, PoolId, Snapshot, StreamId, TraceAction, TraceEntry, index_u32,
};
use blockyard_rules::size;
use blockyard_workload::{Request, TensorId, Workload, WorkloadBuilder};

use driver::{failures, ranges};
use from_trace::FromTrace;
use reclaims::find_reclaims;

pub use reclaims::DeviceFailure;

/// A recorded run as requests, and the calls of the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferredRun {
    /// The requests, in order.
    pub workload: Workload,
    /// For each request, the index of the recorded operation that it belongs to; empty for recordings without
    /// operations.
    pub operations: Vec<usize>,
    /// For each request, the last entry of the trace that shows it; empty for recordings with operations.
    pub entries: Vec<usize>,
    /// The segments that the driver gave, in order.
    pub segments: Vec<(DeviceAddr, Bytes)>,
    /// Where expandable segments started, in order.
    pub ranges: Vec<DeviceAddr>,
    /// The address of each allocation, in order, in a run under `backend:cudaMallocAsync`; empty under the
    /// native backend.
    pub placements: Vec<Option<DeviceAddr>>,
    /// The driver's message at each out-of-memory error, in order.
    pub failures: Vec<OomReport>,
    /// When the driver gave no memory, as far as the trace shows it; empty for recordings with operations.
    pub device_failures: Vec<DeviceFailure>,
    /// The memory before the first request: its allocated blocks are the first tensors, by ascending address.
    pub start: Snapshot,
    /// Sentences about guesses and about entries that are left out.
    pub notes: Vec<String>,
    /// The index of the note that says that the sizes of failed requests are known after rounding alone.
    pub failed_size_note: Option<usize>,
}

/// The driver's message when a request failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OomReport {
    /// Bytes free on the device.
    pub free: Bytes,
    /// The memory of processes, in the order of the message: the process (`None` for the recorded one) and
    /// bytes as exact as the message has them.
    pub processes: Vec<(Option<u32>, Bytes)>,
}

/// The requests of a recorded run: its operations or, for a program, what its trace shows of them.
///
/// A trace shows an allocation and a free as themselves. That a block waited for another stream shows as a
/// free that completes later; which stream it was does not show, so each such wait gets its own stream,
/// advanced when the trace says so. A burst of released segments outside of an allocation is an
/// `empty_cache`.
///
/// # Errors
///
/// [`ReadError::Line`] for operations on unknown ids, [`ReadError::BeginsLate`] for a trace that needs memory
/// from before its beginning.
pub fn requests(run: &RecordedRun) -> Result<InferredRun, ReadError> {
    requests_after(run, Snapshot::default())
}

/// The requests of a program that held the memory of `start` when its trace begins; see [`requests`].
///
/// Allocated blocks get the numbers of the first tensors, by ascending address. Pending blocks get the
/// streams that they wait for, which the snapshot need not name.
///
/// # Errors
///
/// The errors of [`requests`]; [`ReadError::BeginsLate`] if even `start` does not explain the trace.
pub fn requests_after(run: &RecordedRun, start: Snapshot) -> Result<InferredRun, ReadError> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let mut inferred = if run.operations.is_empty() {
        let pools = private_segments(run, trace);
        let reclaims = find_reclaims(run, trace, &start, &pools);
        let mut inferred = FromTrace::new(trace, &run.trace_pools, pools, start, &reclaims).run()?;
        inferred.workload.set_labels(labels(run, trace, &inferred));
        inferred.device_failures = reclaims.device_failures;
        inferred.failed_size_note = reclaims.has_failed_sizes.then_some(inferred.notes.len());
        inferred.notes.extend(reclaims.notes);
        inferred
    } else {
        from_operations(run)?
    };
    inferred.segments = trace
        .iter()
        .filter(|entry| entry.action == TraceAction::SegmentAlloc)
        .map(|entry| (DeviceAddr::new(entry.addr), entry.size))
        .collect();
    inferred.ranges = ranges(trace, run.meta.total_memory, &inferred.start);
    inferred.failures = failures(run, trace);
    if run.meta.backend() == Backend::CudaMallocAsync {
        inferred.placements = placements(run);
        inferred.ranges = pool_base(&inferred.placements).into_iter().collect();
    }
    Ok(inferred)
}

/// The addresses of allocations, where they are recorded.
fn placements(run: &RecordedRun) -> Vec<Option<DeviceAddr>> {
    let places = run.operations.iter().filter_map(|operation| match &operation.kind {
        OperationKind::Allocate { result, .. } => Some(match result {
            Some(AllocationResult::At(addr)) if *addr > 0 => Some(DeviceAddr::new(*addr)),
            _ => None,
        }),
        _ => None,
    });
    places.collect()
}

/// The first address of the driver's pool: a multiple of the granule in which the pool maps memory.
fn pool_base(placements: &[Option<DeviceAddr>]) -> Option<DeviceAddr> {
    const GRANULE: u64 = size::MALLOC_ASYNC_GRANULE.get();
    let lowest = placements.iter().flatten().min()?;
    Some(DeviceAddr::new(lowest.get().saturating_sub(lowest.get() % GRANULE)))
}

fn from_operations(run: &RecordedRun) -> Result<InferredRun, ReadError> {
    let mut tensors: HashMap<u64, TensorId> = HashMap::new();
    let mut builder = WorkloadBuilder::new();
    let mut operations = Vec::new();
    for (index, operation) in run.operations.iter().enumerate() {
        let tensor = |id: u64| {
            tensors
                .get(&id)
                .copied()
                .ok_or(ReadError::Line { line: operation.line, error: LineError::NotLive(id) })
        };
        match operation.kind {
            OperationKind::Start | OperationKind::End => {}
            OperationKind::Allocate { id, size, stream, pool, .. } => {
                let pool_id = pool.map(|index| PoolId { capture: 0, user: index.saturating_add(1) });
                let stream = stream_handle(run, operation, stream)?;
                if let Some(pool_id) = pool_id {
                    builder.push(Request::EnterPool { pool_id });
                }
                tensors.insert(id, builder.allocate(size, stream));
                if let Some(pool_id) = pool_id {
                    builder.push(Request::LeavePool { pool_id });
                }
            }
            OperationKind::Free { id } => {
                builder.push(Request::Free { tensor: tensor(id)? });
                tensors.remove(&id);
                // The recorder synchronized the device here, so that the next allocation finds all events
                // complete.
                if run.meta.profile == "streams" {
                    builder.push(Request::Advance { stream: None });
                }
            }
            OperationKind::RecordStream { id, stream } => {
                let stream = stream_handle(run, operation, stream)?;
                builder.push(Request::RecordStream { tensor: tensor(id)?, stream });
            }
            OperationKind::EmptyCache => builder.push(Request::EmptyCache),
            OperationKind::ResetPeak => builder.push(Request::ResetPeak),
            OperationKind::ResetAccumulated => builder.push(Request::ResetAccumulated),
            OperationKind::SetFraction { fraction } => builder.push(Request::SetFraction { fraction }),
        }
        operations.resize(builder.requests().len(), index);
    }
    Ok(InferredRun { workload: builder.finish(), operations, ..InferredRun::default() })
}

fn stream_handle(
    run: &RecordedRun,
    operation: &RecordedOperation,
    index: u64,
) -> Result<StreamId, ReadError> {
    if index == 0 {
        return Ok(StreamId::DEFAULT);
    }
    // Without a list, the number is the handle itself.
    if run.meta.streams.is_empty() {
        return Ok(StreamId::new(index));
    }
    let handle = usize::try_from(index).ok().and_then(|index| run.meta.streams.get(index));
    handle.copied().ok_or(ReadError::Line { line: operation.line, error: LineError::UnknownStream(index) })
}

/// The entries that made segments of private pools: as the trace names them, or else those that nothing
/// released before the end.
fn private_segments(run: &RecordedRun, trace: &[TraceEntry]) -> HashMap<usize, PoolId> {
    if !run.trace_pools.is_empty() {
        let entries = trace.iter().zip(&run.trace_pools).enumerate();
        let private = entries.filter(|(_, (entry, pool))| {
            matches!(entry.action, TraceAction::SegmentAlloc | TraceAction::SegmentMap)
                && **pool != PoolId::DEFAULT
        });
        return private.map(|(index, (_, pool))| (index, *pool)).collect();
    }
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (index, entry) in trace.iter().enumerate() {
        if entry.action == TraceAction::SegmentAlloc {
            last.insert(entry.addr, index);
        }
    }
    let segments = run.segments.iter().flatten().filter(|segment| segment.pool_id != PoolId::DEFAULT);
    segments.filter_map(|segment| Some((*last.get(&segment.addr)?, segment.pool_id))).collect()
}

/// Checkpoints name the moment after a number of trace entries: find the request that comes next.
fn labels(run: &RecordedRun, trace: &[TraceEntry], inferred: &InferredRun) -> Vec<(u32, String)> {
    let mut labels = Vec::new();
    let mut allocations_and_frees = 0;
    let mut seen = 0;
    let is_counted =
        |action| matches!(action, TraceAction::Alloc | TraceAction::OutOfMemory | TraceAction::FreeRequested);
    for (label, at, _) in &run.checkpoints {
        let at = (*at).min(trace.len());
        if at < seen {
            continue;
        }
        allocations_and_frees += trace[seen..at].iter().filter(|entry| is_counted(entry.action)).count();
        seen = at;
        labels.push((label, allocations_and_frees));
    }
    let mut wanted = labels.into_iter().peekable();
    let mut placed = Vec::new();
    let mut count = 0;
    for (index, request) in inferred.workload.requests().iter().enumerate() {
        while let Some((label, _)) = wanted.next_if(|(_, after)| *after <= count) {
            placed.push((index_u32(index), format!("after {label}")));
        }
        count += usize::from(matches!(request, Request::Allocate { .. } | Request::Free { .. }));
    }
    let end = index_u32(inferred.workload.requests().len());
    placed.extend(wanted.map(|(label, _)| (end, format!("after {label}"))));
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_begins_late_says_where() {
        let entry = TraceEntry {
            action: TraceAction::FreeRequested,
            addr: 512,
            size: Bytes::mib(3),
            stream: StreamId::DEFAULT,
        };
        let run = RecordedRun { trace: Some(vec![entry]), ..RecordedRun::default() };
        assert!(matches!(requests(&run), Err(ReadError::BeginsLate { entry: 0, .. })));
    }
}
