//! A shared library that stands for CUDA's libraries: PyTorch's own CUDA build runs over it on a machine
//! without a GPU.
//!
//! Kernels are not run. Everything else is PyTorch's own code: dispatcher, autograd, optimizers, the host
//! code of every operator with every temporary, and the caching allocator. So the allocator gets the same
//! requests as on a GPU.
//!
//! - Device memory is a range of the host's addresses that is only reserved. The host's memory is used only
//!   for pages that are written.
//! - Bytes that the host wrote are known. A kernel that is not run makes bytes unknown. A host that reads
//!   unknown bytes gets zeros, and the report gets a line, so that each assumed value is reported.
//! - A handle or an address that the library did not return is an error.
//! - A function that this library lacks has a generated entry point (`blockyard-dry-run` makes them), which
//!   reports the function's name.
//!
//! The command `blockyard dry-run` sets environment variables, which this library reads: they are in
//! [`blockyard_hooks::variables`].

#[macro_use]
mod abi;
mod addresses;
mod blas;
mod cudnn;
mod driver;
mod fft;
mod handles;
mod known_ranges;
mod libraries;
mod memory;
mod nccl;
mod non_pytorch;
mod nvml;
mod nvrtc;
mod python;
mod report;
mod runtime;
mod settings;
mod solver;
mod sparse;
mod state;
mod values;
