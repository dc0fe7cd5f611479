//! Runs a sequence on our own allocator.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use blockyard_allocator::{AllocError, Allocation, CachingAllocator};
use blockyard_device::VirtualDevice;
use blockyard_record::{
    BlockState, Bytes, Event, EventSink, MemoryState, PoolId, PoolKind, SegmentSnapshot, StreamId, TraceEntry,
};
use blockyard_rules::{AllocatorConfig, ConfigError, Dialect, Release};

use crate::answer::{FinalBlock, OperationReply, ReturnValue, Segment, SequenceResult, StatsAfter};
use crate::sequence::{Operation, Sequence};
use crate::stats;

/// Counts of our events that PyTorch's trace does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerCounts {
    /// Blocks cut in two.
    pub splits: u64,
    /// Blocks joined.
    pub merges: u64,
    /// Requests served inside of a memory pool.
    pub in_pools: u64,
    /// Requests of the default pool that were served by a memory pool (`use_on_oom`).
    pub served_by_pool: u64,
}

/// Runs the sequence on `CachingAllocator` over a `VirtualDevice`; `wants_all` asks for all statistics
/// instead of digests.
///
/// # Errors
///
/// When the sequence's settings are refused, the device fails, or an invariant of the allocator does not hold
/// at the end.
pub fn answer(sequence: &Sequence, wants_all: bool) -> Result<(SequenceResult, InnerCounts)> {
    let config = AllocatorConfig::parse(&sequence.conf, sequence.release)
        .context("our allocator refuses the settings")?;
    let sink = Sink::new(sequence.capacity);
    let allocator = CachingAllocator::new(VirtualDevice::new(sequence.capacity), config, sink);
    let mut ours = OurAllocator { allocator, live: Vec::new(), pools: BTreeMap::new(), open: Vec::new() };
    let mut steps = Vec::with_capacity(sequence.operations.len());
    for operation in &sequence.operations {
        let reply = match ours.perform(operation) {
            Ok(reply) => reply,
            Err(OperationError::Refused(text)) => ReturnValue::Failed(failure(&text, sequence.release)),
            Err(OperationError::Device(error)) => return Err(error.into()),
        };
        let words = stats::words(
            &ours.allocator.stats(),
            ours.allocator.reserved_by_private_pools(),
            sequence.release,
        );
        let stats =
            if wants_all { StatsAfter::All(words) } else { StatsAfter::Digest(stats::digest(&words)) };
        steps.push(OperationReply { reply, stats });
    }
    ours.allocator.check().context("an invariant of our allocator does not hold")?;
    let allocator = &ours.allocator;
    let active = allocator.active_pool();
    let snapshot = active.map_or_else(|| allocator.snapshot(), |pool| allocator.pool_snapshot(pool));
    let runs = snapshot.segments.iter().flat_map(SegmentSnapshot::mapped_runs);
    let segments = runs.map(|run| segment(&run)).collect();
    let sink = ours.allocator.into_sink();
    Ok((SequenceResult { steps, trace: sink.trace, segments }, sink.inside))
}

struct OurAllocator {
    allocator: CachingAllocator<VirtualDevice, Sink>,
    live: Vec<Option<Allocation>>,
    /// Our id of each of the sequence's pools.
    pools: BTreeMap<PoolId, PoolId>,
    /// Open scopes: our id of the pool, and the stream, or `None` for all streams.
    open: Vec<(PoolId, Option<StreamId>)>,
}

/// Why an operation failed.
enum OperationError {
    /// The allocator refused the operation with this text, as it may.
    Refused(String),
    /// The device failed, which must not happen.
    Device(AllocError),
}

impl From<AllocError> for OperationError {
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::Device(_) => Self::Device(error),
            error => Self::Refused(error.to_string()),
        }
    }
}

impl OurAllocator {
    fn perform(&mut self, operation: &Operation) -> Result<ReturnValue, OperationError> {
        let allocator = &mut self.allocator;
        match operation {
            Operation::Allocate { size, stream, .. } => {
                self.live.push(None);
                let allocation = allocator.allocate(*size, *stream)?;
                let addr = allocation.addr().get();
                let goes_to_pool = self.open.iter().any(|(_, only)| only.is_none_or(|only| only == *stream));
                let sink = allocator.sink_mut();
                if std::mem::take(&mut sink.served_privately) {
                    let count = if goes_to_pool {
                        &mut sink.inside.in_pools
                    } else {
                        &mut sink.inside.served_by_pool
                    };
                    *count += 1;
                }
                if let Some(slot) = self.live.last_mut() {
                    *slot = Some(allocation);
                }
                return Ok(ReturnValue::Address(addr));
            }
            Operation::Free { tensor } => {
                let Some(allocation) = self.live.get_mut(*tensor as usize).and_then(Option::take) else {
                    return Ok(ReturnValue::Skipped);
                };
                allocator.free(allocation)?;
            }
            Operation::RecordStream { tensor, stream } => {
                let Some(allocation) = self.live.get(*tensor as usize).and_then(Option::as_ref) else {
                    return Ok(ReturnValue::Skipped);
                };
                allocator.record_stream(allocation, *stream)?;
            }
            Operation::Advance { stream: Some(stream) } => allocator.device_mut().advance(*stream),
            Operation::Advance { stream: None } => allocator.device_mut().advance_all(),
            Operation::EmptyCache => allocator.empty_cache()?,
            Operation::SetFraction { fraction } => allocator.set_memory_fraction(*fraction)?,
            Operation::ResetPeak => allocator.reset_peak_stats(),
            Operation::ResetAccumulated => allocator.reset_accumulated_stats(),
            Operation::ApplySettings { text } => {
                let refused =
                    |error: ConfigError| OperationError::Refused(settings_error(&error.to_string()));
                allocator.apply_settings(text).map_err(refused)?;
            }
            Operation::TellSettings => return Ok(ReturnValue::Settings(settings_text(allocator.config()))),
            Operation::Snapshot => allocator.record_snapshot(),
            Operation::CreatePool { pool_id, options } => {
                let ours = allocator.create_pool(*options);
                self.pools.insert(*pool_id, ours);
            }
            Operation::EnterPool { pool_id, stream } => {
                let pool_id = self.pools.get(pool_id).copied().unwrap_or(*pool_id);
                allocator.begin_allocate_to_pool(pool_id, *stream)?;
                if pool_id.capture > 0 {
                    allocator.mark_capture_begin();
                }
                self.open.push((pool_id, *stream));
            }
            Operation::LeavePool { pool_id } => {
                let ours = self.pools.get(pool_id).copied().unwrap_or(*pool_id);
                if pool_id.capture > 0 {
                    allocator.mark_capture_end();
                }
                allocator.end_allocate_to_pool(ours)?;
                self.open.retain(|(pool_id, _)| *pool_id != ours);
                if pool_id.capture == 0 {
                    allocator.release_pool(ours)?;
                }
            }
            Operation::DestroyPool { pool_id } => {
                let ours = self.pools.get(pool_id).copied().unwrap_or(*pool_id);
                if pool_id.capture == 0 {
                    allocator.destroy_pool(ours)?;
                } else {
                    allocator.release_pool(ours)?;
                }
            }
        }
        Ok(ReturnValue::Done)
    }
}

