use std::ops::ControlFlow;

use blockyard_allocator::{AllocatorConfig, BackendAllocator};
use blockyard_device::{Advance, AnyDevice, DeviceMemory, RecordedDevice};
use blockyard_pytorch::{
    Allocated, Inferred, OperationKind, RecordedBlock, RecordedRun, RecordedSegment, STAT_COUNT, StatChange,
    memory_summary, stat_keys, stat_values,
};
use blockyard_record::{
    Backend, BlockId, BlockSnapshot, BlockState, Bytes, EventSink, PoolId, PoolKind, Recording,
    SegmentSnapshot, Snapshot, Stats, StreamId, TraceAction, TraceEntry, counted,
};
use blockyard_workload::Workload;

use crate::baseline::StatsBaseline;
use crate::replayable::{Replayable, device_of, open};
use crate::rewind::Rewound;
use crate::{Comparison, OnProgress, Progress, RunError, RunSettings, Runner, StepResult, progress};

/// The replay of a recorded run, with the comparison.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The requests of the recording.
    pub workload: Workload,
    /// The run of our allocator.
    pub recording: Recording,
    /// The comparison.
    pub comparison: Comparison,
}

/// Replays a recording of PyTorch's allocator and compares everything that it contains.
///
/// Compared are, where recorded: the trace entry by entry (`events`); the address or the error text of each allocation
/// (`placements`); all 122 statistics after each operation (`statistics`) or at moments of a program (`checkpoints`); the final
/// segments with their sums (`segments`) and their blocks with stale requested sizes (`blocks`); `memory_summary`. Under
/// `backend:cudaMallocAsync` only the statistics and `memory_summary` are compared: a note says why.
///
/// # Errors
///
/// [`RunError::Config`] for settings that are not modeled, [`RunError::Read`] for recordings that cannot be replayed,
/// [`RunError::Cancelled`] when `on_progress` cancels the work.
pub fn verify(run: &RecordedRun, on_progress: OnProgress) -> Result<Verified, RunError> {
    verify_on(run, AnyDevice::new, on_progress)
}

/// As [`verify`], on the device that `device_for` returns for the recorded device.
///
/// # Errors
///
/// As [`verify`], and [`RunError::Allocator`] when the device fails for another reason than a lack of memory.
pub fn verify_on<D: DeviceMemory + Advance>(
    run: &RecordedRun,
    device_for: impl FnOnce(RecordedDevice) -> D,
    on_progress: OnProgress,
) -> Result<Verified, RunError> {
    let config: AllocatorConfig = run.meta.config.parse()?;
    let settings = RunSettings { title: run.meta.name.clone(), config, capacity: run.meta.total_memory };
    let Replayable { run, inferred, rewound } = open(run, &settings, on_progress)?;
    let run = run.as_ref();
    let device = device_for(device_of(run, &inferred));
    let mut runner = Runner::beginning_with(device, &settings, &inferred.workload, &inferred.start)?
        .with_placements(&inferred.placements)
        .with_trace();
    let mut comparison = Comparison::default();
    comparison.notes.extend(rewound.as_ref().map(Rewound::words).into_iter().flatten());
    comparison.notes.extend(inferred.notes.iter().cloned());
    // The driver's pool has no trace and no segments, and its blocks get their recorded addresses.
    let is_native = settings.config.backend() == Backend::Native;
    if run.trace.is_some() && is_native {
        // The headline is the first count; its numbers are set at the end.
        comparison.counts.push(crate::Count { kind: "events".to_owned(), identical: 0, total: 0 });
    }
    let mut follower = Follower::new(run, &inferred, rewound.as_ref());
    let total = inferred.workload.requests().len();
    follower.at_start(&runner.stats(), &mut comparison);
    let mut trace_ends = Vec::with_capacity(total);
    for index in 0..total {
        if progress::is_due(index)
            && on_progress(Progress::new("replaying", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        let result = runner.step()?;
        trace_ends.push(runner.trace().len());
        follower.after(index, result.as_ref(), &runner, &mut comparison);
    }
    let stats = runner.stats();
    let snapshot = runner.snapshot();
    follower.at_end(&stats, &mut comparison);
    comparison.notes.extend(follower.baseline.as_ref().and_then(StatsBaseline::words));
    comparison.notes.extend(pool_note(runner.allocator()));
    let (recording, trace) = runner.finish()?;
    if let Some(expected) = run.trace.as_ref().filter(|_| is_native) {
        compare_traces(expected, &trace, &trace_ends, &mut comparison);
    }
    if let Some(expected) = run.segments.as_ref().filter(|_| is_native) {
        let found: Vec<SegmentSnapshot> =
            snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs).collect();
        compare_segments(expected, &found, first_new_block(&inferred.start), &mut comparison);
    }
    if rewound.is_some() && run.memory_summary.is_some() {
        comparison
            .notes
            .push("memory_summary counts from before the recording, so it is not compared".to_owned());
    } else if let Some(expected) = &run.memory_summary {
        let found = memory_summary(&stats, 0, false);
        comparison
            .fact("memory_summary", expected, &found, None, || first_line_that_differs(expected, &found));
    }
    Ok(Verified { workload: inferred.workload, recording, comparison })
}

/// What is not compared under `backend:cudaMallocAsync`, and the reason.
fn pool_note<D: DeviceMemory, S: EventSink>(allocator: &BackendAllocator<D, S>) -> Option<String> {
    let BackendAllocator::CudaMallocAsync(pool) = allocator else {
        return None;
    };
    let (predicted, placed) = pool.predicted_placements();
    Some(format!(
        "backend:cudaMallocAsync: the driver's pool has no trace and no segments to compare; its choice of addresses also \
         depends on when it notices that work is done, so blocks were put where they were recorded: {predicted} of {placed} \
         are where the model puts them by itself"
    ))
}

/// Compares the recorded statistics during the replay.
struct Follower<'a> {
    run: &'a RecordedRun,
    inferred: &'a Inferred,
    expected: Vec<i64>,
    // How many operations were added to `expected`, and how many checkpoints were compared.
    operations: usize,
    checkpoints: usize,
    /// The counts before the recording, if the recording begins late.
    baseline: Option<StatsBaseline>,
    // Whether blocks get their recorded addresses, so that a comparison of addresses would prove nothing.
    is_placed: bool,
}

