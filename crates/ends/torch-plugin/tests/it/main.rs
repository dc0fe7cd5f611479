//! The shared library as PyTorch uses it, over a fake CUDA driver. Each test runs in a process of its own.
#![expect(unsafe_code, reason = "a C library is called")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod errors;
mod hooks;
mod library;
mod python;
mod recorded;
mod threads;
