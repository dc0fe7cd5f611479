//! Facts that a trace of PyTorch implies: the memory before its first entry, where segments begin and end,
//! the sizes of blocks, the requests of the program, and which calls of the driver failed.
//!
//! A trace is read in two ways. For drawing, [`record`] makes a recording of a snapshot: the segments at the
//! end are right, an entry that does not fit them is counted and skipped, and a size that stays open is drawn
//! as small as it can be. For replaying, [`requests`] and [`rewind`] make requests and the memory to begin
//! with: an entry that does not fit is an error, and each block has one size, which replays may correct
//! ([`RewoundMemory`]). Both go back through [`MemoryBefore`], and both have the sizes of blocks from the
//! module `sizes`.
//!
//! ```text
//!   final segments ──► before: undoes the entries, from the last to the first ◄── sizes: what the rules allow
//!                        │                                   │
//!               to draw  ▼                          to replay ▼
//!   beginning: the smallest open sizes        rewind: one size for each block, reserved ranges
//!   layout: follows the entries               infer: requests, and calls of the driver that failed
//!   record: a `Recording`                     run: a `RecordedRun`
//! ```
//!
//! A trace with neither segments nor a beginning has no memory to draw (`unplaced`).
//!
//! This module knows the rules of PyTorch's allocator and no allocator: nothing here decides where a block is
//! placed.
//!
//! # Decisions
//!
//! - **Drawing and replaying are two functions over one inference**, not one function with a mode. The
//!   inference is shared: going back over an entry, the room of each block, the sizes that the rules allow,
//!   and the sizes that later allocations show. The rest differs: a drawing takes every region that ever has
//!   memory as wide as the trace shows it, a replay needs the range that PyTorch reserved; a drawing goes on
//!   after an entry that does not fit, a replay stops; a drawing makes events with stacks, a replay makes
//!   requests.
//! - **Mapped memory and reserved ranges are intervals of `rangemap`.** A change of pages takes as long (618
//!   ns) as with a map written by hand (597 ns). Maps written by hand are left where things have an address
//!   and a size and never join: segments and blocks (`layout`), ranges that are found by their first page
//!   (`infer::driver`), and in the crate `allocator` the free regions of the driver's pool, which have an age
//!   and do not join over borders.
//! - **A snapshot becomes a recording without an allocator.** [`record`] follows the geometry: a block that
//!   begins or ends inside of free space splits the space, and free neighbors merge. What the trace leaves
//!   open is marked as open.
//! - **A recording may begin late**, because a ring buffer was full or recording was switched on in the
//!   middle of a run. [`MemoryBefore`] goes back from the final segments through the trace, for the drawing
//!   and for the comparison alike. The segments and active blocks that are left at the first entry are the
//!   memory before; free blocks are the gaps, because free neighbors always merge. This memory is the state
//!   before the first event, and no event describes it (`Recorder::begin_with`,
//!   `CachingAllocator::beginning_with`, `RecordedDevice::with_initial_memory`).
//! - **A trace does not contain the sizes of blocks.** The sizes come from the final segments, from the rules
//!   (a free block of the large pool is always larger than 1 MiB, so a smaller gap after a block belongs to
//!   the block), from the first allocation that begins at the end of a block, and from replays ([`rewind`],
//!   `replay::decide`). A size that is still open is assumed to be the smallest possible one, and a note says
//!   so.
//! - **Failed calls of the driver are inferred** (`infer::reclaims`). Releases just before new memory or a
//!   failed request belong to that request if the trace shows it: cached segments are left, the order is not
//!   that of a full release, the bytes exceed the memory of the device, or statistics count the retry. The
//!   recorded device then fails at exactly these calls. Otherwise the releases are calls of `empty_cache`,
//!   which have the same trace. Two things are not in a trace and are not inferred: the age of blocks that
//!   were cached before a late beginning, which garbage collection depends on, and addresses that were
//!   reserved without ever being mapped.

mod before;
mod beginning;
mod infer;
mod layout;
mod names;
mod record;
mod rewind;
mod run;
mod sizes;
mod unplaced;

use blockyard_rules::{AllocatorConfig, Release, known_config};

pub use before::{BlockBefore, MemoryBefore, Region, SegmentBefore, UndoError};
pub use infer::{DeviceFailure, InferredRun, OomReport, requests, requests_after};
pub use layout::Misfits;
pub use record::{DeviceRecording, beginning, record, steps_of_entries};
pub use rewind::{RewindError, RewoundMemory, SizeRange, SizeSources, rewind};
pub use run::recorded_run;
pub use unplaced::{UnplacedStack, UnplacedTrace, unplaced};

/// The settings of a text in a file, without those that are not known; the default settings for a text that
/// no run can have.
fn settings(text: &str) -> AllocatorConfig {
    let (known, _) = known_config(text, Release::LATEST);
    AllocatorConfig::parse(&known, Release::LATEST).unwrap_or_default()
}
