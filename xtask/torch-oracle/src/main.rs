//! `cargo xtask torch-oracle`: random operator calls and programs on PyTorch's own code and on our operators.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use blockyard_torch_oracle::{
    Calls, Finding, OracleReport, PyTorch, Random, Times, Verdict, compare_calls, compare_program, network,
    read_findings,
};
use lexopt::prelude::*;

const HELP: &str = "\
Runs random operator calls and programs on PyTorch's own code, without a GPU, and on our operators, and compares every allocation and free.

cargo xtask torch-oracle [--python PYTHON] [--calls N] [--programs N] [--seed S] [--only TEXT] [--write FILE]

--python PYTHON  a Python with PyTorch 2.11.0 for CUDA; else BLOCKYARD_TORCH_PYTHON, or python3
--calls N        calls of operators (2000)
--programs N     whole programs (0)
--seed S         the same seed makes the same calls (1)
--only TEXT      only lines of the table of calls (xtask/torch-oracle/src/calls.txt) that contain this
--write FILE     the smallest call of each operator that differs, with PyTorch's events, as lines of JSON
--again FILE     only the calls of such a file; with --write, those that are equal are written, with PyTorch's events
The exit status is 1 if a call differs without a mark.
";

/// Calls that one process makes.
const BATCH: usize = 5000;

struct Options {
    python: String,
    calls: usize,
    programs: usize,
    seed: u64,
    only: Option<String>,
    write: Option<PathBuf>,
    again: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Option<Options>> {
    let python = std::env::var("BLOCKYARD_TORCH_PYTHON").unwrap_or_else(|_missing| "python3".to_owned());
    let mut options =
        Options { python, calls: 2000, programs: 0, seed: 1, only: None, write: None, again: None };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("python") => options.python = arguments.value()?.string()?,
            Long("calls") => options.calls = arguments.value()?.parse()?,
            Long("programs") => options.programs = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("only") => options.only = Some(arguments.value()?.string()?),
            Long("again") => options.again = Some(arguments.value()?.into()),
            Long("write") => options.write = Some(arguments.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn run() -> Result<bool> {
    let Some(options) = options()? else {
        print!("{HELP}");
        return Ok(true);
    };
    let pytorch = PyTorch::find(&options.python)?;
    println!("PyTorch {}, seed {}", pytorch.version(), options.seed);
    let (mut report, mut times) = (OracleReport::default(), Times::default());
    if let Some(path) = &options.again {
        return again(&pytorch, path, options.write.as_deref());
    }
    let mut calls = Calls::new(options.seed, options.only.as_deref())?;
    let mut done = 0;
    while done < options.calls {
        let batch: Vec<_> = calls.by_ref().take(BATCH.min(options.calls - done)).collect();
        if batch.is_empty() {
            break;
        }
        compare_calls(&pytorch, &format!("calls{done}"), &batch, &mut report, &mut times)?;
        done += batch.len();
        eprintln!("{done} calls, {} different", report.counts().different);
    }
    // The programs' time is not that of calls.
    let mut programs_times = Times::default();
    let mut random = Random::new(options.seed);
    for number in 0..options.programs {
        let source = network(&mut random);
        compare_program(&pytorch, &format!("program{number}"), &source, &mut report, &mut programs_times)?;
        eprintln!("{} programs, {} different", number + 1, report.counts().different);
    }
    print!("{report}");
    let count = f64::from(u32::try_from(done)?);
    let rate = |time: Duration| count / time.as_secs_f64().max(0.001);
    println!(
        "{done} calls: PyTorch {:.1} s ({:.0} calls a second), here {:.1} s ({:.0} calls a second)",
        times.pytorch.as_secs_f64(),
        rate(times.pytorch),
        times.ours.as_secs_f64(),
        rate(times.ours)
    );
    if let Some(path) = &options.write {
        let lines = report.findings().iter().map(to_line).collect::<Result<String>>()?;
        fs::write(path, lines)?;
    }
    Ok(report.counts().different == 0)
}

/// Compares the calls of a file, and writes those that are equal with PyTorch's events.
fn again(pytorch: &PyTorch, path: &Path, write: Option<&Path>) -> Result<bool> {
    let findings = read_findings(&fs::read_to_string(path)?)?;
    let calls: Vec<_> = findings.iter().map(Finding::call).collect();
    let (mut report, mut times) = (OracleReport::default(), Times::default());
    let outcomes = compare_calls(pytorch, "again", &calls, &mut report, &mut times)?;
    print!("{report}");
    if let Some(write) = write {
        let mut lines = String::new();
        for (finding, (verdict, events)) in findings.into_iter().zip(outcomes) {
            if verdict == Verdict::Equal {
                lines += &to_line(&Finding { events, ..finding })?;
            }
        }
        fs::write(write, lines)?;
    }
    Ok(report.counts().different == 0)
}

fn to_line(finding: &Finding) -> Result<String> {
    Ok(serde_json::to_string(finding)? + "\n")
}
