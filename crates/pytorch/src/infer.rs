use std::collections::{BTreeMap, HashMap};

use blockyard_record::{
    Backend, BlockState, Bytes, DeviceAddr, PoolId, SegmentSnapshot, Snapshot, StreamId, TraceAction,
    TraceEntry,
};
use blockyard_workload::{Request, TensorId, Workload};

use crate::ReadError;
use crate::recorded::{Allocated, Operation, OperationKind, RecordedRun};

mod driver;
mod ladder;

use driver::{failures, ranges};
use ladder::{Ladder, ladder};

pub use ladder::DriverRefusal;

/// A recorded run as requests, and what the device did meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inferred {
    /// The requests, in order.
    pub workload: Workload,
    /// For each request, the index of the recorded operation that it belongs to; empty for recordings without operations.
    pub operations: Vec<usize>,
    /// The segments that the driver gave, in order.
    pub segments: Vec<(DeviceAddr, Bytes)>,
    /// Where expandable segments started, in order.
    pub ranges: Vec<DeviceAddr>,
    /// Where the driver's pool put each allocation, in order, of a run under `backend:cudaMallocAsync`; else empty.
    pub placements: Vec<Option<DeviceAddr>>,
    /// What the driver said at each out-of-memory error, in order.
    pub failures: Vec<Failure>,
    /// When the driver gave no memory, as far as the trace shows it; empty for recordings with operations.
    pub refusals: Vec<DriverRefusal>,
    /// What was there before the first request: the allocated blocks are the first tensors, by ascending address.
    pub start: Snapshot,
    /// What was guessed and what is left out, in sentences.
    pub notes: Vec<String>,
}

/// What the driver said when a request failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Bytes free on the device.
    pub free: Bytes,
    /// What processes held, in the order of the message: the process (`None` for the recorded one) and bytes as exact as
    /// the message has them.
    pub processes: Vec<(Option<u32>, Bytes)>,
}

/// Stream handles for waits whose real stream the trace does not name; real handles are addresses, far below.
const FIRST_INFERRED_STREAM: u64 = 1 << 60;

/// Larger requests are refused before anything is traced; rounding may make it one byte more.
const LARGEST_REQUEST: Bytes = Bytes::new((1 << 60) - 1);

/// The requests of a recorded run: its operations or, for a program, what its trace shows of them.
///
/// A trace shows an allocation and a free as themselves. That a block waited for another stream shows as a free that
/// completes later; which stream it was does not show, so each such wait gets a stream of its own, advanced when the trace
/// says so. A burst of released segments outside of an allocation is an `empty_cache`.
///
/// # Errors
///
/// [`ReadError::Line`] for operations on unknown ids, [`ReadError::BeginsLate`] for a trace that needs memory from before
/// its beginning.
pub fn requests(run: &RecordedRun) -> Result<Inferred, ReadError> {
    requests_after(run, Snapshot::default())
}

/// As [`requests`], for a program that held the memory of `start` when its trace begins.
///
/// Allocated blocks get the numbers of the first tensors, by ascending address. Pending blocks get the streams that they wait
/// for, which the snapshot need not name.
///
/// # Errors
///
/// As for [`requests`]; [`ReadError::BeginsLate`] where even that does not explain the trace.
pub fn requests_after(run: &RecordedRun, start: Snapshot) -> Result<Inferred, ReadError> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let mut inferred = if run.operations.is_empty() {
        let pools = private_segments(run, trace);
        let ladder = ladder(run, trace, &start, &pools);
        let mut inferred = FromTrace::new(trace, pools, start, &ladder).run()?;
        inferred.workload.set_labels(labels(run, trace, &inferred));
        inferred.refusals = ladder.refusals;
        inferred.notes.extend(ladder.notes);
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
            Some(Allocated::At(addr)) if *addr > 0 => Some(DeviceAddr::new(*addr)),
            _ => None,
        }),
        _ => None,
    });
    places.collect()
}

/// Where the driver's pool starts: its range begins at a multiple of the pieces in which it gets memory.
fn pool_base(placements: &[Option<DeviceAddr>]) -> Option<DeviceAddr> {
    const PIECE: u64 = 32 << 20;
    let lowest = placements.iter().flatten().min()?;
    Some(DeviceAddr::new(lowest.get() / PIECE * PIECE))
}

