//! The behaviors of the allocator, one in each test: a workload goes in, and the picture of segments and
//! statistics comes out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them when it updates a text")]

mod deviations;
mod edges;
mod expandable;
mod failing;
mod malloc_async;
mod misuse;
mod packing;
mod picture;
mod pinned;
mod pools;
mod settings;
mod streams;
