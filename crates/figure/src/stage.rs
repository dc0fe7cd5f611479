//! The stage: the device as one bar with nested brackets, and below it the segments on the same ruler.

mod draw;
mod ruler;
mod segments;

use blockyard_rules::size::DEFAULT_LARGE_SEGMENT_SIZE;
use std::collections::BTreeMap;

use blockyard_record::{
    BlockId, BlockSnapshot, BlockState, Bytes, Event, MemoryAtFailure, MemoryState, OomRequest, PoolId,
    PoolKind, Recording, SegmentId, SegmentSnapshot, StepOutcome, StreamId,
};

use crate::changes::Changes;
use crate::numbers::bytes_f64;
use crate::role::BreakdownClass;
use crate::term::Term;

pub use draw::{process_stage_height, stage_height};

/// One moment of a run, or a moment between two, as the stage shows it: bytes along one ruler.
///
/// Lengths and places are bytes, as floats, so that a moment between two is a plain interpolation. Texts have their own numbers,
/// those of one moment: a number that no moment has is never shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    capacity: Bytes,
    /// Whether the device may have more than `capacity`.
    is_capacity_unknown: bool,
    /// What the ruler's width stands for: the capacity, or a round first part of it.
    shown: Bytes,
    /// In [`BreakdownClass::ALL`]'s order.
    classes: [f64; 5],
    max_allocated: f64,
    max_reserved: f64,
    numbers: Numbers,
    /// The memory of the process beside its segments; `None` if only the allocator is shown.
    context: Option<Bytes>,
    /// Whether that is more than the CUDA context.
    has_more_than_context: bool,
    limit: Option<Bytes>,
    segments: Vec<StageSegment>,
    blocks: Vec<StageBlock>,
    failed: Option<FailedRequest>,
    has_failures: bool,
}

/// The texts about one moment; never interpolated.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbers {
    /// In [`BreakdownClass::ALL`]'s order.
    classes: [Bytes; 5],
    allocated: Bytes,
    reserved: Bytes,
    max_allocated: Bytes,
    max_reserved: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
struct StageSegment {
    id: SegmentId,
    start: f64,
    size: f64,
    /// 1 where it is shown, less while it comes and goes.
    presence: f32,
    pool: PoolKind,
    pool_name: Option<String>,
    stream_name: Option<String>,
    is_new: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct StageBlock {
    id: BlockId,
    segment: SegmentId,
    start: f64,
    size: f64,
    /// What the text says, while `size` may be on its way there.
    bytes: Bytes,
    requested: f64,
    state: BlockState,
    /// The state before, while this one takes its place.
    before: Option<BlockState>,
    name: Option<String>,
    presence: f32,
    change: Option<Change>,
}

/// What the running step did to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Allocated,
    Freed,
    Merged,
}

/// A request that found no memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FailedRequest {
    /// The segment that it needed.
    segment_size: Bytes,
    rounded: Bytes,
    device_free: Bytes,
    largest_cached: Bytes,
}

/// How the stage is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageView {
    /// The term that is lit up wherever it is.
    pub lit: Option<Term>,
    /// The chosen block.
    pub selected: Option<BlockId>,
    /// Patterns beside colors, for print and for those who tell colors apart badly.
    pub is_patterned: bool,
    /// Fewer rows, for a small box.
    pub is_compact: bool,
    /// The bar and the segments grow until the stage is so high, up to twice their height; 0 for a stage of its own height.
    pub least_height_px: f32,
}

/// How many blocks are moved one by one; with more, the next moment is shown at once.
const MOST_MOVED: usize = 600;

impl Stage {
    /// The moment after the player's step; `changes` are those of the step, `names` has the names of pools.
    #[must_use]
    pub fn new(
        state: &MemoryState,
        recording: &Recording,
        changes: &Changes,
        step: Option<usize>,
        pool_name: &dyn Fn(PoolId) -> Option<String>,
    ) -> Self {
        let breakdown = state.breakdown();
        let peak = |count: i64| Bytes::new(u64::try_from(count).unwrap_or(0));
        let numbers = Numbers {
            classes: BreakdownClass::ALL.map(|class| class.bytes(&breakdown)),
            allocated: breakdown.allocated(),
            reserved: breakdown.reserved(),
            max_allocated: peak(state.stats().allocated_bytes.all.peak),
            max_reserved: peak(state.stats().reserved_bytes.all.peak),
        };
        let highest = numbers.max_reserved.max(breakdown.reserved());
        let mut made = Self {
            capacity: breakdown.capacity(),
            is_capacity_unknown: recording.known_capacity().is_none(),
            shown: shown_bytes(breakdown.capacity(), highest),
            classes: numbers.classes.map(bytes_f64),
            max_allocated: bytes_f64(numbers.max_allocated),
            max_reserved: bytes_f64(numbers.max_reserved),
            numbers,
            context: None,
            has_more_than_context: false,
            limit: state.limit(),
            segments: Vec::new(),
            blocks: Vec::new(),
            failed: step.and_then(|step| failed_request(state, recording, step)),
            has_failures: has_failures(recording),
        };
        made.take_segments(state, recording, changes, pool_name);
        made
    }

