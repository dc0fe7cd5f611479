//! Opening snapshots of usual sizes, compared with Python on the same file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use blockyard_measure::{ReportRow, Section};
use serde::Deserialize;

use super::BenchContext;

/// Files of at least this many bytes are made of the recorded one; 0 is the recorded one itself.
const SIZES: [(&str, u64); 3] = [("as recorded", 0), ("300 MB", 300_000_000), ("1 GB", 1_000_000_000)];
/// The most seconds that the recorded file may take.
const GOAL_SECONDS: f64 = 1.0;
/// The most memory for each byte of the file.
const GOAL_MEMORY: f64 = 1.2;

/// The cost of opening a file, as the program that opens it prints it.
#[derive(Deserialize)]
struct FileLoad {
    seconds: f64,
    entries: usize,
    peak_bytes: f64,
}

/// The cost of reading the file in Python.
#[derive(Deserialize)]
struct PickleLoad {
    seconds: f64,
    peak_kib: f64,
}

/// Seconds until the recording is ready to be drawn; for Python, until `pickle.load` returns and until
/// `_memory_viz.py stats` ends.
///
/// # Errors
///
/// When a program is not there, or fails.
pub(super) fn snapshots(context: &BenchContext) -> Result<Section> {
    let contenders = ["Blockyard", "pickle.load", "_memory_viz.py stats"];
    let mut section = Section::new("snapshots", "Opening memory snapshots", "s", contenders);
    let Some(recorded) = recorded() else {
        section.notes.push(
            "left out: BLOCKYARD_SNAPSHOT names a snapshot whose memory returns to what it was, unpacked"
                .to_owned(),
        );
        return Ok(section);
    };
    let folder = context.target.join("bench");
    std::fs::create_dir_all(&folder)?;
    for (title, least) in SIZES {
        let file = if least == 0 { recorded.clone() } else { longer(&recorded, least, &folder)? };
        add_row(&mut section, context, title, &file)?;
        if least > 0 {
            std::fs::remove_file(&file)?;
        }
    }
    Ok(section)
}

pub(super) fn recorded() -> Option<PathBuf> {
    std::env::var_os("BLOCKYARD_SNAPSHOT").map(PathBuf::from).filter(|path| path.is_file())
}

pub(super) fn longer(recorded: &Path, least: u64, folder: &Path) -> Result<PathBuf> {
    let file = folder.join("long.pickle");
    let mut command = program()?;
    let status = command.arg("write").arg(recorded).arg(least.to_string()).arg(&file).status()?;
    ensure!(status.success(), "the snapshot of {least} bytes was not written");
    Ok(file)
}

fn add_row(section: &mut Section, context: &BenchContext, title: &str, file: &Path) -> Result<()> {
    let bytes = File::open(file)?.metadata()?.len();
    let mut values: [Vec<f64>; 3] = Default::default();
    let (mut entries, mut ours, mut theirs) = (0, 0.0_f64, 0.0_f64);
    for _ in 0..context.rounds.min(3) {
        let opened: FileLoad = said(program()?.arg("open").arg(file))?;
        values[0].push(opened.seconds);
        entries = opened.entries;
        ours = ours.max(opened.peak_bytes);
        let loaded: PickleLoad = said(Command::new("python3").args(["-c", LOAD]).arg(file))?;
        values[1].push(loaded.seconds);
        theirs = theirs.max(loaded.peak_kib * 1024.0);
        if let Some(script) = memory_viz() {
            let loaded: PickleLoad = said(Command::new("python3").args(["-c", STATS]).arg(script).arg(file))?;
            values[2].push(loaded.seconds);
        }
    }
    let row = ReportRow::new(title, entries, &values);
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let length = bytes as f64;
    let met = if ours <= length * GOAL_MEMORY { "met" } else { "NOT met" };
    section.notes.push(format!(
        "{title}: {entries} entries in {bytes} bytes; peak memory {:.0} MB, for Python {:.0} MB; goal of at most {GOAL_MEMORY} \
         bytes of memory a byte: {met}",
        ours / 1e6,
        theirs / 1e6
    ));
    if section.rows.is_empty() {
        let median = row.values.first().copied().flatten().map_or(f64::INFINITY, |value| value.median);
        let met = if median <= GOAL_SECONDS { "met" } else { "NOT met" };
        section.notes.push(format!("goal of {title}: at most {GOAL_SECONDS} s; {median:.2} s: {met}"));
    }
    section.rows.push(row);
    Ok(())
}

fn program() -> Result<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name("blockyard-bench-snapshots")))
}

fn said<T: for<'a> Deserialize<'a>>(command: &mut Command) -> Result<T> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?}"))
}

/// The path of PyTorch's own script in the variable `MEMORY_VIZ`: `torch/cuda/_memory_viz.py` of the wheel.
fn memory_viz() -> Option<PathBuf> {
    std::env::var_os("MEMORY_VIZ").map(PathBuf::from).filter(|path| path.is_file())
}

const LOAD: &str = "
import json, pickle, resource, sys, time
begun = time.time()
snapshot = pickle.load(open(sys.argv[1], 'rb'))
seconds = time.time() - begun
print(json.dumps({'seconds': seconds, 'peak_kib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
";

const STATS: &str = "
import json, resource, subprocess, sys, time
begun = time.time()
subprocess.run([sys.executable, sys.argv[1], 'stats', sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
seconds = time.time() - begun
print(json.dumps({'seconds': seconds, 'peak_kib': resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}))
";
