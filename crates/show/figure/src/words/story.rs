//! The events of a step as one sentence.

use std::collections::BTreeMap;

use blockyard_record::{
    BlockId, BlockState, Breakdown, Bytes, Event, FailureCause, MemoryState, PoolId, Recording, SegmentId,
    StreamId, grouped, joined,
};

use crate::words::names::{counted, name_of, stream_phrase, streams_phrase, subject};
use crate::words::oom::why_no_memory;
use crate::words::step::{FailureText, for_stream};

/// Collects the events of a step into one sentence.
#[derive(Debug, Default)]
pub(super) struct StepSentence {
    before: Breakdown,
    /// Clauses in the order of the events.
    clauses: Vec<String>,
    new_segment: Option<SegmentId>,
    /// Bytes that were mapped and unmapped in expandable segments.
    mapped: Bytes,
    unmapped: Bytes,
    split: Option<Split>,
    released: Vec<Bytes>,
    completed: Vec<CompletedFree>,
    /// Blocks whose free was requested in this step.
    own_frees: Vec<BlockId>,
    failed: Option<FailureCause>,
    /// Whether the last clause is about a segment that could not be allocated.
    ends_with_failure: bool,
    /// How many clauses are before the one that says why the request ran out of memory.
    tried: Option<usize>,
    has_synchronized: bool,
}

/// The bytes of the cached segments that belong to memory pools other than the default one.
fn cached_in_pools(state: &MemoryState) -> Bytes {
    let segments = state.snapshot().segments;
    let idle =
        segments.iter().filter(|segment| segment.pool_id != PoolId::DEFAULT && segment.active().is_zero());
    idle.map(|segment| segment.size).sum()
}

#[derive(Debug)]
struct Split {
    front: BlockId,
    whole: Bytes,
    remainder: Bytes,
}

/// A block whose free completed, with the neighbors that were merged into it.
#[derive(Debug)]
struct CompletedFree {
    block: BlockId,
    name: String,
    size: Bytes,
    waited_for: Vec<StreamId>,
    merged: Vec<Bytes>,
}

impl StepSentence {
    pub(super) fn new(before: &MemoryState) -> Self {
        Self { before: before.breakdown(), ..Self::default() }
    }

    pub(super) fn has_cleanup(&self) -> bool {
        self.has_synchronized || !self.released.is_empty() || !self.unmapped.is_zero()
    }

    pub(super) fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Takes the next event; `before` is the memory that it applies to.
    pub(super) fn add(&mut self, event: &Event, before: &MemoryState, recording: &Recording) {
        if !matches!(event, Event::OutOfMemory { .. }) {
            self.ends_with_failure = false;
        }
        match *event {
            Event::SegmentAllocated { segment, .. } => self.new_segment = Some(segment),
            Event::RangeReserved { size, .. } => self.clauses.push(format!(
                "reserves {size} of addresses for a new expandable segment, without memory yet"
            )),
            Event::RangeReleased { .. } => {}
            Event::Mapped { size, .. } => self.mapped = self.mapped.saturating_add(size),
            Event::Unmapped { block, before: below, after } => {
                let leftover = |part: Option<(BlockId, Bytes)>| part.map_or(Bytes::ZERO, |(_, size)| size);
                let whole = before.block(block).map_or(Bytes::ZERO, |found| found.size);
                let kept = leftover(below).saturating_add(leftover(after));
                self.unmapped = self.unmapped.saturating_add(whole.saturating_sub(kept));
            }
            Event::SegmentReleased { segment, .. } => {
                self.released.push(before.segment(segment).map_or(Bytes::ZERO, |found| found.size));
            }
            Event::SegmentFailed { size, cause } => {
                self.flush(recording);
                self.fail(size, cause, before);
            }
            Event::Split { block, front, size } => {
                let whole = before.block(block).map_or(size, |found| found.size);
                self.split = Some(Split { front, whole, remainder: whole.saturating_sub(size) });
            }
            Event::Allocated { block, requested, .. } => {
                self.flush(recording);
                self.add_allocation(block, requested, before, recording);
            }
            Event::StreamRecorded { block, stream } => self.clauses.push(format!(
                "{} is used on {} too, so its free will wait for that stream",
                subject(recording, before, block),
                stream_phrase(recording, stream)
            )),
            Event::FreeRequested { block, .. } => self.own_frees.push(block),
            Event::FreeCompleted { block } => self.complete(block, before, recording),
            Event::Merged { block, absorbed } => {
                let size = before.block(absorbed).map_or(Bytes::ZERO, |found| found.size);
                if let Some(completed) =
                    self.completed.iter_mut().rev().find(|completed| completed.block == block)
                {
                    completed.merged.push(size);
                }
            }
            Event::StreamsSynchronized => {
                self.has_synchronized = true;
                self.clauses
                    .extend(self.failed.map(|_| "waits until the GPU has finished its work".to_owned()));
            }
            Event::RetryStarted => {
                self.flush(recording);
                self.clauses.push("tries again".to_owned());
            }
            Event::OutOfMemory { .. } => {
                self.flush(recording);
                // The last failure is the reason of the out-of-memory clause.
                if self.ends_with_failure {
                    self.clauses.pop();
                }
                self.tried = Some(self.clauses.len());
                self.clauses.push(why_no_memory(event, self.failed, before, recording));
            }
            Event::SnapshotTaken { .. } => {
                self.clauses.push("a snapshot of all segments is taken".to_owned());
            }
            Event::PeakReset => self.clauses.push("every peak is set to its present value".to_owned()),
            Event::AccumulatedReset => self.clauses.push("every accumulated count is set to zero".to_owned()),
            Event::FractionSet { limit } => self.clauses.push(match limit {
                Some(limit) => {
                    format!("at most {limit} of {} may be reserved from now on", before.capacity())
                }
                None => "nothing but the device limits reserved memory from now on".to_owned(),
            }),
        }
    }

