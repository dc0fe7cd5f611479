//! A CUDA device under the allocator.
//!
//! [`CudaDevice`] takes its segments from the driver's own calls: `cuMemAlloc` for whole ones, and for expandable ones addresses
//! from `cuMemAddressReserve` that get memory page by page. The driver library is looked for when a device is opened:
//! this crate builds and its users start anywhere, and [`CudaOpenError`] says what is missing.
//!
//! [`Patterns`] writes to and reads from the memory on the device, to prove what a block holds. [`StreamOrdered`] is the
//! driver's own allocator, for comparison.
//!
//! Only the module `driver` calls the driver.

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
pub use peers::StreamOrdered;
