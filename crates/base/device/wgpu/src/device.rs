//! The device whose segments are buffers of wgpu.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockyard_device::{DeviceError, DeviceMemory, MemoryInfo, VirtualDevice};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::gpu::Gpu;
use crate::work::PendingWork;

/// A point in the queue's work; all streams share the one queue.
///
/// Natively an event is complete when the driver has done all work that was submitted before the event, and
/// waiting for the event blocks. A browser reports finished work only between tasks and cannot block: there
/// an event becomes complete while its user awaits something, and waiting returns at once, since all work
/// that is submitted later finds the earlier work done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEvent(u64);

/// Memory on an open adapter, up to a capacity.
#[derive(Debug)]
pub struct WgpuDevice {
    pub(crate) gpu: Gpu,
    /// Decides on addresses and on the capacity.
    addresses: VirtualDevice,
    segments: BTreeMap<DeviceAddr, wgpu::Buffer>,
    pub(crate) work: PendingWork,
    /// The last event, and how much work had been submitted when the event was recorded.
    last_event: (u64, u64),
    completed: Arc<AtomicU64>,
}

impl WgpuDevice {
    /// A device on `gpu` that holds at most `capacity` bytes at a time.
    #[must_use]
    pub fn new(gpu: &Gpu, capacity: Bytes) -> Self {
        Self {
            gpu: gpu.clone(),
            addresses: VirtualDevice::new(capacity),
            segments: BTreeMap::new(),
            work: PendingWork::default(),
            last_event: (0, 0),
            completed: Arc::default(),
        }
    }

    /// The buffer of the segment that holds `size` bytes from `addr` on, and the offset of these bytes in the
    /// buffer.
    pub(crate) fn find(&self, addr: DeviceAddr, size: Bytes) -> Result<(&wgpu::Buffer, u64), DeviceError> {
        let found = self.segments.range(..=addr).next_back();
        let (base, buffer) = found.ok_or(DeviceError::UnknownSegment(addr))?;
        let offset = addr.offset_from(*base).get();
        match offset.checked_add(size.get()) {
            Some(end) if end <= buffer.size() => Ok((buffer, offset)),
            _ => Err(DeviceError::UnknownSegment(addr)),
        }
    }

    fn create_buffer(&self, size: Bytes) -> Result<wgpu::Buffer, DeviceError> {
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            // Buffers hold whole words.
            size: size.get().next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT),
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        if cfg!(target_arch = "wasm32") {
            return Ok(self.gpu.device.create_buffer(&descriptor));
        }
        // A native driver reports a failure at once: the allocator may then release its cache and try again.
        let out_of_memory = self.gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.gpu.device.create_buffer(&descriptor);
        match crate::work::now(out_of_memory.pop()) {
            Some(Some(_)) => Err(DeviceError::OutOfMemory { requested: size }),
            _ => Ok(buffer),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn poll(&self, how: wgpu::PollType) -> Result<(), DeviceError> {
        let polled = self.gpu.device.poll(how);
        self.gpu.health.check()?;
        polled.map(drop).map_err(|source| DeviceError::Driver {
            operation: "waiting for the queue",
            source: Box::new(source),
        })
    }
}

impl DeviceMemory for WgpuDevice {
    type Event = QueueEvent;

    fn total_memory(&self) -> Bytes {
        self.addresses.total_memory()
    }

    /// The rest of the capacity; WebGPU has no query for free memory.
    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        self.gpu.health.check()?;
        self.addresses.memory_info()
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.gpu.health.check()?;
        let largest = self.gpu.info().largest_buffer;
        // More than the capacity is out of memory, whatever the adapter could do.
        if size > largest && size <= self.addresses.memory_info()?.free {
            return Err(DeviceError::TooLarge { requested: size, largest });
        }
        let base = self.addresses.allocate_segment(size)?;
        let created = self.create_buffer(size).and_then(|buffer| {
            self.gpu.health.check()?;
            Ok(buffer)
        });
        match created {
            Ok(buffer) => {
                self.segments.insert(base, buffer);
                Ok(base)
            }
            Err(error) => {
                self.addresses.release_segment(base)?;
                Err(error)
            }
        }
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        self.gpu.health.check()?;
        if !self.segments.contains_key(&base) {
            return Err(DeviceError::UnknownSegment(base));
        }
        // Passes that are still to be submitted name the buffer.
        self.submit()?;
        if let Some(buffer) = self.segments.remove(&base) {
            buffer.destroy();
        }
        self.addresses.release_segment(base)
    }

    fn record_event(&mut self, _stream: StreamId) -> Result<QueueEvent, DeviceError> {
        self.gpu.health.check()?;
        self.submit()?;
        let submitted = self.work.submitted();
        if self.last_event.1 < submitted {
            self.last_event = (self.last_event.0 + 1, submitted);
            let (event, completed) = (self.last_event.0, Arc::clone(&self.completed));
            self.gpu.queue.on_submitted_work_done(move || {
                completed.fetch_max(event, Ordering::Relaxed);
            });
        }
        Ok(QueueEvent(self.last_event.0))
    }

    fn is_complete(&self, event: &QueueEvent) -> Result<bool, DeviceError> {
        self.gpu.health.check()?;
        #[cfg(not(target_arch = "wasm32"))]
        self.poll(wgpu::PollType::Poll)?;
        Ok(self.completed.load(Ordering::Relaxed) >= event.0)
    }

    fn wait(&mut self, event: &QueueEvent) -> Result<(), DeviceError> {
        self.gpu.health.check()?;
        #[cfg(not(target_arch = "wasm32"))]
        if self.completed.load(Ordering::Relaxed) < event.0 {
            self.poll(wgpu::PollType::wait_indefinitely())?;
        }
        self.completed.fetch_max(event.0, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for WgpuDevice {
    fn drop(&mut self) {
        // Otherwise a browser frees the buffers only when its garbage collector runs.
        for buffer in self.segments.values() {
            buffer.destroy();
        }
    }
}
