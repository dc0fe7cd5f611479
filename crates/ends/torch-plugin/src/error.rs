//! Errors of the plug-in.

use std::io;
use std::path::PathBuf;

use blockyard_allocator::AllocError;
use blockyard_device_cuda::CudaOpenError;
use blockyard_record::{DeviceAddr, StateError};
use blockyard_rules::EnvironmentError;

use crate::cause::cause;
use crate::devices::Device;

/// Why a call of the plug-in failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PluginError {
    /// The environment has settings that PyTorch would refuse, or that this allocator does not know.
    #[error("{variable} cannot be used")]
    RunSettings {
        /// The variable that has the settings.
        variable: &'static str,
        #[source]
        source: EnvironmentError,
    },
    /// The device cannot be used.
    #[error("CUDA device {device} cannot be used")]
    Open {
        device: i32,
        #[source]
        source: CudaOpenError,
    },
    /// A number that no device has.
    #[error("there is no CUDA device {0}")]
    NoSuchDevice(i32),
    /// Nothing was allocated on the device yet.
    #[error("nothing was allocated on CUDA device {0} yet")]
    Unused(i32),
    /// The allocator refused. The text is PyTorch's.
    #[error(transparent)]
    Allocator(#[from] AllocError),
    /// A request that found no memory: PyTorch's text, and the cause.
    #[error("{error}\nBlockyard: {cause}.")]
    OutOfMemory {
        error: AllocError,
        /// One sentence without a full stop.
        cause: String,
    },
    /// A size below zero.
    #[error("a request of {0} bytes")]
    Size(isize),
    /// Memory that cannot be shared by its base address.
    #[error("memory of expandable segments at {0} has no base to share; set expandable_segments:False")]
    Expandable(DeviceAddr),
    /// A pool's number that is too large.
    #[error("no memory pool has the number ({0}, {1})")]
    Pool(u64, u64),
    /// A pointer argument that is null or not text.
    #[error("the argument {0} is missing or is not text")]
    Argument(&'static str),
    /// A recording is running.
    #[error("CUDA device {0} is being recorded already")]
    Recording(i32),
    /// No recording is running.
    #[error("CUDA device {0} is not being recorded")]
    NotRecording(i32),
    /// The events of the history do not fit each other: an error of this library.
    #[error("what was noted of CUDA device {device} does not add up")]
    History {
        device: i32,
        #[source]
        source: StateError,
    },
    /// The file cannot be written.
    #[error("{} cannot be written", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Stacks are wanted in a process without Python.
    #[error("this process has no Python interpreter whose stacks could be recorded")]
    NoPython,
    /// A panic, now or earlier: a defect of this library, after which the allocator's state cannot be
    /// trusted.
    #[error("the allocator failed inside and gives nothing any more; please report what it said before")]
    Panicked,
}

impl PluginError {
    /// Whether PyTorch would raise `torch.OutOfMemoryError`.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(
            self,
            Self::Allocator(
                AllocError::OutOfMemory(_)
                    | AllocError::MallocAsyncOutOfMemory(_)
                    | AllocError::UncachedOutOfMemory { .. }
                    | AllocError::TooLarge { .. }
            )
        )
    }

    /// The error with the cause why the device had no memory for the request; unchanged for other errors.
    pub(crate) fn with_cause(self, device: i32) -> Self {
        match (self, Device::opened(device)) {
            (Self::Allocator(AllocError::OutOfMemory(failed)), Some(device)) => {
                let cause = cause(&failed, &device.allocator.with(|allocator| allocator.snapshot()));
                Self::OutOfMemory { error: AllocError::OutOfMemory(failed), cause }
            }
            (error, _) => error,
        }
    }

    /// The message with all its causes.
    pub(crate) fn text(&self) -> String {
        blockyard_record::with_causes(self)
    }
}
