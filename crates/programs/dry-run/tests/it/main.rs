//! Dry runs from outside: over a package that stands for PyTorch, and over a real one where `TORCH` names it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod children;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod common;
mod keepers;
mod libraries;
mod ranks;
mod runs;
mod store;
mod symbols;
mod values;
