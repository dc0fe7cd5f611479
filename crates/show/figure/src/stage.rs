//! The stage: the device as one bar with nested brackets, and below it the segments on the same ruler.

mod draw;
mod leaders;
mod peaks;
mod ruler;
mod segments;

use std::collections::BTreeSet;

use blockyard_record::{
    BlockId, BlockSnapshot, BlockState, Bytes, MemoryAtFailure, MemoryState, OomLimit, OomRequest, PoolId,
    PoolKind, Recording, SegmentId, SegmentSnapshot, StepOutcome, StreamId,
};
use blockyard_rules::size::DEFAULT_LARGE_SEGMENT_SIZE;

use crate::changes::Changes;
use crate::conversions::bytes_f64;
use crate::role::BreakdownClass;
use crate::term::Term;
use crate::timeline::refused_request;

pub use draw::{process_stage_height, stage_height};

/// One moment of a run as the stage shows it: bytes along one ruler. Lengths and places are bytes, as floats.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    capacity: Bytes,
    /// Whether the device may have more than `capacity`.
    is_capacity_unknown: bool,
    /// The bytes of the ruler's whole width: the capacity, or a round first part of it.
    shown: Bytes,
    /// The bytes of each class, in the order of [`BreakdownClass::ALL`].
    classes: [f64; 5],
    max_allocated: f64,
    max_reserved: f64,
    numbers: StageBytes,
    /// The non-PyTorch memory of the process; `None` if only the allocator is shown.
    non_pytorch_bytes: Option<Bytes>,
    /// The parts of the non-PyTorch memory, with their names, in the order in which they are drawn.
    non_pytorch: Vec<(String, Bytes)>,
    /// The most bytes that the process may reserve; `None` where nothing but the device limits it.
    limit: Option<OomLimit>,
    segments: Vec<StageSegment>,
    blocks: Vec<StageBlock>,
    failed: Option<OomOnStage>,
    has_failures: bool,
    leaders: Leaders,
    is_at_peak: bool,
}

/// Which blocks have their names on a line above the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaders {
    None,
    /// The first block of each name in use.
    Lists,
    /// Also each free block, and blocks in use are drawn wide enough to be seen.
    Each,
}

/// The bytes that the texts about one moment name.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StageBytes {
    /// The bytes of each class, in the order of [`BreakdownClass::ALL`].
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
    pool: PoolKind,
    pool_name: Option<String>,
    stream_name: Option<String>,
    is_new: bool,
}

impl StageSegment {
    fn kind(&self) -> (PoolKind, Option<&str>, Option<&str>) {
        (self.pool, self.pool_name.as_deref(), self.stream_name.as_deref())
    }
}

#[derive(Clone, Debug, PartialEq)]
struct StageBlock {
    id: BlockId,
    segment: SegmentId,
    start: f64,
    size: f64,
    bytes: Bytes,
    requested: Bytes,
    state: BlockState,
    name: Option<String>,
    change: Option<Change>,
}

impl StageBlock {
    /// The name without an index in a list: `result` of `result[0]`.
    fn stem(&self) -> Option<&str> {
        self.name.as_deref()?.split('[').next()
    }
}

/// The change that the running step made to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Allocated,
    Freed,
    Merged,
}

/// A request that found no memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OomOnStage {
    request: OomRequest,
    device_free: Bytes,
    largest_cached: Bytes,
    /// The cached bytes at the end of the expandable segment that has to grow; `None` without one.
    grows_at: Option<Bytes>,
}

impl OomOnStage {
    /// The memory that the request needs: a segment, or its own size in an expandable segment.
    fn needed(&self) -> Bytes {
        if self.grows_at.is_some() { self.request.rounded } else { self.request.segment_size }
    }

    /// The bytes of the request beyond the reserved bytes. A segment that grows has the first part already.
    fn beyond(&self) -> Bytes {
        self.needed().saturating_sub(self.grows_at.unwrap_or_default())
    }

    /// How many of these free bytes the allocator can take for the request.
    fn usable(&self, free: Bytes) -> Bytes {
        if self.grows_at.is_some() { self.request.mappable(free) } else { free }
    }
}

/// How the stage is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageView {
    /// The term that is lit up wherever it is.
    pub lit: Option<Term>,
    /// The chosen block.
    pub selected: Option<BlockId>,
    /// How much room the stage has.
    pub form: StageForm,
    /// The height that the stage fills: the bar and the segments grow, at most to twice their height; 0 for
    /// no growth.
    pub least_height_px: f32,
}

/// How much room a stage has, and so which of its parts are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageForm {
    /// All parts of the stage.
    #[default]
    Full,
    /// Lower rows, for a small box.
    Compact,
    /// The bar and the segments in the lowest rows, without peaks, to stay in sight beside a text.
    Small,
    /// Large letters for the last row of a lecture room: at most four labels (reserved and allocated with their
    /// peaks, and two of what the step is about), and the numbers of both ends of the ruler. With
    /// [`Stage::with_leaders`], blocks also have their names.
    Projected,
}

