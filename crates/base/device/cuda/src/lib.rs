//! A device over the CUDA driver, for the allocator.
//!
//! [`CudaDevice`] allocates segments with the driver's own calls: `cuMemAlloc`, and for expandable segments
//! `cuMemAddressReserve` and `cuMemMap`. The driver library is loaded when a device is opened, so that this
//! crate builds on any machine and programs start without a driver; [`CudaOpenError`] says what is missing.
//!
//! [`Patterns`] writes to and reads from the memory on the device, to check the data of blocks.
//! [`StreamOrderedAllocator`] is the driver's own allocator, for comparison.
//!
//! Only the module `driver` calls the driver. Over its functions: `context` (the primary context), `streams`
//! (streams by their number), `pages` (virtual memory), `device`, `patterns`, `peers`, `error`.
//!
//! # Example
//!
//! The example needs an NVIDIA GPU and its driver to run:
//!
//! ```no_run
//! use blockyard_device::DeviceMemory;
//! use blockyard_device_cuda::CudaDevice;
//! use blockyard_record::Bytes;
//!
//! let mut device = CudaDevice::open(0)?;
//! let segment = device.allocate_segment(Bytes::mib(20))?;
//! println!("20 MiB at {segment}, {} free", device.memory_info()?.free);
//! device.release_segment(segment)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod device;
mod driver;
mod error;
mod pages;
mod patterns;
mod peers;
mod streams;

pub use device::{CudaDevice, CudaEvent, device_count, driver_version};
pub use error::{CudaError, CudaOpenError};
pub use patterns::{CudaMismatch, Patterns};
pub use peers::StreamOrderedAllocator;
