//! Harnesses that tests share; the tests are in `tests/`, recordings of PyTorch's allocator in `fixtures/`.
//!
//! One conformance suite holds for every [`DeviceMemory`](blockyard_device::DeviceMemory): [`conformance`]
//! tests the promises of the trait, [`workload`] drives the allocator over the device and proves with
//! [`PatternMemory`] that no two blocks ever share bytes. [`SimulatedMemory`] gives contents to a device
//! without hardware, so that the suite can fail there too.
//!
//! # Decisions
//!
//! - **The data of blocks is checked.** One suite for every device fills each block with a pattern on its
//!   stream and checks the pattern before the free, while other streams use the block late. The suite also
//!   runs on broken devices and allocators, to show that it fails there. The CUDA suite runs everywhere on a
//!   fake driver library (`examples/fake_cuda`), which ends the process if a resource leaks. With
//!   `REQUIRE_CUDA=1` a machine without a GPU is a failure, and with `REQUIRE_VULKAN_GPU=1` a machine where
//!   Vulkan finds only software.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "a harness of tests fails by panicking"
)]

pub mod conformance;
#[cfg(not(target_arch = "wasm32"))]
pub mod cuda;
mod extents;
pub mod fixtures;
mod pattern_memory;
mod simulated;
pub mod workload;

pub use extents::Extents;
pub use pattern_memory::{Fault, PatternMemory, word_at};
pub use simulated::SimulatedMemory;
