//! The device of the CUDA driver: segments, virtual memory, streams and events.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use blockyard_device::{Advance, DeviceError, DeviceMemory, MemoryInfo, VirtualMemory};
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::context::DeviceContext;
use crate::driver::{self, ContextGuard, Stream};
use crate::error::{CudaOpenError, DriverError};
use crate::pages::{ReservedRanges, is_within};
use crate::streams::Streams;

/// A device of the CUDA driver.
///
/// The device holds its primary context, which a process shares: PyTorch in the same process works on the
/// same context. All calls may come from any thread, and leave the thread's current context as it was. A
/// dropped device releases everything that it took, except the context while events of the device exist.
///
/// Number 0 is the driver's default stream. Each other number is a stream that the device makes at the first
/// use of the number; such a stream does not wait for the default stream.
#[derive(Debug)]
pub struct CudaDevice {
    pub(crate) context: Arc<DeviceContext>,
    pub(crate) streams: Streams,
    index: u32,
    name: String,
    bus_address: CString,
    total: Bytes,
    capacity: Option<Bytes>,
    used: Bytes,
    has_virtual_memory: bool,
    segments: BTreeMap<DeviceAddr, Bytes>,
    ranges: ReservedRanges,
    /// The error of a call that returns no error; the next call that can fail reports it.
    failure: Option<DriverError>,
}

/// A point in the work of a stream of a [`CudaDevice`].
#[derive(Debug)]
pub struct CudaEvent {
    /// `None` only while the value is dropped.
    event: Option<driver::Event>,
    context: Arc<DeviceContext>,
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            self.context.put_event(event);
        }
    }
}

/// How many CUDA devices the machine has.
///
/// # Errors
///
/// [`CudaOpenError::NoDriver`], [`CudaOpenError::NoDevice`] and [`CudaOpenError::Driver`].
pub fn device_count() -> Result<u32, CudaOpenError> {
    if !driver::is_present() {
        return Err(CudaOpenError::NoDriver { library: driver::LIBRARY });
    }
    let count = driver::init().and_then(|()| driver::device_count()).map_err(DriverError::of_open)?;
    if count == 0 { Err(CudaOpenError::NoDevice { source: None }) } else { Ok(count) }
}

/// The newest CUDA that the driver supports, 13020 for 13.2.
///
/// # Errors
///
/// [`CudaOpenError::NoDriver`] and [`CudaOpenError::Driver`].
pub fn driver_version() -> Result<u32, CudaOpenError> {
    if !driver::is_present() {
        return Err(CudaOpenError::NoDriver { library: driver::LIBRARY });
    }
    driver::version().map_err(DriverError::of_open)
}

impl CudaDevice {
    /// Opens the device with this index, counted from 0.
    ///
    /// # Errors
    ///
    /// [`CudaOpenError`] says what is missing: the driver, the device, memory.
    pub fn open(index: u32) -> Result<Self, CudaOpenError> {
        let count = device_count()?;
        if index >= count {
            return Err(CudaOpenError::NoSuchDevice { index, count });
        }
        Self::open_known(index).map_err(DriverError::of_open)
    }

    fn open_known(index: u32) -> Result<Self, DriverError> {
        let device = driver::Device::get(index)?;
        Ok(Self {
            context: Arc::new(DeviceContext::retain(device)?),
            streams: Streams::new(),
            index,
            name: device.name()?,
            bus_address: device.bus_address()?,
            total: device.total_memory()?,
            capacity: None,
            used: Bytes::ZERO,
            has_virtual_memory: device.has_virtual_memory()?,
            segments: BTreeMap::new(),
            ranges: ReservedRanges::default(),
            failure: None,
        })
    }

    /// Limits the device to `capacity` bytes, if it has more. Segments that are already allocated count.
    #[must_use]
    pub fn with_capacity(mut self, capacity: Bytes) -> Self {
        self.capacity = Some(capacity.min(self.total));
        self
    }

    /// The device's number, counted from 0.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The driver's name of the device, `NVIDIA H200`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on the number of a stream is the handle of the driver's stream, as PyTorch passes it; 0 is
    /// the default stream.
    ///
    /// # Safety
    ///
    /// Every number that is used from now on must be a `CUstream` (or `cudaStream_t`) of this device that is
    /// alive.
    #[expect(unsafe_code, reason = "only the caller knows what the numbers are")]
    pub unsafe fn use_handles_as_streams(&mut self) {
        self.streams.numbers_are_handles = true;
    }

    /// Waits for all work of all streams of the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Sticky`], [`DeviceError::Lost`] and [`DeviceError::Driver`] as the driver reports.
    pub fn synchronize(&mut self) -> Result<(), DeviceError> {
        let current = self.enter()?;
        Ok(driver::synchronize(&current)?)
    }

    /// Whether all of the `size` bytes from `addr` on are in one segment or in one reserved range of this
    /// device.
    pub(crate) fn holds(&self, addr: DeviceAddr, size: Bytes) -> bool {
        let segment = self.segments.range(..=addr).next_back();
        segment.is_some_and(|(base, length)| is_within(*base, *length, addr, size))
            || self.ranges.hold(addr, size)
    }

