//! `cargo xtask truth operator-calls FILE`: each line of a file of operator calls through the crate `torch`, counted
//! by operator.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;

use super::learn::LearnedSizes;
use super::{CallOutcome, CallsReport, OperatorCall, read, run_line, start};

/// Run each line of a file of recorded operator calls through our operators and count what came out, by
/// operator.
#[derive(Debug, Args)]
pub struct OperatorCallsOptions {
    /// Lines like those of tests/fixtures/operator-calls/sample.jsonl.gz.
    file: PathBuf,
    /// Only operators whose name contains this.
    #[arg(long, value_name = "NAME")]
    op: Option<String>,
    /// Print the first N lines of each operator that are wrong or refused.
    #[arg(long, value_name = "N", default_value_t = 0)]
    show: usize,
    /// Only every N-th line.
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// Write what cuDNN takes into the file that crates/base/gpus reads (src/tables.bin).
    #[arg(long, value_name = "OUT")]
    write_tables: Option<PathBuf>,
    /// With tables: without every N-th line, also where --keep has its sizes, to see how other shapes come
    /// out.
    #[arg(long, value_name = "N", default_value_t = 0)]
    leave_out: usize,
    /// With tables: what the file holds now stays, where no line of FILE says otherwise.
    #[arg(long, conflicts_with = "besides")]
    keep: bool,
    /// With tables: only what the file does not hold now (src/networks.bin is written so).
    #[arg(long)]
    besides: bool,
}

/// Compares the lines and prints the table, or writes the tables of cuDNN.
///
/// # Errors
///
/// When a file cannot be read or written, or there is no GPU in the session.
pub fn run(options: &OperatorCallsOptions) -> Result<()> {
    let path = &options.file;
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    start().map_err(|error| anyhow!("{error}"))?;
    if let Some(out) = &options.write_tables {
        return write_tables(&read(&bytes)?, out, options);
    }
    let mut report = CallsReport::default();
    let mut shown = BTreeMap::<String, usize>::new();
    for line in read(&bytes)?.iter().step_by(options.every.max(1)) {
        if options.op.as_ref().is_some_and(|only| !line.op.contains(only)) {
            continue;
        }
        let result = run_line(line).map_err(|error| anyhow!("{error}"))?;
        report.add(&line.op, result.outcome);
        if matches!(result.outcome, CallOutcome::Wrong | CallOutcome::Refused) {
            let count = shown.entry(line.op.clone()).or_default();
            if *count < options.show {
                *count += 1;
                println!("{} {}", line.op, line.args);
                println!("  recorded {:?} | {:?}", line.forward, line.backward);
                match result.ours {
                    Ok((forward, backward)) => println!("  ours     {forward:?} | {backward:?}"),
                    Err(reason) => println!("  refused: {reason}"),
                }
            }
        }
    }
    print!("{report}");
    Ok(())
}

/// The workspaces of the lines that are left out, or of the others.
fn learn(lines: &[OperatorCall], leave_out: usize, is_left_out: bool) -> Result<LearnedSizes> {
    let is_cudnn = |op: &str| op.starts_with("conv");
    let chosen = lines.iter().enumerate().filter(|(index, line)| {
        is_cudnn(&line.op) && is_left_out == (leave_out > 0 && index.is_multiple_of(leave_out))
    });
    super::learn::learn(chosen.map(|(_, line)| line)).map_err(|error| anyhow!("{error}"))
}

fn write_tables(lines: &[OperatorCall], out: &Path, options: &OperatorCallsOptions) -> Result<()> {
    let leave_out = options.leave_out;
    let held = blockyard_gpus::tables::recorded();
    let mut entries = if options.keep { held.clone() } else { BTreeMap::new() };
    for key in learn(lines, leave_out, true)?.entries.keys() {
        entries.remove(key);
    }
    let learned = learn(lines, leave_out, false)?;
    entries.extend(&learned.entries);
    if options.besides {
        let differ =
            entries.iter().filter(|(key, code)| held.get(key).is_some_and(|held| held != *code)).count();
        println!("{differ} sizes differ from those that the file holds now");
        entries.retain(|key, _| !held.contains_key(key));
    }
    let bytes = blockyard_gpus::tables::write(&entries);
    println!(
        "{} sizes, {} left out since they differ, {} bytes",
        entries.len(),
        learned.conflicts.len(),
        bytes.len()
    );
    std::fs::write(out, bytes).with_context(|| format!("writing {}", out.display()))
}