/// Follows the events, as far as PyTorch's trace needs it.
struct Sink {
    state: MemoryState,
    trace: Vec<TraceEntry>,
    inside: InnerCounts,
    /// Whether each segment, by its number, belongs to a memory pool.
    private_segments: Vec<bool>,
    /// Whether the last allocation is in one of those segments.
    served_privately: bool,
}

impl Sink {
    fn new(capacity: Bytes) -> Self {
        Self {
            state: MemoryState::new(capacity),
            trace: Vec::new(),
            inside: InnerCounts::default(),
            private_segments: Vec::new(),
            served_privately: false,
        }
    }
}

impl EventSink for Sink {
    fn record(&mut self, event: Event) {
        self.trace.extend(self.state.trace_entry(&event));
        match event {
            Event::Split { .. } => self.inside.splits += 1,
            Event::Merged { .. } => self.inside.merges += 1,
            Event::SegmentAllocated { pool_id, .. } | Event::RangeReserved { pool_id, .. } => {
                self.private_segments.push(pool_id != PoolId::DEFAULT);
            }
            Event::Allocated { block, .. } => {
                let segment = self.state.segment_of(block).map(|segment| segment.get() as usize);
                let is_private = segment.and_then(|segment| self.private_segments.get(segment));
                self.served_privately = is_private.copied().unwrap_or_default();
            }
            _ => {}
        }
        // An event that does not fit shows as an entry that is missing or wrong.
        let _fits = self.state.apply(&event);
    }
}

fn segment(run: &SegmentSnapshot) -> Segment {
    let blocks = run.blocks.iter().map(|block| FinalBlock {
        size: block.size,
        requested: block.requested,
        state: block.state.name(),
    });
    debug_assert!(run.blocks.iter().all(|block| block.state != BlockState::Unmapped));
    let sums: [Bytes; 3] = [run.allocated(), run.active(), run.requested()];
    Segment {
        addr: run.addr.get(),
        size: run.size,
        stream: run.stream,
        pool_id: run.pool_id,
        is_large: run.pool == PoolKind::Large,
        is_expandable: run.is_expandable,
        sums,
        blocks: blocks.collect(),
    }
}

/// The settings in words, as `settings` in `native/driver.cpp` writes them.
fn settings_text(config: &AllocatorConfig) -> String {
    let throws = if config.release().knows_setting("throw_on_cudamalloc_oom") {
        format!(" throws {}", u8::from(config.throw_on_cudamalloc_oom()))
    } else {
        String::new()
    };
    let divisions: Vec<String> = config.roundup_table().iter().map(u64::to_string).collect();
    format!(
        "split {} rounding {} large {} collection {} fraction {} expandable {} divisions {}{throws} last {}",
        config.max_split_size().get(),
        config.max_non_split_rounding().get(),
        config.large_segment_size().get(),
        config.garbage_collection_threshold().to_bits(),
        config.per_process_memory_fraction().to_bits(),
        u8::from(config.expandable_segments()),
        divisions.join(" "),
        config.text(),
    )
}

/// The part of an error that is compared: of Ascend's texts, only that memory ran out.
fn failure(text: &str, release: Release) -> String {
    if release.dialect() == Dialect::Ascend && text.contains("out of memory") {
        "out of memory".to_owned()
    } else {
        text.to_owned()
    }
}

/// The part of a settings error that is compared: only the kind of error if PyTorch's message shows details
/// of C++.
pub(crate) fn settings_error(text: &str) -> String {
    let kinds = [
        ("in ConfigTokenizer but reached end of config", "the text ends early"),
        ("Index out of bounds in ConfigTokenizer", "the text ends early"),
        ("stoul", "not a number"),
        ("stoi", "not a number"),
        ("Allocator backend parsed at runtime", "another backend"),
        ("stod", "not a number"),
    ];
    if let Some((_, kind)) = kinds.iter().find(|(part, _)| text.contains(part)) {
        return (*kind).to_owned();
    }
    // Which of PyTorch's two parsers meets an unknown key first depends on the origin of the text.
    let parsers = [" in CUDA allocator config.", " in Accelerator allocator config."];
    let known = parsers.iter().find_map(|parser| text.split_once(parser));
    known.map_or(text, |(text, _)| text).trim_end().to_owned()
}
