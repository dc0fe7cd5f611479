//! Programs that our PyTorch runs, from outside: what they print, allocate and say of themselves.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too; some print a table for people"
)]

#[path = "../support/marked.rs"]
mod marked;
#[path = "../support/recorded.rs"]
mod programs;
#[path = "../support/run.rs"]
mod support;

mod beginners;
mod categories;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod confined;
mod cycles;
mod deallocation;
mod examples;
mod interpreters;
mod kept_graphs;
mod limits;
mod modules;
mod names;
mod numpy;
mod pools;
mod recorded;
mod referrers;
mod releases;
mod saved;
mod sparse;
mod students;
mod tracebacks;
mod unknown;
