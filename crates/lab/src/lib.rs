//! Questions about a run, answered by replaying its requests.
//!
//! A [`Run`] holds the requests of a recording or of a workload. [`what_if`] replays them under other settings, another
//! capacity or another limit; [`search`] tries all sensible settings. Every question takes plain data and gives plain data back, tells how far it has come, and can
//! be cancelled, so that a worker can answer it.
//!
//! Every replay, that of the recorded settings included, places segments by the rule of
//! [`VirtualDevice`](blockyard_device::VirtualDevice). So only what was asked about differs.
//! This crate knows no file, no screen and no clock.

#![forbid(unsafe_code)]

mod autopsy;
mod bound;
mod compare;
mod conditions;
mod diff;
mod difference;
mod error;
mod from_snapshot;
mod leaks;
mod lifetimes;
mod limit;
mod outcome;
mod run;
mod search;
mod sites;
mod what_if;

pub use autopsy::{
    Autopsy, Cause, Change, ChangeKind, FailedAllocation, MemoryAtFailure, PinnedSegment, PinningBlock,
    autopsy,
};
pub use bound::{Bound, Placement, bound};
pub use compare::{AllocatorRow, compare_allocators};
pub use conditions::Conditions;
pub use diff::{Alignment, Diff, PeakDiff, Term, diff};
pub use difference::{Difference, first_difference};
pub use error::LabError;
pub use leaks::{Growth, Leaks, Steps, leaks};
pub use limit::{Limit, LimitSource};
pub use outcome::{FirstOom, Outcome, Row, Sample, replay_under};
pub use run::Run;
pub use search::{Found, SearchStep, candidates, judge, search};
pub use what_if::{WhatIf, what_if};
