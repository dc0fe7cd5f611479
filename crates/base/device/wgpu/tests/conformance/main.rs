//! The suite that every device passes, over Vulkan natively and over WebGPU in a browser, and tests of the
//! functions that only this device has.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

#[cfg(target_arch = "wasm32")]
mod browser;
#[cfg(not(target_arch = "wasm32"))]
mod presets;
mod streamed;
#[cfg(not(target_arch = "wasm32"))]
mod vulkan;

use blockyard_device_wgpu::PatternRange;
use blockyard_record::{Bytes, DeviceAddr};
use blockyard_tests::workload::RandomWorkload;

/// A random workload that both software adapters finish in seconds.
const PLAN: RandomWorkload =
    RandomWorkload { seed: 1, requests: 400, streams: 3, largest: Bytes::mib(8), most_live: Bytes::mib(48) };

/// The device of that workload: too small for all that the workload would cache.
const BUDGET: Bytes = Bytes::mib(96);

fn range(addr: DeviceAddr, size: Bytes, pattern: u32) -> PatternRange {
    PatternRange { addr, size, pattern }
}
