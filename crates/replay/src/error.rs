use blockyard_allocator::{AllocError, ConfigError};
use blockyard_device::DeviceError;
use blockyard_pytorch::ReadError;
use blockyard_record::RecordingError;

use crate::RewindError;

/// Why a run or a comparison came to no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The one who is told about progress broke it off.
    #[error("cancelled")]
    Cancelled,
    /// The settings text is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The recording cannot be read or replayed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The recording begins late, and what was there before cannot be found.
    #[error("the recording begins late, and what was there before cannot be found: {0}")]
    Rewind(#[from] RewindError),
    /// The run is too long to record, or its events do not add up.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The device failed in another way than for want of memory.
    #[error(transparent)]
    Allocator(AllocError),
}

impl From<DeviceError> for RunError {
    fn from(error: DeviceError) -> Self {
        Self::Allocator(error.into())
    }
}
