//! The vocabulary that every other crate speaks.
//!
//! What a run of an allocator *is*, as plain data: byte counts and addresses ([`Bytes`], [`DeviceAddr`]), identities
//! that are minted once and never reused ([`SegmentId`], [`BlockId`], [`AllocationId`]), the [`Event`]s that an
//! allocator reports, the [`MemoryState`] that they add up to, the [`Stats`] that PyTorch keeps, and a whole run as a
//! [`Recording`].
//!
//! The accounting that holds at every moment, in bytes:
//!
//! * allocated ≤ active ≤ reserved ≤ capacity
//! * requested (of allocated blocks) ≤ allocated
//! * capacity = requested + rounding + pending + cached + free on the device (see [`Breakdown`])
//!
//! This crate must not know a policy: it applies events and never decides one. It knows no file format either.

#![forbid(unsafe_code)]

mod backend;
mod breakdown;
mod event;
mod host_stats;
mod id;
mod intern;
mod packed_events;
mod packed_steps;
mod packed_times;
mod recording;
mod snapshot;
mod stacks;
mod state;
mod stats;
mod trace;
mod units;
mod varint;

pub use backend::Backend;
pub use breakdown::Breakdown;
pub use event::{Event, EventSink, FailureCause, NullSink};
pub use host_stats::{DurationStat, HostStats};
pub use id::{AllocationId, BlockId, FrameId, PoolId, PoolKind, SegmentId, StackId, StreamId, TextId};
pub use intern::Texts;
pub use recording::{
    Label, Marker, Note, OpenSize, Outcome, Recorder, Recording, RecordingError, RecordingSize, RunInfo, Step,
};
pub use snapshot::{BlockSnapshot, BlockState, SegmentInfo, SegmentSnapshot, Snapshot};
pub use stacks::{Frame, Stacks};
pub use state::{MemoryState, StateError};
pub use stats::{Stat, StatArray, Stats};
pub use trace::{TraceAction, TraceEntry};
pub use units::{Bytes, DeviceAddr, HostAddr, grouped};