impl<'a> Follower<'a> {
    fn new(run: &'a RecordedRun, inferred: &'a Inferred, rewound: Option<&Rewound>) -> Self {
        let baseline = rewound.map(|rewound| StatsBaseline::new(rewound.sizes.open > 0));
        let is_placed = !inferred.placements.is_empty();
        Self {
            run,
            inferred,
            expected: vec![0; STAT_COUNT],
            operations: 0,
            checkpoints: 0,
            baseline,
            is_placed,
        }
    }

    // The operations before the first request: `start`.
    fn at_start(&mut self, stats: &Stats, comparison: &mut Comparison) {
        let until = self.inferred.operations.first().copied().unwrap_or(self.run.operations.len());
        self.fold_until(until);
        if self.operations > 0 {
            self.compare_stats("statistics", stats, None, comparison);
        }
        self.reach(0, stats, None, comparison);
    }

    fn after<D: DeviceMemory + Advance>(
        &mut self,
        request: usize,
        result: Option<&StepResult>,
        runner: &Runner<'_, D>,
        comparison: &mut Comparison,
    ) {
        if let Some(index) = self.inferred.operations.get(request).copied() {
            let operation = &self.run.operations[index];
            if let (OperationKind::Allocate { result: Some(expected), .. }, Some(found)) =
                (&operation.kind, result.and_then(StepResult::answer))
                && !(self.is_placed && matches!((expected, &found), (Allocated::At(_), Allocated::At(_))))
            {
                comparison.fact("placements", expected, &found, Some(request), || {
                    (format!("line {}, allocation", operation.line), placed(expected), placed(&found))
                });
            }
            // One operation may be several requests. Its statistics are compared after the last of these requests.
            let is_last = self.inferred.operations.get(request + 1) != Some(&index);
            if is_last && has_stats(self.run) {
                self.fold_until(index + 1);
                self.compare_stats("statistics", &runner.stats(), Some(request), comparison);
            }
        }
        self.reach(runner.trace().len(), &runner.stats(), Some(request), comparison);
    }

    /// Compares the checkpoints up to so many trace entries.
    fn reach(&mut self, entries: usize, stats: &Stats, step: Option<usize>, comparison: &mut Comparison) {
        while let Some((label, at, expected)) = self.run.checkpoints.get(self.checkpoints) {
            if entries < *at {
                break;
            }
            self.checkpoints += 1;
            self.expected = vec![0; STAT_COUNT];
            fold(&mut self.expected, expected);
            if entries == *at {
                self.compare_stats("checkpoints", stats, step, comparison);
            } else {
                comparison.count("checkpoints", false);
                comparison
                    .notes
                    .push(format!("no step ends at the checkpoint {label}, after {at} trace entries"));
            }
        }
    }

