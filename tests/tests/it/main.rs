//! Tests across crates: recordings, snapshots and presets replayed and compared, properties of random runs,
//! invalid input, devices and allocators with defects, and what files of the repository promise each other.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows its counts, in its helpers too"
)]

mod allocations;
mod bad_input;
mod cases;
mod conformance;
mod fixtures;
mod late;
mod oracle;
mod policy;
mod presets;
mod properties;
mod recordings;
mod samples;
mod snapshots;
mod totals;
mod written;
