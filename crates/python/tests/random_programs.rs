//! Random programs that a real H200 ran with PyTorch 2.11: operators in random order, and training loops over random layers.
//!
//! A line that differs from what the GPU printed must be marked as an estimate before it; in a training loop, whose lines run several
//! times, any mark of the program counts. Programs that end in an error on either side are compared up to there.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "helpers of tests, and figures for people")]

use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::Value;

#[path = "support/run.rs"]
mod support;

use support::run;

/// Programs of which every line is equal; it may only grow.
const FEWEST_EQUAL: usize = 70;

/// The line of the source that printed a line: each statement of a straight program prints its own label.
fn printed_at(source: &str, printed: &str) -> Option<u32> {
    let label = printed.split(' ').next()?;
    let call = format!("show({label})");
    let line = source.lines().position(|line| line == call)?;
    u32::try_from(line + 1).ok()
}

#[test]
fn no_line_of_a_random_program_is_wrong_without_a_mark() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/pytorch_programs/random.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("the fixture is gzip");
    let (mut programs, mut equal, mut marked) = (0, 0, 0);
    let mut wrong = Vec::new();
    for line in text.lines() {
        let program: Value = serde_json::from_str(line).expect("the fixture is JSON");
        let text = |key: &str| program[key].as_str().unwrap_or_default();
        let (printed, finished) = run(text("source"));
        programs += 1;
        let pairs = || text("stdout").lines().zip(printed.lines());
        let Some((recorded, here)) = pairs().find(|(recorded, here)| recorded != here) else {
            equal += usize::from(text("stdout").lines().count() == printed.lines().count());
            continue;
        };
        let at = printed_at(text("source"), recorded);
        if finished.marks.iter().any(|mark| at.is_none_or(|at| mark.line <= at)) {
            marked += 1;
        } else {
            wrong.push(format!("{}: an H200 printed {recorded:?}, printed here: {here:?}", text("name")));
        }
    }
    println!("{programs} programs: {equal} equal in every line, {marked} differ where a mark says so");
    assert!(wrong.is_empty(), "wrong without a mark:\n{}", wrong.join("\n"));
    assert!(equal >= FEWEST_EQUAL, "{equal} programs are equal in every line, {FEWEST_EQUAL} were before");
}