fn from_operations(run: &RecordedRun) -> Result<Inferred, ReadError> {
    let mut tensors: HashMap<u64, TensorId> = HashMap::new();
    let mut allocated = 0;
    let mut requests = Vec::new();
    let mut operations = Vec::new();
    for (index, operation) in run.operations.iter().enumerate() {
        let tensor = |id: u64| {
            tensors.get(&id).copied().ok_or_else(|| ReadError::Line {
                line: operation.line,
                message: format!("no allocation with id {id} is live here"),
            })
        };
        let mut push = |request| {
            requests.push(request);
            operations.push(index);
        };
        match operation.kind {
            OperationKind::Start | OperationKind::End => {}
            OperationKind::Allocate { id, size, stream, pool, .. } => {
                let pool = pool.map(|index| PoolId { capture: 0, user: index.saturating_add(1) });
                let stream = stream_handle(run, operation, stream)?;
                if let Some(pool) = pool {
                    push(Request::EnterPool { pool });
                }
                push(Request::Allocate { tensor: TensorId::new(allocated), size, stream });
                if let Some(pool) = pool {
                    push(Request::LeavePool { pool });
                }
                tensors.insert(id, TensorId::new(allocated));
                allocated += 1;
            }
            OperationKind::Free { id } => {
                push(Request::Free { tensor: tensor(id)? });
                tensors.remove(&id);
                // The recorder synchronized the device here, so that the next allocation finds all events complete.
                if run.meta.profile == "streams" {
                    push(Request::Advance { stream: None });
                }
            }
            OperationKind::RecordStream { id, stream } => {
                let stream = stream_handle(run, operation, stream)?;
                push(Request::RecordStream { tensor: tensor(id)?, stream });
            }
            OperationKind::EmptyCache => push(Request::EmptyCache),
            OperationKind::ResetPeak => push(Request::ResetPeak),
            OperationKind::ResetAccumulated => push(Request::ResetAccumulated),
            OperationKind::SetFraction { fraction } => push(Request::SetFraction { fraction }),
        }
    }
    Ok(Inferred { workload: Workload::from_requests(requests), operations, ..Inferred::default() })
}

fn stream_handle(run: &RecordedRun, operation: &Operation, index: u64) -> Result<StreamId, ReadError> {
    if index == 0 {
        return Ok(StreamId::DEFAULT);
    }
    // Without a list, the number is the handle itself.
    if run.meta.streams.is_empty() {
        return Ok(StreamId::new(index));
    }
    let handle = usize::try_from(index).ok().and_then(|index| run.meta.streams.get(index));
    handle.copied().ok_or_else(|| ReadError::Line {
        line: operation.line,
        message: format!("stream {index} is not in the list of streams of the first line"),
    })
}

/// The way through a trace, with what is live at each point.
struct FromTrace<'a> {
    trace: &'a [TraceEntry],
    ladder: &'a Ladder,
    start: Snapshot,
    /// The private pools of segments that live to the end, by the entry that made them.
    pools: HashMap<usize, PoolId>,
    /// The memory pool of each live segment of such a pool.
    pool_of: HashMap<u64, PoolId>,
    segments: BTreeMap<u64, Bytes>,
    live: HashMap<u64, TensorId>,
    waiting: HashMap<u64, StreamId>,
    requests: Vec<Request>,
    tensors: u32,
    snapshots: usize,
    pooled: usize,
    inferred_waits: usize,
    inferred_releases: usize,
}

impl<'a> FromTrace<'a> {
    fn new(
        trace: &'a [TraceEntry],
        pools: HashMap<usize, PoolId>,
        start: Snapshot,
        ladder: &'a Ladder,
    ) -> Self {
        let mut from = Self {
            trace,
            ladder,
            start: Snapshot::default(),
            pools,
            pool_of: HashMap::new(),
            segments: BTreeMap::new(),
            live: HashMap::new(),
            waiting: HashMap::new(),
            requests: Vec::new(),
            tensors: 0,
            snapshots: 0,
            pooled: 0,
            inferred_waits: 0,
            inferred_releases: 0,
        };
        from.begin_with(start);
        from
    }

