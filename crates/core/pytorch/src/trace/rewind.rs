//! The memory of a program when its trace begins, found by going back from the final segments.
//!
//! [`MemoryBefore`] goes back entry by entry, which is enough for a drawing. A replay needs more: the
//! addresses of expandable segments that have no memory (the module `ranges`), and exactly one size for each
//! block (the module `sizes`). Sizes that do not follow from the trace are decided by replays, which the
//! crate `replay` makes.

mod ranges;
mod sizes;

use crate::{RecordedRun, RecordedSegment};
use blockyard_record::{BlockState, Bytes, Snapshot, StackId, TraceEntry, counted};
use blockyard_rules::AllocatorConfig;

use crate::trace::before::{BlockBefore, MemoryBefore, SegmentBefore, UndoError};

pub use sizes::SizeRange;

/// The memory before the trace, and how certain the sizes of its blocks are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewoundMemory {
    /// The segments and blocks before the first entry. Cached blocks have no requested size, because the
    /// trace does not contain it.
    pub start: Snapshot,
    /// How the sizes of the blocks were found.
    pub sizes: SizeSources,
    /// Blocks whose size does not follow from the trace alone, by ascending address.
    pub open: Vec<SizeRange>,
}

impl RewoundMemory {
    /// Makes a block of [`RewoundMemory::open`], by its index, `by` bytes larger. Returns whether the block
    /// can be so large.
    pub fn enlarge(&mut self, open: usize, by: Bytes) -> bool {
        let Some(open) = self.open.get_mut(open) else { return false };
        let size = open.size.saturating_add(by);
        if size > open.most {
            return false;
        }
        open.size = size;
        let addr = open.addr;
        let blocks = self.start.segments.iter_mut().map(|segment| &mut segment.blocks);
        for blocks in blocks {
            let Ok(index) = blocks.binary_search_by_key(&addr, |block| block.addr.get()) else { continue };
            if let [block, free, ..] = &mut blocks[index..] {
                block.size = size;
                free.addr = free.addr.offset(by);
                free.size = free.size.saturating_sub(by);
            }
        }
        true
    }

    /// The open blocks that are still allocated after this number of entries, as indices of
    /// [`RewoundMemory::open`].
    pub fn open_at(&self, entries: usize) -> impl Iterator<Item = usize> {
        let live = self.open.iter().enumerate().filter(move |(_, open)| open.freed >= entries);
        live.map(|(index, _)| index)
    }

    /// Notes for the comparison: what was found, and how.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let blocks = || self.start.segments.iter().flat_map(|segment| &segment.blocks);
        let count = |state| blocks().filter(|block| block.state == state).count();
        let SizeSources { at_end, by_rule, by_neighbor, by_consequence, open } = self.sizes;
        let pending = match count(BlockState::PendingFree) {
            0 => String::new(),
            count => format!(" and {} whose free waits", counted(count, "block")),
        };
        let mut notes = vec![format!(
            "the recording begins late: going back from the end found the memory before its first entry, {}{pending} in {}",
            counted(count(BlockState::Allocated), "live block"),
            counted(self.start.segments.len(), "segment"),
        )];
        let known: Vec<String> = [
            (at_end, "known from the end"),
            (by_rule, "from the rules"),
            (by_neighbor, "from where a later allocation begins"),
            (by_consequence, "from later choices or statistics"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, source)| format!("{count} {source}"))
        .collect();
        if !known.is_empty() {
            notes.push(format!("the sizes of these blocks: {}", known.join(", ")));
        }
        if open > 0 {
            let undecided = self.open.iter().filter(|open| !open.is_decided).take(3);
            let shown: Vec<String> = undecided
                .map(|open| {
                    let SizeRange { addr, size, least, most, .. } = open;
                    format!("{} bytes at {addr:#x} ({} to {})", size.get(), least.get(), most.get())
                })
                .collect();
            let more = if open > shown.len() { ", and so on" } else { "" };
            notes.push(format!(
                "some sizes ({}) cannot be known, since nothing in the trace shows them; the blocks are \
                 assumed to be as small as the rest of the trace allows: {}{more}",
                counted(open, "block"),
                shown.join(", ")
            ));
        }
        notes
    }
}

/// How the sizes of active blocks at the beginning were found, as counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeSources {
    /// The block exists in the final segments.
    pub at_end: usize,
    /// The rules leave one size: the rounded request, or all space up to the neighbor.
    pub by_rule: usize,
    /// A later allocation begins at the end of the block.
    pub by_neighbor: usize,
    /// Later choices of best fit, or statistics, leave one size.
    pub by_consequence: usize,
    /// Several sizes are possible.
    pub open: usize,
}

/// Why the memory before a trace could not be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// An entry does not fit the memory after it.
    #[error("entry {entry} ({what}) does not fit what comes after it: {why}")]
    Entry {
        /// The entry's index in the trace, counted from 0.
        entry: usize,
        /// The entry as text.
        what: String,
        /// Why it does not fit.
        why: UndoError,
    },
    /// The final segments are not consistent.
    #[error("the block at {addr:#x} does not fit its segment")]
    Block {
        /// The address of the block.
        addr: u64,
    },
}

/// Finds the memory before the trace; an empty snapshot for a trace that begins with the program.
///
/// # Errors
///
/// [`RewindError`] when the trace and the final segments contradict each other.
pub fn rewind(run: &RecordedRun, config: &AllocatorConfig) -> Result<RewoundMemory, RewindError> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let segments = run.segments.as_deref().unwrap_or_default();
    let mut before = memory_at_end(segments)?;
    for (index, entry) in trace.iter().enumerate().rev() {
        before.undo(entry).map_err(|why| does_not_fit(index, entry, why))?;
    }
    if before.is_empty() {
        return Ok(RewoundMemory::default());
    }
    let regions = ranges::regions(&before, trace, segments, run.meta.total_memory, config);
    sizes::resolve(&before, &regions, trace, config)
}

fn does_not_fit(index: usize, entry: &TraceEntry, why: UndoError) -> RewindError {
    let what = format!("{} of {} at {:#x}", entry.action, entry.size, entry.addr);
    RewindError::Entry { entry: index, what, why }
}

/// The memory after the last entry.
fn memory_at_end(segments: &[RecordedSegment]) -> Result<MemoryBefore, RewindError> {
    let mut memory = MemoryBefore::default();
    let stack = StackId::EMPTY;
    for segment in segments {
        let RecordedSegment { addr, size, stream, pool, pool_id, is_expandable, .. } = *segment;
        memory.add_segment(addr, SegmentBefore { size, stream, pool, pool_id, stack }, is_expandable);
        for block in &segment.blocks {
            let is_pending = block.state == BlockState::PendingFree.name();
            let is_inside = block.addr >= addr
                && block.addr.saturating_add(block.size.get()) <= addr.saturating_add(size.get());
            if !is_inside {
                return Err(RewindError::Block { addr: block.addr });
            }
            if is_pending || block.state == BlockState::Allocated.name() {
                let (requested, size) = (block.requested, Some(block.size));
                memory.blocks.insert(block.addr, BlockBefore { requested, size, is_pending, stack });
            }
        }
    }
    Ok(memory)
}
