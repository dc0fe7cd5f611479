//! Finds the segments before the trace. For an expandable segment, these are the first address and the size
//! of its reserved range.

use crate::RecordedSegment;
use blockyard_record::{Bytes, PoolId, PoolKind, StreamId, TraceAction, TraceEntry};
use blockyard_rules::{AllocatorConfig, size};

use crate::trace::before::{MemoryBefore, Region};

/// All segments before the trace, by ascending address.
pub(super) fn regions(
    before: &MemoryBefore,
    trace: &[TraceEntry],
    segments: &[RecordedSegment],
    total: Bytes,
    config: &AllocatorConfig,
) -> Vec<Region> {
    let whole = before.segments.iter().map(|(addr, segment)| Region {
        addr: *addr,
        size: segment.size,
        stream: segment.stream,
        pool: segment.pool,
        pool_id: segment.pool_id,
        is_expandable: false,
    });
    let mut regions: Vec<Region> = whole.collect();
    let reserve = config.address_reserve(total);
    let reach = |pool| size::range_size(total, reserve, size::page_size(pool, config));
    let mut ranges = group_pages(before, segments, config, &reach);
    find_bases(&mut ranges, trace, config, &reach);
    regions.extend(ranges.into_iter().map(|range| range.region));
    regions.sort_by_key(|region| region.addr);
    // If the first pages of a range are not mapped, its start is a guess. The end of the range must not
    // overlap others.
    for index in 1..regions.len() {
        let next = regions[index].addr;
        let region = &mut regions[index - 1];
        if region.is_expandable && region.end() > next {
            region.size = Bytes::new(next.saturating_sub(region.addr));
        }
    }
    regions
}

/// An expandable segment and its mapped memory.
struct ReservedRange {
    region: Region,
    /// How many bytes are mapped.
    mapped: Bytes,
    /// The end of the last mapped piece.
    mapped_end: u64,
}

/// Groups mapped memory of the same stream and pool into ranges.
fn group_pages(
    before: &MemoryBefore,
    segments: &[RecordedSegment],
    config: &AllocatorConfig,
    reach: &dyn Fn(PoolKind) -> Bytes,
) -> Vec<ReservedRange> {
    let mut ranges: Vec<ReservedRange> = Vec::new();
    for (piece, stream) in before.pages.iter() {
        let (addr, end) = (&piece.start, &piece.end);
        let mapped = Bytes::new(end.saturating_sub(*addr));
        let at_end = segment_over(segments, *addr, *end);
        let pool = pool_of(before, at_end, *addr, *end, config);
        let pool_id = at_end.map_or(PoolId::DEFAULT, |segment| segment.pool_id);
        let joins = |range: &&mut ReservedRange| {
            range.region.stream == *stream
                && range.region.pool == pool
                && addr.saturating_sub(range.region.addr) < reach(pool).get()
                && (at_end.is_none() || range.region.pool_id == pool_id)
        };
        if let Some(range) = ranges.iter_mut().rev().find(joins) {
            range.mapped = range.mapped.saturating_add(mapped);
            range.mapped_end = *end;
        } else {
            let (addr, size, stream) = (*addr, reach(pool), *stream);
            let region = Region { addr, size, stream, pool, pool_id, is_expandable: true };
            ranges.push(ReservedRange { region, mapped, mapped_end: *end });
        }
    }
    ranges
}

/// The final expandable segment that overlaps these addresses.
fn segment_over(segments: &[RecordedSegment], addr: u64, end: u64) -> Option<&RecordedSegment> {
    segments.iter().find(|segment| {
        segment.is_expandable && segment.addr < end && segment.addr.saturating_add(segment.size.get()) > addr
    })
}

/// The pool of the pages: from the final segments, or else from a block in the pages, or else from the size
/// of the pages.
fn pool_of(
    before: &MemoryBefore,
    at_end: Option<&RecordedSegment>,
    addr: u64,
    end: u64,
    config: &AllocatorConfig,
) -> PoolKind {
    let page = size::page_size(PoolKind::Large, config).get();
    let block = before.blocks.range(addr..end).next();
    match (at_end, block) {
        (Some(segment), _) => segment.pool,
        (None, Some((_, block))) => PoolKind::serving(size::rounded(block.requested, config)),
        (None, None) if end.saturating_sub(addr).is_multiple_of(page) => PoolKind::Large,
        (None, None) => PoolKind::Small,
    }
}

/// Finds the start of ranges: pages that are mapped later and below all mapped pages of a range belong to the
/// range, as long as the range exists and the pages are not in a new range.
fn find_bases(
    ranges: &mut [ReservedRange],
    trace: &[TraceEntry],
    config: &AllocatorConfig,
    reach: &dyn Fn(PoolKind) -> Bytes,
) {
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
        let live = || {
            (0..ranges.len()).filter(|index| !ranges[*index].mapped.is_zero() && fits(&ranges[*index].region))
        };
        let at_or_above = live().find(|index| within(ranges[*index].region.addr, ranges[*index].region.pool));
        let below = || {
            live().find(|index| {
                let range = &ranges[*index].region;
                entry.addr < range.addr && range.addr.saturating_sub(entry.addr) < reach(range.pool).get()
            })
        };
        if let Some(index) = at_or_above.or_else(below) {
            let range = &mut ranges[index];
            range.region.addr = range.region.addr.min(entry.addr);
            change(&mut range.mapped);
        } else if is_map {
            new.push((entry.addr, entry.stream, entry.size));
            // If the first pages of an old range are not mapped, the range seems to end later than it does.
            for (end, range) in
                ends.iter_mut().zip(&*ranges).filter(|(_, range)| range.region.addr < entry.addr)
            {
                *end = (*end).min(entry.addr).max(range.region.addr.saturating_add(1));
            }
        }
    }
    for (range, end) in ranges.iter_mut().zip(ends) {
        let ReservedRange { region, mapped_end, .. } = range;
        region.size = region.size.min(Bytes::new(end.max(*mapped_end).saturating_sub(region.addr)));
    }
}
