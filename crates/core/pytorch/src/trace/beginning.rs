//! The memory before the first entry of a trace, from the segments at its end.

use std::collections::BTreeMap;

use crate::snapshot::{DeviceSnapshot, SnapshotError, SnapshotFile, SnapshotSegment};
use blockyard_record::{
    AllocationId, BlockSnapshot, BlockState, Bytes, PoolId, PoolKind, Recorder, SegmentId, Snapshot, StackId,
    StreamId, TraceAction, TraceEntry, index_u32,
};
use blockyard_rules::size;
use rangemap::RangeMap;
use rustc_hash::FxHashMap;

use crate::trace::before::{BlockBefore, MemoryBefore, Region, SegmentBefore, add_range};
use crate::trace::sizes::{BlockOrigin, BlockRoom, Rules, Size, shown_sizes};

/// The memory before the first entry, and the sizes that are known.
pub(crate) struct Beginning {
    pub(crate) snapshot: Snapshot,
    /// The stack of each allocation of the snapshot.
    stacks: Vec<StackId>,
    segment_stacks: Vec<StackId>,
    /// The blocks of the snapshot that may be larger, each with the most extra units of 512 bytes.
    pub(crate) open: Vec<(AllocationId, u64)>,
    /// The addresses that expandable segments have at some time, and their stream.
    pub(crate) ranges: RangeMap<u64, StreamId>,
    pub(crate) rules: Rules,
    /// The entry and the size of the block of each allocation that lives to the end of the trace, by
    /// ascending entry.
    pub(crate) sizes_at_end: Vec<(u32, Bytes)>,
    pub(crate) shown: FxHashMap<BlockOrigin, u64>,
}

impl Beginning {
    pub(crate) fn of(file: &SnapshotFile, device: &DeviceSnapshot) -> Self {
        let (before, mut sizes_at_end) = memory_before(device);
        sizes_at_end.reverse();
        let ranges = ranges(device, &before);
        let max_split = u64::try_from(file.settings.max_split_size()).ok();
        let rules = if device.is_host {
            Rules::of_host()
        } else {
            Rules::of(&file.settings.conf, file.dialect, max_split)
        };
        let sizes = sizes_before(&before, &rules);
        let entries = (0..device.trace.len()).map_while(|index| device.trace.entry(index));
        let has_open = sizes.values().any(|size| size.most_extra > 0);
        let shown = if has_open || rules.has_divisions {
            shown_sizes(
                entries,
                &sizes,
                before.blocks.keys().copied(),
                Some(&rules).filter(|rules| rules.has_divisions),
            )
        } else {
            FxHashMap::default()
        };
        let mut beginning = Self {
            snapshot: Snapshot::default(),
            stacks: Vec::new(),
            segment_stacks: Vec::new(),
            open: Vec::new(),
            ranges,
            rules,
            sizes_at_end,
            shown,
        };
        beginning.lay_out(&before, &sizes);
        beginning
    }

    fn lay_out(&mut self, before: &MemoryBefore, sizes: &BTreeMap<u64, Size>) {
        let regions = self.regions(before);
        let stack =
            |region: &Region| before.segments.get(&region.addr).map_or(StackId::EMPTY, |found| found.stack);
        self.segment_stacks = regions.iter().map(stack).collect();
        let Self { stacks, open, shown, .. } = self;
        let mut snapshot = before.snapshot(&regions, |addr, block, room| {
            let known = sizes.get(&addr).copied().unwrap_or_default();
            let shown = shown.get(&BlockOrigin::Before(addr)).copied();
            // If segments overlap, there is less room than was assumed.
            let size = Bytes::new(shown.unwrap_or(known.size)).min(room);
            if size.is_zero() {
                return None;
            }
            if shown.is_none() && known.most_extra > 0 {
                open.push((AllocationId::new(index_u32(stacks.len())), known.most_extra));
            }
            stacks.push(block.stack);
            Some(size)
        });
        for segment in snapshot.segments.iter_mut().filter(|segment| segment.is_expandable) {
            segment.pool = pool_of_pages(&segment.blocks);
        }
        self.snapshot = snapshot;
    }

