//! The driver's own allocator, which benchmarks compare ours with.

use std::sync::Arc;

use blockyard_device::DeviceError;
use blockyard_record::{Bytes, DeviceAddr, StreamId};

use crate::CudaDevice;
use crate::context::DeviceContext;
use crate::driver;

/// The driver's stream-ordered allocator (`cuMemAllocAsync`), which caches freed memory until this value is
/// dropped.
#[derive(Debug)]
pub struct StreamOrderedAllocator {
    context: Arc<DeviceContext>,
}

impl StreamOrderedAllocator {
    /// Makes the device's pool cache freed memory.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports, also for devices without such pools.
    pub fn new(device: &mut CudaDevice) -> Result<Self, DeviceError> {
        let current = device.enter()?;
        driver::keep_pool(&current, device.context.device, true)?;
        Ok(Self { context: Arc::clone(&device.context) })
    }

    /// Allocates memory for use on the stream, to be freed with [`StreamOrderedAllocator::free`].
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`], and others as the driver reports.
    pub fn allocate(
        &self,
        device: &mut CudaDevice,
        size: Bytes,
        stream: StreamId,
    ) -> Result<DeviceAddr, DeviceError> {
        let current = device.enter()?;
        let stream = device.stream(&current, stream)?;
        driver::allocate_on(&current, size, stream).map_err(|failure| failure.of_request(size))
    }

    /// Frees an allocation of [`StreamOrderedAllocator::allocate`].
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn free(
        &self,
        device: &mut CudaDevice,
        addr: DeviceAddr,
        stream: StreamId,
    ) -> Result<(), DeviceError> {
        let current = device.enter()?;
        let stream = device.stream(&current, stream)?;
        Ok(driver::free_on(&current, addr, stream)?)
    }
}

impl StreamOrderedAllocator {
    /// Releases cached memory to the device.
    ///
    /// # Errors
    ///
    /// The errors that the driver reports.
    pub fn trim(&self, device: &mut CudaDevice) -> Result<(), DeviceError> {
        let current = device.enter()?;
        driver::keep_pool(&current, device.context.device, false)?;
        Ok(driver::keep_pool(&current, device.context.device, true)?)
    }
}

impl Drop for StreamOrderedAllocator {
    fn drop(&mut self) {
        if let Ok(current) = self.context.enter() {
            let _ = driver::synchronize(&current);
            let _ = driver::keep_pool(&current, self.context.device, false);
        }
    }
}
