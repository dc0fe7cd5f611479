//! The sizes of blocks that were there before the first entry.
//!
//! A trace tells what was asked for, not how large the block is. A block that lives to the end shows its size there. Most
//! others have the rounded size, since what was more was split off. A block of the large pool may be up to 1 MiB larger,
//! where splitting was not worth it; as free blocks of that pool are always larger than 1 MiB, less space than that up to
//! the next block in use belongs to the block. What remains open is decided by the first allocation that begins where the
//! block ends.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_allocator::{AllocatorConfig, size};
use blockyard_record::{
    AllocationId, BlockId, BlockSnapshot, BlockState, Bytes, DeviceAddr, PoolKind, SegmentId,
    SegmentSnapshot, Snapshot, TraceAction, TraceEntry,
};

use super::geometry::MemoryAtStart;
use super::ranges::{Region, pieces};
use super::{BlockAtStart, RewindError, Rewound, SizeSources};

/// A block that was there before the first entry and of which several sizes fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSize {
    /// Where it starts.
    pub addr: u64,
    /// The size that it is taken to have.
    pub size: Bytes,
    /// The smallest size that it can have: the rounded request.
    pub least: Bytes,
    /// The largest size that it can have.
    pub most: Bytes,
    /// Whether later events leave only this size.
    pub is_decided: bool,
    /// Whether it was made larger for the sake of a sum to which several blocks contribute.
    pub(crate) is_guess: bool,
    /// The entry that asks for its free; the trace's length if none does.
    pub(crate) freed: usize,
    /// The entry that completes its free.
    pub(crate) gone: usize,
}

/// What a block's size is, before later allocations are asked.
enum FoundSize {
    AtEnd(Bytes),
    ByRule(Bytes),
    Open { least: Bytes, most: Bytes },
}

pub(super) fn resolve(
    at_start: &MemoryAtStart,
    regions: &[Region],
    trace: &[TraceEntry],
    config: &AllocatorConfig,
) -> Result<Rewound, RewindError> {
    let mut sources = SizeSources::default();
    let mut sizes: BTreeMap<u64, Bytes> = BTreeMap::new();
    let mut open: BTreeMap<u64, OpenSize> = BTreeMap::new();
    for region in regions {
        for (addr, old, room) in blocks_in(at_start, region)? {
            let size = match size_of(addr, old, room, region, config) {
                Some(FoundSize::AtEnd(size)) => {
                    sources.at_end += 1;
                    size
                }
                Some(FoundSize::ByRule(size)) => {
                    sources.by_rule += 1;
                    size
                }
                Some(FoundSize::Open { least, most }) => {
                    let (freed, gone) = (if old.is_pending { 0 } else { trace.len() }, trace.len());
                    open.insert(
                        addr,
                        OpenSize {
                            addr,
                            size: least,
                            least,
                            most,
                            freed,
                            gone,
                            is_decided: false,
                            is_guess: false,
                        },
                    );
                    least
                }
                None => return Err(RewindError::Block { addr }),
            };
            sizes.insert(addr, size);
        }
    }
    ask_allocations(at_start, trace, &mut open);
    for found in open.values() {
        sizes.insert(found.addr, found.size);
        sources.by_neighbor += usize::from(found.is_decided);
    }
    open.retain(|_, found| !found.is_decided);
    let mut start = Snapshot::default();
    let mut ids = (0, 0);
    for (index, region) in (0..).zip(regions) {
        start.segments.push(segment(SegmentId::new(index), region, at_start, &sizes, &mut ids)?);
    }
    let placed: usize = start
        .segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .filter(|block| block.state.is_active())
        .count();
    if let Some(addr) = (placed < at_start.blocks.len()).then(|| block_outside(at_start, &sizes)).flatten() {
        return Err(RewindError::Block { addr });
    }
    Ok(Rewound { start, sizes: sources, open: open.into_values().collect() })
}

fn block_outside(at_start: &MemoryAtStart, sizes: &BTreeMap<u64, Bytes>) -> Option<u64> {
    at_start.blocks.keys().find(|addr| !sizes.contains_key(*addr)).copied()
}

/// The blocks in use of a region, each with the space up to the next one or the end of its memory.
fn blocks_in(
    at_start: &MemoryAtStart,
    region: &Region,
) -> Result<Vec<(u64, BlockAtStart, Bytes)>, RewindError> {
    let mut blocks = Vec::new();
    for (start, size) in &region.runs {
        let end = start.saturating_add(size.get());
        let mut starts = at_start.blocks.range(start..&end).peekable();
        while let Some((addr, old)) = starts.next() {
            let next = starts.peek().map_or(end, |(next, _)| **next);
            let room = Bytes::new(next - addr);
            if room < size::MIN_BLOCK_SIZE {
                return Err(RewindError::Block { addr: *addr });
            }
            blocks.push((*addr, *old, room));
        }
    }
    Ok(blocks)
}

