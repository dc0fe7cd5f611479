//! Runs that go out of memory: one program, with a case, a setting and a limit each, which prints one line of
//! JSON at its end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use blockyard_dry_run::Program;
use serde::Deserialize;

use super::Share;
use crate::installed::InstalledTorch;

/// The line that a run printed, recorded on a GPU or by a dry run. The free bytes of the device are not
/// compared: others used the GPU.
#[derive(Debug, PartialEq, Deserialize)]
struct OomRun {
    case: String,
    /// The run's limit as a share of the limit that the case has.
    scale: f64,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    conf: String,
    oom: bool,
    requested: Option<u64>,
    allocs_before: u64,
    peak_allocated: u64,
    peak_reserved: u64,
    device_allocs: u64,
    retries: u64,
}

/// Repeats each run that a file `results.jsonl` lists, with the program `train.py` beside it, and prints
/// those that differ.
pub(super) fn compare(file: &Path, installed: &InstalledTorch) -> Result<Share> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    let source = file.with_file_name("train.py");
    let out = installed.file("oom", "txt");
    let mut share = Share::default();
    for line in BufReader::new(opened).lines() {
        let expected: OomRun = serde_json::from_str(&line?).with_context(|| file.display().to_string())?;
        let program = Program {
            arguments: vec![expected.case.clone(), installed.folder.display().to_string()],
            conf: (!expected.conf.is_empty()).then(|| expected.conf.clone()),
            environment: vec![
                ("CAP_SCALE".to_owned(), expected.scale.to_string()),
                ("PYTORCH_CUDA_ALLOC_CONF".to_owned(), expected.conf.clone()),
            ],
            output: Some(out.clone()),
            ..installed.program(source.clone())
        };
        let report = installed.run(&program, Duration::MAX)?;
        let printed = fs::read_to_string(&out).unwrap_or_default();
        let found = printed.lines().rev().find_map(|line| serde_json::from_str::<OomRun>(line).ok());
        share.all += 1;
        if found.as_ref() == Some(&expected) {
            share.equal += 1;
        } else {
            println!("    status {}: expected {expected:?}, found {found:?}", report.status);
        }
    }
    Ok(share)
}
