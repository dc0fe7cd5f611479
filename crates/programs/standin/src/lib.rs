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
//! The command `blockyard dry-run` sets environment variables, which this library reads:
//!
//! | variable | value |
//! | --- | --- |
//! | `STANDIN_DEVICES` | how many GPUs there are |
//! | `STANDIN_GPU` | the short name of each GPU's profile (`blockyard_gpus::GpuProfile`) |
//! | `STANDIN_MEMORY` | the bytes of each GPU, where they are not those of the profile |
//! | `STANDIN_CUDA` | the version of CUDA |
//! | `STANDIN_CUDNN` | the version of cuDNN |
//! | `STANDIN_ADDRESSES` | `driver` (the default), `rising` or `falling`: the order of the addresses of segments |
//! | `STANDIN_REPORT` | the file of the report |
//! | `STANDIN_ASSUME` | values that a person named, one `FILE:LINE=VALUE` a line |
//! | `STANDIN_NON_PYTORCH` | `1`: bytes of the driver and the libraries count |
//! | `STANDIN_RANKS` | the ranks that run, with commas |
//! | `STANDIN_STORE` | the address of the store |
//! | `STANDIN_PROCESS` | the number (PID) of the program's own process |
//!
//! A developer sets others:
//!
//! | variable | value |
//! | --- | --- |
//! | `STANDIN_TRACE` | a file that lists each call of a function of CUDA's |
//! | `STANDIN_DEBUG` | any value: exceptions in the helper that computes values are printed on standard error |

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
mod python_api;
mod report;
mod runtime;
mod settings;
mod solver;
mod sparse;
mod state;
mod values;