    fn run(mut self) -> Result<Inferred, ReadError> {
        let completions = self.completions();
        let mut index = 0;
        while let Some(entry) = self.trace.get(index) {
            let late = || ReadError::BeginsLate {
                entry: index,
                what: format!("{} of {} at {:#x}", entry.action, entry.size, entry.addr),
            };
            match entry.action {
                TraceAction::SegmentAlloc | TraceAction::SegmentMap => {
                    self.segments.insert(entry.addr, entry.size);
                    if let Some(pool) = self.pools.get(&index) {
                        self.pool_of.insert(entry.addr, *pool);
                    }
                }
                TraceAction::Alloc => {
                    if !self.is_covered(entry) {
                        return Err(late());
                    }
                    let pool = self.pool_at(entry.addr);
                    if let Some(pool) = pool {
                        self.requests.push(Request::EnterPool { pool });
                        self.pooled += 1;
                    }
                    self.allocate(entry.size, entry.stream);
                    if let Some(pool) = pool {
                        self.requests.push(Request::LeavePool { pool });
                    }
                    self.live.insert(entry.addr, TensorId::new(self.tensors - 1));
                }
                TraceAction::OutOfMemory => self.allocate(entry.size.min(LARGEST_REQUEST), entry.stream),
                TraceAction::FreeRequested => {
                    let tensor = self.live.remove(&entry.addr).ok_or_else(late)?;
                    let next = self.trace.get(index + 1);
                    let completes = next.is_some_and(|next| {
                        next.action == TraceAction::FreeCompleted && next.addr == entry.addr
                    }) && !self.ladder.holds(index + 1);
                    if completes {
                        index += 1;
                    } else {
                        self.wait(
                            tensor,
                            entry.addr,
                            completions.get(&index).copied().unwrap_or(self.trace.len()),
                        );
                    }
                    self.requests.push(Request::Free { tensor });
                }
                TraceAction::FreeCompleted => {
                    let stream = self.waiting.remove(&entry.addr).ok_or_else(late)?;
                    if !self.ladder.holds(index) {
                        self.requests.push(Request::Advance { stream: Some(stream) });
                        if !self.is_collected_by_allocation(index + 1) {
                            self.release();
                        }
                    }
                }
                TraceAction::SegmentFree | TraceAction::SegmentUnmap => {
                    if !self.take_memory(entry) {
                        return Err(late());
                    }
                    let is_release =
                        |action| matches!(action, TraceAction::SegmentFree | TraceAction::SegmentUnmap);
                    let is_burst = index > 0 && is_release(self.trace[index - 1].action);
                    if !is_burst && !self.ladder.holds(index) {
                        self.release();
                    }
                }
                TraceAction::Snapshot => {
                    self.snapshots += 1;
                    self.requests.push(Request::Snapshot);
                }
            }
            index += 1;
        }
        Ok(self.finish())
    }

    fn begin_with(&mut self, mut start: Snapshot) {
        // The first entry of each address tells when a block that was pending completes.
        let mut first: HashMap<u64, usize> = HashMap::new();
        for (index, entry) in self.trace.iter().enumerate() {
            if entry.action == TraceAction::FreeCompleted {
                first.entry(entry.addr).or_insert(index);
            }
        }
        for segment in &mut start.segments {
            for run in SegmentSnapshot::mapped_runs(segment) {
                self.segments.insert(run.addr.get(), run.size);
                if run.pool_id != PoolId::DEFAULT {
                    self.pool_of.insert(run.addr.get(), run.pool_id);
                }
            }
            for block in &mut segment.blocks {
                let addr = block.addr.get();
                if block.state == BlockState::Allocated {
                    self.live.insert(addr, TensorId::new(self.tensors));
                    self.tensors += 1;
                } else if block.state == BlockState::PendingFree {
                    let completion = first.get(&addr).copied().unwrap_or(self.trace.len());
                    let stream = self.stream_until(completion);
                    block.streams = vec![stream];
                    self.waiting.insert(addr, stream);
                }
            }
        }
        self.start = start;
    }

