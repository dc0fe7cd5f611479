//! The device as the suite needs it: with contents, and with streams whose work runs as late as it may.

use blockyard_device::{Advance, DeviceError, DeviceMemory, StreamEvent, forward_device};
#[cfg(not(target_arch = "wasm32"))]
use blockyard_device_wgpu::WgpuMismatch;
use blockyard_device_wgpu::{Gpu, StreamedWgpu, WgpuDevice};
use blockyard_record::{Bytes, StreamId};
use blockyard_replay::PatternedBlock;
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
    let block = PatternedBlock { addr: range.addr, size: range.size, pattern: range.pattern };
    Fault { block, wrong: wrong.into(), first: at, found: Some(found) }
}

impl PatternMemory for StreamedDevice {
    fn fill(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.0.fill(stream, range(block.addr, block.size, block.pattern));
        Ok(())
    }

    fn check(&mut self, stream: StreamId, block: PatternedBlock) -> Result<(), DeviceError> {
        self.0.check(stream, range(block.addr, block.size, block.pattern), 0);
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
    forward_device!(|device| device.0 => advance_streams);
}

impl DeviceMemory for StreamedDevice {
    type Event = StreamEvent;

    forward_device!(|device| device.0 => total_memory, memory_info, allocate_segment, release_segment);
    forward_device!(|device| device.0 => record_event, is_complete, wait);
}
