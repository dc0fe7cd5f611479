//! The suite on a CUDA device. Without one each test says that it is skipped; `REQUIRE_CUDA=1` makes that a
//! failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows its counts, in its helpers too"
)]

mod broken;
mod contents;
mod device;
mod fake_driver;
mod recorded;
