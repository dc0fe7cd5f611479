//! A recording of one device, without any allocator.

mod failure;
mod markers;

use std::sync::Arc;

use crate::snapshot::{DeviceSnapshot, SnapshotError, SnapshotFile};
use blockyard_record::{
    Backend, Bytes, Event, EventSink, OnDone, PoolId, PoolKind, Recorder, Recording, RunInfo,
    SegmentSnapshot, Snapshot, StepOutcome, StreamId, TextId, TraceAction, TraceEntry, counted, index_u32,
};
use blockyard_rules::size;
use rangemap::RangeMap;
use rustc_hash::FxHashMap;

use self::failure::{failure, host_failure};
use self::markers::Markers;
use crate::trace::beginning::Beginning;
use crate::trace::layout::{Misfits, NewSegment, TraceMemory};
use crate::trace::names::Names;
use crate::trace::settings;
use crate::trace::sizes::{BlockOrigin, Rules, Size, UNIT};

/// How many entries are between two reports of progress.
const BETWEEN_REPORTS: usize = 8192;

/// The events of one device, as the snapshot has them.
#[derive(Clone, Debug)]
pub struct DeviceRecording {
    /// The device's index; 0 for host memory.
    pub device: u32,
    /// Whether this is host (pinned) memory.
    pub is_host: bool,
    /// The run. A step is an allocation with the new memory that it took, a free, a release of memory, a
    /// snapshot.
    ///
    /// A snapshot does not have the memory of the device: the capacity is the smallest one that explains the
    /// run.
    pub recording: Recording,
    /// Entries of the trace that did not fit.
    pub misfits: Misfits,
    /// Sentences about sizes that are open and entries that did not fit.
    pub notes: Vec<String>,
}

/// The recording of the device, or of host memory, at `place` of [`SnapshotFile::memories`]. `on_done` gets
/// how many entries of its trace are done.
///
/// Without a trace, the recording has no events and begins with the memory of the snapshot.
///
/// # Errors
///
/// [`SnapshotError::Cancelled`] when `on_done` breaks off, [`SnapshotError::Recording`] when the run is too
/// long to record, [`SnapshotError::Field`] if no such device exists.
pub fn record(
    file: &SnapshotFile,
    place: usize,
    title: &str,
    on_done: OnDone,
) -> Result<DeviceRecording, SnapshotError> {
    let device = file.memory(place)?;
    let beginning = Beginning::of(file, device);
    let info = RunInfo {
        title: title.to_owned(),
        conf: file.conf_of(device).to_owned(),
        capacity: least_capacity(device, &beginning.snapshot),
        is_capacity_unknown: true,
        max_split_size: file.settings.max_split_size(),
        backend: Backend::Native,
        release: file.release(),
    };
    let mut recorder = Recorder::new(info);
    recorder.set_stacks(Arc::clone(&file.stacks));
    beginning.give_to(&mut recorder)?;
    let reader = TraceReader {
        file,
        device,
        layout: TraceMemory::new(recorder, &beginning.snapshot),
        ranges: &beginning.ranges,
        pools: private_pools(device),
        rules: beginning.rules,
        sizes_at_end: &beginning.sizes_at_end,
        shown: &beginning.shown,
        steps: 0,
        is_in_step: false,
        names: Names::of(file, device, &beginning.snapshot),
        annotations: annotations_of(file, device),
        next_annotation: 0,
        markers: Markers::default(),
        open_sizes: 0,
    };
    reader.run(&beginning, on_done)
}

/// The memory of the device, or of the host, at `place` before the first entry of its trace; empty if the
/// trace begins with the program.
///
/// # Errors
///
/// [`SnapshotError::Field`] if no such device exists.
pub fn beginning(file: &SnapshotFile, place: usize) -> Result<Snapshot, SnapshotError> {
    Ok(Beginning::of(file, file.memory(place)?).snapshot)
}

/// Annotations of a device by time: the moment, the name and whether it ends.
fn annotations_of(file: &SnapshotFile, device: &DeviceSnapshot) -> Vec<(u64, TextId, bool)> {
    // Annotations without a device, and those of any device, hold for host memory too.
    let is_of = |of: u32| device.is_host || of == device.index;
    let of_device = file.annotations.iter().filter(|annotation| annotation.device.is_none_or(is_of));
    let mut annotations: Vec<_> =
        of_device.map(|annotation| (annotation.time_us, annotation.name, annotation.is_end)).collect();
    annotations.sort_by_key(|(time, ..)| *time);
    annotations
}

