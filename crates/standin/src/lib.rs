//! A shared library that stands for CUDA's libraries: PyTorch's own CUDA build runs over it on a machine without a GPU.
//!
//! Kernels are not run. Everything else is PyTorch's own code: dispatcher, autograd, optimizers, the host code of every operator with
//! every temporary, and the caching allocator. So what the allocator is asked for is what it is asked for on a GPU.
//!
//! - Device memory is a range of the host's addresses that is only reserved. A page of the host is taken where a byte is written.
//! - Bytes that the host wrote are known. A kernel that is not run makes bytes unknown, and a host that reads unknown bytes gets zeros
//!   and a line in the report: a value that was assumed is never silent.
//! - A handle that was not given out is an error, and so is an address that was not given out.
//! - A function that nobody wrote here is answered by a generated entry point (`blockyard-dry-run` makes them), which reports its name.
//!
//! The command `blockyard dry-run` sets the environment variables that [`settings`](crate) reads: `STANDIN_DEVICES`,
//! `STANDIN_NAME`, `STANDIN_MEMORY` and others, `STANDIN_REPORT` (the file of the report), `STANDIN_TRACE` (a file that lists each call).

#[macro_use]
mod abi;
mod addresses;
mod blas;
mod cudnn;
mod driver;
mod fft;
mod handles;
mod known;
mod libraries;
mod memory;
mod nccl;
mod nvml;
mod nvrtc;
mod overhead;
mod python;
mod report;
mod runtime;
mod settings;
mod solver;
mod sparse;
mod state;
mod values;

/// The functions of CUDA's libraries that this library answers by hand and that a process may ask for by name.
#[must_use]
pub fn driver_function(name: &str) -> bool {
    driver::find(name).is_some()
}
