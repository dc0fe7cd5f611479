//! The sizes of blocks that existed before the first entry.
//!
//! A trace contains requested sizes, not sizes of blocks. A block that exists at the end has its size in the
//! final segments. Most other blocks have the rounded size of the request, because the remainder was split
//! off. A block of the large pool may be up to 1 MiB larger, because smaller remainders are not split off.
//! Free blocks of the large pool are always larger than 1 MiB, so that a gap of at most 1 MiB up to the next
//! active block belongs to the block. Sizes that are still open are decided by the first allocation that
//! begins at the end of the block.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_record::{Bytes, PoolKind, TraceAction, TraceEntry};
use blockyard_rules::{AllocatorConfig, size};

use crate::trace::before::{BlockBefore, MemoryBefore, Region};
use crate::trace::sizes::{BlockOrigin, BlockRoom, Size, shown_sizes, size_before};

use super::{RewindError, RewoundMemory, SizeSources};

/// A block that existed before the first entry, and that may have several sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The address of the first byte.
    pub addr: u64,
    /// The assumed size.
    pub size: Bytes,
    /// The smallest possible size: the rounded request.
    pub least: Bytes,
    /// The largest possible size.
    pub most: Bytes,
    /// Whether later events leave only this size.
    pub is_decided: bool,
    /// Whether the size was increased to match a sum over several blocks, so that another block may be the
    /// larger one.
    pub is_guess: bool,
    /// The entry that requests the free of the block; the length of the trace if there is none.
    pub freed: usize,
    /// The entry that completes the free of the block.
    pub gone: usize,
}

/// What is known about a block's size before later allocations are considered.
enum FoundSize {
    AtEnd(Bytes),
    ByRule(Bytes),
    Open { least: Bytes, most: Bytes },
}

/// The sizes of the blocks, as far as they are found.
#[derive(Default)]
struct Sizes {
    /// The size of each block by its address; the smallest possible one if the size is open.
    by_addr: BTreeMap<u64, Bytes>,
    /// The blocks with several possible sizes, by address.
    open: BTreeMap<u64, SizeRange>,
    sources: SizeSources,
}

/// Finds the sizes, and makes the memory before the first entry.
pub(super) fn resolve(
    before: &MemoryBefore,
    regions: &[Region],
    trace: &[TraceEntry],
    config: &AllocatorConfig,
) -> Result<RewoundMemory, RewindError> {
    let Sizes { by_addr: mut sizes, mut open, mut sources } =
        find_sizes(before, regions, trace.len(), config)?;
    decide_by_allocations(before, trace, &mut open);
    for found in open.values() {
        sizes.insert(found.addr, found.size);
        sources.by_neighbor += usize::from(found.is_decided);
    }
    open.retain(|_, found| !found.is_decided);
    if let Some(addr) = before.blocks.keys().find(|addr| !sizes.contains_key(*addr)) {
        return Err(RewindError::Block { addr: *addr });
    }
    let start = before.snapshot(regions, |addr, _, _| sizes.get(&addr).copied());
    Ok(RewoundMemory { start, sizes: sources, open: open.into_values().collect() })
}

fn find_sizes(
    before: &MemoryBefore,
    regions: &[Region],
    trace_length: usize,
    config: &AllocatorConfig,
) -> Result<Sizes, RewindError> {
    let mut found = Sizes::default();
    for region in regions {
        for (addr, old, room) in blocks_in(before, region)? {
            let size = match size_of(addr, old, room, region, config) {
                Some(FoundSize::AtEnd(size)) => {
                    found.sources.at_end += 1;
                    size
                }
                Some(FoundSize::ByRule(size)) => {
                    found.sources.by_rule += 1;
                    size
                }
                Some(FoundSize::Open { least, most }) => {
                    let open = SizeRange {
                        addr,
                        size: least,
                        least,
                        most,
                        freed: if old.is_pending { 0 } else { trace_length },
                        gone: trace_length,
                        is_decided: false,
                        is_guess: false,
                    };
                    found.open.insert(addr, open);
                    least
                }
                None => return Err(RewindError::Block { addr }),
            };
            found.by_addr.insert(addr, size);
        }
    }
    Ok(found)
}

/// The active blocks of a region, each with the space up to the next active block or the end of the mapped
/// run.
fn blocks_in(before: &MemoryBefore, region: &Region) -> Result<Vec<(u64, BlockBefore, Bytes)>, RewindError> {
    let mut blocks = Vec::new();
    for (start, end) in before.pieces(region) {
        for (addr, old, room) in before.blocks_with_room(start, end) {
            if room < size::MIN_BLOCK_SIZE {
                return Err(RewindError::Block { addr });
            }
            blocks.push((addr, *old, room));
        }
    }
    Ok(blocks)
}

fn size_of(
    addr: u64,
    old: BlockBefore,
    room: Bytes,
    region: &Region,
    config: &AllocatorConfig,
) -> Option<FoundSize> {
    if let Some(size) = old.size {
        return (size <= room).then_some(FoundSize::AtEnd(size));
    }
    // If a rounding setting was changed after the allocation, the rounded size may exceed the space.
    let rounded = size::rounded(old.requested.min(room), config);
    let plain = size::least(old.requested.saturating_add(config.release().dialect().padding()))?;
    let least = if rounded <= room { rounded } else { plain };
    if least > room {
        return None;
    }
    let place = BlockRoom {
        room: room.get(),
        is_whole: addr == region.addr && room == region.size,
        is_always_split: region.pool == PoolKind::Small
            || (region.is_expandable && config.expandable_segments()),
    };
    let Size { size, most_extra: extra } =
        size_before(least.get(), place, Some(config.max_split_size().get()));
    let size = Bytes::new(size);
    Some(match extra {
        0 => FoundSize::ByRule(size),
        _ => FoundSize::Open { least: size, most: size.saturating_add(Bytes::new(extra)) },
    })
}

/// Sizes that later allocations show, and when the blocks whose sizes stay open are freed.
fn decide_by_allocations(before: &MemoryBefore, trace: &[TraceEntry], open: &mut BTreeMap<u64, SizeRange>) {
    let possible = |found: &SizeRange| {
        let (size, extra) = (found.size.get(), found.most.saturating_sub(found.size).get());
        Size { size, most_extra: extra }
    };
    let sizes = open.iter().map(|(addr, found)| (*addr, possible(found))).collect();
    let shown = shown_sizes(trace.iter().copied(), &sizes, before.blocks.keys().copied(), None);
    for (addr, found) in open.iter_mut() {
        if let Some(size) = shown.get(&BlockOrigin::Before(*addr)) {
            (found.size, found.is_decided) = (Bytes::new(*size), true);
        }
    }
    // Each block is freed once: a later free at the address is that of another block.
    let mut live: BTreeSet<u64> =
        open.iter().filter(|(_, found)| !found.is_decided).map(|(addr, _)| *addr).collect();
    for (index, entry) in trace.iter().enumerate() {
        match entry.action {
            _ if live.is_empty() => break,
            TraceAction::FreeRequested if live.contains(&entry.addr) => {
                if let Some(found) = open.get_mut(&entry.addr) {
                    found.freed = index;
                }
            }
            TraceAction::FreeCompleted if live.remove(&entry.addr) => {
                if let Some(found) = open.get_mut(&entry.addr) {
                    found.gone = index;
                }
            }
            _ => {}
        }
    }
}