/// The entries that made segments of private pools, as far as these exist at the end, and the pools of
/// entries that name one.
fn private_pools(device: &DeviceSnapshot) -> FxHashMap<u64, (usize, PoolId)> {
    let private =
        device.segments.iter().filter(|segment| segment.pool_id != PoolId::DEFAULT && !segment.is_expandable);
    let mut pools: FxHashMap<u64, (usize, PoolId)> =
        private.map(|segment| (segment.addr, (usize::MAX, segment.pool_id))).collect();
    if pools.is_empty() {
        return pools;
    }
    for index in 0..device.trace.len() {
        if let Some(TraceEntry { action: TraceAction::SegmentAlloc, addr, .. }) = device.trace.entry(index)
            && let Some((last, _)) = pools.get_mut(&addr)
        {
            *last = index;
        }
    }
    pools
}

/// The least memory that the device must have had.
pub(crate) fn least_capacity(device: &DeviceSnapshot, start: &Snapshot) -> Bytes {
    let mut reserved: Bytes = start.segments.iter().map(SegmentSnapshot::mapped).sum();
    let mut most = reserved;
    for index in 0..device.trace.len() {
        let Some(entry) = device.trace.entry(index) else { break };
        match entry.action {
            TraceAction::SegmentAlloc | TraceAction::SegmentMap => {
                reserved = reserved.saturating_add(entry.size);
            }
            TraceAction::SegmentFree | TraceAction::SegmentUnmap => {
                reserved = reserved.saturating_sub(entry.size);
            }
            TraceAction::OutOfMemory => most = most.max(reserved.saturating_add(Bytes::new(entry.addr))),
            _ => {}
        }
        most = most.max(reserved);
    }
    most
}

/// Follows the trace entry by entry and records the events.
struct TraceReader<'a> {
    file: &'a SnapshotFile,
    device: &'a DeviceSnapshot,
    layout: TraceMemory,
    ranges: &'a RangeMap<u64, StreamId>,
    pools: FxHashMap<u64, (usize, PoolId)>,
    rules: Rules,
    sizes_at_end: &'a [(u32, Bytes)],
    shown: &'a FxHashMap<BlockOrigin, u64>,
    steps: u32,
    /// Whether a step has begun and not ended.
    is_in_step: bool,
    names: Names<'a>,
    annotations: Vec<(u64, TextId, bool)>,
    next_annotation: usize,
    markers: Markers,
    open_sizes: usize,
}