    fn at_end(&mut self, stats: &Stats, comparison: &mut Comparison) {
        if self.operations < self.run.operations.len() && has_stats(self.run) {
            self.fold_until(self.run.operations.len());
            self.compare_stats("statistics", stats, None, comparison);
        }
        for (label, ..) in &self.run.checkpoints[self.checkpoints..] {
            comparison.count("checkpoints", false);
            comparison.notes.push(format!("the replay never reached the checkpoint {label}"));
        }
        if let Some(last) = &self.run.final_stats {
            self.expected = vec![0; STAT_COUNT];
            fold(&mut self.expected, last);
            self.compare_stats("final statistics", stats, None, comparison);
        }
    }

    fn fold_until(&mut self, end: usize) {
        for operation in &self.run.operations[self.operations..end] {
            fold(&mut self.expected, &operation.stats);
        }
        self.operations = end;
    }

    fn compare_stats(&mut self, kind: &str, stats: &Stats, step: Option<usize>, comparison: &mut Comparison) {
        let mut found = stat_values(stats);
        if let Some(baseline) = &mut self.baseline {
            baseline.add_to(&mut found, &self.expected);
        }
        comparison.fact(kind, &self.expected, &found, step, || {
            let pairs = self.expected.iter().zip(&found).zip(stat_keys());
            let differing = pairs.into_iter().find(|((expected, found), _)| expected != found);
            differing.map_or_else(Default::default, |((expected, found), key)| {
                (key.clone(), expected.to_string(), found.to_string())
            })
        });
    }
}

fn fold(values: &mut [i64], changes: &[StatChange]) {
    for change in changes {
        if let Some(value) = values.get_mut(change.key) {
            *value = change.value;
        }
    }
}

fn has_stats(run: &RecordedRun) -> bool {
    run.operations.iter().any(|operation| !operation.stats.is_empty())
}

fn placed(result: &Allocated) -> String {
    match result {
        Allocated::At(addr) => format!("{addr:#x}"),
        Allocated::OutOfMemory(text) => format!("out of memory ({text})"),
    }
}

fn compare_traces(
    expected: &[TraceEntry],
    found: &[TraceEntry],
    ends: &[usize],
    comparison: &mut Comparison,
) {
    let mut reordered = 0;
    let mut index = 0;
    while index < expected.len().max(found.len()) {
        let (left, right) = (expected.get(index), found.get(index));
        let same_in_other_order =
            if left == right { None } else { reordered_completions(expected, found, index) };
        if let Some(length) = same_in_other_order {
            (0..length).for_each(|_| comparison.count("events", true));
            reordered += length;
            index += length;
            continue;
        }
        let step = ends.partition_point(|end| *end <= index);
        comparison.fact("events", &left, &right, Some(step.min(ends.len().saturating_sub(1))), || {
            (format!("trace entry {index}"), entry_words(left), entry_words(right))
        });
        index += 1;
    }
    if reordered > 0 {
        comparison.notes.push(format!(
            "{} of several streams completed together, in another order than recorded; PyTorch leaves that order to a hash \
             table, so only the set is compared",
            counted(reordered, "free")
        ));
    }
}

/// Frees that complete together complete stream by stream, and PyTorch takes the streams in the order of a hash table.
/// Returns how many entries from `index` on are the same completions in another order.
fn reordered_completions(expected: &[TraceEntry], found: &[TraceEntry], index: usize) -> Option<usize> {
    let run = |trace: &[TraceEntry]| {
        let tail = trace.get(index..).unwrap_or_default();
        let mut run: Vec<TraceEntry> =
            tail.iter().take_while(|entry| entry.action == TraceAction::FreeCompleted).copied().collect();
        run.sort_by_key(|entry| (entry.addr, entry.size, entry.stream));
        run
    };
    let (left, right) = (run(expected), run(found));
    (left.len() > 1 && left == right).then_some(left.len())
}

fn entry_words(entry: Option<&TraceEntry>) -> String {
    entry.map_or_else(
        || "nothing".to_owned(),
        |TraceEntry { action, addr, size, stream }| {
            format!("{action} {addr:#x} of {} bytes on stream {stream}", size.get())
        },
    )
}

