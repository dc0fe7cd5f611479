//! Any device as one type, so that the allocator is compiled once for all of them.

use std::fmt;

use crate::{Advance, DeviceMemory, StreamEvent, forward_device};

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
    forward_device!(|device| device.0 => advance_streams, end_failed_request);
}

impl DeviceMemory for AnyDevice {
    type Event = StreamEvent;

    forward_device!(|device| device.0 => total_memory, memory_info, allocate_segment, release_segment);
    forward_device!(|device| device.0 => record_event, is_complete, wait, virtual_memory);
}