impl TraceReader<'_> {
    fn run(mut self, beginning: &Beginning, on_done: OnDone) -> Result<DeviceRecording, SnapshotError> {
        let total = self.device.trace.len();
        let mut index = 0;
        while let Some(entry) = self.device.trace.get(index) {
            if index.is_multiple_of(BETWEEN_REPORTS) && on_done(index).is_break() {
                return Err(SnapshotError::Cancelled);
            }
            self.names.pass(index, &self.layout);
            if !self.is_in_step {
                self.begin_step(entry.time_us);
            }
            self.layout.recorder.set_stack(entry.stack);
            self.add_entry(index, &entry.entry);
            let next = self.device.trace.entry(index + 1);
            if ends_step(&entry.entry, next.as_ref()) {
                self.end_step(StepOutcome::Done);
            }
            index += 1;
        }
        if self.is_in_step {
            self.end_step(StepOutcome::Done);
        }
        self.names.pass(total, &self.layout);
        self.pass_annotations(u64::MAX);
        let mut notes = self.notes(beginning);
        let Self { mut layout, markers, names, .. } = self;
        notes.extend(names.note());
        layout.recorder.set_markers(markers.done);
        layout.recorder.name_allocations(names.into_names());
        let misfits = layout.misfits;
        notes.extend(misfits.sentences());
        let recording = layout.recorder.finish()?;
        let DeviceSnapshot { index, is_host, .. } = *self.device;
        Ok(DeviceRecording { device: index, is_host, recording, misfits, notes })
    }

    fn begin_step(&mut self, time: u64) {
        self.is_in_step = true;
        if time > 0 {
            self.pass_annotations(time);
            self.layout.recorder.set_time_us(time);
        }
    }

    fn end_step(&mut self, outcome: StepOutcome) {
        self.layout.recorder.finish_step(outcome);
        self.steps = self.steps.saturating_add(1);
        self.is_in_step = false;
    }

    fn add_entry(&mut self, index: usize, entry: &TraceEntry) {
        let TraceEntry { action, addr, size, stream } = *entry;
        match action {
            TraceAction::Alloc => self.allocate(index, entry),
            TraceAction::FreeRequested => {
                if !self.layout.request_free(addr) {
                    self.layout.misfits.unmatched_frees += 1;
                }
            }
            TraceAction::FreeCompleted => {
                if !self.layout.complete_free(addr) {
                    // Recordings may leave out when a free was requested.
                    let is_done = self.layout.request_free(addr) && self.layout.complete_free(addr);
                    self.layout.misfits.unmatched_frees += usize::from(!is_done);
                }
            }
            TraceAction::SegmentAlloc => {
                let is_small = if self.device.is_host {
                    size <= size::SMALL_SIZE
                } else {
                    size == size::SMALL_SEGMENT_SIZE
                };
                let pool = if is_small { PoolKind::Small } else { PoolKind::Large };
                let named = self.file.contexts.get(self.context(index)).and_then(|context| context.pool_id);
                let at_end = self.pools.get(&addr).filter(|(last, _)| *last == index).map(|(_, pool)| *pool);
                let pool_id = named.or(at_end).unwrap_or(PoolId::DEFAULT);
                self.layout.add_segment(NewSegment { addr, size, stream, pool_id, pool });
            }
            TraceAction::SegmentFree => self.layout.release_segment(addr),
            TraceAction::SegmentMap => {
                let range = self.range(index, entry);
                self.layout.map(addr, size, range);
            }
            TraceAction::SegmentUnmap => self.layout.unmap(addr, size),
            TraceAction::Snapshot => self.layout.recorder.record(Event::SnapshotTaken { active: size }),
            TraceAction::OutOfMemory => self.fail(entry),
        }
    }

    fn context(&self, index: usize) -> usize {
        self.device.trace.get(index).map_or(0, |entry| entry.context as usize)
    }

    /// The range of addresses that pages belong to; the small pool's if the request after it is small.
    fn range(&self, index: usize, entry: &TraceEntry) -> NewSegment {
        let TraceEntry { addr, size, stream, .. } = *entry;
        let known = self.ranges.get_key_value(&addr);
        let (start, end) =
            known.map_or((addr, addr.saturating_add(size.get())), |(range, _)| (range.start, range.end));
        let request = (index..index.saturating_add(4)).filter_map(|index| self.device.trace.entry(index));
        let mut request = request.filter(|entry| entry.action == TraceAction::Alloc);
        let pool = request.next().map_or(PoolKind::Large, |entry| {
            PoolKind::serving(Bytes::new(self.rules.least(entry.size, u64::MAX)))
        });
        let named = self.file.contexts.get(self.context(index)).and_then(|context| context.pool_id);
        let pool_id = named.unwrap_or(PoolId::DEFAULT);
        NewSegment { addr: start, size: Bytes::new(end.saturating_sub(start)), stream, pool_id, pool }
    }

    fn allocate(&mut self, index: usize, entry: &TraceEntry) {
        let (addr, requested) = (entry.addr, entry.size);
        let least = self.rules.least(requested, u64::MAX);
        let Some((room, segment)) = self.layout.make_room(addr, least) else {
            self.layout.misfits.allocations_outside += 1;
            return;
        };
        let number = index_u32(index);
        let at_end = self.size_at_end(number).map(Bytes::get).filter(|size| (least..=room).contains(size));
        let shown = || {
            // A size that ends in another segment is not the size of this block.
            let is_inside =
                |size: &u64| (least..=room).contains(size) && addr.saturating_add(*size) < segment.end;
            self.shown.get(&BlockOrigin::Entry(number)).copied().filter(is_inside)
        };
        let size = match at_end.or_else(shown) {
            Some(size) => Size { size, most_extra: 0 },
            None => self.rules.size(requested, room, segment.pool, segment.is_expandable),
        };
        let allocation = self.layout.next_allocation();
        self.names.allocate(addr, allocation);
        self.layout.allocate(addr, size.size, requested);
        let extra = size.most_extra.saturating_sub(size.most_extra % UNIT);
        if extra > 0 {
            self.open_sizes += 1;
            self.layout.recorder.set_open_size(allocation, Bytes::new(extra));
        }
    }

    fn size_at_end(&self, entry: u32) -> Option<Bytes> {
        let place = self.sizes_at_end.binary_search_by_key(&entry, |(entry, _)| *entry).ok()?;
        self.sizes_at_end.get(place).map(|(_, size)| *size)
    }

    fn fail(&mut self, entry: &TraceEntry) {
        let (size, free) = (entry.size, Bytes::new(entry.addr));
        self.layout.recorder.record(Event::OutOfMemory {
            requested: size,
            rounded: size,
            segment_size: if self.device.is_host { size } else { self.segment_size(size) },
            stream: entry.stream,
            device_free: free,
            is_rejected: false,
        });
        let state = self.layout.recorder.state();
        let (most, memory) = (state.stats().reserved_bytes.all.peak_bytes(), state.breakdown());
        let text = if self.device.is_host {
            host_failure(size, memory)
        } else {
            failure(size, self.segment_size(size), free, most, memory)
        };
        self.end_step(StepOutcome::OutOfMemory(text));
    }

    /// The segment that PyTorch asks the device for to serve a request of this size.
    fn segment_size(&self, size: Bytes) -> Bytes {
        size::segment_size(size, &settings(&self.file.settings.conf))
    }

    fn pass_annotations(&mut self, until: u64) {
        let stacks = &self.file.stacks;
        while let Some((time, name, is_end)) =
            self.annotations.get(self.next_annotation).copied().filter(|(time, ..)| *time <= until)
        {
            self.next_annotation += 1;
            self.markers.pass(time, name, is_end, self.steps, || stacks.texts().get(name).to_owned());
        }
    }

    fn notes(&self, beginning: &Beginning) -> Vec<String> {
        let mut notes = Vec::new();
        let segments = &beginning.snapshot.segments;
        if self.device.trace.is_empty() {
            notes.push("the snapshot has no trace: memory history was not recorded, so only its last moment is shown".to_owned());
        } else if !segments.is_empty() {
            let blocks = segments.iter().flat_map(|segment| &segment.blocks);
            let live = blocks.filter(|block| block.state.is_active()).count();
            notes.push(format!(
                "the trace begins late: there was memory before its first entry ({} in {}); going back from the end found the \
                 blocks, but not who allocated those that were freed before the end",
                counted(live, "block"),
                counted(segments.len(), "segment"),
            ));
        }
        if !beginning.open.is_empty() {
            notes.push(format!(
                "the sizes of some blocks from before the trace ({}) are not known; they are drawn as small as they can be",
                counted(beginning.open.len(), "block")
            ));
        }
        if self.open_sizes > 0 {
            notes.push(format!(
                "how far roundup_power2_divisions rounded up the sizes of some blocks ({}) is not known; they are drawn as small as \
                 they can be",
                counted(self.open_sizes, "block")
            ));
        }
        notes
    }
}