    /// The sentence, and its parts about a request that ran out of memory; `after` is the memory after the step.
    pub(super) fn sentence(
        mut self,
        after: &MemoryState,
        recording: &Recording,
    ) -> (String, Option<FailureText>) {
        self.add_frees(after, recording);
        let cleaned = self.has_cleanup() && self.failed.is_none();
        let was_idle = self.released.is_empty() && self.unmapped.is_zero();
        self.flush(recording);
        if cleaned {
            let in_pools = cached_in_pools(after);
            let cached = after.breakdown().cached.saturating_sub(in_pools);
            if was_idle {
                self.clauses.push(if self.before.reserved().is_zero() {
                    "nothing is reserved, so nothing is released".to_owned()
                } else if !in_pools.is_zero() {
                    format!("the wholly cached {in_pools} belong to memory pools, so nothing is released")
                } else {
                    "no segment is wholly cached, so nothing is released".to_owned()
                });
            }
            if !cached.is_zero() {
                self.clauses.push(format!("{cached} stay cached beside blocks that are in use"));
            }
        }
        if self.clauses.is_empty() {
            return ("nothing changed".to_owned(), None);
        }
        let failure = self.tried.map(|tried| {
            let (tried, why) = self.clauses.split_at(tried.min(self.clauses.len()));
            FailureText { tried: tried.join("; "), why: why.join("; ") }
        });
        (self.clauses.join("; "), failure)
    }

    fn fail(&mut self, size: Bytes, cause: FailureCause, before: &MemoryState) {
        let again = if self.failed.is_some() { " again" } else { "" };
        let free = before.breakdown().free;
        self.clauses.push(match (cause, before.limit()) {
            (FailureCause::Fraction, Some(limit)) => {
                format!("a new {size} segment would go beyond the limit of {limit}{again}")
            }
            (FailureCause::Fraction, None) => {
                format!("a new {size} segment would go beyond the limit{again}")
            }
            (FailureCause::Device, _) => {
                format!("the device refuses a new {size} segment{again}, it has {free} free")
            }
        });
        self.failed = Some(cause);
        self.ends_with_failure = true;
    }

    /// Adds where the bytes of an allocation came from.
    fn add_allocation(
        &mut self,
        block: BlockId,
        requested: Bytes,
        before: &MemoryState,
        recording: &Recording,
    ) {
        let Some(found) = before.block(block) else { return };
        let segment = before.segment_of(block).and_then(|id| before.segments().find(|info| info.id == id));
        let Some(segment) = segment else { return };
        let split = self.split.take().filter(|split| split.front == block);
        let beyond = found.size.saturating_sub(requested);
        if split.is_some() && !beyond.is_zero() {
            let (asked, rounded) = (grouped(requested.get()), grouped(found.size.get()));
            let verb = if requested.get() == 1 { "byte is" } else { "bytes are" };
            self.clauses.push(format!("{asked} {verb} rounded up to {rounded}"));
        }
        let whole = split.as_ref().map_or(found.size, |split| split.whole);
        let stream = for_stream(recording, segment.stream);
        let mapped = std::mem::take(&mut self.mapped);
        let source = if !mapped.is_zero() {
            format!(
                "maps {mapped} of memory from the device into an expandable segment{stream}, takes {whole} there"
            )
        } else if segment.is_expandable {
            format!("reuses a cached block of {whole} in an expandable segment")
        } else if self.new_segment == Some(segment.id) {
            format!("takes a new {} segment from the device{stream}", segment.size)
        } else if whole == segment.size {
            format!("reuses a cached {} segment", segment.size)
        } else {
            format!("reuses a cached block of {whole} in a {} segment", segment.size)
        };
        self.clauses.push(match split {
            Some(split) => {
                format!("{source} and splits {} off", found.size)
                    + &format!("; {} stay cached", split.remainder)
            }
            None if beyond.is_zero() => format!("{source}, all of it"),
            None => format!("{source}, all of it: {beyond} more than asked for, not enough to split off"),
        });
    }

