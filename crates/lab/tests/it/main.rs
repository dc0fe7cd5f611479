//! Answers of the lab beside what PyTorch did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod cases;
mod growth;
mod oom;
mod properties;
mod questions;
mod search;
mod what_if;

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_lab::Run;
use blockyard_pytorch::RecordedRun;
use blockyard_replay::Progress;

/// Goes on.
fn on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Goes on.
fn on_requests(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The run of one of the recorded programs.
fn program(name: &str) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs");
    let bytes = std::fs::read(folder.join(format!("{name}.jsonl.gz"))).unwrap();
    Run::from_recorded(&RecordedRun::read(&bytes).unwrap(), &mut on).unwrap()
}
