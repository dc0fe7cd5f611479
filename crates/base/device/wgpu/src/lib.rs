//! A device whose segments are [`wgpu`] buffers: over Vulkan natively, over WebGPU in the browser.
//!
//! [`Gpu::open`] finds an adapter and opens it, which takes an `await` and happens once. [`WgpuDevice`] is
//! then as synchronous as every [`DeviceMemory`](blockyard_device::DeviceMemory): each segment is one buffer,
//! and a block of an allocator is a range of this buffer.
//!
//! - **Addresses.** Buffers have no addresses. A [`VirtualDevice`](blockyard_device::VirtualDevice) assigns
//!   the addresses of segments here, so that a workload runs the same way on both devices: addresses grow
//!   from `VirtualDevice::FIRST_ADDR` in steps of `VirtualDevice::ALIGNMENT` and are never reused.
//! - **Out of memory.** WebGPU reports a failed buffer late and never reports how much memory there is, so a
//!   capacity of bytes decides at once. A segment beyond the adapter's largest buffer is
//!   [`DeviceError::TooLarge`](blockyard_device::DeviceError::TooLarge). The largest storage binding is not a
//!   limit of segments: a larger segment is filled and checked in several passes.
//! - **Late errors.** An error that arrives after the call that caused it, or the loss of the adapter, makes
//!   each later call [`DeviceError::Lost`](blockyard_device::DeviceError::Lost) with its message.
//! - **Streams.** WebGPU has one queue, which works in order: later work finds the earlier work done.
//!   [`QueueEvent`] says what an event is then. [`StreamedWgpu`] has streams that its user advances.
//! - **Data.** [`WgpuDevice::fill`] and [`WgpuDevice::check`] write and compare a pattern in a compute pass;
//!   [`WgpuDevice::mismatches`] reads the differences back.
//!
//! WebGPU has no virtual memory, so this device has no expandable segments.
//!
//! # Example
//!
//! The example needs Vulkan or WebGPU to run:
//!
//! ```no_run
//! use blockyard_device::DeviceMemory;
//! use blockyard_device_wgpu::{Gpu, WgpuDevice};
//! use blockyard_record::Bytes;
//!
//! async fn allocate() -> Result<(), Box<dyn std::error::Error>> {
//!     let gpu = Gpu::open().await?;
//!     let mut device = WgpuDevice::new(&gpu, Bytes::gib(1));
//!     let segment = device.allocate_segment(Bytes::mib(20))?;
//!     device.release_segment(segment)?;
//!     Ok(())
//! }
//! ```
//!
//! # Decisions
//!
//! WebGPU has one queue, in order. [`StreamedWgpu`] keeps the work of each stream in a list, and submits the
//! list when the workload advances the stream. So a workload runs there as on the virtual device, event by
//! event, and a block that is allocated again too early loses its data for certain.

mod device;
mod gpu;
mod health;
mod patterns;
mod streamed;
mod work;

pub use device::{QueueEvent, WgpuDevice};
pub use gpu::{Gpu, GpuInfo, WgpuOpenError};
pub use patterns::PATTERN_ALIGNMENT;
pub use streamed::StreamedWgpu;
pub use work::{PatternRange, WgpuMismatch};
