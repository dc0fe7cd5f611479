//! Segments, pages and blocks before the trace, found by going back entry by entry.

use std::collections::BTreeMap;

use blockyard_pytorch::RecordedSegment;
use blockyard_record::{BlockState, Bytes, PoolId, PoolKind, StreamId, TraceAction, TraceEntry};

use super::{BlockAtStart, Misfit, RewindError, misfit};

/// All segments of the small pool have this size, and no segment of the large pool has it.
const SMALL_SEGMENT: Bytes = blockyard_allocator::size::SMALL_SEGMENT_SIZE;

/// The memory before the first entry.
#[derive(Debug, Default)]
pub(super) struct MemoryAtStart {
    /// Segments that are not expandable, by address.
    pub(super) segments: BTreeMap<u64, SegmentAtStart>,
    /// Mapped memory of expandable segments, by address. Adjacent pieces have different streams.
    pub(super) pages: BTreeMap<u64, ExpandableAtStart>,
    /// Active blocks, by address.
    pub(super) blocks: BTreeMap<u64, BlockAtStart>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentAtStart {
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
    pub(super) pool: PoolKind,
    pub(super) pool_id: PoolId,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExpandableAtStart {
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
}

impl MemoryAtStart {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.pages.is_empty()
    }

    fn has_blocks_in(&self, addr: u64, size: Bytes) -> bool {
        self.blocks.range(addr..addr.saturating_add(size.get())).next().is_some()
    }
}

pub(super) fn rewind(
    trace: &[TraceEntry],
    segments: &[RecordedSegment],
) -> Result<MemoryAtStart, RewindError> {
    let mut at_start = at_end(segments)?;
    for (index, entry) in trace.iter().enumerate().rev() {
        undo(&mut at_start, entry).map_err(|why| misfit(trace, index, why))?;
    }
    Ok(at_start)
}

fn at_end(segments: &[RecordedSegment]) -> Result<MemoryAtStart, RewindError> {
    let mut at_start = MemoryAtStart::default();
    for segment in segments {
        let RecordedSegment { addr, size, stream, pool, pool_id, is_expandable, .. } = *segment;
        if is_expandable {
            at_start.add_pages(addr, ExpandableAtStart { size, stream });
        } else {
            at_start.segments.insert(addr, SegmentAtStart { size, stream, pool, pool_id });
        }
        for block in &segment.blocks {
            let is_pending = block.state == BlockState::PendingFree.name();
            let fits = block.addr >= addr
                && block.addr.saturating_add(block.size.get()) <= addr.saturating_add(size.get());
            if !fits {
                return Err(RewindError::Block { addr: block.addr });
            }
            if is_pending || block.state == BlockState::Allocated.name() {
                let old = BlockAtStart { requested: block.requested, size: Some(block.size), is_pending };
                at_start.blocks.insert(block.addr, old);
            }
        }
    }
    Ok(at_start)
}

fn undo(at_start: &mut MemoryAtStart, entry: &TraceEntry) -> Result<(), Misfit> {
    let TraceEntry { action, addr, size, stream } = *entry;
    match action {
        TraceAction::Alloc => match at_start.blocks.remove(&addr) {
            Some(old) if old.requested == size && !old.is_pending => {}
            Some(_) => return Err(Misfit::OtherRequest),
            None => return Err(Misfit::NoBlock),
        },
        TraceAction::FreeCompleted => {
            let old = BlockAtStart { requested: size, size: None, is_pending: true };
            if at_start.blocks.insert(addr, old).is_some() {
                return Err(Misfit::BlockInUse);
            }
        }
        TraceAction::FreeRequested => match at_start.blocks.get_mut(&addr) {
            Some(old) if old.is_pending && old.requested == size => old.is_pending = false,
            _ => return Err(Misfit::NotPending),
        },
        TraceAction::SegmentAlloc => {
            if at_start.segments.remove(&addr).is_none_or(|segment| segment.size != size) {
                return Err(Misfit::NoSegment);
            }
            if at_start.has_blocks_in(addr, size) {
                return Err(Misfit::OlderThanSegment);
            }
        }
        TraceAction::SegmentFree => {
            // Only the final segments show which private pool a segment belonged to.
            let pool = if size == SMALL_SEGMENT { PoolKind::Small } else { PoolKind::Large };
            let whole = SegmentAtStart { size, stream, pool, pool_id: PoolId::DEFAULT };
            if at_start.segments.insert(addr, whole).is_some() || at_start.has_blocks_in(addr, size) {
                return Err(Misfit::MemoryInUse);
            }
        }
        TraceAction::SegmentMap => {
            if !at_start.remove_pages(addr, size) {
                return Err(Misfit::NoPages);
            }
            if at_start.has_blocks_in(addr, size) {
                return Err(Misfit::OlderThanPages);
            }
        }
        TraceAction::SegmentUnmap => {
            if at_start.has_blocks_in(addr, size) {
                return Err(Misfit::PagesInUse);
            }
            at_start.add_pages(addr, ExpandableAtStart { size, stream });
        }
        TraceAction::Snapshot | TraceAction::OutOfMemory => {}
    }
    Ok(())
}

impl MemoryAtStart {
    /// Adds mapped memory, and joins it with adjacent memory of the same stream.
    fn add_pages(&mut self, addr: u64, pages: ExpandableAtStart) {
        let ExpandableAtStart { mut size, stream } = pages;
        let mut start = addr;
        let above = addr.saturating_add(size.get());
        if let Some(next) = self.pages.get(&above).filter(|next| next.stream == stream).copied() {
            self.pages.remove(&above);
            size = size.saturating_add(next.size);
        }
        let below = self.pages.range(..addr).next_back().map(|(base, pages)| (*base, *pages));
        if let Some((base, below)) = below
            && below.stream == stream
            && base.saturating_add(below.size.get()) == addr
        {
            start = base;
            size = size.saturating_add(below.size);
        }
        self.pages.insert(start, ExpandableAtStart { size, stream });
    }

    /// Removes mapped memory, also from the middle of a piece. Returns whether all of it was mapped.
    fn remove_pages(&mut self, addr: u64, size: Bytes) -> bool {
        let end = addr.saturating_add(size.get());
        let Some((base, pages)) = self.pages.range(..=addr).next_back().map(|(base, pages)| (*base, *pages))
        else {
            return false;
        };
        let piece_end = base.saturating_add(pages.size.get());
        if piece_end < end {
            return false;
        }
        self.pages.remove(&base);
        if base < addr {
            self.pages
                .insert(base, ExpandableAtStart { size: Bytes::new(addr.saturating_sub(base)), ..pages });
        }
        if end < piece_end {
            self.pages
                .insert(end, ExpandableAtStart { size: Bytes::new(piece_end.saturating_sub(end)), ..pages });
        }
        true
    }
}
