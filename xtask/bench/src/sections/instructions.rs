//! Instructions a pair, counted by valgrind: noise does not touch them.

use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::Context;
use crate::measure::Measure;
use crate::native::{Libraries, Pass, Side};
use crate::report::{Goal, Row, Section};
use crate::suite::Suite;

/// Traces that are long enough take minutes under valgrind; these say the same.
const LEFT_OUT: [&str; 4] = ["llama_generate", "rmm_100k_1MiB", "rmm_100k_64MiB", "rmm_100k_1GiB"];

/// Instructions a pair of allocation and free, ours behind its C ABI beside PyTorch's.
///
/// # Errors
///
/// When valgrind is not there, or a library does not load.
pub fn instructions(context: &Context) -> Result<Section> {
    let version = Command::new("valgrind").arg("--version").output();
    ensure!(version.is_ok(), "instructions are counted by valgrind, which is not installed");
    // Loaded here so that everything is built before valgrind runs.
    drop(Libraries::load(&context.target)?);
    let suite = Suite::load(&context.workspace)?;
    let traces: Vec<_> =
        suite.traces.iter().filter(|trace| !LEFT_OUT.contains(&trace.name.as_str())).collect();
    let progress = super::progress("instructions", traces.len() * 2)?;
    let mut rows = Vec::new();
    for trace in traces {
        let mut counted = [0.0; 2];
        for (place, side) in counted.iter_mut().zip(Side::BOTH) {
            progress.set_message(trace.name.clone());
            *place = under_valgrind(context, &trace.name, side, trace.pairs())?;
            progress.inc(1);
        }
        rows.push(Row {
            name: trace.name.clone(),
            units: trace.pairs(),
            values: counted.iter().map(|count| Some(Measure::exact(*count))).collect(),
            ratio: Some(Measure::exact(counted[1] / counted[0])),
        });
    }
    progress.finish_and_clear();
    Ok(Section {
        name: "instructions".to_owned(),
        title: "Against PyTorch's own library, in instructions".to_owned(),
        unit: "instructions a pair of allocation and free".to_owned(),
        contenders: vec!["Blockyard".to_owned(), "PyTorch".to_owned()],
        rows,
        goal: Some(Goal::AtLeast { mean: 10.0, each: 5.0 }),
        notes: vec![
            "counted by callgrind inside one replay after one to warm up, the loop included".to_owned(),
            format!("left out for their length: {}", LEFT_OUT.join(", ")),
        ],
    })
}

#[expect(clippy::cast_precision_loss, reason = "a count of operations")]
fn under_valgrind(context: &Context, trace: &str, side: Side, pairs: usize) -> Result<f64> {
    let folder = context.target.join("bench");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=replay_timed", "--collect-atstart=no"])
        .arg(format!("--callgrind-out-file={}", folder.join("callgrind.out").display()))
        .arg(std::env::current_exe()?)
        .args(["--count", if side == Side::Ours { "ours" } else { "theirs" }, trace])
        .current_dir(&context.workspace)
        .output()
        .context("cannot run valgrind")?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind on {trace} failed:\n{told}");
    }
    let collected = told.lines().find_map(|line| line.split_once("Collected :"));
    let count: Option<f64> = collected.and_then(|(_, count)| count.trim().parse().ok());
    let count = count.filter(|count| *count > 0.0);
    Ok(count.with_context(|| format!("valgrind on {trace} counted nothing:\n{told}"))? / pairs.max(1) as f64)
}

/// What runs under valgrind: one replay to warm up, one that is counted.
///
/// # Errors
///
/// When there is no such trace, or an allocation fails.
pub fn count(context: &Context, side: Side, name: &str) -> Result<()> {
    let suite = Suite::load(&context.workspace)?;
    let trace = suite.traces.iter().find(|trace| trace.name == name);
    let trace = trace.with_context(|| format!("there is no trace `{name}`"))?;
    let libraries = Libraries::load(&context.target)?;
    let mut pass = Pass::begin(&libraries, side, trace)?;
    pass.warm(1)?;
    pass.timed(1)?;
    Ok(())
}