/// For each entry of a trace, the step of its [recording](record()) that it is in, counted from 1.
#[must_use]
pub fn steps_of_entries(trace: &[TraceEntry]) -> Vec<u32> {
    let mut steps = Vec::with_capacity(trace.len());
    let mut step = 1_u32;
    for (index, entry) in trace.iter().enumerate() {
        steps.push(step);
        let ends = entry.action == TraceAction::OutOfMemory || ends_step(entry, trace.get(index + 1));
        step = step.saturating_add(u32::from(ends));
    }
    steps
}

/// Whether a step ends with the entry. New memory belongs to the allocation that follows, releases in a row
/// are one step, and a free that waits for nothing is one.
fn ends_step(entry: &TraceEntry, next: Option<&TraceEntry>) -> bool {
    use TraceAction::{
        Alloc, FreeCompleted, FreeRequested, OutOfMemory, SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap,
    };
    let Some(next) = next else { return entry.action != OutOfMemory };
    match entry.action {
        SegmentAlloc | SegmentMap => !matches!(next.action, SegmentAlloc | SegmentMap | Alloc),
        // The releases right before a request that fails belong to that request.
        SegmentFree | SegmentUnmap => !matches!(next.action, SegmentFree | SegmentUnmap | OutOfMemory),
        FreeRequested => next.action != FreeCompleted || next.addr != entry.addr,
        // The step of a failed request has ended already, with its outcome.
        OutOfMemory => false,
        _ => true,
    }
}

impl Misfits {
    /// Sentences about entries that did not fit.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Self { missing_frees, unmatched_frees, allocations_outside: outside_segments, segments } = *self;
        let sentence = |count: usize, noun: &str, text: &str| {
            (count > 0).then(|| format!("{} {text}", counted(count, noun)))
        };
        [
            sentence(
                missing_frees,
                "free",
                "missing in the trace; the blocks are assumed to be free when their memory is used again or released",
            ),
            sentence(unmatched_frees, "free", "of blocks that were not in use; left out"),
            sentence(outside_segments, "allocation", "in memory that no segment of the trace has; left out"),
            sentence(segments, "segment", "or pages placed over others, or released without having been there"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: TraceAction) -> TraceEntry {
        TraceEntry { action, addr: 1 << 30, size: Bytes::mib(20), stream: StreamId::DEFAULT }
    }

    /// A program's own recording has one step for a request that fails, with what the request released
    /// before. So has the recording of its trace.
    #[test]
    fn what_a_failing_request_releases_belongs_to_its_step() {
        let release = entry(TraceAction::SegmentFree);
        for (next, ends) in [
            (TraceAction::SegmentFree, false),
            (TraceAction::OutOfMemory, false),
            (TraceAction::SegmentAlloc, true),
            (TraceAction::Alloc, true),
        ] {
            assert_eq!(ends_step(&release, Some(&entry(next))), ends, "{next:?}");
        }
    }
}
