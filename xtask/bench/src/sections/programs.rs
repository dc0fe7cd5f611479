//! A PyTorch program from the command to its last line, beside the time that `import torch` takes alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use blockyard_measure::{ReportRow, Section};
use serde::Deserialize;

use super::BenchContext;

/// The Python that has PyTorch; its packages may be named by `PYTHONPATH`.
const PYTHON: &str = "BLOCKYARD_TORCH_PYTHON";
/// The most seconds that the recorded tutorial may take.
const GOAL_SECONDS: f64 = 1.5;
const TUTORIAL: &str = "tutorials/small_gpt";
/// The least allocator events in a second, over all programs of this folder.
const GOAL_EVENTS: f64 = 100_000.0;
const OPERATORS: &str = "ops/";

/// The fields of a recorded program that are needed here.
#[derive(Deserialize)]
struct RecordedProgram {
    name: String,
    source: String,
    stdout: String,
    /// How many GPUs the program ran on; `None` for one.
    devices: Option<u8>,
}

/// The fields of the answer of `blockyard python --json` that are needed here.
#[derive(Deserialize)]
struct Summary {
    devices: Vec<DeviceSummary>,
}

#[derive(Deserialize)]
struct DeviceSummary {
    stats: std::collections::BTreeMap<String, i64>,
}

impl DeviceSummary {
    /// The number of entries of PyTorch's trace: one for an allocation, two for a free, one each for the
    /// allocation and the release of a segment.
    fn events(&self) -> i64 {
        let count = |name: &str| self.stats.get(name).copied().unwrap_or_default();
        let blocks = count("allocation.all.allocated") + 2 * count("allocation.all.freed");
        blocks + count("segment.all.allocated") + count("segment.all.freed")
    }
}

/// Seconds of whole processes, in turns.
///
/// # Errors
///
/// When a program is not there, fails, or prints other lines than the recorded ones.
pub(super) fn programs(context: &BenchContext) -> Result<Section> {
    let contenders = ["blockyard python", "import torch"];
    let mut section = Section::new("programs", "PyTorch programs, whole processes", "s", contenders);
    let folder = context.target.join("bench");
    std::fs::create_dir_all(&folder)?;
    let programs = recorded(&context.workspace)?;
    let tutorial = programs.iter().find(|program| program.name == TUTORIAL);
    let tutorial = tutorial.with_context(|| format!("{TUTORIAL} is missing"))?;
    let ours = context.target.join("release/blockyard");
    // The command is optimized as users have it, without the last minutes of optimizing the interpreter.
    super::cargo_build(context, &["--package", "blockyard-cli", "--release"])?;
    let file = folder.join("program.py");
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        section.notes.push(format!("not measured: import torch. {PYTHON} names a Python that has PyTorch"));
    }
    for (title, source, expected) in [
        ("start: import torch", "import torch\n", ""),
        (TUTORIAL, tutorial.source.as_str(), tutorial.stdout.as_str()),
    ] {
        std::fs::write(&file, source)?;
        let mut values: [Vec<f64>; 2] = Default::default();
        for _ in 0..context.rounds {
            let (seconds, printed) = timed(Command::new(&ours).arg("python").arg(&file))?;
            ensure!(printed == expected, "{title} printed other lines than the recorded ones");
            values[0].push(seconds);
            if let Some(python) = python.as_ref().filter(|_| expected.is_empty()) {
                values[1].push(timed(Command::new(python).args(["-c", "import torch"]))?.0);
            }
        }
        section.rows.push(ReportRow::new(title, 1, &values));
    }
    let last = section.rows.last().and_then(|row| row.values.first().copied().flatten());
    let median = last.map_or(f64::INFINITY, |value| value.median);
    let met = if median <= GOAL_SECONDS { "met" } else { "NOT met" };
    section.notes.push(format!("goal of {TUTORIAL}: at most {GOAL_SECONDS} s; {median:.2} s: {met}"));
    let (row, note) = operators(context, &ours, &file, &programs)?;
    section.rows.push(row);
    section.notes.push(note);
    section.notes.push(long_loop(context, &ours, &file)?);
    section.notes.push("PyTorch's column is its start alone: no program of it runs".to_owned());
    std::fs::remove_file(&file)?;
    Ok(section)
}

