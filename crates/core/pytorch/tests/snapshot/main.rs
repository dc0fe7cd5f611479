//! Snapshots that PyTorch wrote, and other files that look like snapshots.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod follow;
mod hostile;
mod pickles;
mod random;
mod reading;
mod recordings;
mod releases;
mod rivals;
mod writing;

use std::io::Read;
use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{self, SnapshotError, SnapshotFile};

/// The bytes of a file in `tests/fixtures/snapshots`.
fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/fixtures/snapshots");
    std::fs::read(format!("{folder}/{name}")).expect("the fixture is there")
}

/// The unpacked contents of a `.gz` file in `tests/fixtures/snapshots`.
fn unpacked(name: &str) -> Vec<u8> {
    let mut content = Vec::new();
    let bytes = fixture(name);
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut content).expect("the fixture is gzip");
    content
}

fn read(bytes: &[u8]) -> Result<SnapshotFile, SnapshotError> {
    snapshot::read(bytes, &mut |_| ControlFlow::Continue(()))
}

fn open(name: &str) -> SnapshotFile {
    read(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