    pub(crate) fn enter(&mut self) -> Result<ContextGuard, DeviceError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        Ok(self.context.enter()?)
    }

    /// The driver's stream for a number.
    pub(crate) fn stream(&mut self, current: &ContextGuard, id: StreamId) -> Result<&Stream, DriverError> {
        if self.streams.numbers_are_handles && !self.streams.knows(id) {
            let handle = std::ptr::with_exposed_provenance_mut(usize::try_from(id.get()).unwrap_or_default());
            #[expect(unsafe_code, reason = "see `use_handles_as_streams`")]
            // SAFETY: the caller of `use_handles_as_streams` guarantees that the handle is a live stream of
            // this device.
            let stream = unsafe { Stream::foreign(handle) };
            self.streams.add_foreign(id, stream);
        }
        self.streams.get(current, id)
    }

    /// Checks that `size` more bytes fit in the capacity. The driver may still refuse them.
    fn check_budget(&self, size: Bytes) -> Result<(), DeviceError> {
        let most = self.capacity.unwrap_or(self.total);
        let used = self.used.checked_add(size).filter(|used| *used <= most);
        used.map(|_| ()).ok_or(DeviceError::OutOfMemory { requested: size })
    }

    fn synchronize_stream(&mut self, stream: Option<StreamId>) -> Result<(), DriverError> {
        let current = self.context.enter()?;
        match stream {
            Some(stream) => self.stream(&current, stream)?.synchronize(&current),
            None => driver::synchronize(&current),
        }
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        let Ok(current) = self.context.enter() else { return };
        // Work may still use the released memory; no caller can get an error.
        let _ = driver::synchronize(&current);
        self.ranges.clear(&current);
        for base in std::mem::take(&mut self.segments).into_keys() {
            let _ = driver::free(&current, base);
        }
        self.streams.clear(&current);
    }
}

impl Advance for CudaDevice {
    fn advance_streams(&mut self, stream: Option<StreamId>) {
        if let Err(failure) = self.synchronize_stream(stream) {
            self.failure.get_or_insert(failure);
        }
    }
}

impl DeviceMemory for CudaDevice {
    type Event = CudaEvent;

    fn total_memory(&self) -> Bytes {
        self.capacity.unwrap_or(self.total)
    }

    fn memory_info(&self) -> Result<MemoryInfo, DeviceError> {
        // A query does not report an earlier failure: the next call that changes the device reports it.
        let current = self.context.enter()?;
        let (free, total) = driver::memory_info(&current)?;
        let (free, total) = match self.capacity {
            Some(capacity) => (free.min(capacity.saturating_sub(self.used)), capacity),
            None => (free, total),
        };
        let processes = driver::processes(&self.bus_address);
        Ok(MemoryInfo { index: self.index, free, total, processes })
    }

    fn allocate_segment(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        self.check_budget(size)?;
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        let base = driver::allocate(&current, size).map_err(|failure| failure.of_request(size))?;
        self.segments.insert(base, size);
        self.used += size;
        Ok(base)
    }

    fn release_segment(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let size = *self.segments.get(&base).ok_or(DeviceError::UnknownSegment(base))?;
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        driver::free(&current, base)?;
        self.segments.remove(&base);
        self.used -= size;
        Ok(())
    }

    fn record_event(&mut self, stream: StreamId) -> Result<CudaEvent, DeviceError> {
        let current = self.enter()?;
        let event = self.context.take_event(&current)?;
        let event = CudaEvent { event: Some(event), context: Arc::clone(&self.context) };
        let stream = self.stream(&current, stream)?;
        if let Some(event) = &event.event {
            event.record(&current, stream)?;
        }
        Ok(event)
    }

    fn is_complete(&self, event: &CudaEvent) -> Result<bool, DeviceError> {
        let current = self.context.enter()?;
        Ok(match &event.event {
            Some(event) => event.is_complete(&current)?,
            None => true,
        })
    }

    fn wait(&mut self, event: &CudaEvent) -> Result<(), DeviceError> {
        let current = self.enter()?;
        if let Some(event) = &event.event {
            event.wait(&current)?;
        }
        Ok(())
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        if self.has_virtual_memory { Some(self) } else { None }
    }
}

impl VirtualMemory for CudaDevice {
    fn reserve(&mut self, size: Bytes) -> Result<DeviceAddr, DeviceError> {
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        self.ranges.reserve(&current, size)
    }

    fn release(&mut self, base: DeviceAddr) -> Result<(), DeviceError> {
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        self.ranges.release(&current, base)
    }

    fn map(&mut self, addr: DeviceAddr, size: Bytes, page: Bytes) -> Result<(), DeviceError> {
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        let within_budget = self.check_budget(size);
        // An unknown range is a separate error, whatever its size.
        if self.ranges.hold(addr, size) {
            within_budget?;
        }
        self.ranges.map(&current, self.context.device, addr, size, page)?;
        self.used += size;
        Ok(())
    }

    fn unmap(&mut self, addr: DeviceAddr, size: Bytes, _page: Bytes) -> Result<(), DeviceError> {
        let current = self.enter()?;
        let _relaxed = driver::relax_capture(&current);
        self.ranges.unmap(&current, addr, size)?;
        self.used -= size;
        Ok(())
    }
}
