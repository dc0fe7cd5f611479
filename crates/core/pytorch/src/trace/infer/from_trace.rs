//! One pass over a trace: requests from the events that they caused.

use std::collections::{BTreeMap, HashMap};

use blockyard_record::{
    BlockState, Bytes, PoolId, SegmentSnapshot, Snapshot, StreamId, TraceAction, TraceEntry, counted,
};
use blockyard_rules::size;
use blockyard_workload::{Request, TensorId, WorkloadBuilder};

use super::InferredRun;
use super::reclaims::Reclaims;
use crate::ReadError;

/// The largest request that a trace can have: larger requests are refused before anything is traced. Rounding
/// may make the traced size one byte more.
const MAX_TRACED_REQUEST: Bytes = Bytes::new(size::MAX_REQUEST.get() - 1);
/// Stream handles for waits whose real stream the trace does not name; real handles are addresses, far below.
const FIRST_INFERRED_STREAM: u64 = 1 << 60;

/// One pass over a trace, with the blocks and segments that are live at each point.
pub(super) struct FromTrace<'a> {
    trace: &'a [TraceEntry],
    /// The memory pool of each entry; empty where the trace does not name pools.
    named_pools: &'a [PoolId],
    reclaims: &'a Reclaims,
    start: Snapshot,
    /// The private pools of segments that live to the end, by the entry that made them.
    pools: HashMap<usize, PoolId>,
    /// The memory pool of each live segment of such a pool.
    pool_of: HashMap<u64, PoolId>,
    segments: BTreeMap<u64, Bytes>,
    live: HashMap<u64, TensorId>,
    waiting: HashMap<u64, StreamId>,
    builder: WorkloadBuilder,
    /// The entry of each request.
    entries: Vec<usize>,
    snapshots: usize,
    pooled: usize,
    inferred_waits: usize,
    inferred_releases: usize,
}

impl<'a> FromTrace<'a> {
    pub(super) fn new(
        trace: &'a [TraceEntry],
        named_pools: &'a [PoolId],
        pools: HashMap<usize, PoolId>,
        start: Snapshot,
        reclaims: &'a Reclaims,
    ) -> Self {
        let mut from = Self {
            trace,
            named_pools,
            reclaims,
            start: Snapshot::default(),
            pools,
            pool_of: HashMap::new(),
            segments: BTreeMap::new(),
            live: HashMap::new(),
            waiting: HashMap::new(),
            builder: WorkloadBuilder::new(),
            entries: Vec::new(),
            snapshots: 0,
            pooled: 0,
            inferred_waits: 0,
            inferred_releases: 0,
        };
        from.begin_with(start);
        from
    }