fn size_of(
    addr: u64,
    old: BlockAtStart,
    room: Bytes,
    region: &Region,
    config: &AllocatorConfig,
) -> Option<FoundSize> {
    if let Some(size) = old.size {
        return (size <= room).then_some(FoundSize::AtEnd(size));
    }
    // A rounding that was set after the block was handed out may give more than there is room for.
    let rounded = size::rounded(old.requested.min(room), config);
    let plain = Bytes::new(old.requested.get().max(1).checked_next_multiple_of(512)?);
    let least = if rounded <= room { rounded } else { plain };
    if least > room {
        return None;
    }
    let remainder = room - least;
    if region.pool == PoolKind::Small || (region.is_expandable && config.expandable_segments()) {
        return Some(FoundSize::ByRule(least));
    }
    let is_whole = addr == region.addr && room == region.size;
    if least >= config.max_split_size() {
        return Some(if is_whole { FoundSize::ByRule(room) } else { FoundSize::ByRule(least) });
    }
    if remainder <= size::SMALL_SIZE {
        return Some(FoundSize::ByRule(room));
    }
    // What it leaves free is more than 1 MiB as well.
    let smallest_free = size::SMALL_SIZE + size::MIN_BLOCK_SIZE;
    let most = least + size::SMALL_SIZE.min(remainder - smallest_free);
    Some(if most > least { FoundSize::Open { least, most } } else { FoundSize::ByRule(least) })
}

/// The first allocation in the free space behind a block begins where the block ends.
fn ask_allocations(at_start: &MemoryAtStart, trace: &[TraceEntry], open: &mut BTreeMap<u64, OpenSize>) {
    let mut watched: BTreeSet<u64> = open.keys().copied().collect();
    let mut active: BTreeSet<u64> = at_start.blocks.keys().copied().collect();
    for (index, entry) in trace.iter().enumerate() {
        if watched.is_empty() {
            break;
        }
        match entry.action {
            TraceAction::Alloc => {
                let below = active.range(..entry.addr).next_back().filter(|addr| watched.contains(*addr));
                if let Some(found) = below.and_then(|addr| open.get_mut(addr)) {
                    let size = Bytes::new(entry.addr - found.addr);
                    if (found.size..=found.most).contains(&size) {
                        found.size = size;
                        found.is_decided = true;
                        watched.remove(&found.addr);
                    }
                }
                active.insert(entry.addr);
            }
            TraceAction::FreeRequested if watched.contains(&entry.addr) => {
                if let Some(found) = open.get_mut(&entry.addr) {
                    found.freed = index;
                }
            }
            TraceAction::FreeCompleted => {
                active.remove(&entry.addr);
                if watched.remove(&entry.addr)
                    && let Some(found) = open.get_mut(&entry.addr)
                {
                    found.gone = index;
                }
            }
            _ => {}
        }
    }
}

/// The segment with its blocks; free space between them is one block each.
fn segment(
    id: SegmentId,
    region: &Region,
    at_start: &MemoryAtStart,
    sizes: &BTreeMap<u64, Bytes>,
    (blocks_made, allocations_made): &mut (u32, u32),
) -> Result<SegmentSnapshot, RewindError> {
    let mut blocks: Vec<BlockSnapshot> = Vec::new();
    let mut push = |addr: u64, size: Bytes, requested: Bytes, state: BlockState| {
        let allocation = state.is_active().then(|| AllocationId::new(*allocations_made));
        *allocations_made += u32::from(state.is_active());
        blocks.push(BlockSnapshot {
            id: BlockId::new(*blocks_made),
            addr: DeviceAddr::new(addr),
            size,
            requested,
            state,
            allocation,
            streams: Vec::new(),
        });
        *blocks_made += 1;
    };
    for (addr, size, has_memory) in pieces(region) {
        if !has_memory {
            push(addr, size, Bytes::ZERO, BlockState::Unmapped);
            continue;
        }
        let end = addr.saturating_add(size.get());
        let mut free = addr;
        for (addr, old) in at_start.blocks.range(addr..end) {
            let size = *sizes.get(addr).ok_or(RewindError::Block { addr: *addr })?;
            if *addr > free {
                push(free, Bytes::new(addr - free), Bytes::ZERO, BlockState::Inactive);
            }
            let state = if old.is_pending { BlockState::PendingFree } else { BlockState::Allocated };
            push(*addr, size, old.requested, state);
            free = addr.saturating_add(size.get());
        }
        if end > free {
            push(free, Bytes::new(end - free), Bytes::ZERO, BlockState::Inactive);
        }
    }
    Ok(SegmentSnapshot {
        id,
        addr: DeviceAddr::new(region.addr),
        size: region.size,
        stream: region.stream,
        pool_id: region.pool_id,
        pool: region.pool,
        is_expandable: region.is_expandable,
        blocks,
    })
}
