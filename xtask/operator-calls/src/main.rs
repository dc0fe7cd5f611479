//! `cargo xtask operator-calls FILE`: each line of a file of operator calls through the crate `torch`, counted by operator.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use blockyard_operator_calls::{CallResult, CallsReport, LearnedSizes, OperatorCall, read, run_line, start};
use lexopt::prelude::*;

const HELP: &str = "\
Runs each line of a file of recorded operator calls through our operators and counts what came out, by operator.

cargo xtask operator-calls FILE [--op NAME] [--show N] [--every N]

--op NAME    only operators whose name contains this
--show N     print the first N lines of each operator that are wrong or refused
--every N    only every N-th line
--write-tables OUT    write what cuDNN takes into the file that crates/base/gpus reads (src/tables.bin)
--leave-out N         with tables: without every N-th line, also where --keep has its sizes, to see how other shapes come out
--keep                with tables: what the file holds now stays, where no line of FILE says otherwise
--besides             with tables: only what the file does not hold now (src/networks.bin is written so)
";

/// What happens to the sizes that `crates/base/gpus` holds now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownSizes {
    None,
    All,
    /// The sizes stay in their own file, and the new file does not repeat them.
    Elsewhere,
}

fn main() -> Result<()> {
    let (mut path, mut only, mut show, mut every) = (None, None, 0_usize, 1_usize);
    let (mut tables, mut leave_out, mut kept) = (None, 0_usize, KnownSizes::None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => {
                print!("{HELP}");
                return Ok(());
            }
            Long("op") => only = Some(parser.value()?.string()?),
            Long("show") => show = parser.value()?.parse()?,
            Long("write-tables") => tables = Some(PathBuf::from(parser.value()?)),
            Long("leave-out") => leave_out = parser.value()?.parse()?,
            Long("keep") => kept = KnownSizes::All,
            Long("besides") => kept = KnownSizes::Elsewhere,
            Long("every") => every = parser.value()?.parse()?,
            Value(value) if path.is_none() => path = Some(PathBuf::from(value)),
            other => return Err(other.unexpected().into()),
        }
    }
    let path = path.context("which file? see --help")?;
    let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    start().map_err(|error| anyhow!("{error}"))?;
    if let Some(out) = tables {
        return write_tables(&read(&bytes)?, &out, leave_out, kept);
    }
    let mut report = CallsReport::default();
    let mut shown = BTreeMap::<String, usize>::new();
    for line in read(&bytes)?.iter().step_by(every.max(1)) {
        if only.as_ref().is_some_and(|only| !line.op.contains(only.as_str())) {
            continue;
        }
        let result = run_line(line).map_err(|error| anyhow!("{error}"))?;
        report.add(&line.op, &result);
        if matches!(result, CallResult::Wrong { .. } | CallResult::Refused(_)) {
            let count = shown.entry(line.op.clone()).or_default();
            if *count < show {
                *count += 1;
                println!("{} {}", line.op, line.args);
                println!("  recorded {:?} | {:?}", line.forward, line.backward);
                match result {
                    CallResult::Wrong { ours } => println!("  ours     {:?} | {:?}", ours.0, ours.1),
                    CallResult::Refused(reason) => println!("  refused: {reason}"),
                    _ => {}
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
    blockyard_operator_calls::learn(chosen.map(|(_, line)| line)).map_err(|error| anyhow!("{error}"))
}

fn write_tables(lines: &[OperatorCall], out: &Path, leave_out: usize, kept: KnownSizes) -> Result<()> {
    let held = blockyard_torch::tables::recorded();
    let mut entries = if kept == KnownSizes::All { held.clone() } else { BTreeMap::new() };
    for key in learn(lines, leave_out, true)?.entries.keys() {
        entries.remove(key);
    }
    let learned = learn(lines, leave_out, false)?;
    entries.extend(&learned.entries);
    if kept == KnownSizes::Elsewhere {
        let differ =
            entries.iter().filter(|(key, code)| held.get(key).is_some_and(|held| held != *code)).count();
        println!("{differ} sizes differ from those that the file holds now");
        entries.retain(|key, _| !held.contains_key(key));
    }
    let bytes = blockyard_torch::tables::write(&entries);
    println!(
        "{} sizes, {} left out since they differ, {} bytes",
        entries.len(),
        learned.conflicts.len(),
        bytes.len()
    );
    std::fs::write(out, bytes).with_context(|| format!("writing {}", out.display()))
}
