//! The memory of a program when its trace begins, found by going back from the final segments.
//!
//! Going back, an allocation removes a block, a completed free adds a pending block, and a requested free makes the block
//! allocated. Segments and pages are added and removed in the same reversed way. The memory that is left at the first entry
//! is the memory before the trace. Free blocks need no rewinding: free neighbors always merge, so that free blocks are the
//! gaps between the others. The sizes of blocks are found in the module `sizes`.

mod decide;
mod geometry;
mod ranges;
mod sizes;

use blockyard_allocator::AllocatorConfig;
use blockyard_pytorch::RecordedRun;
use blockyard_record::{BlockState, Bytes, Snapshot, TraceEntry, counted};

pub(crate) use decide::decide;
pub use sizes::SizeRange;

/// The memory before the trace, and what about it is not certain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewound {
    /// The segments and blocks before the first entry. Cached blocks have no requested size, because the trace does not
    /// contain it.
    pub start: Snapshot,
    /// How the sizes of the blocks were found.
    pub sizes: SizeSources,
    /// Blocks whose size does not follow from the trace alone, by ascending address.
    pub open: Vec<SizeRange>,
}

impl Rewound {
    /// The result, as notes for the comparison.
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
            "the recording begins late: going back from the end found what was there before its first entry, {}{pending} in {}",
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
                "some sizes ({}) cannot be known, since nothing in the trace shows them; the blocks are taken as small as the rest of \
                 the trace allows: {}{more}",
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
        why: Misfit,
    },
    /// The final segments are not consistent.
    #[error("the block at {addr:#x} does not fit its segment")]
    Block {
        /// The address of the block.
        addr: u64,
    },
}

/// Why an entry of a trace does not fit the memory after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// An allocation of another size, or with a pending free, follows.
    #[error("the block there was allocated for something else")]
    OtherRequest,
    /// A block was allocated that does not exist afterwards.
    #[error("no block in use is there")]
    NoBlock,
    /// A free completes while the block is in use afterwards.
    #[error("a block in use is there")]
    BlockInUse,
    /// A free is requested that is not pending afterwards.
    #[error("no pending block is there")]
    NotPending,
    /// A segment was made that is not there afterwards.
    #[error("no segment of this size is there")]
    NoSegment,
    /// A segment was made under blocks that were in use before.
    #[error("blocks in use are older than their segment")]
    OlderThanSegment,
    /// Memory was released that is there afterwards.
    #[error("there is a segment or a block already")]
    MemoryInUse,
    /// Pages were mapped that are not there afterwards.
    #[error("not all of these pages have memory")]
    NoPages,
    /// Pages were mapped under blocks that were in use before.
    #[error("blocks in use are older than their pages")]
    OlderThanPages,
    /// Pages were unmapped under a block that is in use afterwards.
    #[error("a block is there")]
    PagesInUse,
}

/// Finds the memory before the trace; an empty snapshot for a trace that begins with the program.
///
/// # Errors
///
/// [`RewindError`] when the trace and the final segments contradict each other.
pub fn rewind(run: &RecordedRun, config: &AllocatorConfig) -> Result<Rewound, RewindError> {
    let trace = run.trace.as_deref().unwrap_or_default();
    let segments = run.segments.as_deref().unwrap_or_default();
    let at_start = geometry::rewind(trace, segments)?;
    if at_start.is_empty() {
        return Ok(Rewound::default());
    }
    let layout = ranges::layout(&at_start, trace, segments, run.meta.total_memory, config);
    sizes::resolve(&at_start, &layout, trace, config)
}

fn misfit(trace: &[TraceEntry], entry: usize, why: Misfit) -> RewindError {
    let what = trace
        .get(entry)
        .map_or_else(String::new, |entry| format!("{} of {} at {:#x}", entry.action, entry.size, entry.addr));
    RewindError::Entry { entry, what, why }
}

/// An active block before the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockAtStart {
    requested: Bytes,
    /// The size, if the final segments show it.
    size: Option<Bytes>,
    is_pending: bool,
}