/// A limit of more than this many times the bytes that are ever reserved would leave the blocks little room
/// on the ruler.
const MAX_LIMIT_RATIO: f64 = 2.5;

/// A stage narrower than this has small letters and few words.
const NARROW_PX: f32 = 560.0;

impl Stage {
    /// The moment after the player's step; `changes` are the changes of the step, and `pool_name` returns the
    /// name of a memory pool.
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
        let numbers = StageBytes {
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
            non_pytorch_bytes: None,
            non_pytorch: Vec::new(),
            limit: state.limit().map(|limit| OomLimit::known(limit, Bytes::ZERO)),
            segments: Vec::new(),
            blocks: Vec::new(),
            failed: step.and_then(|step| failed_request(state, recording, step)),
            has_failures: has_failures(recording),
            leaders: Leaders::None,
            is_at_peak: false,
        };
        made.shown = shown_bytes(made.capacity, made.end_of_ruler(highest));
        made.add_segments(state, recording, changes, pool_name);
        made
    }

    /// Where the segment of a failed request would end, so that the request begins where the reserved memory
    /// ends and is seen to go beyond the limit or the device. Zero at other moments, and for a request of which
    /// most would be beyond the ruler.
    fn refused_end(&self) -> Bytes {
        let end = self.failed.map(|failed| self.numbers.reserved.saturating_add(failed.beyond()));
        end.filter(|end| end.get() / 2 <= self.capacity.get()).unwrap_or_default()
    }

    /// How far a ruler goes for a run that reserves at most `highest`: to the end of a request that failed,
    /// and to the limit of the process where that is not far beyond `highest`.
    fn end_of_ruler(&self, highest: Bytes) -> Bytes {
        let is_near = |limit: &Bytes| bytes_f64(*limit) <= bytes_f64(highest) * MAX_LIMIT_RATIO;
        let limit = self.limit.map(|limit| limit.highest).filter(is_near);
        highest.max(self.refused_end()).max(limit.unwrap_or_default())
    }

    /// The same moment of a process that may reserve at most this much, where its memory fraction is not
    /// known: see [`Series::process_limit`](crate::Series::process_limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<OomLimit>) -> Self {
        let mut made = Self { limit: self.limit.or(limit), ..self };
        let highest = made.numbers.max_reserved.max(made.numbers.reserved);
        made.shown = made.shown.max(shown_bytes(made.capacity, made.end_of_ruler(highest)));
        made
    }

    /// The same moment for paper, where no other moment follows: no room is kept for a request that fails
    /// later.
    #[must_use]
    pub fn for_one_moment(self) -> Self {
        let has_failures = self.failed.is_some();
        Self { has_failures, ..self }
    }

    /// The same moment for a text that speaks of single tensors. If few names are in use, a line above the
    /// segments has those that do not fit on their blocks; of `result[0]`, `result[1]` and so on, the first. A
    /// single block in use that is too small to be seen in its segment is drawn once more, enlarged.
    #[must_use]
    pub fn with_leaders(self) -> Self {
        let active = || self.blocks.iter().filter(|block| block.state.is_active());
        let stems: BTreeSet<_> = active().filter_map(StageBlock::stem).collect();
        let has_names = stems.len() <= leaders::MAX_NAMES && active().all(|block| block.name.is_some());
        let leaders = match (has_names, self.blocks.len() <= leaders::FEW_BLOCKS) {
            (true, true) => Leaders::Each,
            (true, false) => Leaders::Lists,
            (false, _) => Leaders::None,
        };
        Self { leaders, ..self }
    }

    /// The same moment, which is said to be the peak of a run.
    #[must_use]
    pub fn at_peak(self) -> Self {
        Self { is_at_peak: true, ..self }
    }

    /// The same moment on a ruler that shows a round first part of the device, where the run's `peak` of
    /// reserved bytes is at most half of the device: so the blocks have room, and the scale stays while the
    /// run plays.
    #[must_use]
    pub fn with_ruler_to_peak(self, peak: Bytes) -> Self {
        let highest = self.end_of_ruler(peak.max(self.numbers.max_reserved));
        let shown = round_part(self.capacity, highest, 2);
        Self { shown, ..self }
    }

    /// The same moment as the process that `nvidia-smi` shows: its non-PyTorch memory is drawn before the
    /// ruler, not to scale, and the peaks are left out. The ruler shows at least `least_shown`, so that it
    /// stays while memory grows up to there. Where a request `may_fail`, the row for a failed request is kept
    /// free before any request fails.
    #[must_use]
    pub fn as_process(self, non_pytorch_bytes: Bytes, least_shown: Bytes, may_fail: bool) -> Self {
        let shown = self.shown.max(least_shown.min(self.capacity));
        let non_pytorch = vec![("context".to_owned(), non_pytorch_bytes)];
        let has_failures = self.has_failures || may_fail;
        Self { non_pytorch_bytes: Some(non_pytorch_bytes), non_pytorch, shown, has_failures, ..self }
    }

    /// The parts of the non-PyTorch memory that [`Stage::as_process`] draws.
    #[must_use]
    pub fn with_non_pytorch_parts(self, parts: &[(String, Bytes)]) -> Self {
        Self { non_pytorch: parts.to_vec(), ..self }
    }

    /// The same moment as a process, as [`Stage::as_process`] shows one, where the device of the run is the
    /// whole GPU: the non-PyTorch parts of the process take bytes that the run counts as free.
    #[must_use]
    pub fn as_process_of_whole_device(self, non_pytorch: &[(String, Bytes)], least_shown: Bytes) -> Self {
        let all = non_pytorch.iter().fold(Bytes::ZERO, |sum, part| sum.saturating_add(part.1));
        let mut made = self.as_process(all, least_shown, false).with_non_pytorch_parts(non_pytorch);
        let [.., free] = &mut made.numbers.classes;
        *free = free.saturating_sub(all);
        let [.., drawn] = &mut made.classes;
        *drawn = (*drawn - bytes_f64(all)).max(0.0);
        if let Some(failed) = &mut made.failed {
            failed.device_free = failed.device_free.saturating_sub(all);
        }
        made
    }

    /// The blocks of non-PyTorch memory before the ruler; a single block where there is little room, since
    /// the context and the libraries are all CUDA's.
    fn non_pytorch_blocks(&self, width_px: f32, form: StageForm) -> Vec<(&str, Bytes)> {
        let is_one = width_px < NARROW_PX || form == StageForm::Projected;
        match self.non_pytorch_bytes {
            Some(all) if self.non_pytorch.len() > 1 && is_one => vec![("CUDA", all)],
            _ => self.non_pytorch.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect(),
        }
    }

    /// Segments by pool and then by address, side by side from the ruler's start.
    fn add_segments(
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
                pool: segment.pool,
                pool_name: (segment.pool_id != PoolId::DEFAULT)
                    .then(|| pool_name(segment.pool_id).unwrap_or_else(|| segment.pool_id.to_string())),
                stream_name: (segment.stream != StreamId::DEFAULT)
                    .then(|| recording.stream_name(segment.stream)),
                is_new: changes.new_segments.contains(&segment.id),
            });
            at = self.add_blocks(segment, at, recording, changes);
        }
    }

    /// Adds the blocks of a segment and returns where the segment ends. Addresses without memory take no
    /// room, since the ruler counts memory.
    fn add_blocks(
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
                requested: block.requested.min(block.size),
                state: block.state,
                name: block.allocation.and_then(|id| recording.name(id)).map(str::to_owned),
                change: change_of(block, changes),
            });
            at += size;
        }
        at
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

    /// Whether a row for a failed request is kept free, so that nothing moves when a request fails.
    pub fn has_failures(&self) -> bool {
        self.has_failures
    }
}

