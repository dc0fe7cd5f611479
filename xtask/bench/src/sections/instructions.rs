//! Instructions of a pair of allocation and free, counted by valgrind, which no noise changes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use blockyard_measure::{Measurement, OperationList, RatioGoal, ReportRow, Section};

use super::BenchContext;
use crate::cores::pin;
use crate::native::{Libraries, Pass, Side};
use crate::suite::{Suite, ping_pongs};

/// The most pairs of a trace: longer traces take minutes each under valgrind.
const MAX_PAIRS: usize = 50_000;

/// Instructions a pair of allocation and free, ours behind its C ABI beside PyTorch's.
///
/// # Errors
///
/// When valgrind is not there, or a library does not load.
pub(super) fn instructions(context: &BenchContext) -> Result<Section> {
    let version = Command::new("valgrind").arg("--version").output();
    ensure!(version.is_ok(), "instructions are counted by valgrind, which is not installed");
    // The libraries are loaded once here, so that everything is built before valgrind runs.
    drop(Libraries::load(&context.target)?);
    let mut suite = Suite::load(&context.workspace)?;
    // Every pair counts the same: a few are enough.
    let short = ping_pongs(1000);
    suite.traces.retain(|trace| short.iter().all(|short| short.name != trace.name));
    suite.traces.extend(short);
    let (long, traces): (Vec<_>, Vec<_>) = suite.traces.iter().partition(|trace| trace.pairs() > MAX_PAIRS);
    // Other programs do not change the counts, so both sides may run at the same time.
    pin(&context.cores)?;
    let progress = super::progress("instructions", traces.len())?;
    let mut rows = Vec::new();
    for trace in traces {
        progress.set_message(trace.name.clone());
        let [ours, theirs] = both(context, trace)?;
        rows.push(ReportRow {
            name: trace.name.clone(),
            units: trace.pairs(),
            values: vec![Some(Measurement::exact(ours)), Some(Measurement::exact(theirs))],
            ratio: Some(Measurement::exact(theirs / ours)),
        });
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(Section {
        rows,
        goal: Some(RatioGoal::AtLeast { mean: 10.0, each: 5.0 }),
        notes: vec![
            "counted by callgrind inside one replay after one to warm up, the loop included".to_owned(),
            format!(
                "left out for their length: {}",
                long.iter().map(|trace| trace.name.as_str()).collect::<Vec<_>>().join(", ")
            ),
        ],
        ..Section::new(
            "instructions",
            "Against PyTorch's own library, in instructions",
            "instructions a pair of allocation and free",
            ["Blockyard", "PyTorch"],
        )
    })
}

/// Counts both sides at the same time, on a file of the trace: reading a recording under valgrind would take
/// longer than replaying it.
fn both(context: &BenchContext, trace: &OperationList) -> Result<[f64; 2]> {
    let folder = context.target.join("bench");
    let file = folder.join("counted.trace");
    fs::write(&file, trace.to_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    let start = |side: &str| {
        Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=replay_timed", "--collect-atstart=no"])
            .arg(format!("--callgrind-out-file={}", folder.join(side).with_extension("callgrind").display()))
            .arg(std::env::current_exe()?)
            .args(["--count", side])
            .arg(&file)
            .current_dir(&context.workspace)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run valgrind")
    };
    let (ours, theirs) = (start("ours")?, start("theirs")?);
    Ok([counted(ours, trace)?, counted(theirs, trace)?])
}

#[expect(clippy::cast_precision_loss, reason = "a count of operations")]
fn counted(child: Child, trace: &OperationList) -> Result<f64> {
    let output = child.wait_with_output()?;
    let output_text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind on {} failed:\n{output_text}", trace.name);
    let collected = output_text.lines().find_map(|line| line.split_once("Collected :"));
    let count: Option<f64> = collected.and_then(|(_, count)| count.trim().parse().ok());
    let count = count.filter(|count| *count > 0.0);
    let count =
        count.with_context(|| format!("valgrind on {} counted nothing:\n{output_text}", trace.name))?;
    Ok(count / trace.pairs().max(1) as f64)
}

/// The program under valgrind: one replay to warm up, and one that is counted.
///
/// # Errors
///
/// When the file is not a trace, or an allocation fails.
pub fn count(context: &BenchContext, side: Side, file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let trace = OperationList::from_bytes("counted", &bytes)?;
    let libraries = Libraries::load(&context.target)?;
    let mut pass = Pass::begin(&libraries, side, &trace)?;
    pass.warm(1)?;
    pass.timed(1)?;
    Ok(())
}
