//! The memory before the first entry of a trace, from the segments at its end.

use std::collections::BTreeMap;

use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, PoolId, PoolKind, Recorder,
    SegmentId, SegmentSnapshot, Snapshot, StackId, StreamId, TraceAction, TraceEntry, index_u32,
};
use rustc_hash::FxHashMap;

use super::layout::NewSegment;
use super::past::{Past, add_range};
use super::sizes::{Asked, Rules, Size, shown_sizes};
use super::{DeviceSnapshot, SnapshotError, SnapshotFile};

/// The memory before the first entry, and the sizes that are known.
pub(super) struct Beginning {
    pub(super) snapshot: Snapshot,
    /// How many blocks it has.
    blocks: u32,
    stacks: Vec<StackId>,
    segment_stacks: Vec<StackId>,
    /// Blocks of the snapshot that may be larger.
    pub(super) open: Vec<(AllocationId, u64)>,
    /// The addresses that expandable segments have at some time: where each range ends and its stream.
    pub(super) ranges: BTreeMap<u64, (u64, StreamId)>,
    pub(super) rules: Rules,
    /// By entry, ascending.
    pub(super) sizes_at_end: Vec<(u32, Bytes)>,
    pub(super) shown: FxHashMap<Asked, u64>,
}

impl Beginning {
    pub(super) fn of(file: &SnapshotFile, device: &DeviceSnapshot) -> Self {
        let mut past = Past::of(device);
        let mut sizes_at_end = std::mem::take(&mut past.sizes_at_end);
        sizes_at_end.reverse();
        let ranges = ranges(device, &past);
        let max_split = u64::try_from(file.settings.max_split_size()).ok();
        let rules = Rules::of(&file.settings.config, max_split);
        let sizes = past_sizes(&past, &rules);
        let has_open = sizes.values().any(|size| size.extra > 0);
        let shown = if has_open || rules.has_divisions {
            shown_sizes(&device.trace, &sizes, past.blocks.keys().copied(), rules.has_divisions)
        } else {
            FxHashMap::default()
        };
        let mut beginning = Self {
            snapshot: Snapshot::default(),
            blocks: 0,
            stacks: Vec::new(),
            segment_stacks: Vec::new(),
            open: Vec::new(),
            ranges,
            rules,
            sizes_at_end,
            shown,
        };
        beginning.lay_out(&past, &sizes);
        beginning
    }

    fn lay_out(&mut self, past: &Past, sizes: &BTreeMap<u64, Size>) {
        let whole = past.segments.iter().map(|(addr, segment)| {
            let new = NewSegment {
                addr: *addr,
                size: segment.size,
                stream: segment.stream,
                pool_id: segment.pool_id,
                pool: segment.pool,
            };
            (new, None, segment.stack)
        });
        let expandable = self.ranges.iter().filter_map(|(addr, (end, stream))| {
            let pieces: Vec<(u64, u64)> =
                past.pages.range(addr..end).map(|(start, (above, _))| (*start, *above)).collect();
            let new = NewSegment {
                addr: *addr,
                size: Bytes::new(end.saturating_sub(*addr)),
                stream: *stream,
                pool_id: PoolId::DEFAULT,
                pool: PoolKind::Large,
            };
            (!pieces.is_empty()).then_some((new, Some(pieces), StackId::EMPTY))
        });
        let mut all: Vec<_> = whole.chain(expandable).collect();
        all.sort_by_key(|(segment, ..)| segment.addr);
        let mut end = 0;
        for (segment, pieces, stack) in all {
            // A released segment whose place another one took without a word.
            if segment.addr < end {
                continue;
            }
            end = segment.addr.saturating_add(segment.size.get());
            self.segment_stacks.push(stack);
            self.add_segment(segment, pieces.as_deref(), past, sizes);
        }
    }

    fn add_segment(
        &mut self,
        segment: NewSegment,
        pieces: Option<&[(u64, u64)]>,
        past: &Past,
        sizes: &BTreeMap<u64, Size>,
    ) {
        let end = segment.addr.saturating_add(segment.size.get());
        let whole = [(segment.addr, end)];
        let mut blocks = Vec::new();
        let mut at = segment.addr;
        for (start, above) in pieces.unwrap_or(&whole).iter().copied() {
            let (start, above) = (start.max(at), above.min(end));
            if start >= above {
                continue;
            }
            self.add_block(&mut blocks, at, start, BlockState::Unmapped, None);
            self.add_piece(&mut blocks, start, above, past, sizes);
            at = above;
        }
        self.add_block(&mut blocks, at, end, BlockState::Unmapped, None);
        let id = SegmentId::new(index_u32(self.snapshot.segments.len()));
        let is_expandable = pieces.is_some();
        let pool = if is_expandable { pool_of_pages(&blocks) } else { segment.pool };
        let NewSegment { addr, size, stream, pool_id, .. } = segment;
        let addr = DeviceAddr::new(addr);
        self.snapshot.segments.push(SegmentSnapshot {
            id,
            addr,
            size,
            stream,
            pool_id,
            pool,
            is_expandable,
            blocks,
        });
    }