    /// The same moment for paper, where no other follows: no room is kept for a request that fails later.
    #[must_use]
    pub fn of_one_moment(self) -> Self {
        let has_failures = self.failed.is_some();
        Self { has_failures, ..self }
    }

    /// The same moment as the process that `nvidia-smi` shows: its CUDA context is drawn before the ruler, not to scale, and the
    /// peaks are left out. The ruler shows at least `least_shown`, so that it stays while memory grows up to there.
    #[must_use]
    pub fn of_process(self, context: Bytes, least_shown: Bytes) -> Self {
        let shown = self.shown.max(least_shown).min(self.capacity);
        Self { context: Some(context), shown, ..self }
    }

    /// As [`Stage::of_process`], where the device of the run is the whole device: the process has `outside` bytes beside its segments,
    /// perhaps more than the CUDA context, which are not free.
    #[must_use]
    pub fn of_whole_device(self, outside: Bytes, is_context: bool, least_shown: Bytes) -> Self {
        let mut made = Self { has_more_than_context: !is_context, ..self.of_process(outside, least_shown) };
        let [.., free] = &mut made.numbers.classes;
        *free = free.saturating_sub(outside);
        let [.., drawn] = &mut made.classes;
        *drawn = (*drawn - bytes_f64(outside)).max(0.0);
        made
    }

    /// Segments by pool and then by address, side by side from the ruler's start.
    fn take_segments(
        &mut self,
        state: &MemoryState,
        recording: &Recording,
        changes: &Changes,
        pool_name: &dyn Fn(PoolId) -> Option<String>,
    ) {
        let mut segments = state.snapshot().segments;
        segments.sort_by_key(|segment| (segment.pool_id, segment.addr));
        let mut at = 0.0;
        for segment in &segments {
            let mapped = bytes_f64(segment.mapped());
            if mapped <= 0.0 {
                continue;
            }
            self.segments.push(StageSegment {
                id: segment.id,
                start: at,
                size: mapped,
                presence: 1.0,
                pool: segment.pool,
                pool_name: (segment.pool_id != PoolId::DEFAULT)
                    .then(|| pool_name(segment.pool_id).unwrap_or_else(|| segment.pool_id.to_string())),
                stream_name: (segment.stream != StreamId::DEFAULT)
                    .then(|| recording.stream_name(segment.stream)),
                is_new: changes.new_segments.contains(&segment.id),
            });
            at = self.take_blocks(segment, at, recording, changes);
        }
    }

    /// Returns where the segment ends. Addresses without memory take no room, since the ruler counts memory.
    fn take_blocks(
        &mut self,
        segment: &SegmentSnapshot,
        start: f64,
        recording: &Recording,
        changes: &Changes,
    ) -> f64 {
        let mut at = start;
        for block in segment.blocks.iter().filter(|block| block.state != BlockState::Unmapped) {
            let size = bytes_f64(block.size);
            self.blocks.push(StageBlock {
                id: block.id,
                segment: segment.id,
                start: at,
                size,
                bytes: block.size,
                requested: bytes_f64(block.requested.min(block.size)),
                state: block.state,
                before: None,
                name: block.allocation.and_then(|id| recording.name(id)).map(str::to_owned),
                presence: 1.0,
                change: change_of(block, changes),
            });
            at += size;
        }
        at
    }

    /// The moment between this one (`progress` 0) and `next` (1): blocks slide apart and together, segments come and go. Texts
    /// have the numbers of `next`, and those of this moment where a block or segment goes away.
    #[must_use]
    pub fn between(&self, next: &Self, progress: f32) -> Self {
        let progress = if progress.is_finite() { progress.clamp(0.0, 1.0) } else { 1.0 };
        let is_same_run = self.capacity == next.capacity;
        if progress >= 1.0 || !is_same_run || self.blocks.len() + next.blocks.len() > MOST_MOVED {
            return next.clone();
        }
        let eased = f64::from(ease(progress));
        let mix = |from: f64, to: f64| from + (to - from) * eased;
        let mut classes = next.classes;
        for (class, from) in classes.iter_mut().zip(self.classes) {
            *class = mix(from, *class);
        }
        Self {
            classes,
            max_allocated: mix(self.max_allocated, next.max_allocated),
            max_reserved: mix(self.max_reserved, next.max_reserved),
            segments: self.segments_between(next, &mix, ease(progress)),
            blocks: self.blocks_between(next, &mix, ease(progress)),
            ..next.clone()
        }
    }

