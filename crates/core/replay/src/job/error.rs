//! Errors of jobs, as messages between threads.

use blockyard_allocator::AllocError;
use blockyard_record::with_causes;
use blockyard_workload::ParseError;
use serde::{Deserialize, Serialize};

use crate::RunError;

/// Why a job failed, as a message to another thread.
///
/// The causes are texts, because the original errors cannot be sent: an error of a driver has the driver's
/// own type. There is a variant for each case in which the receiver shows the text at another place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
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
    /// A file was to be opened on the GPU, which runs only workloads.
    #[error("only workloads run on the GPU")]
    OnlyWorkloadsOnGpu,
    /// The job was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The job failed for another reason.
    #[error("{0}")]
    Failed(String),
}

impl From<RunError> for JobError {
    fn from(error: RunError) -> Self {
        job_error(error, None)
    }
}

pub(super) fn text_error(error: &ParseError) -> JobError {
    let (line, column, length) = error.position();
    JobError::Text { line, column, length, message: error.kind().to_string() }
}

/// The message about an error of a job, which opened the file with this name or ran a text.
pub(super) fn job_error(error: RunError, file: Option<&str>) -> JobError {
    let Some(name) = file else { return text_job_error(error) };
    let message = match error {
        RunError::Cancelled => return JobError::Cancelled,
        RunError::Config(error) => format!("its settings: {error}"),
        RunError::Read(error) => error.to_string(),
        error => with_causes(&error),
    };
    JobError::File { name: name.to_owned(), message }
}

fn text_job_error(error: RunError) -> JobError {
    match error {
        RunError::Cancelled => JobError::Cancelled,
        RunError::Config(error) => JobError::Config(error.to_string()),
        RunError::Allocator(AllocError::Device(error)) => JobError::Device(with_causes(&error)),
        error => JobError::Failed(with_causes(&error)),
    }
}
