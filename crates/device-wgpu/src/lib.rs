//! A device whose segments are [`wgpu`] buffers: over Vulkan natively, over WebGPU in the browser.
//!
//! [`Gpu::open`] finds an adapter and opens it, which takes an `await` and happens once. [`WgpuDevice`] is then as
//! synchronous as every [`DeviceMemory`](blockyard_device::DeviceMemory): each segment is one buffer, and a block of an
//! allocator is a range of it.
//!
//! - **Addresses.** Buffers have none. They follow the rule of
//!   [`VirtualDevice`](blockyard_device::VirtualDevice), which assigns them here too, so that a workload runs the same way on
//!   both: they grow from `VirtualDevice::FIRST_ADDR` in steps of `VirtualDevice::ALIGNMENT` and are never given twice.
//! - **Out of memory.** WebGPU says late that a buffer failed and never how much memory there is, so a budget of bytes
//!   decides at once. A segment beyond the adapter's largest buffer is
//!   [`DeviceError::TooLarge`](blockyard_device::DeviceError::TooLarge). The largest storage binding is no limit of segments: what is
//!   larger is filled and checked in several passes.
//! - **Late errors.** An error that arrives after the call that caused it, or the loss of the adapter, makes each later call
//!   [`DeviceError::Lost`](blockyard_device::DeviceError::Lost) with its message.
//! - **Streams.** There is one queue, and it is in order: whatever is submitted later finds the earlier work done. See
//!   [`QueueEvent`] for what that makes of events. [`StreamedWgpu`] has streams that its user advances.
//! - **Contents.** [`WgpuDevice::fill`] and [`WgpuDevice::check`] write and compare a pattern in a compute pass;
//!   [`WgpuDevice::mismatches`] reads back what differed.
//!
//! There are no addresses without memory here, so no expandable segments.

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
pub use work::{Filled, WgpuMismatch};
