//! Random operator calls and programs: PyTorch's own code beside our operators, event by event.
//!
//! The same program text runs on both sides: by `crates/programs/python` on our operators, and by
//! `crates/programs/dry-run` on PyTorch's own build, without a GPU. An event is an allocation or a free, with
//! its bytes. Addresses are not compared.
//!
//! # Reading order
//!
//! `template` (the table of calls, `calls.txt`), `calls` (programs of many calls), `networks` (whole random
//! programs), `cycles` (programs with cycles of references, of what `cycles.py` has), `ours` and `pytorch`
//! (the two sides), `run` (a run cut into calls), `both` (a batch of calls on both sides), `jobs` (many
//! batches at the same time), `report`, `known` (differences whose cause is known, with how often each may
//! occur), `random` (random numbers from a seed), `command`.

mod both;
mod calls;
mod command;
mod cycles;
mod jobs;
mod known;
mod networks;
mod ours;
mod pytorch;
mod report;
mod run;
mod template;

pub use both::{CallOutcome, ComparedCall, Sides, Times, compare_calls};
pub use calls::{Call, Calls, program};
pub use command::{TorchOracleOptions, run};
pub use cycles::Cycles;
pub use jobs::{Jobs, JobsOutcome};
pub use known::{KnownCause, known_causes, unexpected};
pub use networks::Networks;
pub use ours::{OurProcesses, OurSide, run_for_another, run_ours};
pub use pytorch::{PyTorch, Values};
pub use report::{OperatorDifference, OracleReport, RecordedCall, read_findings};
pub use run::{CallComparison, CallRun, PrintedLine, ProgramRun, compare};
