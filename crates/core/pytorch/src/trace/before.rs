//! The memory before an entry of a trace, found by going back from the final segments.
//!
//! Going back, an allocation removes a block, a completed free adds a pending block, and a requested free
//! makes the block allocated. Segments and pages are added and removed in the same reversed way. The memory
//! that is left at the first entry is the memory before the trace. Free blocks need no rewinding: free
//! neighbors always merge, so that free blocks are the gaps between the others.
//!
//! A drawing takes what fits and counts the rest: where a trace and the segments contradict each other, the
//! segments are right. A replay stops at the first entry that does not fit. Both go back through
//! [`MemoryBefore::undo`].

mod regions;

use std::collections::BTreeMap;

use blockyard_record::{Bytes, PoolId, PoolKind, StackId, StreamId, TraceAction, TraceEntry};
use blockyard_rules::size::SMALL_SEGMENT_SIZE;
use rangemap::RangeMap;

pub use regions::Region;

/// The memory before an entry of a trace.
#[derive(Clone, Debug, Default)]
pub struct MemoryBefore {
    /// Segments that the driver gave whole, by address.
    pub segments: BTreeMap<u64, SegmentBefore>,
    /// Mapped memory of expandable segments, and its stream. Pieces of one stream do not touch.
    pub pages: RangeMap<u64, StreamId>,
    /// Active blocks, by address.
    pub blocks: BTreeMap<u64, BlockBefore>,
}

/// A segment that the driver gave whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentBefore {
    /// The size of the segment in bytes.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// Whether it belongs to the small or to the large block pool.
    pub pool: PoolKind,
    /// The memory pool that owns it; only the final segments show a private one.
    pub pool_id: PoolId,
    /// The stack that it was made from, where the final segments show it.
    pub stack: StackId,
}

/// An active block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockBefore {
    /// The requested bytes.
    pub requested: Bytes,
    /// The size of the block, where the final segments show it.
    pub size: Option<Bytes>,
    /// Whether its free was requested and has not completed.
    pub is_pending: bool,
    /// The stack of its allocation, where the final segments show it.
    pub stack: StackId,
}

impl BlockBefore {
    fn freed(requested: Bytes, is_pending: bool) -> Self {
        Self { requested, size: None, is_pending, stack: StackId::EMPTY }
    }
}

/// Why an entry of a trace does not fit the memory after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// An allocation of another size, or with a pending free, follows.
    #[error("the block was allocated for another request")]
    OtherRequest,
    /// A block was allocated that does not exist afterwards.
    #[error("there is no block in use")]
    NoBlock,
    /// A free completes while the block is in use afterwards.
    #[error("there is a block in use")]
    BlockInUse,
    /// A free is requested that is not pending afterwards.
    #[error("there is no pending block")]
    NotPending,
    /// A segment was made that does not exist afterwards.
    #[error("there is no segment of this size")]
    NoSegment,
    /// A segment was made under blocks that were in use before.
    #[error("blocks in use are older than their segment")]
    OlderThanSegment,
    /// Memory was released that exists afterwards.
    #[error("there is a segment or a block already")]
    MemoryInUse,
    /// Pages were mapped that are not mapped afterwards.
    #[error("not all of these pages have memory")]
    NoPages,
    /// Pages were mapped under blocks that were in use before.
    #[error("blocks in use are older than their pages")]
    OlderThanPages,
    /// Pages were unmapped under a block that is in use afterwards.
    #[error("there is a block")]
    PagesInUse,
}

