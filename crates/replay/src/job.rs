//! Runs and comparisons as messages that cross a thread border.

use std::error::Error;

use blockyard_allocator::AllocError;
use blockyard_pytorch::RecordedRun;
use blockyard_record::{Bytes, Recording};
use blockyard_workload::{ParseError, Workload};
use serde::{Deserialize, Serialize};

use crate::{
    AllocatorConfig, Comparison, OnProgress, Progress, RunError, RunSettings, StepDataCheck, run, verify,
};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Runs a workload's text on a virtual device.
    Run {
        /// What to call the run.
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
        /// Its content, plain or gzip.
        bytes: Vec<u8>,
    },
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Product {
    /// The requests.
    pub workload: Workload,
    /// What the allocator did with them.
    pub recording: Recording,
    /// For an opened recording: what it is, and what is the same.
    pub opened: Option<OpenedRecording>,
    /// For a run on a device with contents: what was done to them, for each step.
    pub data_checks: Option<Vec<StepDataCheck>>,
}

/// What a recording says of itself, and how the replay compares with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedRecording {
    /// The release of PyTorch.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub config: String,
    /// The device's name, or empty.
    pub device: String,
    /// What is the same.
    pub comparison: Comparison,
}

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum JobError {
    /// The workload's text has an error.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// Its line, counted from 1.
        line: u32,
        /// Its column in characters, counted from 1.
        column: u32,
        /// How many characters to underline.
        length: u32,
        /// What is wrong.
        message: String,
    },
    /// The settings have an error.
    #[error("PYTORCH_CUDA_ALLOC_CONF: {0}")]
    Config(String),
    /// The file cannot be opened.
    #[error("{name}: {message}")]
    File {
        /// Its name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The device failed, and the run with it.
    #[error("{0}")]
    Device(String),
    /// It was broken off.
    #[error("cancelled")]
    Cancelled,
    /// It went wrong in another way.
    #[error("{0}")]
    Failed(String),
}

/// Does the job, telling `on_progress` every few thousand requests.
///
/// # Errors
///
/// [`JobError`] says what is wrong and where.
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

/// The workload and the settings that the texts mean.
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
    let config: AllocatorConfig = config.parse().map_err(RunError::Config)?;
    let workload = Workload::parse(text).map_err(|error| text_error(&error))?;
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
    // An error that only passes another one on has the same text.
    let mut texts = vec![error.to_string()];
    texts.extend(causes.map(ToString::to_string));
    texts.dedup();
    texts.join(": ")
}
