//! Errors of the driver, under the driver's own names.

use std::fmt;

use blockyard_device::DeviceError;
use blockyard_record::Bytes;

/// The driver's error code for a call that failed, with its name and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    code: u32,
    name: String,
    description: String,
}

impl CudaError {
    pub(crate) fn new(code: u32, name: String, description: String) -> Self {
        Self { code, name, description }
    }

    /// The number of the `CUresult`.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.code
    }

    /// The name of the `CUresult`, `CUDA_ERROR_OUT_OF_MEMORY`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's text, `out of memory`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.code == OUT_OF_MEMORY
    }

    pub(crate) fn is_no_device(&self) -> bool {
        self.code == NO_DEVICE
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.code, self.description)
    }
}

impl std::error::Error for CudaError {}

/// Why a CUDA device could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaOpenError {
    /// This machine has no CUDA driver.
    #[error("there is no CUDA driver here: the library {library} could not be loaded")]
    NoDriver {
        /// The name of the library.
        library: &'static str,
    },
    /// The driver finds no device that it can use.
    #[error("the CUDA driver finds no device")]
    NoDevice {
        /// The driver's error, if it reported one.
        #[source]
        source: Option<CudaError>,
    },
    /// The machine has devices, but none with this index.
    #[error("there is no CUDA device {index}: the driver has {}", Devices(*.count))]
    NoSuchDevice {
        /// The index that the caller asked for, counted from 0.
        index: u32,
        /// How many devices the machine has.
        count: u32,
    },
    /// The device has not even the memory that the driver needs for itself.
    #[error("the CUDA device has no memory left for a context")]
    OutOfMemory {
        /// The driver's own word.
        #[source]
        source: CudaError,
    },
    /// The driver refused for another reason.
    #[error("{operation} failed")]
    Driver {
        /// The driver's function that failed.
        operation: &'static str,
        /// The driver's own word.
        #[source]
        source: CudaError,
    },
}

struct Devices(u32);

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => write!(f, "1 device, number 0"),
            count => write!(f, "{count} devices, numbers 0 to {}", count.saturating_sub(1)),
        }
    }
}

/// A call that failed.
#[derive(Clone, Debug)]
pub(crate) struct DriverError {
    pub(crate) operation: &'static str,
    pub(crate) error: CudaError,
}

const OUT_OF_MEMORY: u32 = 2;
const NO_DEVICE: u32 = 100;

/// After each of these errors the driver answers every call of the process with the same error: uncorrectable
/// memory and link errors, illegal addresses and instructions, failed assertions, launches that were cut off
/// or failed.
const STICKY: &[u32] = &[214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];

/// The driver was shut down, the device was lost, or other code destroyed or reset the context.
const LOST: &[u32] = &[4, 46, 201, 709];

impl DriverError {
    /// The error of a call that asked for `requested` bytes.
    pub(crate) fn of_request(self, requested: Bytes) -> DeviceError {
        if self.error.is_out_of_memory() { DeviceError::OutOfMemory { requested } } else { self.into() }
    }

    pub(crate) fn of_open(self) -> CudaOpenError {
        let Self { operation, error: source } = self;
        if source.is_no_device() {
            CudaOpenError::NoDevice { source: Some(source) }
        } else if source.is_out_of_memory() {
            CudaOpenError::OutOfMemory { source }
        } else {
            CudaOpenError::Driver { operation, source }
        }
    }
}

impl From<DriverError> for DeviceError {
    fn from(DriverError { operation, error }: DriverError) -> Self {
        let (code, source) = (error.code, Box::new(error));
        if STICKY.contains(&code) {
            Self::Sticky { operation, source }
        } else if LOST.contains(&code) {
            Self::Lost { source }
        } else {
            Self::Driver { operation, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: u32) -> DriverError {
        DriverError {
            operation: "cuCall",
            error: CudaError::new(code, "NAME".to_owned(), "words".to_owned()),
        }
    }

    #[test]
    fn what_the_driver_says_decides_what_a_caller_can_do() {
        let requested = Bytes::mib(2);
        assert!(
            matches!(failure(2).of_request(requested), DeviceError::OutOfMemory { requested: found } if found == requested)
        );
        assert!(matches!(
            failure(700).of_request(requested),
            DeviceError::Sticky { operation: "cuCall", .. }
        ));
        assert!(matches!(failure(719).into(), DeviceError::Sticky { .. }));
        assert!(matches!(failure(709).into(), DeviceError::Lost { .. }));
        assert!(matches!(failure(1).into(), DeviceError::Driver { operation: "cuCall", .. }));
        assert!(matches!(failure(100).of_open(), CudaOpenError::NoDevice { source: Some(_) }));
        assert!(matches!(failure(2).of_open(), CudaOpenError::OutOfMemory { .. }));
        assert!(matches!(failure(999).of_open(), CudaOpenError::Driver { .. }));
    }

    #[test]
    fn messages_have_the_drivers_word() {
        use std::error::Error as _;
        let error: DeviceError = failure(1).into();
        assert_eq!(error.to_string(), "cuCall failed");
        assert_eq!(error.source().unwrap().to_string(), "NAME (1): words");
        let none = CudaOpenError::NoSuchDevice { index: 3, count: 1 };
        assert_eq!(none.to_string(), "there is no CUDA device 3: the driver has 1 device, number 0");
        let none = CudaOpenError::NoSuchDevice { index: 3, count: 2 };
        assert_eq!(none.to_string(), "there is no CUDA device 3: the driver has 2 devices, numbers 0 to 1");
    }
}
