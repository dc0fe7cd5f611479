//! A program on our operators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use blockyard_python::{Interpreter, Output, ProgramSettings, ProgramSource, run};
use blockyard_torch::memory::LogEntry;

use super::run::{PrintedLine, ProgramRun};

/// Runs a program on our operators.
///
/// # Errors
///
/// When no Python could be started.
pub fn run_ours(source: &str) -> Result<ProgramRun> {
    let program =
        ProgramSource { file: "calls.py".to_owned(), source: source.to_owned(), arguments: Vec::new() };
    let settings = ProgramSettings {
        // The one that has PyTorch, so that both sides have the same Python.
        python: std::env::var("BLOCKYARD_TORCH_PYTHON")
            .ok()
            .or_else(|| Interpreter::of_recordings().map(|python| python.command)),
        max_operators: u64::MAX,
        max_requests: u64::MAX,
        ..ProgramSettings::default()
    };
    let mut text = String::new();
    let finished = run(&program, &settings, Output::Taken(&mut |piece: &str| text.push_str(piece)))?;
    let lines = finished.lines(&text).into_iter().map(|line| PrintedLine {
        text: line.text.to_owned(),
        requests: usize::try_from(line.end.requests).unwrap_or(usize::MAX),
        estimated: line.end.estimates,
        unsure: 0,
    });
    let lines = lines.collect();
    let mut run = ProgramRun { lines, error: finished.traceback, ..ProgramRun::default() };
    let device = finished.devices.first().context("a program has a device")?;
    let mut sizes = Vec::new();
    for entry in &device.requests {
        match entry {
            LogEntry::Allocate(number, bytes) => {
                let (number, bytes) = (*number as usize, i64::try_from(*bytes)?);
                if sizes.len() <= number {
                    sizes.resize(number + 1, 0);
                }
                if let Some(size) = sizes.get_mut(number) {
                    *size = bytes;
                }
                run.events.push(bytes);
            }
            LogEntry::Free(number) => {
                run.events.push(-sizes.get(*number as usize).copied().unwrap_or_default());
            }
            LogEntry::Unordered(count) => {
                run.unordered.push(run.events.len()..run.events.len() + *count as usize);
            }
        }
    }
    Ok(run)
}

/// Where our side runs.
#[derive(Debug)]
pub enum OurSide {
    /// Programs run in this process.
    Here,
    /// In a separate process for each program: a process that ends early ends no other program.
    Apart(OurProcesses),
}

/// Processes that run a program each: `PROGRAM ours SOURCE OUT`.
#[derive(Debug)]
pub struct OurProcesses {
    program: PathBuf,
    folder: PathBuf,
    /// The Python of PyTorch's side: both sides run under the same rules.
    python: String,
    /// How many ended before their program did.
    died: AtomicUsize,
}

impl OurProcesses {
    /// Processes of this program, which write into a folder and run our side in this Python.
    #[must_use]
    pub fn new(program: PathBuf, folder: PathBuf, python: String) -> Self {
        Self { program, folder, python, died: AtomicUsize::new(0) }
    }

    fn run(&self, name: &str, source: &str) -> Result<ProgramRun> {
        let in_folder = |ending: &str| self.folder.join(format!("{name}.ours.{ending}"));
        let (path, out) = (in_folder("py"), in_folder("json"));
        fs::write(&path, source)?;
        let mut command = Command::new(&self.program);
        command.arg("ours").args([&path, &out]).stdin(Stdio::null());
        if std::env::var_os("BLOCKYARD_PYTHON").is_none() {
            command.env("BLOCKYARD_PYTHON", &self.python);
        }
        let status = command.status().context("cannot run our side")?;
        let written = fs::read_to_string(&out);
        for used in [path, out] {
            // A file that cannot be removed stays in the folder of temporary files.
            let _ = fs::remove_file(used);
        }
        match written {
            Ok(text) if status.success() => Ok(serde_json::from_str(&text)?),
            _ => {
                self.died.fetch_add(1, Ordering::Relaxed);
                bail!("the process of our side ended early ({status})")
            }
        }
    }
}

impl OurSide {
    /// Runs a program on our operators.
    ///
    /// # Errors
    ///
    /// When the interpreter failed, or its process ended early twice.
    pub fn run(&self, name: &str, source: &str) -> Result<ProgramRun> {
        match self {
            Self::Here => run_ours(source),
            Self::Apart(processes) => {
                processes.run(name, source).or_else(|_early| processes.run(name, source))
            }
        }
    }

    /// How many processes ended before their program did.
    pub fn died_count(&self) -> usize {
        match self {
            Self::Here => 0,
            Self::Apart(processes) => processes.died.load(Ordering::Relaxed),
        }
    }
}

/// The work of a process of our side: runs the program of a file, and writes the program's run to `out`.
///
/// # Errors
///
/// When a file cannot be read or written, or the interpreter failed.
pub fn run_for_another(source: &Path, out: &Path) -> Result<()> {
    let text = fs::read_to_string(source).with_context(|| source.display().to_string())?;
    let run = serde_json::to_string(&run_ours(&text)?)?;
    fs::write(out, run).with_context(|| out.display().to_string())
}