/// The first block id that no block of the beginning has.
fn first_new_block(start: &Snapshot) -> BlockId {
    let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
    BlockId::new(blocks.map(|block| block.id.get().saturating_add(1)).max().unwrap_or(0))
}

fn compare_segments(
    expected: &[RecordedSegment],
    found: &[SegmentSnapshot],
    first_new: BlockId,
    comparison: &mut Comparison,
) {
    let mut unknown = 0_usize;
    for index in 0..expected.len().max(found.len()) {
        let recorded = expected.get(index);
        let ours = found.get(index);
        let (left, right) = (recorded.map(recorded_segment_words), ours.map(segment_words));
        comparison.fact("segments", &left, &right, None, || {
            (format!("segment {index} of the end"), or_nothing(left.as_ref()), or_nothing(right.as_ref()))
        });
        let left = recorded.map(|segment| segment.blocks.as_slice()).unwrap_or_default();
        let right = ours.map(|segment| segment.blocks.as_slice()).unwrap_or_default();
        for place in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(place), right.get(place));
            // The block was last allocated before the recording, so that its requested size is not known.
            let is_old = right.is_some_and(|block| {
                block.state == BlockState::Inactive && block.requested.is_zero() && block.id < first_new
            });
            unknown += usize::from(is_old);
            let left = left.map(|block| recorded_block_words(block, !is_old));
            let right = right.map(|block| block_words(block, !is_old));
            comparison.fact("blocks", &left, &right, None, || {
                let what = format!("block {place} of segment {index} of the end");
                (what, or_nothing(left.as_ref()), or_nothing(right.as_ref()))
            });
        }
    }
    if unknown > 0 {
        comparison.notes.push(format!(
            "stale requested sizes are not compared for blocks that were last allocated before the recording: {}",
            counted(unknown, "cached block")
        ));
    }
}

// The text contains every compared fact, so that equal texts are equal facts.

fn recorded_segment_words(segment: &RecordedSegment) -> String {
    let RecordedSegment { addr, size, stream, pool_id, pool, is_expandable, sums, .. } = segment;
    segment_text(*addr, *size, *stream, (*pool_id, *pool, *is_expandable), *sums)
}

fn segment_words(segment: &SegmentSnapshot) -> String {
    let SegmentSnapshot { addr, size, stream, pool_id, pool, is_expandable, .. } = segment;
    let sums = [segment.allocated(), segment.active(), segment.requested()];
    segment_text(addr.get(), *size, *stream, (*pool_id, *pool, *is_expandable), sums)
}

fn segment_text(
    addr: u64,
    size: Bytes,
    stream: StreamId,
    (pool_id, pool, is_expandable): (PoolId, PoolKind, bool),
    [allocated, active, requested]: [Bytes; 3],
) -> String {
    let kind = if is_expandable { "expandable " } else { "" };
    format!(
        "{kind}{pool} segment of {} bytes at {addr:#x} on stream {stream} in pool {pool_id}, {} allocated, {} active, {} \
         requested",
        size.get(),
        allocated.get(),
        active.get(),
        requested.get()
    )
}

fn recorded_block_words(block: &RecordedBlock, has_requested: bool) -> String {
    block_text(block.addr, block.size, has_requested.then_some(block.requested), &block.state)
}

fn block_words(block: &BlockSnapshot, has_requested: bool) -> String {
    let requested = has_requested.then_some(block.requested);
    block_text(block.addr.get(), block.size, requested, block.state.name())
}

fn block_text(addr: u64, size: Bytes, requested: Option<Bytes>, state: &str) -> String {
    let requested =
        requested.map_or_else(String::new, |requested| format!(", {} requested", requested.get()));
    format!("{state} block of {} bytes at {addr:#x}{requested}", size.get())
}

fn or_nothing(words: Option<&String>) -> String {
    words.map_or_else(|| "nothing".to_owned(), Clone::clone)
}

fn first_line_that_differs(expected: &str, found: &str) -> (String, String, String) {
    let lines = expected.lines().zip(found.lines()).enumerate();
    let differing = lines.into_iter().find(|(_, (expected, found))| expected != found);
    match differing {
        Some((index, (expected, found))) => {
            (format!("memory_summary, line {}", index + 1), expected.to_owned(), found.to_owned())
        }
        None => (
            "memory_summary".to_owned(),
            format!("{} lines", expected.lines().count()),
            format!("{} lines", found.lines().count()),
        ),
    }
}
