//! Errors of runs and comparisons.

use blockyard_allocator::AllocError;
use blockyard_device::DeviceError;
use blockyard_pytorch::ReadError;
use blockyard_record::RecordingError;
use blockyard_rules::ConfigError;

use blockyard_pytorch::trace::RewindError;

/// Why a run or a comparison has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The caller cancelled the work.
    #[error("cancelled")]
    Cancelled,
    /// The settings text has an error.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The recording cannot be read or replayed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording begins late, and the memory before it cannot be found.
    #[error("the recording begins late, and the memory before it cannot be found: {0}")]
    Rewind(#[from] RewindError),
    /// The run is too long to record, or its events do not fit together.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The device failed for another reason than a lack of memory, or cannot have the memory that the run
    /// begins with.
    #[error(transparent)]
    Allocator(AllocError),
}

impl From<DeviceError> for RunError {
    fn from(error: DeviceError) -> Self {
        Self::Allocator(error.into())
    }
}
