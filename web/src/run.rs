//! From what the reader typed to a run that can be drawn.

use std::ops::ControlFlow;
use std::sync::Arc;

use blockyard_figure::Series;
use blockyard_record::{Bytes, PoolId, Recorder, Recording, RunInfo};
use blockyard_replay::StepDataCheck;
use blockyard_replay::job::{Job, JobError, JobOutput, OpenedRecording, read, run_text};
use blockyard_workload::{Request, Workload, parse_size};

use crate::jobs::JobFailure;
use crate::ptr_eq::PtrEq;

/// What a workload is run with, as the reader typed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Input {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) config: String,
    pub(crate) capacity: String,
    /// Whether it runs on the reader's GPU, and not on the virtual device.
    pub(crate) on_gpu: bool,
}

/// A finished run, ready to be drawn.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) workload: Workload,
    pub(crate) recording: Arc<Recording>,
    /// For an opened recording: what it says of itself, and how the replay compares.
    pub(crate) opened: Option<OpenedRecording>,
    /// For a run on the reader's GPU: what was done to the contents of its memory, for each step.
    pub(crate) data_checks: Option<Vec<StepDataCheck>>,
    pub(crate) series: Series,
    /// The most segments that there ever are, unless the peaks were reset.
    pub(crate) most_segments: usize,
    /// What the program calls its memory pools, ascending.
    pub(crate) pool_names: Arc<Vec<(PoolId, String)>>,
}

impl Run {
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

    /// A run of a workload that was made elsewhere.
    pub(crate) fn of(workload: Workload, recording: Recording) -> Self {
        Self::new(JobOutput { workload, recording, opened: None, data_checks: None })
    }

    /// A run of nothing.
    pub(crate) fn empty() -> Self {
        let info = RunInfo { max_split_size: -1, capacity: Bytes::gib(1), ..RunInfo::default() };
        // A recorder that was given no event has nothing to object to.
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

/// What became of an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attempt {
    Ran(PtrEq<Run>),
    /// It is wrong, or it failed; the last good run stays.
    Failed(InputError),
    /// It is too long to be run while the page waits, or it runs on the GPU.
    Long,
}

/// What is wrong with an input, by the place where the reader mends it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InputError {
    Text {
        message: String,
        /// Line, column (from 1) and number of characters.
        place: (u32, u32, u32),
    },
    Config(String),
    Capacity(String),
    /// The GPU that it ran on.
    Device(String),
    /// Nothing that the reader typed.
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

/// The most requests that are run while the page waits; about 8 ms of work.
const SHORT: u64 = 2000;

/// Reading a text alone takes time too.
const MOST_BYTES: usize = 200_000;

/// The job that runs the input.
pub(crate) fn job(input: &Input) -> Result<Job, InputError> {
    Ok(Job::Run {
        title: input.title.clone(),
        text: input.text.clone(),
        config: input.config.trim().to_owned(),
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
    if input.on_gpu {
        // A run there has effects: a command makes it. Errors in the input are still shown at once.
        return match read_input(&job) {
            Ok(()) => Attempt::Long,
            Err(error) => Attempt::Failed(error.into()),
        };
    }
    let done = match &job {
        Job::Run { title, text, config, capacity } => {
            run_text(title, text, config, *capacity, &mut |_| ControlFlow::Continue(()))
        }
        // Files are the worker's.
        Job::Open { .. } => return Attempt::Long,
    };
    match done {
        Ok(product) => Attempt::Ran(PtrEq::new(Run::new(product))),
        Err(error) => Attempt::Failed(error.into()),
    }
}

fn read_input(job: &Job) -> Result<(), JobError> {
    match job {
        Job::Run { title, text, config, capacity } => read(title, text, config, *capacity).map(drop),
        Job::Open { .. } => Ok(()),
    }
}

/// Whether running the text takes so little that the page may wait for it; an error in the text is shown at once.
fn is_short(text: &str) -> bool {
    text.len() < MOST_BYTES && Workload::length(text).map_or(true, |length| length <= SHORT)
}
