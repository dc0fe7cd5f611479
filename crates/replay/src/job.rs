//! Runs and comparisons as messages to a worker thread.

use std::error::Error;

use blockyard_allocator::AllocError;
use blockyard_pytorch::RecordedRun;
use blockyard_record::{Bytes, Recording};
use blockyard_workload::{ParseError, Workload};
use serde::{Deserialize, Serialize};

use crate::{
    AllocatorConfig, Comparison, OnProgress, Progress, RunError, RunSettings, StepDataCheck, run, verify,
};

/// The work of one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Runs a workload's text on a virtual device.
    Run {
        /// The name of the run.
        title: String,
        /// The workload.
        text: String,
        /// `PYTORCH_CUDA_ALLOC_CONF`.
        config: String,
        /// All bytes of the device.
        capacity: Bytes,
    },
    /// Replays a recording through the allocator and compares.
    Open {
        /// The file's name.
        name: String,
        /// The content of the file, plain or gzip.
        bytes: Vec<u8>,
    },
}

/// The result of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Product {
    /// The requests.
    pub workload: Workload,
    /// The run of the allocator.
    pub recording: Recording,
    /// For an opened recording: its properties, and the comparison.
    pub opened: Option<OpenedRecording>,
    /// For a run that checks data: what was filled and checked in each step.
    pub data_checks: Option<Vec<StepDataCheck>>,
}

/// The properties of an opened recording, and its comparison with the replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedRecording {
    /// The release of PyTorch.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub config: String,
    /// The device's name, or empty.
    pub device: String,
    /// The comparison with the replay.
    pub comparison: Comparison,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum JobError {
    /// The workload's text has an error.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// The line, counted from 1.
        line: u32,
        /// The column in characters, counted from 1.
        column: u32,
        /// How many characters to underline.
        length: u32,
        /// The message.
        message: String,
    },
    /// The settings have an error.
    #[error("PYTORCH_CUDA_ALLOC_CONF: {0}")]
    Config(String),
    /// The file cannot be opened.
    #[error("{name}: {message}")]
    File {
        /// The name of the file.
        name: String,
        /// The message.
        message: String,
    },
    /// The device failed, which ended the run.
    #[error("{0}")]
    Device(String),
    /// The job was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The job failed for another reason.
    #[error("{0}")]
    Failed(String),
}

/// Runs the job, and calls `on_progress` every few thousand requests.
///
/// # Errors
///
/// [`JobError`] names the cause and its place.
pub fn perform(job: &Job, on_progress: OnProgress) -> Result<Product, JobError> {
    match job {
        Job::Run { title, text, config, capacity } => {
            if on_progress(Progress::new("reading", 0, 0)).is_break() {
                return Err(JobError::Cancelled);
            }
            let (workload, settings) = read(title, text, config, *capacity)?;
            let recording = run(&workload, &settings, on_progress)?;
            Ok(Product { workload, recording, opened: None, data_checks: None })
        }
        Job::Open { name, bytes } => {
            if on_progress(Progress::new("reading", 0, 0)).is_break() {
                return Err(JobError::Cancelled);
            }
            let recorded = RecordedRun::read(bytes).map_err(|error| job_error(error.into(), name))?;
            let verified = verify(&recorded, on_progress).map_err(|error| job_error(error, name))?;
            let opened = OpenedRecording {
                torch: recorded.meta.torch,
                config: recorded.meta.config,
                device: recorded.meta.device,
                comparison: verified.comparison,
            };
            Ok(Product {
                workload: verified.workload,
                recording: verified.recording,
                opened: Some(opened),
                data_checks: None,
            })
        }
    }
}

/// Parses the texts of the workload and of the settings.
///
/// # Errors
///
/// [`JobError::Text`] and [`JobError::Config`].
pub fn read(
    title: &str,
    text: &str,
    config: &str,
    capacity: Bytes,
) -> Result<(Workload, RunSettings), JobError> {
    let workload = Workload::parse(text).map_err(|error| text_error(&error))?;
    // What the text says of itself holds wherever it is run.
    let config: AllocatorConfig = workload.config().unwrap_or(config).parse().map_err(RunError::Config)?;
    let capacity = workload.capacity().unwrap_or(capacity);
    Ok((workload, RunSettings { title: title.to_owned(), config, capacity }))
}

impl From<RunError> for JobError {
    fn from(error: RunError) -> Self {
        job_error(error, "")
    }
}

fn text_error(error: &ParseError) -> JobError {
    let (line, column, length) = error.position();
    JobError::Text { line, column, length, message: error.kind().to_string() }
}

fn job_error(error: RunError, name: &str) -> JobError {
    match error {
        RunError::Cancelled => JobError::Cancelled,
        RunError::Config(error) if name.is_empty() => JobError::Config(error.to_string()),
        RunError::Config(error) => {
            JobError::File { name: name.to_owned(), message: format!("its settings: {error}") }
        }
        RunError::Allocator(AllocError::Device(error)) if name.is_empty() => {
            JobError::Device(with_causes(&error))
        }
        RunError::Read(error) => JobError::File { name: name.to_owned(), message: error.to_string() },
        error if name.is_empty() => JobError::Failed(with_causes(&error)),
        error => JobError::File { name: name.to_owned(), message: with_causes(&error) },
    }
}

fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    // A transparent error has the text of its source, which must not appear twice.
    let mut texts = vec![error.to_string()];
    texts.extend(causes.map(ToString::to_string));
    texts.dedup();
    texts.join(": ")
}
