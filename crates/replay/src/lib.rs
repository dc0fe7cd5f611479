//! Where requests meet an allocator.
//!
//! [`run`] feeds a workload to [`CachingAllocator`](blockyard_allocator::CachingAllocator) on a virtual device and returns
//! the [`Recording`]. [`verify`] replays a recording of PyTorch's own allocator and compares
//! everything that the recording contains. [`Runner`] does one request at a time over any device; [`CheckedRun`] proves on a
//! device with contents that no block's bytes are ever another's. [`totals`] and [`sweep`] run without keeping a history, for
//! those who ask only what a configuration comes to. [`job`] is run and verify behind one door, as messages that cross a
//! thread border.

#![forbid(unsafe_code)]

mod arrange;
mod baseline;
mod certificate;
mod compare;
mod data_check;
mod dispatch;
mod error;
mod fraction;
pub mod job;
mod progress;
mod replayable;
mod replayer;
mod rewind;
mod runner;
mod totals;
mod verify;

pub use blockyard_allocator::{AllocatorConfig, ConfigError, Environment, EnvironmentError, size};
pub use blockyard_device::Advance;
pub use certificate::{Certificate, certify};
pub use compare::{Comparison, Count, Difference};
pub use data_check::{CheckedRun, DataCheck, PatternedBlock, StepDataCheck};
pub use error::RunError;
pub use progress::{OnProgress, Progress};
pub use replayable::{Replayable, device_of, open};
pub use replayer::{FailedRequest, Replayer};
pub use rewind::{OpenSize, RewindError, Rewound, SizeSources, rewind};
pub use runner::{Runner, StepResult, TraceRecorder};
pub use totals::{PreparedWorkload, Totals, sweep, totals, totals_into};
pub use verify::{Verified, verify, verify_on};

use std::ops::ControlFlow;

use blockyard_device::{AnyDevice, DeviceMemory, VirtualDevice};
use blockyard_record::{Bytes, Recording};
use blockyard_workload::Workload;

/// What to run a workload with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// What to call the run.
    pub title: String,
    /// The allocator's settings.
    pub config: AllocatorConfig,
    /// All bytes of the device.
    pub capacity: Bytes,
}

/// Runs the workload on a virtual device.
///
/// Requests that fail do not end the run: a failed allocation is a step with an outcome of its own, and what would use it
/// later is skipped and says so.
///
/// # Errors
///
/// [`RunError::Cancelled`] when `on_progress` breaks off, [`RunError::Recording`] when the run is too long to record.
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
/// As [`run`], and [`RunError::Allocator`] when the device fails in another way than for want of memory.
pub fn run_on<D: DeviceMemory + Advance>(
    device: D,
    workload: &Workload,
    settings: &RunSettings,
    on_progress: OnProgress,
) -> Result<Recording, RunError> {
    let mut runner = Runner::new(device, settings, workload);
    let total = workload.requests().len();
    for index in 0..total {
        if progress::is_due(index)
            && on_progress(Progress::new("running", index, total)) == ControlFlow::Break(())
        {
            return Err(RunError::Cancelled);
        }
        runner.step()?;
    }
    let (recording, _) = runner.finish()?;
    Ok(recording)
}