/// Runs the recorded programs of operators, each in a separate process, and says how many allocator events
/// they have in a second.
fn operators(
    context: &BenchContext,
    ours: &Path,
    file: &Path,
    programs: &[RecordedProgram],
) -> Result<(ReportRow, String)> {
    let of_one_gpu =
        |program: &&RecordedProgram| program.name.starts_with(OPERATORS) && program.devices.unwrap_or(1) == 1;
    let programs: Vec<&RecordedProgram> = programs.iter().filter(of_one_gpu).collect();
    let (mut all, mut starts) = (Vec::new(), Vec::new());
    let mut events = 0;
    for _ in 0..context.rounds {
        let mut seconds = 0.0;
        events = 0;
        for program in &programs {
            std::fs::write(file, &program.source)?;
            let (of_program, summary) = timed(Command::new(ours).args(["python", "--json"]).arg(file))?;
            let summary: Summary = serde_json::from_str(&summary)?;
            seconds += of_program;
            events += summary.devices.iter().map(DeviceSummary::events).sum::<i64>();
        }
        all.push(seconds);
        std::fs::write(file, "import torch\n")?;
        starts.push(timed(Command::new(ours).args(["python", "--json"]).arg(file))?.0);
    }
    let title = format!("{OPERATORS}, {} programs, {events} events", programs.len());
    let row = ReportRow::new(title, 1, &[all.clone(), Vec::new()]);
    #[expect(clippy::cast_precision_loss, reason = "counts are far smaller than 2^52")]
    let (events, count) = (events as f64, programs.len() as f64);
    let (with, start) = (median(all), median(starts));
    let rate = events / with;
    let met = if rate >= GOAL_EVENTS { "met" } else { "NOT met" };
    let note = format!(
        "goal of {OPERATORS}: at least {GOAL_EVENTS:.0} allocator events a second: {rate:.0} with the {count} starts, {:.0} without \
         ({start:.3} s each): {met} with the starts",
        events / (with - count * start).max(f64::EPSILON)
    );
    Ok((row, note))
}

/// Allocator events a second in a training loop, where the start is a small part.
fn long_loop(context: &BenchContext, ours: &Path, file: &Path) -> Result<String> {
    std::fs::write(file, LONG_LOOP)?;
    let mut rates = Vec::new();
    for _ in 0..context.rounds {
        let (seconds, summary) = timed(Command::new(ours).args(["python", "--json"]).arg(file))?;
        let summary: Summary = serde_json::from_str(&summary)?;
        #[expect(clippy::cast_precision_loss, reason = "counts are far smaller than 2^52")]
        let events = summary.devices.iter().map(DeviceSummary::events).sum::<i64>() as f64;
        rates.push(events / seconds);
    }
    let rate = median(rates);
    let met = if rate >= GOAL_EVENTS { "met" } else { "NOT met" };
    Ok(format!(
        "allocator events a second in a loop of 30,000 small forward and backward passes, with its start: {rate:.0}: {met}"
    ))
}

const LONG_LOOP: &str = r#"import torch
a = torch.empty(256, 256, device="cuda", requires_grad=True)
for i in range(30000):
    b = torch.relu(a + 1) * a
    b.sum().backward()
    a.grad = None
"#;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

fn recorded(workspace: &Path) -> Result<Vec<RecordedProgram>> {
    let path = workspace.join("tests/fixtures/pytorch_programs/recorded.jsonl.gz");
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let text = blockyard_pytorch::unpack(&bytes)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// How long a process takes, and what it prints.
fn timed(command: &mut Command) -> Result<(f64, String)> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok((seconds, String::from_utf8(output.stdout)?))
}
