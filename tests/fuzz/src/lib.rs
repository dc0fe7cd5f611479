//! Properties that hold for any input, as functions of bytes that panic if a property does not hold.
//!
//! `cargo xtask fuzz` lets libFuzzer look for bytes that do. Its earlier findings are in `regressions/`, and
//! `seeds/` has the inputs that libFuzzer starts from; `cargo test` calls the same functions with both.
//!
//! A finding is a file in `regressions`. The code that the targets call has no `unsafe` but the allocator's
//! lock, so no sanitizer is needed and the stable toolchain is enough; `cargo xtask miri` interprets the unit
//! tests of the allocator with its lock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    reason = "a fuzz target tells what it found by panicking"
)]

mod failing;
mod follower;
mod host;
mod input;
mod later_release;
mod lesson;
mod malloc_async;
mod operations;
mod options;
mod recording;
mod snapshot;
mod workload;

pub use host::host;
pub use later_release::later_release;
pub use lesson::lesson;
pub use malloc_async::malloc_async;
pub use operations::operations;
pub use options::options;
pub use recording::recording;
pub use snapshot::snapshot;
pub use workload::workload;

/// A function that must not panic, whatever the bytes.
pub type FuzzTarget = fn(&[u8]);

/// All targets by their names.
pub const TARGETS: [(&str, FuzzTarget); 9] = [
    ("operations", operations),
    ("malloc_async", malloc_async),
    ("host", host),
    ("options", options),
    ("workload", workload),
    ("recording", recording),
    ("snapshot", snapshot),
    ("later_release", later_release),
    ("lesson", lesson),
];

/// Calls the target with the content of each file that the command line names.
///
/// # Errors
///
/// When a file cannot be read.
pub fn on_named_files(target: FuzzTarget) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        println!("{}", path.display());
        target(&std::fs::read(&path)?);
    }
    Ok(())
}
