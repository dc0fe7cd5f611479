//! Recordings that begin late: the head of a complete one is cut off, as a full ring buffer leaves it, and
//! the inferred memory at the cut is compared with the memory that the complete recording has at that moment.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and shows its counts, in its helpers too"
)]

#[allow(dead_code, reason = "shared with the properties of whole runs, which use all of it")]
#[path = "../properties/cases.rs"]
mod cases;
mod cuts;
mod random;
mod truth;
