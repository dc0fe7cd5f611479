//! Errors of questions.

use blockyard_pytorch::snapshot::SnapshotError;
use blockyard_pytorch::{OpenError, PastedText};
use blockyard_replay::RunError;
use blockyard_rules::ConfigError;
use blockyard_workload::ParseError;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
    /// A settings text is wrong.
    #[error("PYTORCH_CUDA_ALLOC_CONF: {0}")]
    Config(#[from] ConfigError),
    /// The snapshot has no trace: it shows which blocks exist, but not what was requested.
    #[error("the snapshot has no trace; torch.cuda.memory._record_memory_history() switches it on")]
    NoTrace,
    /// The run has no such iteration.
    #[error("the run has {iterations} iterations, counted from 1, and no iteration {iteration}")]
    NoIteration {
        /// The number of the requested iteration.
        iteration: usize,
        /// How many iterations were found.
        iterations: usize,
    },
    /// The snapshot cannot be read.
    #[error(transparent)]
    Snapshot(SnapshotError),
    /// The text of a workload is wrong.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// The file is a text of PyTorch about memory: the sentences about its numbers.
    #[error("{}", .0.lines())]
    Pasted(PastedText),
    /// The file is neither a recording nor a snapshot nor a text.
    #[error(transparent)]
    UnknownFile(OpenError),
    /// The requests cannot be found or replayed.
    #[error(transparent)]
    Run(RunError),
}

impl From<RunError> for LabError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Cancelled => Self::Cancelled,
            RunError::Config(error) => Self::Config(error),
            error => Self::Run(error),
        }
    }
}
