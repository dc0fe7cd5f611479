//! Which memory belonged to which segment. For expandable segments: the first address and the size of the reserved range.

use blockyard_allocator::{AllocatorConfig, size};
use blockyard_pytorch::RecordedSegment;
use blockyard_record::{Bytes, PoolId, PoolKind, StreamId, TraceAction, TraceEntry};

use super::geometry::{ExpandableAtStart, MemoryAtStart};

/// A segment and its mapped memory.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) addr: u64,
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
    pub(super) pool: PoolKind,
    pub(super) pool_id: PoolId,
    pub(super) is_expandable: bool,
    /// The mapped runs, by ascending address.
    pub(super) runs: Vec<(u64, Bytes)>,
}

/// All segments, by ascending address.
pub(super) fn layout(
    at_start: &MemoryAtStart,
    trace: &[TraceEntry],
    segments: &[RecordedSegment],
    total: Bytes,
    config: &AllocatorConfig,
) -> Vec<Region> {
    let whole = at_start.segments.iter().map(|(addr, whole)| Region {
        addr: *addr,
        size: whole.size,
        stream: whole.stream,
        pool: whole.pool,
        pool_id: whole.pool_id,
        is_expandable: false,
        runs: vec![(*addr, whole.size)],
    });
    let mut regions: Vec<Region> = whole.collect();
    let reach = |pool| size::range_size(total, size::page_size(pool, config));
    let mut ranges = grouped(at_start, segments, config, &reach);
    find_bases(&mut ranges, trace, config, &reach);
    regions.extend(ranges);
    regions.sort_by_key(|region| region.addr);
    // If the first pages of a range are not mapped, its start is a guess. The end of the range must not overlap others.
    for index in 1..regions.len() {
        let next = regions[index].addr;
        let region = &mut regions[index - 1];
        if region.is_expandable && region.addr.saturating_add(region.size.get()) > next {
            region.size = Bytes::new(next.saturating_sub(region.addr));
        }
    }
    regions
}

/// Mapped memory of one stream and pool within one range.
fn grouped(
    at_start: &MemoryAtStart,
    segments: &[RecordedSegment],
    config: &AllocatorConfig,
    reach: &dyn Fn(PoolKind) -> Bytes,
) -> Vec<Region> {
    let mut ranges: Vec<Region> = Vec::new();
    for (addr, pages) in &at_start.pages {
        let at_end = segment_over(segments, *addr, pages.size);
        let pool = pool_of(at_start, at_end, *addr, *pages, config);
        let pool_id = at_end.map_or(PoolId::DEFAULT, |segment| segment.pool_id);
        let joins = |range: &&mut Region| {
            range.stream == pages.stream
                && range.pool == pool
                && addr.saturating_sub(range.addr) < reach(pool).get()
                && (at_end.is_none() || range.pool_id == pool_id)
        };
        if let Some(range) = ranges.iter_mut().rev().find(joins) {
            range.runs.push((*addr, pages.size));
        } else {
            ranges.push(Region {
                addr: *addr,
                size: reach(pool),
                stream: pages.stream,
                pool,
                pool_id,
                is_expandable: true,
                runs: vec![(*addr, pages.size)],
            });
        }
    }
    ranges
}

/// The final expandable segment that overlaps these addresses.
fn segment_over(segments: &[RecordedSegment], addr: u64, size: Bytes) -> Option<&RecordedSegment> {
    let end = addr.saturating_add(size.get());
    segments.iter().find(|segment| {
        segment.is_expandable && segment.addr < end && segment.addr.saturating_add(segment.size.get()) > addr
    })
}

/// The pool of the pages: from the final segments, or else from a block in the pages, or else from the size of the pages.
fn pool_of(
    at_start: &MemoryAtStart,
    at_end: Option<&RecordedSegment>,
    addr: u64,
    pages: ExpandableAtStart,
    config: &AllocatorConfig,
) -> PoolKind {
    let page = size::page_size(PoolKind::Large, config).get();
    let block = at_start.blocks.range(addr..addr.saturating_add(pages.size.get())).next();
    match (at_end, block) {
        (Some(segment), _) => segment.pool,
        (None, Some((_, block))) => size::pool_kind(size::rounded(block.requested, config)),
        (None, None) if pages.size.get().is_multiple_of(page) => PoolKind::Large,
        (None, None) => PoolKind::Small,
    }
}

