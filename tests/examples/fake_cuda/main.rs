//! A fake CUDA driver library, so that everything above its calls is tested without a GPU.
//!
//! The library counts segments, ranges, pages, streams, events, modules and contexts, does the work of
//! streams in order when a call waits for it, and ends the process if a resource is left when the last
//! context is released. The environment sets its devices and failures: `FAKE_CUDA_DEVICES` (1),
//! `FAKE_CUDA_MEMORY` (bytes of each), and `FAKE_CUDA_FAIL`, a list of `CALL:NUMBER:CODE`, in which the call
//! of that number from 1 on fails with that code. Where the library is also found as NVML, it lists the
//! processes in `FAKE_CUDA_PROCESSES`, a list of `PROCESS:BYTES` in which process 0 is the one that asks.
#![expect(unsafe_code, reason = "it stands in for a C library")]
#![allow(non_snake_case, reason = "the names are the driver's")]
#![allow(clippy::print_stderr, reason = "it has nothing else to speak through")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the driver's functions take what they are given, as the C library does"
)]

mod calls;
mod model;
mod nvml;