    /// For each free that does not complete at once, the entry that completes it.
    fn completions(&self) -> HashMap<usize, usize> {
        let mut open = HashMap::new();
        let mut found = HashMap::new();
        for (index, entry) in self.trace.iter().enumerate() {
            match entry.action {
                TraceAction::FreeRequested => {
                    open.insert(entry.addr, index);
                }
                TraceAction::FreeCompleted => {
                    if let Some(request) = open.remove(&entry.addr) {
                        found.insert(request, index);
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn pool_at(&self, addr: u64) -> Option<PoolId> {
        if self.pool_of.is_empty() {
            return None;
        }
        let (base, _) = self.segments.range(..=addr).next_back()?;
        self.pool_of.get(base).copied()
    }

    /// Takes the memory of the entry out of what is known; says whether all of it was.
    fn take_memory(&mut self, entry: &TraceEntry) -> bool {
        let end = entry.addr.saturating_add(entry.size.get());
        let mut addr = entry.addr;
        // What is unmapped together may have been mapped in pieces, and in part.
        while addr < end {
            let below = self.segments.range(..=addr).next_back().map(|(base, size)| (*base, *size));
            let Some((base, size)) = below.filter(|(base, size)| addr - base < size.get()) else {
                return false;
            };
            let piece_end = base.saturating_add(size.get());
            self.segments.remove(&base);
            if base < addr {
                self.segments.insert(base, Bytes::new(addr - base));
            }
            if piece_end > end {
                self.segments.insert(end, Bytes::new(piece_end - end));
            }
            addr = piece_end.min(end);
        }
        true
    }

    fn is_covered(&self, entry: &TraceEntry) -> bool {
        let below = self.segments.range(..=entry.addr).next_back();
        below.is_some_and(|(base, size)| entry.addr - base < size.get())
    }

    fn allocate(&mut self, size: Bytes, stream: StreamId) {
        self.requests.push(Request::Allocate { tensor: TensorId::new(self.tensors), size, stream });
        self.tensors += 1;
    }

    // The allocator completes waits by ascending handle, so the handle is the place of the completion in the trace.
    fn wait(&mut self, tensor: TensorId, addr: u64, completion: usize) {
        let stream = self.stream_until(completion);
        self.requests.push(Request::RecordStream { tensor, stream });
        self.waiting.insert(addr, stream);
    }

    fn stream_until(&mut self, completion: usize) -> StreamId {
        let stream = StreamId::new(FIRST_INFERRED_STREAM + completion as u64 + self.unfinished(completion));
        self.inferred_waits += 1;
        stream
    }

    // Waits that never end need handles of their own too.
    fn unfinished(&self, completion: usize) -> u64 {
        if completion == self.trace.len() { self.inferred_waits as u64 } else { 0 }
    }

    /// Whether the next thing after further completions is an allocation, which is when the allocator looks at events.
    fn is_collected_by_allocation(&self, from: usize) -> bool {
        let next = self.trace[from..].iter().find(|entry| entry.action != TraceAction::FreeCompleted);
        next.is_some_and(|entry| !matches!(entry.action, TraceAction::FreeRequested | TraceAction::Snapshot))
    }

    fn release(&mut self) {
        self.requests.push(Request::EmptyCache);
        self.inferred_releases += 1;
    }

    fn finish(self) -> Inferred {
        let mut notes = Vec::new();
        let mut note = |count: usize, text: &str| {
            if count > 0 {
                notes.push(format!("{count} {text}"));
            }
        };
        note(
            self.inferred_waits,
            "frees waited for another stream; which one is not in the trace, only when it was done",
        );
        note(
            self.pooled,
            "allocations are placed in private pools because their segments are there at the end",
        );
        note(self.inferred_releases, "releases of cached segments are taken for calls of empty_cache");
        let workload = Workload::from_requests(self.requests);
        Inferred { workload, start: self.start, notes, ..Inferred::default() }
    }
}

/// The entries that made segments of private pools: those that nothing released before the end.
fn private_segments(run: &RecordedRun, trace: &[TraceEntry]) -> HashMap<usize, PoolId> {
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (index, entry) in trace.iter().enumerate() {
        if entry.action == TraceAction::SegmentAlloc {
            last.insert(entry.addr, index);
        }
    }
    let segments = run.segments.iter().flatten().filter(|segment| segment.pool_id != PoolId::DEFAULT);
    segments.filter_map(|segment| Some((*last.get(&segment.addr)?, segment.pool_id))).collect()
}

/// Checkpoints name the moment after so many trace entries: find the request that comes next.
fn labels(run: &RecordedRun, trace: &[TraceEntry], inferred: &Inferred) -> Vec<(u32, String)> {
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
            placed.push((u32::try_from(index).unwrap_or(u32::MAX), format!("after {label}")));
        }
        count += usize::from(matches!(request, Request::Allocate { .. } | Request::Free { .. }));
    }
    let end = u32::try_from(inferred.workload.requests().len()).unwrap_or(u32::MAX);
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
