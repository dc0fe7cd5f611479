//! The JSON that Blockyard answers with, as types: each JSON that the command prints with `--json` and that
//! the Python package gets is written through a type of this crate, and reads back into it.
//!
//! The crate holds the contract, and no question is answered here. The crates that answer questions return
//! these types; where they know more than the JSON shows, their types contain these, or are written into
//! them. A program that reads Blockyard's answers needs this crate and a reader of JSON.
//!
//! Every document but those of `verify` and `python` has a version, [`VERSION`]. The version grows when a
//! field changes its meaning or goes; a field may be added without that, and readers pass over fields that
//! they do not know. [`read`] reads this version alone. Sizes are bytes, addresses are those of a replay,
//! requests and steps are counted from 1, and `notes` are sentences about what is not known.
//!
//! A type with `Answer` at the end is a whole answer, or is written from a larger type. Types of one document
//! alone begin with its name (`Fit`, `DryRun`, `Guard`).
//!
//! With the feature `schema` each type has a JSON Schema; those of the documents are written in
//! `docs/schema`.
//!
//! # Example
//!
//! ```
//! use blockyard_answers::{Answer, Bytes, QuestionLine};
//!
//! let printed = r#"{"version": 1, "file": "run.jsonl", "run": "run", "question": "leaks",
//!     "sentence": "2 iterations, found by its markers: nothing grows", "steps": "markers",
//!     "boundaries": [10, 20], "live": [512, 1024], "growing": [], "notes": []}"#;
//! let QuestionLine::Answer(line) = serde_json::from_str(printed)? else { panic!("no answer") };
//! let Answer::Leaks(leaks) = line.answer else { panic!("another question") };
//! assert_eq!(leaks.live, [512, 1024].map(Bytes::new));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod allocators;
mod autopsy;
mod bound;
mod certificate;
mod code_fix;
mod diff;
mod dry_run;
mod fit;
mod fit_layouts;
mod fit_map;
mod fit_run;
mod fit_run_end;
mod fit_settings;
mod gap;
mod guard;
mod leaks;
mod limit;
mod line;
mod outcome;
mod program;
mod read;
mod rest;
mod snapshot;
mod verdict;

// The words of runs that answers have.
pub use blockyard_record::{Bytes, DeviceAddr, MemoryAtFailure, OomCause, PoolId, PoolKind, StreamId};

pub use allocators::{AllocatorRow, AllocatorsAnswer};
pub use autopsy::{
    AutopsyAnswer, AutopsyFailure, CacheKeeper, Change, ChangeKind, FailedAllocation, PinnedSegment,
    PinningBlock,
};
pub use bound::BoundAnswer;
pub use certificate::{
    CertificateAnswer, ComparedFacts, Difference, FactCount, VerifyAnswer, VerifyError, VerifyLine,
};
pub use code_fix::{CodeFix, CodeFixKind};
pub use diff::{Alignment, Diff, DiffAnswer, LineChange, PeakChange, PeakDiff};
pub use dry_run::{
    BytesRange, DeviceRange, DryRunAddresses, DryRunAnswer, DryRunChild, DryRunEstimateNote, DryRunGpu,
    DryRunHolder, DryRunLine, DryRunNonPytorch, DryRunOrders, DryRunPeaks, DryRunRank, DryRunRanks,
    DryRunResult, DryRunStep, Keeper, ProgramLine, PutLine,
};
pub use fit::{FitAnswer, FitCall, FitLargestAnswer, FitLargestOnGpu, FitResult, FitSite, FitTriedSetting};
pub use fit_layouts::{FitLayout, FitLayoutsAnswer, FitLayoutsOnGpu, FitRank};
pub use fit_map::{FitBy, FitMapAnswer, FitMapOnGpu, FitMapRow};
pub use fit_run::{
    FitConditions, FitContradiction, FitContradictionKind, FitFailedRequest, FitGpu, FitGrowth,
    FitGrowthKind, FitHolder, FitPeaks, FitRun, FitValues, FitVary, FitVaryKind,
};
pub use fit_run_end::FitRunEnd;
pub use fit_settings::{FitOom, FitReplay, FitReplayResult, FitSetting, FitSettingsAnswer, FitSettingsOnGpu};
pub use gap::{Gap, GapAtMoment, GapOutcome, GapParts, GapRemedy, GapRemedyKind};
pub use guard::{GuardAnswer, GuardBaseline, GuardFailure, GuardHolder, GuardRow, GuardStep, GuardedProgram};
pub use leaks::{GrowingCallSite, IterationSource, LeaksAnswer};
pub use limit::{Limit, LimitKind, LimitSource};
pub use line::{Answer, AnswerLine, ErrorLine, QuestionKind, QuestionLine};
pub use outcome::{
    ComparedOutcome, FirstDifference, FirstOom, ReplayedOutcome, SearchAnswer, SettingOutcome, SettingResult,
    WhatIfAnswer,
};
pub use program::{EstimatedOperator, ProgramAnswer, ProgramDevice, ProgramNote};
pub use read::{Document, DocumentError, VERSION, read};
pub use rest::{LaterFailure, RestOfIteration, RestSource};
pub use snapshot::{
    DeviceAnswer, HolderAnswer, MomentAnswer, OutOfMemoryEvent, SnapshotAnswer, SnapshotLine, StackFrame,
};
pub use verdict::{
    DeviceOfFile, Finding, FindingTopic, Forecast, HoldingLine, MomentName, VerdictAnswer, VerdictKind,
    VerdictMoment, called_at,
};