/// The capacity; or, if less than an eighth of it was ever reserved, a round part that contains every byte
/// ever reserved.
///
/// The part depends on the peak and not on the moment, so that the scale does not change during playback.
fn shown_bytes(capacity: Bytes, peak: Bytes) -> Bytes {
    round_part(capacity, peak, 8)
}

/// A round part of the capacity that contains the peak, if that is at most the `most`-th part of the
/// capacity; else the capacity, or the peak where a request that failed ends beyond the capacity.
fn round_part(capacity: Bytes, peak: Bytes, most: u64) -> Bytes {
    // A sum beyond 2^63 is more than such a part of any device: then the capacity is shown.
    let wanted = peak.get().max(DEFAULT_LARGE_SEGMENT_SIZE.get()).saturating_add(peak.get() / 16);
    let power = wanted.checked_next_power_of_two().unwrap_or(u64::MAX);
    let three_quarters = power.saturating_sub(power / 4);
    let round = if three_quarters >= wanted { three_quarters } else { power };
    let is_part = round <= capacity.get().checked_div(most).unwrap_or(0);
    if is_part { Bytes::new(round) } else { capacity.max(peak) }
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

/// Whether a request of the recording ran out of memory: its stage keeps a row free for the failed request.
pub fn has_failures(recording: &Recording) -> bool {
    recording.failed_steps().iter().any(|(_, outcome)| matches!(outcome, StepOutcome::OutOfMemory(_)))
}

/// The step's request that failed, with the largest cached block that its stream may use.
fn failed_request(state: &MemoryState, recording: &Recording, step: usize) -> Option<OomOnStage> {
    if !matches!(recording.outcome(step), StepOutcome::OutOfMemory(_)) {
        return None;
    }
    let bounds = recording.step(step)?;
    let (request, device_free) = refused_request(recording, bounds.start..bounds.end)?;
    let snapshot = state.snapshot();
    let largest_cached = MemoryAtFailure::of(&snapshot, &request).largest_cached_here;
    let grows_at = request.cached_where_segment_grows(&snapshot, device_free);
    Some(OomOnStage { request, device_free, largest_cached, grows_at })
}