    fn complete(&mut self, block: BlockId, before: &MemoryState, recording: &Recording) {
        let Some(found) = before.block(block) else { return };
        let name = name_of(recording, before, block);
        self.completed.push(CompletedFree {
            block,
            name,
            size: found.size,
            waited_for: found.streams,
            merged: Vec::new(),
        });
    }

    /// Adds the frees that this step requested: completed or pending.
    fn add_frees(&mut self, after: &MemoryState, recording: &Recording) {
        for block in std::mem::take(&mut self.own_frees) {
            let Some(at) = self.completed.iter().position(|completed| completed.block == block) else {
                if let Some(found) = after.block(block).filter(|found| found.state == BlockState::PendingFree)
                {
                    let streams = streams_phrase(recording, &found.streams);
                    self.clauses
                        .push(format!("{} wait for {streams} before they can be used again", found.size));
                }
                continue;
            };
            let completed = self.completed.remove(at);
            self.clauses.push(completed.sentence());
            let segment = after.segment_of(block).and_then(|id| after.segments().find(|info| info.id == id));
            let now = after.block(block).map_or(Bytes::ZERO, |found| found.size);
            if let Some(segment) = segment.filter(|segment| segment.size == now) {
                self.clauses.push(format!("the {} segment is wholly cached now", segment.size));
            }
        }
    }

    /// Adds frees of earlier requests that completed, and releases.
    fn flush(&mut self, recording: &Recording) {
        let completed = std::mem::take(&mut self.completed);
        if let [one] = completed.as_slice()
            && !one.merged.is_empty()
        {
            let waited = waited_for(&one.waited_for, recording);
            self.clauses.push(format!("{}{waited} can be used again and {}", one.size, one.merges_text()));
            return self.flush_releases();
        }
        // Grouped by the streams that the frees waited for, in a fixed order so that the text is always the
        // same.
        let mut waited: BTreeMap<Vec<StreamId>, Bytes> = BTreeMap::new();
        for completed in &completed {
            let sum = waited.entry(completed.waited_for.clone()).or_default();
            *sum = sum.saturating_add(completed.size);
        }
        for (streams, bytes) in waited {
            self.clauses.push(format!("{bytes}{} can be used again", waited_for(&streams, recording)));
        }
        self.flush_releases();
    }

    fn flush_releases(&mut self) {
        let unmapped = std::mem::take(&mut self.unmapped);
        if !unmapped.is_zero() {
            self.clauses
                .push(format!("releases {unmapped} to the device: whole pages of expandable segments"));
        }
        let released = std::mem::take(&mut self.released);
        if !released.is_empty() {
            let bytes: Bytes = released.iter().copied().sum();
            let segments = counted(released.len(), "cached segment");
            self.clauses.push(format!("releases {segments} ({bytes}) to the device"));
        }
    }
}

/// ` that waited for stream side`; empty if the free waited for no stream.
fn waited_for(streams: &[StreamId], recording: &Recording) -> String {
    if streams.is_empty() {
        String::new()
    } else {
        format!(" that waited for {}", streams_phrase(recording, streams))
    }
}

impl CompletedFree {
    fn sentence(&self) -> String {
        if self.merged.is_empty() {
            format!("the {} of {} are cached now", self.size, self.name)
        } else {
            format!("its {} {}", self.size, self.merges_text())
        }
    }

    /// `merge with a cached neighbor of 17 MiB: one cached block of 20 MiB`.
    fn merges_text(&self) -> String {
        let sizes: Vec<_> = self.merged.iter().map(ToString::to_string).collect();
        let neighbors = if sizes.len() == 1 { "a cached neighbor" } else { "the cached neighbors" };
        let now = self.merged.iter().copied().fold(self.size, Bytes::saturating_add);
        format!("merge with {neighbors} of {}: one cached block of {now}", joined(&sizes))
    }
}
