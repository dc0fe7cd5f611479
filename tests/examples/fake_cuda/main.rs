//! A fake CUDA driver library, so that everything above its calls is tested without a GPU.
//!
//! It keeps account of segments, ranges, pages, streams, events, modules and contexts, does the work of streams in its order when
//! it is asked for, and ends the process when the last context is released while anything is left. What it has and what goes
//! wrong is set in the environment: `FAKE_CUDA_DEVICES` (1), `FAKE_CUDA_MEMORY` (bytes of each), and `FAKE_CUDA_FAIL`, a list
//! of `CALL:NUMBER:CODE`, in which the call of that number from 1 on fails with that code. Where it is found as NVML too, it tells
//! of the processes in `FAKE_CUDA_PROCESSES`, a list of `PROCESS:BYTES` in which process 0 is the one that asks.
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
