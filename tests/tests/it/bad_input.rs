//! Invalid input: a clear error or an honest answer, and never a panic.

mod begins_late;
mod contents;
mod damaged;
mod files;
mod loops;

use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;

use blockyard_replay::job::{Job, JobError, JobOutput, perform};
use blockyard_tests::fixtures;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures::fixture(name)).expect("the fixture is there")
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("a fixture is text");
    text
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open(bytes: impl Into<Vec<u8>>) -> Result<JobOutput, JobError> {
    let job = Job::Open { name: "it.jsonl".to_owned(), bytes: bytes.into(), device: None };
    perform(&job, &mut |_| ControlFlow::Continue(()))
}

/// Checks that opening the bytes fails with an error that names the file and has this message.
#[track_caller]
fn check_refused(bytes: impl Into<Vec<u8>>, message: &str) {
    let error = open(bytes).expect_err("this is no recording").to_string();
    assert_eq!(error, format!("it.jsonl: {message}"));
}
