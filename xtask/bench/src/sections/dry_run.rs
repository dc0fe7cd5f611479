//! A dry run beside the `import torch` within, a step of a model of 8 billion parameters, and an operator's
//! host time beside PyTorch's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use blockyard_measure::{Measurement, RatioGoal, ReportRow, Section};
use serde::Deserialize;

use super::BenchContext;

/// The Python that has PyTorch for CUDA; its packages may be named by `PYTHONPATH`.
const PYTHON: &str = "BLOCKYARD_TORCH_PYTHON";
/// The most seconds that a start may take beyond those of `import torch`.
const GOAL_START: f64 = 1.5;
/// The most seconds of a step.
const GOAL_STEP: f64 = 1.0;
/// The goal for an operator's host time, as a multiple of PyTorch's own.
const GOAL_OPERATOR: f64 = 1.3;
/// A program that prints the seconds that `import torch` takes. PyTorch for CUDA needs NVIDIA's libraries or
/// ours.
const PROGRAM: &str = "import time\nbegin = time.monotonic()\nimport torch\nprint(time.monotonic() - begin)\n\
    torch.zeros(1, device='cuda')\n";

/// Why a section is skipped; `None` if a PyTorch is named.
fn missing() -> Option<String> {
    std::env::var_os(PYTHON)
        .is_none()
        .then(|| format!("skipped: {PYTHON} names no Python that has PyTorch for CUDA"))
}

/// Builds the command and its library as users have them.
fn build(context: &BenchContext) -> Result<()> {
    super::cargo_build(
        context,
        &["--package", "blockyard-cli", "--package", "blockyard-standin", "--release"],
    )
}

/// `blockyard dry-run` of a program with its arguments.
fn dry_run(context: &BenchContext, file: &Path) -> Command {
    let mut command = Command::new(context.target.join("release/blockyard"));
    command.args(["dry-run", "--quiet", "--python"]);
    command.arg(std::env::var_os(PYTHON).unwrap_or_default()).arg(file);
    command
}

/// Runs the command: its seconds, and what it printed.
fn timed(command: &mut Command) -> Result<(f64, String)> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("a program does not start")?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(output.status.success(), "failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok((seconds, String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT met" }
}

/// Seconds of whole processes, of the `import torch` within each, and of steps.
///
/// # Errors
///
/// When a program fails.
pub(super) fn dry_run_start(context: &BenchContext) -> Result<Section> {
    let title = "A dry run, whole processes and steps";
    let mut section = Section::new("dry-run", title, "s", ["blockyard dry-run", "import torch within"]);
    if let Some(why) = missing() {
        section.notes.push(why);
        return Ok(section);
    }
    build(context)?;
    let folder = context.target.join("bench");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("dry_run.py");
    std::fs::write(&file, PROGRAM)?;
    // The first run may prepare the libraries.
    timed(&mut dry_run(context, &file))?;
    let mut values: [Vec<f64>; 2] = Default::default();
    for _ in 0..context.rounds {
        let (seconds, printed) = timed(&mut dry_run(context, &file))?;
        values[0].push(seconds);
        values[1].push(printed.trim().parse().context("no seconds of `import torch` were printed")?);
    }
    std::fs::remove_file(&file)?;
    let more = Measurement::of(&values[0]).median - Measurement::of(&values[1]).median;
    section.notes.push(format!(
        "goal of the start: at most {GOAL_START} s more than `import torch`; {more:.2} s more: {}",
        met(more <= GOAL_START)
    ));
    let ratio = Measurement::ratio(&values[0], &values[1]);
    section.rows.push(ReportRow::new("start: one tensor", 1, &values).with_ratio(ratio));
    let (steps, host) = steps(context)?;
    let median = Measurement::of(&steps).median;
    section.rows.push(ReportRow::new(
        "step: Llama's shape, 8.03 billion parameters",
        1,
        &[steps, Vec::new()],
    ));
    section.notes.push(format!(
        "goal of a step: at most {GOAL_STEP} s; {median:.2} s: {}; {host}",
        met(median <= GOAL_STEP)
    ));
    Ok(section)
}

/// Seconds of each step after the first, and the last line that the program prints.
fn steps(context: &BenchContext) -> Result<(Vec<f64>, String)> {
    let script = context.workspace.join("scripts/dry_run_speed.py");
    let (_, printed) = timed(dry_run(context, &script).arg("--inside"))?;
    let seconds = |line: &str| {
        let (_, found) = line.strip_prefix("step ")?.split_once(": ")?;
        found.split_once(' ')?.0.parse::<f64>().ok()
    };
    let steps: Vec<f64> = printed.lines().filter_map(seconds).skip(1).collect();
    ensure!(!steps.is_empty(), "no step was printed: {printed}");
    Ok((steps, printed.lines().last().unwrap_or_default().to_owned()))
}

/// A call's microseconds in each turn.
#[derive(Deserialize)]
struct Cost {
    name: String,
    followed: Vec<f64>,
    alone: Vec<f64>,
}

/// Microseconds of the processor for a call, with values followed and not followed, in turns within one
/// process.
///
/// # Errors
///
/// When the program fails.
pub(super) fn dry_run_operators(context: &BenchContext) -> Result<Section> {
    let title = "Operators in a dry run, whose kernels do nothing";
    let unit = "us of the processor a call";
    let mut section = Section::new("dry-run-operators", title, unit, ["values followed", "not followed"]);
    if let Some(why) = missing() {
        section.notes.push(why);
        return Ok(section);
    }
    build(context)?;
    let script = context.workspace.join("scripts/dry_run_cost.py");
    let rounds = context.rounds.to_string();
    let (_, printed) = timed(dry_run(context, &script).args(["--numbers", "--turns", &rounds]))?;
    let costs: Vec<Cost> = serde_json::from_str(&printed)?;
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for cost in &costs {
        let ratio = Measurement::ratio(&cost.followed, &cost.alone);
        // Names of steps end otherwise.
        if let Some((_, kind @ ("known" | "unknown"))) = cost.name.rsplit_once(", ") {
            kinds.entry(kind).or_default().push(ratio.median);
        }
        let values = [cost.followed.clone(), cost.alone.clone()];
        section.rows.push(ReportRow::new(&cost.name, 1, &values).with_ratio(ratio));
    }
    for (kind, ratios) in kinds {
        let ratios = Measurement::of(&ratios);
        section.notes.push(format!(
            "{kind} bytes: a call takes {:.2} times PyTorch's own host time in the median of its rows, {:.2} at most; goal: at most \
             {GOAL_OPERATOR} each: {}",
            ratios.median,
            ratios.most,
            met(ratios.most <= GOAL_OPERATOR)
        ));
    }
    section.goal = Some(RatioGoal::AtMost(GOAL_OPERATOR));
    Ok(section)
}
