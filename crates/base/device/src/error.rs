//! Errors of devices.

use blockyard_record::{Bytes, DeviceAddr, HostAddr};

/// Why a call of a device failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is not enough free memory. Nothing changed; a smaller request may succeed.
    #[error("the device has no {requested} left")]
    OutOfMemory {
        /// The requested size of the segment.
        requested: Bytes,
    },
    /// No segment of this device starts at the address.
    #[error("no segment of this device starts at {0}")]
    UnknownSegment(DeviceAddr),
    /// No segment of this device can be so large, whatever is free. Nothing changed; a smaller request may
    /// succeed.
    #[error("a segment of {requested} is more than the device gives at once: {largest}")]
    TooLarge {
        /// The requested size of the segment.
        requested: Bytes,
        /// The size of the largest segment.
        largest: Bytes,
    },
    /// The device has no virtual memory, which expandable segments need.
    #[error("the device has no virtual memory")]
    NoVirtualMemory,
    /// No pinned memory starts at the address.
    #[error("no pinned memory starts at {0}")]
    UnknownHostMemory(HostAddr),
    /// The device is lost, and all its memory with it.
    #[error("the device was lost")]
    Lost {
        /// The error of the driver.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Earlier work broke the device: every call fails with the same error until the process ends.
    #[error("{operation} failed, and so will every later call")]
    Sticky {
        /// The call that reported the error.
        operation: &'static str,
        /// The error of the driver.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver failed for another reason.
    #[error("{operation} failed")]
    Driver {
        /// The call that failed.
        operation: &'static str,
        /// The error of the driver.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