impl MemoryBefore {
    /// Whether no memory is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.pages.is_empty()
    }

    /// Goes back over an entry: afterwards this is the memory before the entry.
    ///
    /// # Errors
    ///
    /// [`UndoError`] when the entry does not fit the memory after it. The memory then follows the entry as
    /// far as the final segments allow, so that the caller can continue.
    pub fn undo(&mut self, entry: &TraceEntry) -> Result<(), UndoError> {
        let TraceEntry { action, addr, size, stream } = *entry;
        match action {
            TraceAction::Alloc => {
                let block = self.blocks.remove(&addr).ok_or(UndoError::NoBlock)?;
                let is_this = block.requested == size && !block.is_pending;
                if is_this { Ok(()) } else { Err(UndoError::OtherRequest) }
            }
            TraceAction::FreeCompleted => {
                let other = self.blocks.insert(addr, BlockBefore::freed(size, true));
                other.is_none().then_some(()).ok_or(UndoError::BlockInUse)
            }
            TraceAction::FreeRequested => self.undo_request(addr, size),
            TraceAction::SegmentAlloc => {
                let segment = self.segments.remove(&addr);
                let has_blocks = self.remove_blocks(addr, size);
                match segment {
                    Some(segment) if segment.size == size && !has_blocks => Ok(()),
                    Some(segment) if segment.size == size => Err(UndoError::OlderThanSegment),
                    _ => Err(UndoError::NoSegment),
                }
            }
            TraceAction::SegmentFree => self.undo_release(addr, size, stream),
            TraceAction::SegmentMap => {
                let is_mapped = self.remove_pages(addr, size);
                let has_blocks = self.remove_blocks(addr, size);
                match (is_mapped, has_blocks) {
                    (false, _) => Err(UndoError::NoPages),
                    (true, true) => Err(UndoError::OlderThanPages),
                    (true, false) => Ok(()),
                }
            }
            TraceAction::SegmentUnmap => {
                let has_blocks = self.has_blocks_in(addr, size);
                self.add_pages(addr, size, stream);
                if has_blocks { Err(UndoError::PagesInUse) } else { Ok(()) }
            }
            TraceAction::Snapshot | TraceAction::OutOfMemory => Ok(()),
        }
    }

    fn undo_request(&mut self, addr: u64, size: Bytes) -> Result<(), UndoError> {
        let block = self.blocks.entry(addr).or_insert(BlockBefore::freed(size, false));
        let was_pending = std::mem::take(&mut block.is_pending);
        if was_pending && block.requested == size { Ok(()) } else { Err(UndoError::NotPending) }
    }

    fn undo_release(&mut self, addr: u64, size: Bytes, stream: StreamId) -> Result<(), UndoError> {
        // A segment that exists afterwards was not released, and no segment ends after the last address.
        let end = addr.checked_add(size.get()).filter(|end| *end > addr).ok_or(UndoError::MemoryInUse)?;
        let below = self.segments.range(..end).next_back();
        if below.is_some_and(|(base, other)| base.saturating_add(other.size.get()) > addr) {
            return Err(UndoError::MemoryInUse);
        }
        let pool = if size == SMALL_SEGMENT_SIZE { PoolKind::Small } else { PoolKind::Large };
        let (pool_id, stack) = (PoolId::DEFAULT, StackId::EMPTY);
        self.segments.insert(addr, SegmentBefore { size, stream, pool, pool_id, stack });
        if self.has_blocks_in(addr, size) { Err(UndoError::MemoryInUse) } else { Ok(()) }
    }

    /// The active blocks that begin between two addresses, each with the bytes up to the next one or to the
    /// end.
    pub(crate) fn blocks_with_room(
        &self,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, &BlockBefore, Bytes)> {
        let mut blocks = self.blocks.range(start..end.max(start)).peekable();
        std::iter::from_fn(move || {
            let (addr, block) = blocks.next()?;
            let next = blocks.peek().map_or(end, |(next, _)| **next);
            Some((*addr, block, Bytes::new(next.saturating_sub(*addr))))
        })
    }

    /// Adds a segment of the end of the trace, without its blocks: pages where its memory is mapped page by
    /// page.
    pub(crate) fn add_segment(&mut self, addr: u64, segment: SegmentBefore, is_expandable: bool) {
        if is_expandable {
            self.add_pages(addr, segment.size, segment.stream);
        } else {
            self.segments.insert(addr, segment);
        }
    }

    fn has_blocks_in(&self, addr: u64, size: Bytes) -> bool {
        self.blocks.range(addr..addr.saturating_add(size.get())).next().is_some()
    }

    /// Removes the blocks in memory that did not exist yet: their allocations are missing in the trace.
    /// Returns whether it removed any.
    fn remove_blocks(&mut self, addr: u64, size: Bytes) -> bool {
        let end = addr.saturating_add(size.get());
        let mut any = false;
        while let Some((block, _)) = self.blocks.range(addr..end).next() {
            let block = *block;
            self.blocks.remove(&block);
            any = true;
        }
        any
    }

    /// Adds mapped memory, and joins it with adjacent memory of the same stream.
    pub fn add_pages(&mut self, addr: u64, size: Bytes, stream: StreamId) {
        add_range(&mut self.pages, addr, addr.saturating_add(size.get()), stream);
    }

    /// Removes mapped memory, also from the middle of a piece. Returns whether one piece had all of it.
    fn remove_pages(&mut self, addr: u64, size: Bytes) -> bool {
        let end = addr.saturating_add(size.get());
        let is_mapped = self.pages.get_key_value(&addr).is_some_and(|(piece, _)| piece.end >= end);
        // The map takes no empty range.
        if addr < end {
            self.pages.remove(addr..end);
        }
        is_mapped
    }
}

