use blockyard_record::{Bytes, DeviceAddr, HostAddr};

/// Why a device did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is not that much memory left; nothing changed, and less may still work.
    #[error("the device has no {requested} left")]
    OutOfMemory {
        /// The size of the segment that was wanted.
        requested: Bytes,
    },
    /// No segment of this device starts at the address.
    #[error("no segment of this device starts at {0}")]
    UnknownSegment(DeviceAddr),
    /// No segment of this device can be that large, however much memory is free; nothing changed, and less may still work.
    #[error("a segment of {requested} is more than the device gives at once: {largest}")]
    TooLarge {
        /// The size of the segment that was wanted.
        requested: Bytes,
        /// The size of the largest segment.
        largest: Bytes,
    },
    /// No pinned memory starts at the address.
    #[error("no pinned memory starts at {0}")]
    UnknownHostMemory(HostAddr),
    /// The device is gone, and all its memory with it.
    #[error("the device was lost")]
    Lost {
        /// The driver's own word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Work that was given to the device earlier broke it: until the process ends every call fails with the same word.
    #[error("{operation} failed, and so will every later call")]
    Sticky {
        /// What was asked of the driver when it told.
        operation: &'static str,
        /// The driver's own word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver refused for a reason of its own.
    #[error("{operation} failed")]
    Driver {
        /// What was asked of the driver.
        operation: &'static str,
        /// The driver's own word.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