    /// The segments at the beginning, by ascending address.
    fn regions(&self, before: &MemoryBefore) -> Vec<Region> {
        let whole = before.segments.iter().map(|(addr, segment)| {
            let SegmentBefore { size, stream, pool, pool_id, .. } = *segment;
            Region { addr: *addr, size, stream, pool, pool_id, is_expandable: false }
        });
        let expandable = self.ranges.iter().map(|(range, stream)| Region {
            addr: range.start,
            size: Bytes::new(range.end.saturating_sub(range.start)),
            stream: *stream,
            pool: PoolKind::Large,
            pool_id: PoolId::DEFAULT,
            is_expandable: true,
        });
        let expandable = expandable.filter(|region| !before.pieces(region).is_empty());
        let mut regions: Vec<_> = whole.chain(expandable).collect();
        regions.sort_by_key(|region| region.addr);
        // A segment is left out if another segment took its place and the trace has no release of it.
        let mut end = 0;
        regions.retain(|region| {
            let is_free = region.addr >= end;
            if is_free {
                end = region.end();
            }
            is_free
        });
        regions
    }

    pub(crate) fn give_to(&self, recorder: &mut Recorder) -> Result<(), SnapshotError> {
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
    let is_small = |block: &BlockSnapshot| block.state.is_active() && block.size <= size::SMALL_SIZE;
    if blocks.iter().any(is_small) { PoolKind::Small } else { PoolKind::Large }
}

/// The memory before the first entry, and for each allocation of the trace that lives to its end, in reverse
/// order: its entry and the size of its block.
fn memory_before(device: &DeviceSnapshot) -> (MemoryBefore, Vec<(u32, Bytes)>) {
    let mut before = MemoryBefore::default();
    for segment in &device.segments {
        add_final(&mut before, segment);
    }
    let mut sizes_at_end = Vec::new();
    for index in (0..device.trace.len()).rev() {
        let Some(entry) = device.trace.entry(index) else { continue };
        let at_end = before.blocks.get(&entry.addr).and_then(|block| block.size);
        if entry.action == TraceAction::Alloc
            && let (Some(size), Ok(index)) = (at_end, u32::try_from(index))
        {
            sizes_at_end.push((index, size));
        }
        // Entries that do not fit are counted on the way forward.
        let _ = before.undo(&entry);
    }
    (before, sizes_at_end)
}

fn add_final(before: &mut MemoryBefore, segment: &SnapshotSegment) {
    let SnapshotSegment { addr, size, stream, pool, pool_id, stack, .. } = *segment;
    if size.is_zero() {
        return;
    }
    before.add_segment(addr, SegmentBefore { size, stream, pool, pool_id, stack }, segment.is_expandable);
    for block in segment.blocks.iter().filter(|block| block.state.is_active() && !block.size.is_zero()) {
        let requested = block.requested.unwrap_or(block.size).min(block.size);
        let is_pending = block.state == BlockState::PendingFree;
        let found = BlockBefore { requested, size: Some(block.size), is_pending, stack: block.stack };
        before.blocks.insert(block.addr(), found);
    }
}

/// The sizes of blocks from before: from the end of the trace, or else as large as the room allows.
fn sizes_before(before: &MemoryBefore, rules: &Rules) -> BTreeMap<u64, Size> {
    let mut sizes = BTreeMap::new();
    let whole = before
        .segments
        .iter()
        .map(|(addr, segment)| (*addr, addr.saturating_add(segment.size.get()), segment.pool, false));
    let pages = before.pages.iter().map(|(piece, _)| (piece.start, piece.end, PoolKind::Large, true));
    for (start, end, pool, is_expandable) in whole.chain(pages) {
        for (addr, old, room) in before.blocks_with_room(start, end) {
            let room = room.get();
            let size = if let Some(size) = old.size {
                Size { size: size.get().min(room), most_extra: 0 }
            } else {
                let is_whole = addr == start && room == end.saturating_sub(start) && !is_expandable;
                let leaves_units = is_expandable || pool == PoolKind::Small;
                rules.size_before(old.requested, BlockRoom { room, is_whole, is_always_split: leaves_units })
            };
            sizes.insert(addr, size);
        }
    }
    sizes
}

/// All addresses that expandable segments have at some time; ranges that touch on one stream are one.
fn ranges(device: &DeviceSnapshot, before: &MemoryBefore) -> RangeMap<u64, StreamId> {
    let mut ranges = before.pages.clone();
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
