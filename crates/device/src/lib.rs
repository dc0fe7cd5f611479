//! The device that an allocator sits on.
//!
//! [`DeviceMemory`] holds only what the allocator calls: segments, points in a stream's work, how much memory there
//! is. Policy, rounding and validation stay above it. Two devices without hardware live here: [`VirtualDevice`], whose
//! streams its user advances, and [`RecordedDevice`], which hands out the segment addresses of a recording;
//! [`MirroredDevice`] puts such a recording in front of any other device. [`HostMemory`] is the same for pinned memory of the
//! host.

#![forbid(unsafe_code)]

mod boxed;
mod error;
mod host;
mod mapped;
mod mirrored;
mod recorded;
mod streams;
mod virtual_device;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

pub use boxed::AnyDevice;
pub use error::DeviceError;
pub use host::{HostMemory, PinnedAllocation, Pinning, VirtualHostMemory};
pub use mirrored::{MirroredDevice, MirroredEvent};
pub use recorded::{InitialMemory, RecordedDevice, RecordedDeviceFailure, RecordedOom};
pub use streams::StreamEvent;
pub use virtual_device::VirtualDevice;

/// How much memory a device has at this moment, as its driver reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// The device's number among those of the machine, as messages name it.
    pub index: u32,
    /// Bytes that no process holds.
    pub free: Bytes,
    /// All bytes.
    pub total: Bytes,
    /// What each process holds, in the driver's order, where the driver tells; PyTorch asks NVML.
    pub processes: Vec<ProcessMemory>,
}

/// What one process holds on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The process, or `None` for this one.
    pub process: Option<u32>,
    /// Bytes that it holds.
    pub used: Bytes,
}

/// A device that gives out segments of memory and runs streams of work.
pub trait DeviceMemory {
    /// A point in a stream's work.
    type Event: std::fmt::Debug;

    /// All bytes of the device.
    fn total_memory(&self) -> Bytes;

    /// What is free and who holds the rest. A question: asking changes nothing.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`], [`DeviceError::Sticky`] and [`DeviceError::Driver`] as the driver reports.
    fn memory_info(&self) -> Result<MemoryInfo, DeviceError>;

    /// Takes a segment of `size` bytes; its address is a multiple of 512.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when the device has not that much, to which an allocator can react; the others pass
    /// through it, [`DeviceError::TooLarge`] among them.
    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError>;

    /// Gives the segment at `base` back, once work that uses it is done.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when no segment starts there.
    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError>;

    /// Marks the end of the work that `stream` has so far.
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

    /// Addresses that get memory page by page, where the device has them; expandable segments need it.
    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        None
    }
}

/// A device whose streams of work go on when a workload says so.
pub trait Advance {
    /// Does all work that the stream has so far; of all streams for `None`.
    ///
    /// What goes wrong meanwhile is told by the next call of the device.
    fn advance_streams(&mut self, stream: Option<StreamId>);

    /// Says that a request for memory failed, after all that the allocator tried for it.
    ///
    /// A device that repeats a recording cannot see from its own calls where one request ends and the next one begins.
    fn end_failed_request(&mut self) {}
}

/// Addresses that are reserved first and get memory page by page.
pub trait VirtualMemory {
    /// Reserves `size` bytes of addresses, without memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when there are not that many addresses left.
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError>;

    /// Gives a range of addresses up that [`VirtualMemory::reserve`] returned; none of it may have memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when no empty range starts there.
    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError>;

    /// Gives `size` bytes from `addr` on memory, in pages of `page` bytes; all of them or none.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] when the device has not that much, [`DeviceError::UnknownSegment`] when they are not all
    /// of one range or some have memory.
    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError>;

    /// Takes the memory of `size` bytes from `addr` on away, once work that uses it is done.
    ///
    /// # Errors
    ///
    /// [`DeviceError::UnknownSegment`] when some have none.
    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError>;
}