    /// Memory from `start` to `above`: blocks in use, and free blocks between them.
    fn add_piece(
        &mut self,
        blocks: &mut Vec<BlockSnapshot>,
        start: u64,
        above: u64,
        past: &Past,
        sizes: &BTreeMap<u64, Size>,
    ) {
        let mut at = start;
        let mut old = past.blocks.range(start..above).peekable();
        while let Some((addr, block)) = old.next() {
            let room = old.peek().map_or(above, |(next, _)| **next).saturating_sub(*addr);
            let known = sizes.get(addr).copied().unwrap_or_default();
            let shown = self.shown.get(&Asked::Past(*addr)).copied();
            // If segments overlap, there is less room than was assumed.
            let taken = shown.unwrap_or(known.size).min(room);
            if taken == 0 || *addr < at {
                continue;
            }
            self.add_block(blocks, at, *addr, BlockState::Inactive, None);
            let state = if block.is_pending { BlockState::PendingFree } else { BlockState::Allocated };
            let allocation = AllocationId::new(index_u32(self.stacks.len()));
            if shown.is_none() && known.extra > 0 {
                self.open.push((allocation, known.extra));
            }
            self.stacks.push(block.stack);
            let requested = block.requested.min(Bytes::new(taken));
            at = addr.saturating_add(taken);
            self.add_block(blocks, *addr, at, state, Some((allocation, requested)));
        }
        self.add_block(blocks, at, above, BlockState::Inactive, None);
    }

    fn add_block(
        &mut self,
        blocks: &mut Vec<BlockSnapshot>,
        start: u64,
        end: u64,
        state: BlockState,
        served: Option<(AllocationId, Bytes)>,
    ) {
        if start >= end {
            return;
        }
        let id = BlockId::new(self.blocks);
        self.blocks = self.blocks.saturating_add(1);
        blocks.push(BlockSnapshot {
            id,
            addr: DeviceAddr::new(start),
            size: Bytes::new(end.saturating_sub(start)),
            requested: served.map_or(Bytes::ZERO, |(_, requested)| requested),
            state,
            allocation: served.map(|(allocation, _)| allocation),
            streams: Vec::new(),
        });
    }

    pub(super) fn give_to(&self, recorder: &mut Recorder) -> Result<(), SnapshotError> {
        if self.snapshot.segments.is_empty() {
            return Ok(());
        }
        recorder.begin_with(&self.snapshot)?;
        for (number, stack) in (0..).zip(&self.stacks) {
            recorder.set_allocation_stack(AllocationId::new(number), *stack);
        }
        for (number, stack) in (0..).zip(&self.segment_stacks) {
            recorder.set_segment_stack(SegmentId::new(number), *stack);
        }
        for (allocation, extra) in &self.open {
            recorder.set_open_size(*allocation, Bytes::new(*extra));
        }
        Ok(())
    }
}

/// Blocks of at most 1 MiB are only in small pools.
fn pool_of_pages(blocks: &[BlockSnapshot]) -> PoolKind {
    let is_small = |block: &BlockSnapshot| block.state.is_active() && block.size <= Bytes::mib(1);
    if blocks.iter().any(is_small) { PoolKind::Small } else { PoolKind::Large }
}

/// The sizes of blocks from before: from the end of the trace, or else as large as the room allows.
fn past_sizes(past: &Past, rules: &Rules) -> BTreeMap<u64, Size> {
    let mut sizes = BTreeMap::new();
    let whole = past
        .segments
        .iter()
        .map(|(addr, segment)| (*addr, addr.saturating_add(segment.size.get()), segment.pool, false));
    let pages = past.pages.iter().map(|(addr, (end, _))| (*addr, *end, PoolKind::Large, true));
    for (start, end, pool, is_expandable) in whole.chain(pages) {
        let mut blocks = past.blocks.range(start..end).peekable();
        while let Some((addr, old)) = blocks.next() {
            let next = blocks.peek().map_or(end, |(next, _)| **next);
            let room = next.saturating_sub(*addr);
            let size = match old.size {
                Some(size) => Size { size: size.get().min(room), extra: 0 },
                None => rules.past_size(old.requested, room, pool, is_expandable),
            };
            sizes.insert(*addr, size);
        }
    }
    sizes
}

/// How many addresses each expandable segment has, as far as that shows.
pub(super) fn extents(device: &DeviceSnapshot) -> impl Iterator<Item = u64> {
    ranges(device, &Past::of(device)).into_iter().map(|(start, (end, _))| end.saturating_sub(start))
}

/// All addresses that expandable segments have at some time; ranges that touch on one stream are one.
fn ranges(device: &DeviceSnapshot, past: &Past) -> BTreeMap<u64, (u64, StreamId)> {
    let mut ranges = past.pages.clone();
    for index in 0..device.trace.len() {
        let Some(TraceEntry { action: TraceAction::SegmentMap, addr, size, stream }) =
            device.trace.entry(index)
        else {
            continue;
        };
        add_range(&mut ranges, addr, addr.saturating_add(size.get()), stream);
    }
    ranges
}