/// Adds addresses of a stream, which become one range with those of the same stream that they touch. Where
/// another stream has some of them, an entry is missing in the trace, and the later one counts.
pub(crate) fn add_range(ranges: &mut RangeMap<u64, StreamId>, addr: u64, end: u64, stream: StreamId) {
    // The map takes no empty range.
    if addr < end {
        ranges.insert(addr..end, stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(memory: &mut MemoryBefore, text: &str) -> Result<(), UndoError> {
        let mut words = text.split(' ');
        let action = words.next().and_then(TraceAction::from_name).expect("an action");
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        let (addr, size) = (number(), Bytes::new(number()));
        memory.undo(&TraceEntry { action, addr, size, stream: StreamId::DEFAULT })
    }

    #[test]
    fn going_back_ends_with_the_memory_before() {
        let mut memory = MemoryBefore::default();
        memory.add_pages(100, Bytes::new(40), StreamId::DEFAULT);
        for entry in
            ["segment_map 120 20", "free_completed 100 7", "free_requested 100 7", "segment_free 900 50"]
        {
            assert_eq!(undone(&mut memory, entry), Ok(()), "{entry}");
        }
        assert_eq!(memory.pages.into_iter().collect::<Vec<_>>(), [(100..120, StreamId::DEFAULT)]);
        assert_eq!(memory.blocks.keys().collect::<Vec<_>>(), [&100]);
        assert_eq!(memory.segments.keys().collect::<Vec<_>>(), [&900]);
    }

    #[test]
    fn entries_that_do_not_fit_say_why_and_going_back_goes_on() {
        let mut memory = MemoryBefore::default();
        assert_eq!(undone(&mut memory, "alloc 5 7"), Err(UndoError::NoBlock));
        assert_eq!(undone(&mut memory, "free_requested 5 7"), Err(UndoError::NotPending));
        assert_eq!(undone(&mut memory, "alloc 5 8"), Err(UndoError::OtherRequest));
        assert_eq!(undone(&mut memory, "free_completed 5 7"), Ok(()));
        assert_eq!(undone(&mut memory, "free_completed 5 7"), Err(UndoError::BlockInUse));
        assert_eq!(undone(&mut memory, "segment_unmap 0 10"), Err(UndoError::PagesInUse));
        assert_eq!(undone(&mut memory, "segment_map 0 10"), Err(UndoError::OlderThanPages));
        assert_eq!(undone(&mut memory, "segment_map 0 10"), Err(UndoError::NoPages));
        assert_eq!(undone(&mut memory, "segment_free 0 10"), Ok(()));
        assert_eq!(undone(&mut memory, "segment_free 5 10"), Err(UndoError::MemoryInUse));
        assert_eq!(undone(&mut memory, "segment_alloc 0 11"), Err(UndoError::NoSegment));
        assert!(memory.is_empty());
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let stream = StreamId::new;
        let mut ranges = RangeMap::new();
        for (start, end, of) in [
            (10, 20, 0),
            (30, 40, 0),
            (40, 50, 7),
            (20, 30, 0),
            (60, 70, 0),
            (65, 80, 0),
            (90, 90, 0),
            (95, 94, 0),
        ] {
            add_range(&mut ranges, start, end, stream(of));
        }
        let found: Vec<_> = ranges.into_iter().collect();
        assert_eq!(found, [(10..40, stream(0)), (40..50, stream(7)), (60..80, stream(0))]);
    }

    #[test]
    fn pages_without_memory_are_not_removed() {
        let mut memory = MemoryBefore::default();
        memory.add_pages(100, Bytes::new(40), StreamId::DEFAULT);
        assert!(!memory.remove_pages(90, Bytes::new(20)));
        assert!(memory.remove_pages(120, Bytes::new(10)));
        let left: Vec<_> = memory.pages.iter().map(|(piece, _)| piece.clone()).collect();
        assert_eq!(left, [110..120, 130..140]);
        // The end of all addresses, which only a damaged trace has.
        memory.add_pages(u64::MAX, Bytes::new(5), StreamId::DEFAULT);
        assert!(!memory.remove_pages(u64::MAX, Bytes::new(5)));
    }
}
