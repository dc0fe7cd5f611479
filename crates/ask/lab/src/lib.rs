//! Questions about a run, answered by replaying its requests.
//!
//! A [`Run`] holds the requests of a recording, a snapshot or a workload. [`what_if`] replays them under
//! other settings, another capacity or another limit; [`search`] tries all sensible settings; [`autopsy`]
//! says why a run goes out of memory, and proves which changes would have helped; [`bound`] says how little
//! memory any allocator could need; [`compare_allocators`] replays the requests through other allocators;
//! [`diff`] says what changed between two runs, [`leaks`] what grows inside of a run. [`gap`]
//! says why more is reserved than requested. [`verdict`] says what happened, what grows, what held the memory
//! and what helps. Every question takes and returns plain data, reports its progress and can be cancelled, so
//! that a worker can answer it.
//!
//! Every replay, also the one under the recorded settings, takes its segments by one rule, so that only the
//! conditions in question differ. As long as the replay asks for segments of the recorded sizes in the
//! recorded order, segments have the recorded addresses; from then on they are above all recorded ones
//! ([`RecordedDevice`](blockyard_device::RecordedDevice)). So a run under its own settings reserves what
//! PyTorch reserved. A recording that begins late is the exception, since its first requests stand for memory
//! that was allocated before; the run says so in a note.
//!
//! A run has these forms, and each is made from the one above it:
//!
//! | type | is |
//! | --- | --- |
//! | `RecordedRun` (crate `pytorch`) | the operations, trace and segments that a file has |
//! | `ReplayableRun` (crate `replay`) | its requests, the driver's answers, and the memory before |
//! | [`Run`] | the same as one value that every question takes; also made of a workload |
//! | [`LimitedRun`] | a `Run` with the limit that was given, or that the file implies |
//! | `ChangedRun` | a `Run` with one change, for the proof of an advice |
//! | `CompletedRun` | a `Run` that failed, with the requests that would have come next |
//!
//! This crate knows no file, no screen and no clock.
//!
//! # Example
//!
//! ```
//! use blockyard_lab::{Conditions, Run, what_if};
//! use blockyard_record::Bytes;
//! use blockyard_workload::Workload;
//! use std::ops::ControlFlow;
//!
//! let workload = Workload::parse("a = alloc 3 MiB; b = alloc 30 MiB; free a, b")?;
//! let run = Run::from_workload("example", workload, "", Bytes::gib(1));
//! let other = Conditions::with_conf("large_segment_size_mb:40");
//! let answer = what_if(&run, &[other], 0, &mut |_| ControlFlow::Continue(()))?;
//!
//! let baseline = answer.baseline.outcome_at_lowest().map(|outcome| outcome.peak_reserved);
//! assert_eq!(baseline, Some(Bytes::mib(50)));
//! assert_eq!(answer.rows.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Sums of bytes saturate: the largest number is more than any device has. Differences that would be negative
// are zero, which happens only in a damaged file.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod addresses;
mod autopsy;
mod bound;
mod code_fixes;
mod compare;
mod conditions;
mod devices;
mod diff;
mod difference;
mod error;
mod forecast;
mod from_snapshot;
mod gap;
mod implied_limit;
mod keepers;
mod leaks;
mod lifetimes;
mod limited_run;
mod live;
mod outcome;
mod question;
mod recommendation;
mod request_numbers;
mod rest;
mod run;
mod running;
mod setting_search;
mod sites;
mod source;
mod state;
mod verdict;
mod what_if;

// Parts of answers that are the JSON of `blockyard-answers`.
pub use blockyard_answers::{
    Alignment, AllocatorRow, AutopsyFailure, CacheKeeper, Change, ChangeKind, CodeFix, CodeFixKind,
    DeviceOfFile, Diff, FailedAllocation, Finding, FindingTopic, FirstDifference, FirstOom, Forecast, Gap,
    GapAtMoment, GapOutcome, GapParts, GapRemedy, GapRemedyKind, GrowingCallSite, HoldingLine,
    IterationSource, Keeper, LaterFailure, LeaksAnswer, Limit, LimitKind, LimitSource, LineChange,
    MomentName, PeakChange, PeakDiff, PinnedSegment, PinningBlock, QuestionKind, RestOfIteration, RestSource,
    VerdictAnswer, VerdictKind, VerdictMoment,
};
pub use blockyard_gpus::{context_and_libraries, non_pytorch_measured_text, pytorch_memory};

pub use addresses::{AddressDependence, RunBytes, address_dependence};
pub use autopsy::{Autopsy, autopsy, try_change};
pub use bound::{Bound, Placement, bound};
pub use compare::compare_allocators;
pub use conditions::{Conditions, device_text, gpu_for_pytorch};
pub use diff::{diff, diff_iterations};
pub use difference::first_difference;
pub use error::LabError;
pub use forecast::{forecast, forecast_settings};
pub use gap::gap;
pub use keepers::{FoundKeepers, IterationEnds, keeper_growth_text, keeper_text, keepers, shown_keepers};
pub use leaks::{Leaks, leaks};
pub use limited_run::LimitedRun;
pub use live::{BEFORE_RECORDING, WITHOUT_PROGRAM_LINE, WORKSPACES, holding_line};
pub use outcome::{Outcome, Row, RowError, Sample, replay_under};
pub use question::{LabAnswer, Question};
pub use request_numbers::request_text;
pub use run::Run;
pub use running::{LAST_STEPS, MAX_RUNNING_STEPS, RUNNING, RunningProgram, RunningStep, WHOLE_RECORDING};
pub use setting_search::{SearchResult, SearchStep, candidates, is_drivers_pool, plain_candidates, search};
pub use source::{RunSource, Simulation};
pub use verdict::{Fix, GrowthAdvice, Verdict, growth_text, is_much_growth, verdict};
pub use what_if::{WhatIf, what_if};
