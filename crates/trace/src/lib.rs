//! What a trace of PyTorch implies and does not say: the memory before its first entry, where segments begin and end, the sizes of
//! blocks, the requests of the program, and which calls of the driver failed.
//!
//! A trace is read in two ways. For drawing, [`record`] makes a recording of a snapshot: the segments at the end are right, an entry that
//! does not fit them is counted and passed over, and a size that stays open is drawn as small as it can be. For replaying, [`requests`]
//! and [`rewind`] make requests and the memory to begin with: an entry that does not fit is an error, and each block has one size, which
//! replays may correct ([`Rewound`]). Both go back through [`MemoryBefore`].
//!
//! This crate knows the rules of PyTorch's allocator and no allocator: nothing here decides where a block is placed.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

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
pub use infer::{DeviceFailure, Inferred, OomReport, requests, requests_after};
pub use layout::Misfits;
pub use record::{DeviceRecording, beginning, record};
pub use rewind::{RewindError, Rewound, SizeRange, SizeSources, rewind};
pub use run::{SnapshotRequests, recorded_run, snapshot_requests};
pub use unplaced::{UnplacedStack, UnplacedTrace, unplaced};

/// The settings that a text of a file means, as far as they are known; the default ones for a text that no run can have.
fn settings(text: &str) -> AllocatorConfig {
    let (known, _) = known_config(text, Release::LATEST);
    AllocatorConfig::parse(&known, Release::LATEST).unwrap_or_default()
}
