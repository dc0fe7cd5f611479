//! The device as the suite needs it: with contents, and with streams whose work runs as late as it may.

use blockyard_device::{Advance, DeviceError, DeviceMemory, MemoryInfo, StreamEvent};
#[cfg(not(target_arch = "wasm32"))]
use blockyard_device_wgpu::WgpuMismatch;
use blockyard_device_wgpu::{Gpu, StreamedWgpu, WgpuDevice};
use blockyard_record::{Bytes, DeviceAddr, StreamId};
use blockyard_tests::{Fault, PatternMemory};

use crate::range;

#[derive(Debug)]
pub(crate) struct StreamedDevice(pub(crate) StreamedWgpu);

impl StreamedDevice {
    pub(crate) fn new(gpu: &Gpu, capacity: Bytes) -> Self {
        Self(StreamedWgpu::new(WgpuDevice::new(gpu, capacity)))
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn fault(mismatch: WgpuMismatch) -> Fault {
    let WgpuMismatch { range, wrong, at, found, .. } = mismatch;
    let (addr, size, pattern) = (range.addr, range.size, range.pattern);
    Fault { addr, size, pattern, wrong: wrong.into(), first: at, found: Some(found) }
}

impl PatternMemory for StreamedDevice {
    fn fill(
        &mut self,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError> {
        self.0.fill(stream, range(addr, size, pattern));
        Ok(())
    }

    fn check(
        &mut self,
        stream: StreamId,
        addr: DeviceAddr,
        size: Bytes,
        pattern: u32,
    ) -> Result<(), DeviceError> {
        self.0.check(stream, range(addr, size, pattern), 0);
        Ok(())
    }

    // Streams need not be held: no work runs before a call waits for it.
    fn hold(&mut self, _stream: StreamId) -> Result<(), DeviceError> {
        Ok(())
    }

    fn resume(&mut self, _stream: StreamId) -> Result<(), DeviceError> {
        Ok(())
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError> {
        self.0.advance_streams(None);
        Ok(self.0.mismatches_now()?.into_iter().map(fault).collect())
    }

    /// Returns no faults: a browser reads results back only between tasks, so the test awaits all faults at
    /// its end.
    #[cfg(target_arch = "wasm32")]
    fn faults(&mut self) -> Result<Vec<Fault>, DeviceError> {
        self.0.advance_streams(None);
        Ok(Vec::new())
    }
}

impl Advance for StreamedDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        self.0.advance_streams(stream);
    }
}

impl DeviceMemory for StreamedDevice {
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
}
