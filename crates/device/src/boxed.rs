//! Any device as one type, so that the allocator is compiled once for all of them.

use std::fmt;

use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::{Advance, DeviceError, DeviceMemory, MemoryInfo, StreamEvent, VirtualMemory};

trait StreamedDevice: DeviceMemory<Event = StreamEvent> + Advance + fmt::Debug {}

impl<D: DeviceMemory<Event = StreamEvent> + Advance + fmt::Debug> StreamedDevice for D {}

/// Any device whose user advances its streams, as one type. The allocator is then compiled once for all such
/// devices, which keeps the page small.
#[derive(Debug)]
pub struct AnyDevice(Box<dyn StreamedDevice>);

impl AnyDevice {
    /// Wraps `device`.
    #[must_use]
    pub fn new(device: impl DeviceMemory<Event = StreamEvent> + Advance + fmt::Debug + 'static) -> Self {
        Self(Box::new(device))
    }
}

impl Advance for AnyDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        self.0.advance_streams(stream);
    }

    fn end_failed_request(&mut self) {
        self.0.end_failed_request();
    }
}

impl DeviceMemory for AnyDevice {
    type Event = StreamEvent;

    fn total_memory(&self) -> Bytes {
        self.0.total_memory()
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.0.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.0.allocate_segment(size)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.0.release_segment(base)
    }

    fn record_event(&mut self, stream: StreamId) -> Result<StreamEvent, DeviceError> {
        self.0.record_event(stream)
    }

    fn is_complete(&self, event: &StreamEvent) -> Result<bool, DeviceError> {
        self.0.is_complete(event)
    }

    fn wait(&mut self, event: &StreamEvent) -> Result<(), DeviceError> {
        self.0.wait(event)
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        self.0.virtual_memory()
    }
}
