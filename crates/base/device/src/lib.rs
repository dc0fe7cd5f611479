//! The device that an allocator takes its segments from.
//!
//! The trait [`DeviceMemory`] has only the calls that the allocator makes: allocate and release segments,
//! record events and wait for them, return how much memory is free. Policy, rounding and validation belong to
//! the allocator. Two devices need no hardware: [`VirtualDevice`], whose user advances the streams, and
//! [`RecordedDevice`], which returns the segment addresses of a recording. [`MirroredDevice`] shows the
//! addresses of a recording and takes the memory from another device. [`HostMemory`] is the trait for pinned
//! memory of the host.
//!
//! # Example
//!
//! ```
//! use blockyard_device::{DeviceError, DeviceMemory, VirtualDevice};
//! use blockyard_record::{Bytes, StreamId};
//!
//! let mut device = VirtualDevice::new(Bytes::mib(32));
//! let segment = device.allocate_segment(Bytes::mib(20))?;
//! assert_eq!(device.memory_info()?.free, Bytes::mib(12));
//! assert!(matches!(device.allocate_segment(Bytes::mib(20)), Err(DeviceError::OutOfMemory { .. })));
//!
//! // The work of a stream is complete when the user of the device says so.
//! let event = device.record_event(StreamId::DEFAULT)?;
//! assert!(!device.is_complete(&event)?);
//! device.advance(StreamId::DEFAULT);
//! assert!(device.is_complete(&event)?);
//!
//! device.release_segment(segment)?;
//! # Ok::<(), DeviceError>(())
//! ```
//!
//! # Decisions
//!
//! - **Addresses come from the device.** Best fit breaks ties by address, so a replay uses the recorded
//!   segment addresses in order ([`RecordedDevice`]). Without a recording, addresses grow by the rule at
//!   [`VirtualDevice`].
//! - **Recorded addresses on a real device.** A driver chooses addresses by its own rules. So an exact replay
//!   on a real device shows the recorded addresses to the allocator, and takes a real segment, page and event
//!   for each ([`MirroredDevice`]). If the driver's addresses are used instead, the same addresses without
//!   hardware must lead to the same run.
//! - **A device over another one names the calls that it passes on** ([`forward_device!`]), and writes the
//!   others.
//! - **The page has one type of device**, [`AnyDevice`], so that the allocator over a device is compiled
//!   once.

#![forbid(unsafe_code)]

mod boxed;
mod error;
mod forward;
mod host;
mod mapped;
mod mirrored;
mod random;
mod recorded;
mod streams;
mod virtual_device;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

pub use boxed::AnyDevice;
pub use error::DeviceError;
pub use host::{HostMemory, PinnedAllocation, Pinning, VirtualHostMemory};
pub use mirrored::{MirroredDevice, MirroredEvent};
pub use random::{Random, mixed};
pub use recorded::{InitialMemory, RecordedDevice, RecordedDeviceFailure, RecordedOom};
pub use streams::StreamEvent;
pub use virtual_device::{AddressOrder, VirtualDevice};

/// How much memory a device has at this moment, as the driver reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// The index of the device in the machine, for messages.
    pub index: u32,
    /// Bytes that no process uses.
    pub free: Bytes,
    /// All bytes.
    pub total: Bytes,
    /// How much each process uses, in the driver's order, if the driver reports it. PyTorch asks NVML.
    pub processes: Vec<ProcessMemory>,
}

/// How much memory one process uses on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The process, or `None` for this one.
    pub process: Option<u32>,
    /// Bytes that the process uses.
    pub used: Bytes,
}

/// A device that allocates segments of memory and runs streams of work.
pub trait DeviceMemory {
    /// A point in a stream's work.
    type Event: std::fmt::Debug;

    /// All bytes of the device.
    fn total_memory(&self) -> Bytes;

    /// How much memory is free, and how much each process uses, if the driver reports it. The call has no
    /// effect on the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`], [`DeviceError::Sticky`] and [`DeviceError::Driver`] as the driver reports.
    fn memory_info(&self) -> Result<MemoryInfo, DeviceError>;

    /// Allocates a segment of `size` bytes. The address is a multiple of 512.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when not enough memory is free; an allocator reacts to it by releasing
    /// cached segments. An allocator passes all other errors on, also [`DeviceError::TooLarge`].
    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError>;

    /// Releases the segment at `base`, once the work that uses the segment is done.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when no segment starts at `base`.
    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError>;

    /// Records an event after the work that `stream` has so far.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`], [`DeviceError::Sticky`] and [`DeviceError::Driver`] as the driver reports.
    fn record_event(&mut self, stream: StreamId) -> Result<Self::Event, DeviceError>;

    /// Whether the work before `event` is done. Never blocks.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`], [`DeviceError::Sticky`] and [`DeviceError::Driver`] as the driver reports.
    fn is_complete(&self, event: &Self::Event) -> Result<bool, DeviceError>;

    /// Blocks until the work before `event` is done.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`], [`DeviceError::Sticky`] and [`DeviceError::Driver`] as the driver reports.
    fn wait(&mut self, event: &Self::Event) -> Result<(), DeviceError>;

    /// The virtual memory of the device, if it has any. Expandable segments need virtual memory.
    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        None
    }
}

/// A device whose user decides when the work of a stream is done.
pub trait Advance {
    /// Completes all work that the stream has so far, or the work of all streams for `None`.
    ///
    /// If that fails, the next call of the device reports the error.
    fn advance_streams(&mut self, stream: Option<StreamId>);

    /// Marks the end of a request that failed after all attempts of the allocator.
    ///
    /// A device that repeats a recording cannot see from the calls it gets where one request ends and the
    /// next one begins.
    fn end_failed_request(&mut self) {}
}

/// Virtual memory: addresses are reserved first, and memory is mapped into them page by page.
pub trait VirtualMemory {
    /// Reserves `size` bytes of addresses, and maps no memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when not enough addresses are left.
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError>;

    /// Releases a range of addresses that [`VirtualMemory::reserve`] returned. No memory may be mapped in the
    /// range.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when no range without memory starts at `base`.
    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError>;

    /// Maps memory into `size` bytes from `addr` on, in pages of `page` bytes: all of the pages or none.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when not enough memory is free, [`DeviceError::UnknownSegment`] when the
    /// addresses are not all in one range or some of them are mapped.
    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError>;

    /// Unmaps `size` bytes from `addr` on, once the work that uses the memory is done.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when some of the bytes are not mapped.
    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError>;
}
