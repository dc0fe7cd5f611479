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

/// A recorded program, as far as it is needed here.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    source: String,
    stdout: String,
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
    let tutorial = recorded(&context.workspace)?;
    let ours = context.target.join("release/blockyard");
    // As people have the command: optimized, without the minutes that the last step over the interpreter would take.
    super::cargo_build(context, &["--package", "blockyard-cli", "--release"])?;
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        section.notes.push(format!("not measured: import torch. {PYTHON} names a Python that has PyTorch"));
    }
    for (title, source, expected) in [
        ("start: import torch", "import torch\n", ""),
        (TUTORIAL, tutorial.source.as_str(), tutorial.stdout.as_str()),
    ] {
        let file = folder.join("program.py");
        std::fs::write(&file, source)?;
        let mut values: [Vec<f64>; 2] = Default::default();
        for _ in 0..context.rounds {
            let (seconds, printed) = timed(Command::new(&ours).arg("python").arg(&file))?;
            ensure!(printed == expected, "{title} printed other lines than the recorded ones");
            values[0].push(seconds);
            if let Some(python) = &python {
                values[1].push(timed(Command::new(python).args(["-c", "import torch"]))?.0);
            }
        }
        section.rows.push(ReportRow::new(title, 1, &values));
        std::fs::remove_file(&file)?;
    }
    let last = section.rows.last().and_then(|row| row.values.first().copied().flatten());
    let median = last.map_or(f64::INFINITY, |value| value.median);
    let met = if median <= GOAL_SECONDS { "met" } else { "NOT met" };
    section.notes.push(format!("goal of {TUTORIAL}: at most {GOAL_SECONDS} s; {median:.2} s: {met}"));
    section.notes.push("PyTorch's column is its start alone in both rows: no program of it runs".to_owned());
    Ok(section)
}

fn recorded(workspace: &Path) -> Result<Recorded> {
    let path = workspace.join("tests/fixtures/pytorch_programs/recorded.jsonl.gz");
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let text = blockyard_pytorch::unpack(&bytes)?;
    let programs = text.lines().map(serde_json::from_str::<Recorded>).collect::<Result<Vec<_>, _>>()?;
    programs
        .into_iter()
        .find(|program| program.name == TUTORIAL)
        .with_context(|| format!("{TUTORIAL} is missing"))
}

/// How long a process takes, and what it prints.
fn timed(command: &mut Command) -> Result<(f64, String)> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok((seconds, String::from_utf8(output.stdout)?))
}