    pub(super) fn run(mut self) -> Result<InferredRun, ReadError> {
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
                    match self.pools.get(&index) {
                        Some(pool_id) => self.pool_of.insert(entry.addr, *pool_id),
                        None => self.pool_of.remove(&entry.addr),
                    };
                }
                TraceAction::Alloc => {
                    if !self.is_covered(entry) {
                        return Err(late());
                    }
                    let pool_id = match self.named_pool(index) {
                        Some(pool_id) => Some(pool_id).filter(|pool_id| *pool_id != PoolId::DEFAULT),
                        None => self.pool_at(entry.addr).inspect(|_| self.pooled += 1),
                    };
                    let tensor = self.allocate(entry.size, entry.stream, pool_id);
                    self.live.insert(entry.addr, tensor);
                }
                TraceAction::OutOfMemory => {
                    let pool_id = self.named_pool(index).filter(|pool_id| *pool_id != PoolId::DEFAULT);
                    self.allocate(entry.size.min(MAX_TRACED_REQUEST), entry.stream, pool_id);
                }
                TraceAction::FreeRequested => {
                    let tensor = self.live.remove(&entry.addr).ok_or_else(late)?;
                    let next = self.trace.get(index + 1);
                    let completes = next.is_some_and(|next| {
                        next.action == TraceAction::FreeCompleted && next.addr == entry.addr
                    }) && !self.reclaims.contains(index + 1);
                    if completes {
                        index += 1;
                    } else {
                        self.wait(
                            tensor,
                            entry.addr,
                            completions.get(&index).copied().unwrap_or(self.trace.len()),
                        );
                    }
                    self.builder.push(Request::Free { tensor });
                }
                TraceAction::FreeCompleted => {
                    let stream = self.waiting.remove(&entry.addr).ok_or_else(late)?;
                    if !self.reclaims.contains(index) {
                        self.builder.push(Request::Advance { stream: Some(stream) });
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
                    if !is_burst && !self.reclaims.contains(index) {
                        self.release();
                    }
                }
                TraceAction::Snapshot => {
                    self.snapshots += 1;
                    self.builder.push(Request::Snapshot);
                }
            }
            self.entries.resize(self.builder.requests().len(), index);
            index += 1;
        }
        Ok(self.finish())
    }

    fn begin_with(&mut self, mut start: Snapshot) {
        // The first entry of an address shows when a block that was pending completes.
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
                    self.live.insert(addr, self.builder.tensor());
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

    /// The pool that the trace names for the entry.
    fn named_pool(&self, index: usize) -> Option<PoolId> {
        self.named_pools.get(index).copied()
    }

    fn allocate(&mut self, size: Bytes, stream: StreamId, pool_id: Option<PoolId>) -> TensorId {
        if let Some(pool_id) = pool_id {
            self.builder.push(Request::EnterPool { pool_id });
        }
        let tensor = self.builder.allocate(size, stream);
        if let Some(pool_id) = pool_id {
            self.builder.push(Request::LeavePool { pool_id });
        }
        tensor
    }

    fn pool_at(&self, addr: u64) -> Option<PoolId> {
        if self.pool_of.is_empty() {
            return None;
        }
        let (base, _) = self.segments.range(..=addr).next_back()?;
        self.pool_of.get(base).copied()
    }

    /// Removes the memory of the entry from the known segments; returns whether all of it was known.
    fn take_memory(&mut self, entry: &TraceEntry) -> bool {
        let end = entry.addr.saturating_add(entry.size.get());
        let mut addr = entry.addr;
        // Pages that are unmapped together may have been mapped in pieces, or only in part.
        while addr < end {
            let below = self.segments.range(..=addr).next_back().map(|(base, size)| (*base, *size));
            let Some((base, size)) = below.filter(|(base, size)| addr.saturating_sub(*base) < size.get())
            else {
                return false;
            };
            let piece_end = base.saturating_add(size.get());
            self.segments.remove(&base);
            if base < addr {
                self.segments.insert(base, Bytes::new(addr.saturating_sub(base)));
            }
            if piece_end > end {
                self.segments.insert(end, Bytes::new(piece_end.saturating_sub(end)));
            }
            addr = piece_end.min(end);
        }
        true
    }

    fn is_covered(&self, entry: &TraceEntry) -> bool {
        let below = self.segments.range(..=entry.addr).next_back();
        below.is_some_and(|(base, size)| entry.addr.saturating_sub(*base) < size.get())
    }

    // The allocator completes waits by ascending handle, so the handle is the place of the completion in the
    // trace.
    fn wait(&mut self, tensor: TensorId, addr: u64, completion: usize) {
        let stream = self.stream_until(completion);
        self.builder.push(Request::RecordStream { tensor, stream });
        self.waiting.insert(addr, stream);
    }

    fn stream_until(&mut self, completion: usize) -> StreamId {
        let stream = StreamId::new(
            FIRST_INFERRED_STREAM
                .saturating_add(completion as u64)
                .saturating_add(self.unfinished(completion)),
        );
        self.inferred_waits += 1;
        stream
    }

    // Waits that never end need handles of their own too.
    fn unfinished(&self, completion: usize) -> u64 {
        if completion == self.trace.len() { self.inferred_waits as u64 } else { 0 }
    }

    /// Whether the next thing after further completions is an allocation, which is when the allocator looks
    /// at events.
    fn is_collected_by_allocation(&self, from: usize) -> bool {
        let next = self.trace[from..].iter().find(|entry| entry.action != TraceAction::FreeCompleted);
        next.is_some_and(|entry| !matches!(entry.action, TraceAction::FreeRequested | TraceAction::Snapshot))
    }

    fn release(&mut self) {
        self.builder.push(Request::EmptyCache);
        self.inferred_releases += 1;
    }

    fn finish(self) -> InferredRun {
        let mut notes = Vec::new();
        let mut note = |count: usize, noun: &str, text: &str| {
            if count > 0 {
                notes.push(format!("{} {text}", counted(count, noun)));
            }
        };
        note(
            self.inferred_waits,
            "free",
            "waited for another stream; which one is not in the trace, only when it was done",
        );
        note(self.pooled, "allocation", "placed in a private pool because the segment exists at the end");
        note(self.inferred_releases, "release", "of cached segments read as a call of empty_cache");
        let workload = self.builder.finish();
        InferredRun { workload, entries: self.entries, start: self.start, notes, ..InferredRun::default() }
    }
}
