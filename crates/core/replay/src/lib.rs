//! Runs of requests through an allocator.
//!
//! [`run`] runs a workload with the allocator on a virtual device and returns the [`Recording`]. [`verify`]
//! replays a recording of PyTorch's allocator and compares everything that the recording contains. [`Runner`]
//! runs one request at a time on any device. [`CheckedRun`] proves on a device with real memory that no two
//! blocks share a byte. [`totals`] and [`sweep`] record nothing, for callers who need only the statistics of
//! a configuration. [`replay_rival`] sends the requests to another allocator than PyTorch's. [`job`] has runs
//! and comparisons as messages to a worker thread.
//!
//! # Example
//!
//! ```
//! use blockyard_replay::{RunSettings, run};
//! use blockyard_record::Bytes;
//! use blockyard_rules::AllocatorConfig;
//! use blockyard_workload::Workload;
//! use std::ops::ControlFlow;
//!
//! let workload = Workload::parse("a = alloc 3 MiB; b = alloc 5 MiB; free a; c = alloc 3 MiB")?;
//! let settings = RunSettings { title: "example".to_owned(), config: AllocatorConfig::default(), capacity: Bytes::gib(1) };
//! let recording = run(&workload, &settings, &mut |_| ControlFlow::Continue(()))?;
//!
//! assert_eq!(recording.step_count(), 4);
//! let state = recording.state_at(recording.event_count())?;
//! assert_eq!(state.breakdown().allocated(), Bytes::mib(8));
//! assert_eq!(state.breakdown().reserved(), Bytes::mib(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type runs
//!
//! | type | runs | for |
//! | --- | --- | --- |
//! | `Dispatcher` | one request: calls the allocator, and keeps which block a tensor has | all below |
//! | [`Runner`] | one request at a time, with its [`StepOutcome`](blockyard_record::StepOutcome) and the sentence of its step; records | the page's workbench, [`run`], [`verify`] |
//! | [`CheckedRun`] | a `Runner` on a device with real memory, whose blocks have patterns | the page on WebGPU, tests of devices |
//! | [`Replayer`] | up to the next failed request; keeps neither results nor sentences | questions of the lab, which replay a run hundreds of times |
//! | [`PreparedWorkload`] | nothing: requests whose tensors share slots, so that a replay touches little memory | `Replayer`, [`totals`], [`sweep`] |
//! | [`ReplayableRun`] | nothing: a recorded run with its requests, and the memory before the first of them | [`verify`], the lab |
//!
//! # Decisions
//!
//! - **This crate uses `pytorch`**: comparing with a recording is the purpose of this crate, and the types of
//!   recorded runs are in `pytorch`.
//! - **Our allocator decides each placement again** ([`certify`]): a snapshot becomes a recording without an
//!   allocator (`blockyard_pytorch::trace`), and the certificate is a second product of the same trace.
//! - **Sizes that a trace leaves open are found by replays** (`decide`), until best fit and the recorded sums
//!   agree. The memory fraction of garbage collection is found by binary search (`fraction`).
//! - **The data of blocks is checked step by step** ([`CheckedRun`]): a block is filled with a pattern when
//!   it is allocated, and checked on its streams before it is freed. Live blocks are checked after each step:
//!   all of them while that is little work, otherwise those in the segment of the new block, which are all
//!   that filling the new block could damage.
//! - **Where PyTorch's order is that of a hash table** (frees of several streams that complete together),
//!   [`verify`] compares sets and says so.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod certificate;
mod compare;
mod data_check;
mod decide;
mod dispatch;
mod earlier_stats;
mod error;
mod fraction;
pub mod job;
mod notes;
mod progress;
mod replayable;
mod replayer;
mod rival;
pub mod rivals;
mod runner;
mod totals;
mod verify;

pub use blockyard_answers::Difference;
pub use certificate::{Certificate, certify};
pub use compare::{Comparison, Count, placements_meaning};
pub use data_check::{CheckedRun, DataCheck, PatternedBlock, StepDataCheck};
pub use error::RunError;
pub use progress::{OnProgress, Progress};
pub use replayable::{ReplayableRun, device_of, open};
pub use replayer::{Replayer, RequestFailure};
pub use rival::{RivalRun, replay_rival};
pub use runner::{Runner, TraceRecorder};
pub use totals::{PreparedWorkload, Totals, sweep, totals, totals_into};
pub use verify::{Verification, verify, verify_on};

use std::ops::ControlFlow;

use blockyard_device::{Advance, AnyDevice, DeviceMemory, VirtualDevice};
use blockyard_record::{Bytes, Recording};
use blockyard_rules::AllocatorConfig;
use blockyard_workload::Workload;

/// The name, the settings and the device of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// The name of the run.
    pub title: String,
    /// The allocator's settings.
    pub config: AllocatorConfig,
    /// All bytes of the device.
    pub capacity: Bytes,
}

/// Runs the workload on a virtual device.
///
/// A request that fails does not end the run. A failed allocation is a step with its outcome, and later
/// requests for its tensor are skipped, with an outcome that says so.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` cancels the run, [`RunError::Recording`] when the run is too
/// long to record.
pub fn run(
    workload: &Workload,
    settings: &RunSettings,
    on_progress: OnProgress,
) -> Result<Recording, RunError> {
    run_on(AnyDevice::new(VirtualDevice::new(settings.capacity)), workload, settings, on_progress)
}

/// Runs the workload on any device, as [`run`] does.
///
/// # Errors
///
/// The errors of [`run`], and [`RunError::Allocator`] when the device fails for another reason than a lack of
/// memory.
pub fn run_on<D: DeviceMemory + Advance>(
    device: D,
    workload: &Workload,
    settings: &RunSettings,
    on_progress: OnProgress,
) -> Result<Recording, RunError> {
    let mut runner = Runner::new(device, settings, workload);
    let total = workload.requests().len();
    for index in 0..total {
        if Progress::is_due(index)
            && on_progress(Progress::new("running", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        runner.step()?;
    }
    let (recording, _) = runner.finish()?;
    Ok(recording)
}
