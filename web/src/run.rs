//! Runs that can be drawn: of the workload that the reader typed, of an opened file, and on a GPU.

use std::ops::ControlFlow;
use std::sync::Arc;

use blockyard_figure::Series;
use blockyard_record::{Bytes, PoolId, Recorder, Recording, RunInfo, StepOutcome};
use blockyard_replay::StepDataCheck;
use blockyard_replay::job::{Job, JobError, JobOutput, OpenedRecording, read, run_text};
use blockyard_workload::{Request, Workload, parse_size};

use crate::jobs::JobFailure;
use crate::ptr_eq::PtrEq;

/// A workload with its settings and its device, as the reader typed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Input {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) conf: String,
    pub(crate) capacity: String,
    /// Whether the workload runs on the reader's GPU instead of the virtual device.
    pub(crate) is_on_gpu: bool,
}

/// A finished run, ready to be drawn.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) workload: Workload,
    pub(crate) recording: Arc<Recording>,
    /// The facts in the file of an opened recording; `None` for other runs.
    pub(crate) opened: Option<OpenedRecording>,
    /// The checks of block data in each step of a run on the reader's GPU; `None` for other runs.
    pub(crate) data_checks: Option<Vec<StepDataCheck>>,
    pub(crate) series: Series,
    /// The most segments at any moment, or since the run last reset its peaks.
    pub(crate) most_segments: usize,
    /// The names of the memory pools in the workload, ascending by pool.
    pub(crate) pool_names: Arc<Vec<(PoolId, String)>>,
}

impl Run {
    /// Whether a step ran out of memory.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed_before(None)
    }

    /// Whether one of the first `last` steps ran out of memory; any step if `last` is `None`.
    pub(crate) fn has_failed_before(&self, last: Option<usize>) -> bool {
        let mut failed = self.recording.failed_steps().iter();
        failed.any(|(step, outcome)| {
            let is_shown = last.is_none_or(|last| (*step as usize) < last);
            is_shown && matches!(outcome, StepOutcome::OutOfMemory(_))
        })
    }

    pub(crate) fn new(product: JobOutput) -> Self {
        let series = Series::new(&product.recording);
        let last = product.recording.state_at(product.recording.event_count());
        let most_segments = last.map_or(0, |last| last.stats().segment.all.peak);
        let pools = (1..).map(|user| PoolId { user, ..PoolId::DEFAULT });
        let pool_names =
            pools.map_while(|pool| product.workload.pool_name(pool).map(|name| (pool, name.to_owned())));
        Self {
            pool_names: Arc::new(pool_names.collect()),
            workload: product.workload,
            recording: Arc::new(product.recording),
            opened: product.opened,
            data_checks: product.data_checks,
            series,
            most_segments: usize::try_from(most_segments).unwrap_or(0),
        }
    }

    /// A run with a recording that was made elsewhere.
    pub(crate) fn of(workload: Workload, recording: Recording) -> Self {
        Self::new(JobOutput { workload, recording, opened: None, data_checks: None })
    }

    /// A run without steps.
    pub(crate) fn empty() -> Self {
        let info = RunInfo { max_split_size: -1, capacity: Bytes::gib(1), ..RunInfo::default() };
        // `finish` fails only for events that contradict each other, and this run has no event.
        let recording =
            Recorder::new(info).finish().unwrap_or_else(|error| wasm_bindgen::throw_str(&error.to_string()));
        Self::of(Workload::default(), recording)
    }

    /// The line of the workload's text that made the step, counted from 1.
    pub(crate) fn line(&self, step: usize) -> Option<u32> {
        self.workload.line(step)
    }

    /// The request of the step.
    pub(crate) fn request(&self, step: usize) -> Option<&Request> {
        self.workload.requests().get(step)
    }
}

/// The result of trying to run an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attempt {
    /// The input ran.
    Ran(PtrEq<Run>),
    /// The input is wrong, or its run failed. The figures keep the last good run.
    Failed(InputError),
    /// A worker has to run the input, because it is long or because it runs on the GPU.
    Long,
}

/// The error in an input. The variant names the field that the reader has to mend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InputError {
    /// The text of the workload.
    Text {
        message: String,
        /// Line and column, counted from 1, and the number of wrong characters.
        place: (u32, u32, u32),
    },
    /// The settings.
    Config(String),
    /// The capacity of the device.
    Capacity(String),
    /// The GPU failed.
    Device(String),
    /// The error is in none of the fields.
    Other(String),
}

impl From<JobError> for InputError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Text { line, column, length, message } => {
                Self::Text { message, place: (line, column, length) }
            }
            JobError::Config(message) => Self::Config(message),
            JobError::Device(message) => Self::Device(message),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<JobFailure> for InputError {
    fn from(failure: JobFailure) -> Self {
        match failure {
            JobFailure::Job(error) => error.into(),
            JobFailure::Worker(why) => Self::Other(why),
        }
    }
}

/// Workloads of more requests run in the worker. This many take about 8 ms.
const MAX_REQUESTS: u64 = 2000;

/// Texts of more bytes run in the worker, because parsing them takes time too.
const MAX_BYTES: usize = 200_000;

/// The job that runs the input.
pub(crate) fn job(input: &Input) -> Result<Job, InputError> {
    Ok(Job::Run {
        title: input.title.clone(),
        text: input.text.clone(),
        conf: input.conf.trim().to_owned(),
        capacity: parse_size(&input.capacity).map_err(|error| InputError::Capacity(error.to_string()))?,
    })
}

/// Runs the input at once if it is short.
pub(crate) fn attempt(input: &Input) -> Attempt {
    let job = match job(input) {
        Ok(job) => job,
        Err(failure) => return Attempt::Failed(failure),
    };
    if !is_short(&input.text) {
        return Attempt::Long;
    }
    let Job::Run { title, text, conf, capacity } = &job else { return Attempt::Long };
    if input.is_on_gpu {
        // A run on the GPU has effects, so a command makes it and not this memo. Errors in the input are
        // still shown at once.
        return match read(title, text, conf, *capacity) {
            Ok(_) => Attempt::Long,
            Err(error) => Attempt::Failed(error.into()),
        };
    }
    match run_text(title, text, conf, *capacity, &mut |_| ControlFlow::Continue(())) {
        Ok(product) => Attempt::Ran(PtrEq::new(Run::new(product))),
        Err(error) => Attempt::Failed(error.into()),
    }
}

/// Whether the text is short enough to run on the page's thread. A text with an error counts as short, so
/// that the error is shown at once.
fn is_short(text: &str) -> bool {
    text.len() < MAX_BYTES && Workload::length(text).map_or(true, |length| length <= MAX_REQUESTS)
}
