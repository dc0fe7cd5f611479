//! The vocabulary of the other crates: ids, events, memory states, statistics, snapshots, trace entries,
//! stacks and recordings.
//!
//! A run of an allocator as plain data: byte counts and addresses ([`Bytes`], [`DeviceAddr`]), ids, which
//! begin again at 0 after 2^32 of a kind ([`SegmentId`], [`BlockId`], [`AllocationId`]), the [`Event`]s that
//! an allocator reports, the [`MemoryState`] after the events so far, the [`Stats`] that PyTorch keeps, and a
//! whole run as a [`Recording`].
//!
//! At every moment, in bytes:
//!
//! * allocated ≤ active ≤ reserved ≤ capacity
//! * requested (of allocated blocks) ≤ allocated
//! * capacity = requested + rounding + pending + cached + free on the device (see [`Breakdown`])
//!
//! This crate has no policy: it applies events and decides none. What it says about a run (why a request ran
//! out of memory, which frame is the program's own) follows from the events, the stacks and the rules. It has
//! no file format either.
//!
//! # Example
//!
//! A request of 3 MiB. The device allocates a segment of 20 MiB, the allocator splits it and allocates the
//! front:
//!
//! ```
//! use blockyard_record::{
//!     AllocationId, BlockId, Bytes, DeviceAddr, Event, EventSink, StepOutcome, PoolId, PoolKind, Recorder,
//!     RunInfo, SegmentId, StreamId,
//! };
//!
//! let (segment, block, front) = (SegmentId::new(0), BlockId::new(0), BlockId::new(1));
//! let size = Bytes::mib(3);
//! let mut recorder = Recorder::new(RunInfo { capacity: Bytes::gib(1), ..RunInfo::default() });
//! recorder.record(Event::SegmentAllocated {
//!     segment,
//!     block,
//!     addr: DeviceAddr::new(0x7f00_0000_0000),
//!     size: Bytes::mib(20),
//!     stream: StreamId::DEFAULT,
//!     pool_id: PoolId::DEFAULT,
//!     pool: PoolKind::Large,
//!     is_oversize: false,
//! });
//! recorder.record(Event::Split { block, front, size });
//! recorder.record(Event::Allocated {
//!     block: front,
//!     allocation: AllocationId::new(0),
//!     requested: size,
//!     is_oversize: false,
//! });
//! recorder.finish_step(StepOutcome::Done);
//!
//! let recording = recorder.finish()?;
//! let state = recording.state_at(recording.event_count())?;
//! assert_eq!(state.breakdown().allocated(), size);
//! assert_eq!(state.breakdown().cached, Bytes::mib(17));
//! assert_eq!(state.snapshot().segments[0].blocks.len(), 2);
//! # Ok::<(), blockyard_record::RecordingError>(())
//! ```
//!
//! # Decisions
//!
//! - **Steps are requests.** Step *i* of a recording is request *i* of its workload and covers a range of
//!   events. The cursor counts events, so that a viewer can stop inside a step, between the split and the
//!   allocation.
//! - **A step without events has a note.** Requests about memory pools and settings change no memory. A
//!   recording keeps a note of each such request, and the sentences of a figure use the note.
//! - **A recording stores differences.** Events, ends of steps and breakdowns are encoded as differences from
//!   the entry before, in groups that can be decoded alone: 7 to 18 bytes for each event, saved states
//!   included. A state is saved every 512 events at first, and less often if the state is large. When more
//!   than 256 saved states take more than a byte an event, every second one is dropped and the interval
//!   doubles. So memory stays bounded, and any moment is near a saved state.
//! - **One type updates the statistics**, [`Stats`], from two sides: the allocator, and [`MemoryState`] from
//!   the events. Each side decides alone *when* something counts, and a property test compares the two.
//! - **Sizes for people have two digits after the point**, rounded, but never up to a whole number
//!   ([`Bytes`]). A text about an amount that has to suffice uses [`Bytes::enough_text`].

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod breakdown;
mod encoding;
mod event;
mod host_stats;
mod id;
mod intern;
mod on_done;
mod oom;
mod own_code;
mod packed_events;
mod packed_steps;
mod packed_times;
mod recording;
mod snapshot;
mod stack_category;
mod stacks;
mod state;
mod stats;
mod trace;
mod units;
mod varint;

// The three types that the rules name are part of the vocabulary.
pub use blockyard_rules::{Backend, Bytes, PoolKind};
pub use breakdown::Breakdown;
pub use event::{Event, EventSink, FailureCause, NullSink};
pub use host_stats::{DurationStat, HostStats};
pub use id::{AllocationId, BlockId, FrameId, PoolId, SegmentId, StackId, StreamId, TextId};
pub use intern::Texts;
pub use on_done::OnDone;
pub use oom::{MemoryAtFailure, OomCause, OomLimit, OomRequest};
pub use own_code::{
    INSTALLED_PATHS, StackHolder, UNNAMED_SITE, WORKSPACE_FRAME, frame_text, function_name, is_library_file,
    own_caller, own_line, own_operator, shortened_path,
};
pub use recording::{
    Label, Marker, Note, OpenSize, Recorder, Recording, RecordingError, RecordingSize, RunInfo, Step,
    StepOutcome,
};
pub use snapshot::{BlockSnapshot, BlockState, SegmentInfo, SegmentSnapshot, Snapshot};
pub use stack_category::StackCategory;
pub use stacks::{Frame, Stacks};
pub use state::{MemoryState, StateError};
pub use stats::{Stat, StatArray, Stats};
pub use trace::{TraceAction, TraceEntry};
pub use units::{
    DeviceAddr, HostAddr, counted, exact_size, grouped, index_u32, joined, next_u32, sentence, signed,
    with_causes,
};