/// Finds the start of ranges: pages that are mapped later and below all mapped pages of a range belong to the range, as long
/// as the range exists and the pages are not in a new range.
fn find_bases(
    ranges: &mut [Region],
    trace: &[TraceEntry],
    config: &AllocatorConfig,
    reach: &dyn Fn(PoolKind) -> Bytes,
) {
    let sums = ranges.iter().map(|range| range.runs.iter().map(|(_, size)| *size).sum());
    let mut mapped: Vec<Bytes> = sums.collect();
    // Ranges that were reserved during the trace: first address, stream, and how much is mapped.
    let mut new: Vec<(u64, StreamId, Bytes)> = Vec::new();
    let mut ends = vec![u64::MAX; ranges.len()];
    let page = size::page_size(PoolKind::Large, config).get();
    for entry in trace {
        let is_map = entry.action == TraceAction::SegmentMap;
        if !is_map && entry.action != TraceAction::SegmentUnmap {
            continue;
        }
        let change = |mapped: &mut Bytes| {
            *mapped =
                if is_map { mapped.saturating_add(entry.size) } else { mapped.saturating_sub(entry.size) };
        };
        let is_large = entry.size.get().is_multiple_of(page);
        let pool = if is_large { PoolKind::Large } else { PoolKind::Small };
        let within =
            |base: u64, pool| entry.addr >= base && entry.addr.saturating_sub(base) < reach(pool).get();
        let is_new = |(base, stream, mapped): &&mut (u64, StreamId, Bytes)| {
            !mapped.is_zero() && *stream == entry.stream && within(*base, pool)
        };
        if let Some((_, _, mapped)) = new.iter_mut().rev().find(is_new) {
            change(mapped);
            continue;
        }
        let fits = |range: &Region| {
            let fits_pool = range.pool == pool || (range.pool == PoolKind::Small && !is_map);
            range.stream == entry.stream && fits_pool
        };
        let live = || (0..ranges.len()).filter(|index| !mapped[*index].is_zero() && fits(&ranges[*index]));
        let at_or_above = live().find(|index| within(ranges[*index].addr, ranges[*index].pool));
        let below = || {
            live().find(|index| {
                let range = &ranges[*index];
                entry.addr < range.addr && range.addr.saturating_sub(entry.addr) < reach(range.pool).get()
            })
        };
        if let Some(index) = at_or_above.or_else(below) {
            ranges[index].addr = ranges[index].addr.min(entry.addr);
            change(&mut mapped[index]);
        } else if is_map {
            new.push((entry.addr, entry.stream, entry.size));
            // If the first pages of an old range are not mapped, the range seems to end later than it does.
            for (end, range) in ends.iter_mut().zip(&*ranges).filter(|(_, range)| range.addr < entry.addr) {
                *end = (*end).min(entry.addr).max(range.addr.saturating_add(1));
            }
        }
    }
    for (range, end) in ranges.iter_mut().zip(ends) {
        let last = range.runs.last().map_or(0, |(addr, size)| addr.saturating_add(size.get()));
        range.size = range.size.min(Bytes::new(end.max(last).saturating_sub(range.addr)));
    }
}

/// The mapped and unmapped pieces of a region, by ascending address: address, size, and whether the piece is mapped.
pub(super) fn pieces(region: &Region) -> Vec<(u64, Bytes, bool)> {
    let mut pieces = Vec::new();
    let mut end = region.addr;
    for (addr, size) in &region.runs {
        if *addr > end {
            pieces.push((end, Bytes::new(addr.saturating_sub(end)), false));
        }
        pieces.push((*addr, *size, true));
        end = addr.saturating_add(size.get());
    }
    let region_end = region.addr.saturating_add(region.size.get());
    if region_end > end {
        pieces.push((end, Bytes::new(region_end.saturating_sub(end)), false));
    }
    pieces
}