    fn segments_between(&self, next: &Self, mix: &dyn Fn(f64, f64) -> f64, eased: f32) -> Vec<StageSegment> {
        let before: BTreeMap<_, _> = self.segments.iter().map(|segment| (segment.id, segment)).collect();
        let after: BTreeMap<_, _> = next.segments.iter().map(|segment| (segment.id, segment)).collect();
        let gone = self.segments.iter().filter(|segment| !after.contains_key(&segment.id));
        let gone = gone.map(|segment| StageSegment { presence: 1.0 - eased, ..segment.clone() });
        let there = next.segments.iter().map(|segment| match before.get(&segment.id) {
            Some(from) => StageSegment {
                start: mix(from.start, segment.start),
                size: mix(from.size, segment.size),
                ..segment.clone()
            },
            None => StageSegment { presence: eased, ..segment.clone() },
        });
        gone.chain(there).collect()
    }

    fn blocks_between(&self, next: &Self, mix: &dyn Fn(f64, f64) -> f64, eased: f32) -> Vec<StageBlock> {
        let before: BTreeMap<_, _> = self.blocks.iter().map(|block| (block.id, block)).collect();
        let after: BTreeMap<_, _> = next.blocks.iter().map(|block| (block.id, block)).collect();
        let stays = |id: SegmentId| next.segments.iter().any(|segment| segment.id == id);
        let is_old = |id: SegmentId| self.segments.iter().any(|segment| segment.id == id);
        // What was merged away lies below what grows over it, and what was split off below what slides away from it.
        let gone = self.blocks.iter().filter(|block| !after.contains_key(&block.id)).map(|block| {
            let presence = if stays(block.segment) { 1.0 } else { 1.0 - eased };
            StageBlock { presence, change: None, ..block.clone() }
        });
        let new = next.blocks.iter().filter(|block| !before.contains_key(&block.id)).map(|block| {
            let presence = if is_old(block.segment) { 1.0 } else { eased };
            StageBlock { presence, ..block.clone() }
        });
        let there = next.blocks.iter().filter_map(|block| {
            let from = before.get(&block.id)?;
            Some(StageBlock {
                start: mix(from.start, block.start),
                size: mix(from.size, block.size),
                before: (from.state != block.state).then_some(from.state),
                presence: eased,
                ..block.clone()
            })
        });
        gone.chain(new)
            .chain(there.map(|block| match block.before {
                Some(_) => block,
                None => StageBlock { presence: 1.0, ..block },
            }))
            .collect()
    }

    fn allocated(&self) -> f64 {
        self.classes[0] + self.classes[1]
    }

    fn reserved(&self) -> f64 {
        self.classes[..4].iter().sum()
    }

    /// Whether the ruler shows only a first part of the device.
    fn is_enlarged(&self) -> bool {
        self.shown < self.capacity
    }

    /// Whether a row for a request that failed is kept free, so that nothing moves when one does.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.has_failures
    }
}

/// The capacity; or, if less than an eighth of it was ever reserved, a round part that contains every byte ever reserved.
///
/// The part depends on the peak and not on the moment, so that the scale does not change during playback.
fn shown_bytes(capacity: Bytes, peak: Bytes) -> Bytes {
    // A sum beyond 2^63 is more than an eighth of any device: then the capacity is shown.
    let wanted = peak.get().max(DEFAULT_LARGE_SEGMENT_SIZE.get()).saturating_add(peak.get() / 16);
    let power = wanted.checked_next_power_of_two().unwrap_or(u64::MAX);
    let three_quarters = power.saturating_sub(power / 4);
    let round = if three_quarters >= wanted { three_quarters } else { power };
    if round <= capacity.get() / 8 { Bytes::new(round) } else { capacity }
}

/// Slow at both ends.
fn ease(progress: f32) -> f32 {
    progress * progress * (3.0 - 2.0 * progress)
}

fn change_of(block: &BlockSnapshot, changes: &Changes) -> Option<Change> {
    if changes.allocated.contains(&block.id) && block.state == BlockState::Allocated {
        Some(Change::Allocated)
    } else if changes.merged.contains(&block.id) {
        Some(Change::Merged)
    } else if changes.freed.contains(&block.id) || changes.pending.contains(&block.id) {
        Some(Change::Freed)
    } else {
        None
    }
}

/// Whether a request of the recording ran out of memory: its stage keeps a row free for that.
#[must_use]
pub fn has_failures(recording: &Recording) -> bool {
    recording.failed_steps().iter().any(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)))
}

/// The step's request that failed, with the largest cached block that its stream may use.
fn failed_request(state: &MemoryState, recording: &Recording, step: usize) -> Option<FailedRequest> {
    if !matches!(recording.outcome(step), StepOutcome::OutOfMemory(_)) {
        return None;
    }
    let bounds = recording.step(step)?;
    let failed = (bounds.start..bounds.end).rev().find_map(|index| match recording.event(index)? {
        Event::OutOfMemory { requested, rounded, segment_size, stream, device_free, .. } => Some((
            OomRequest { size: requested, rounded, segment_size, stream, pool_id: PoolId::DEFAULT },
            device_free,
        )),
        _ => None,
    });
    let (request, device_free) = failed?;
    let OomRequest { segment_size, rounded, .. } = request;
    let largest_cached = MemoryAtFailure::of(&state.snapshot(), &request).largest_cached_here;
    Some(FailedRequest { segment_size, rounded, device_free, largest_cached })
}
