//! Recorded programs, run by a dry run and compared with what a GPU printed and did:
//! `cargo xtask truth dry-run`.
//!
//! A file holds a program's source, what it printed, and the trace of the allocator on a GPU. Each program
//! runs in a separate process.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

mod oom;
mod ranks;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockyard_dry_run::{Program, Report};
use blockyard_hooks::variables;
use clap::Args;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value as Json;

use self::ranks::RankJob;
use crate::installed::{InstalledTorch, default_python};

/// How the Python of the recordings is made.
const RECIPE: &str = "\
PYTHON has PyTorch 2.11.0, which the recordings were made with:
  python3 -m venv VENV && VENV/bin/pip install --no-deps torch==2.11.0 typing_extensions filelock sympy mpmath \\
    networkx jinja2 markupsafe fsspec numpy setuptools";

/// Run recorded programs without a GPU and compare them with what a GPU printed and did.
///
/// The exit status is 1 if a program differs without a mark.
#[derive(Debug, Args)]
#[command(after_help = RECIPE)]
pub struct DryRunOptions {
    /// The Python; else that of `BLOCKYARD_TORCH_PYTHON`, or `python3`.
    #[arg(long, default_value_t = default_python(), hide_default_value = true)]
    python: String,
    /// Print the first difference and the marks of each program.
    #[arg(long)]
    verbose: bool,
    /// The folder for the files of the runs, which stay.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Programs. Files NAME.RANK.json.gz are ranks of one program: all run side by side, and then each alone.
    /// A file NAME.jsonl lists runs of the program train.py beside it that go out of memory.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The program that runs each recorded program.
const DRIVER: &str = include_str!("dry_run/driver.py");

/// A program with its output and its traces, as recorded on a GPU.
#[derive(Debug, Deserialize)]
struct RecordedProgram {
    source: String,
    stdout: ProgramOutput,
    #[serde(default)]
    trace: Vec<Vec<Json>>,
    /// The traces by device, where the program used several devices.
    #[serde(default)]
    traces: Vec<Vec<Vec<Json>>>,
    /// The rank, where the program has several processes; each takes the device of its number.
    rank: Option<usize>,
}

/// The recorded output of a program: all of it, or the lines that count memory.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ProgramOutput {
    Text(String),
    Lines(Vec<String>),
}

impl ProgramOutput {
    /// The recorded lines, and the corresponding lines of the dry run's output.
    fn lines<'a>(&'a self, found: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        match self {
            Self::Text(text) => (text.lines().collect(), found.lines().collect()),
            Self::Lines(lines) => {
                let counts = found.lines().filter(|line| line.contains(": allocated "));
                (lines.iter().map(String::as_str).collect(), counts.collect())
            }
        }
    }
}

impl RecordedProgram {
    /// The traces, each with its device.
    fn traces(&self) -> Vec<(usize, &Vec<Vec<Json>>)> {
        if self.traces.is_empty() {
            vec![(self.rank.unwrap_or(0), &self.trace)]
        } else {
            self.traces.iter().enumerate().collect()
        }
    }
}

/// The output and the requests of a dry run.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct DryRun {
    stdout: String,
    traces: Vec<Vec<(String, u64)>>,
    error: Option<String>,
}

/// How many lines or events are equal, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    equal: usize,
    all: usize,
}

impl Share {
    fn of<T: PartialEq>(found: &[T], expected: &[T]) -> Self {
        let equal = found.iter().zip(expected).filter(|(found, expected)| found == expected).count();
        Self { equal, all: found.len().max(expected.len()) }
    }

    fn add(&mut self, other: Self) {
        self.equal += other.equal;
        self.all += other.all;
    }

    fn is_whole(self) -> bool {
        self.equal == self.all
    }
}

/// A dry run beside its recording.
struct Comparison {
    lines: Share,
    events: Share,
    /// Whether the events are equal in another order, which a hash table of PyTorch decides.
    is_reordered: bool,
    notes: Vec<String>,
    error: Option<String>,
    /// The first difference, in words.
    first: Option<String>,
    /// The output of the dry run.
    text: String,
}

impl Comparison {
    fn is_equal(&self) -> bool {
        self.lines.is_whole() && self.events.is_whole()
    }

    fn mark_addresses(&mut self, depends: bool) {
        if depends {
            self.notes.push("numbers depend on the addresses that a driver gives segments".to_owned());
        }
    }

    /// Whether all lines are equal, and all events except for their order.
    fn is_right(&self) -> bool {
        self.is_equal() || (self.lines.is_whole() && self.is_reordered)
    }
}

/// A program of one process, or of several.
enum ProgramFiles {
    One(PathBuf),
    Ranks(RankJob),
}

impl ProgramFiles {
    /// The programs of these files, where the files of one program's ranks belong together.
    fn all(files: &[PathBuf]) -> Vec<Self> {
        let mut jobs: Vec<Self> = Vec::new();
        for file in files {
            let Some((program, rank)) = ranks::program_of(file) else {
                jobs.push(Self::One(file.clone()));
                continue;
            };
            let same = jobs.iter_mut().find_map(|job| match job {
                Self::Ranks(job) if job.program == program => Some(job),
                _ => None,
            });
            match same {
                Some(job) => job.ranks.push((rank, file.clone())),
                None => jobs.push(Self::Ranks(RankJob { program, ranks: vec![(rank, file.clone())] })),
            }
        }
        jobs
    }

    /// What is compared, by name.
    fn compare(&self, installed: &InstalledTorch) -> Result<Vec<(String, Comparison)>> {
        match self {
            Self::One(file) => {
                let name = name_of(file);
                let compared = compare(file, &name, installed)?;
                Ok(vec![(name, compared)])
            }
            Self::Ranks(job) => job.compare(installed),
        }
    }
}

/// The name of a file without the ending.
fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".json.gz").to_owned()
}

/// Compares all programs and prints the table; the exit status is 1 where one differs without a mark.
///
/// # Errors
///
/// When there is no PyTorch, a file cannot be read or written, or a program cannot be started.
pub fn run(options: &DryRunOptions) -> Result<ExitCode> {
    let begun = Instant::now();
    let installed = InstalledTorch::find(&options.python, options.keep.as_deref())?;
    println!(
        "PyTorch {}, Python {}, in {}, prepared in {:.2} s",
        installed.torch.version,
        installed.torch.python,
        installed.torch.folder.display(),
        begun.elapsed().as_secs_f64()
    );
    let (lists, files): (Vec<PathBuf>, Vec<PathBuf>) = options
        .files
        .iter()
        .cloned()
        .partition(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    let mut is_right = true;
    for list in &lists {
        let share = oom::compare(list, &installed)?;
        println!("{}: {} of {} runs equal", list.display(), share.equal, share.all);
        is_right &= share.is_whole();
    }
    if !files.is_empty() {
        is_right &= compare_programs(&ProgramFiles::all(&files), &installed, options.verbose)? == 0;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares programs and prints the table; returns how many differ without a mark.
fn compare_programs(jobs: &[ProgramFiles], installed: &InstalledTorch, is_verbose: bool) -> Result<usize> {
    println!("| program | lines equal | events equal | marked | wrong without a mark |");
    println!("| --- | --- | --- | --- | --- |");
    let (mut lines, mut events) = (Share::default(), Share::default());
    let (mut whole, mut text_whole, mut unmarked) = (0, 0, 0);
    let mut count = 0;
    for job in jobs {
        for (name, compared) in job.compare(installed)? {
            count += 1;
            lines.add(compared.lines);
            events.add(compared.events);
            whole += usize::from(compared.is_equal());
            text_whole += usize::from(compared.lines.is_whole());
            let is_wrong = !compared.is_right() && compared.notes.is_empty();
            unmarked += usize::from(is_wrong);
            println!(
                "| {name} | {} of {} | {} of {}{} | {} | {} |",
                compared.lines.equal,
                compared.lines.all,
                compared.events.equal,
                compared.events.all,
                if compared.is_reordered { " (the others in another order)" } else { "" },
                compared.notes.len(),
                if is_wrong { "yes" } else { "" }
            );
            if is_verbose {
                for text in compared.error.iter().chain(&compared.first).chain(&compared.notes) {
                    println!("    {text}");
                }
            }
        }
    }
    println!(
        "{count} programs: text equal {text_whole}, text and events equal {whole}, wrong without a mark \
         {unmarked}; lines {} of {}, events {} of {}",
        lines.equal, lines.all, events.equal, events.all
    );
    Ok(unmarked)
}

/// Reads the recorded program of a file.
fn read_recorded(file: &Path) -> Result<RecordedProgram> {
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    serde_json::from_reader(GzDecoder::new(opened)).with_context(|| file.display().to_string())
}

/// Writes the driver for a recorded program; returns the program and the file to which the driver writes the
/// result.
fn prepare_driver(
    recorded: &RecordedProgram,
    name: &str,
    installed: &InstalledTorch,
) -> Result<(Program, PathBuf)> {
    let driver = installed.file("driver", "py");
    let [program, out, printed] = ["py", "json", "txt"].map(|ending| installed.file(name, ending));
    fs::write(&driver, DRIVER)?;
    fs::write(&program, &recorded.source)?;
    let text = |path: &Path| path.display().to_string();
    let started = Program {
        arguments: vec![text(&program), name.to_owned(), text(&out)],
        devices: u32::try_from(recorded.traces.len().max(1))?,
        output: Some(printed),
        ..installed.program(driver)
    };
    Ok((started, out))
}

fn compare(file: &Path, name: &str, installed: &InstalledTorch) -> Result<Comparison> {
    let recorded = read_recorded(file)?;
    let (program, out) = prepare_driver(&recorded, name, installed)?;
    let run = |variable: Option<(&str, &str)>| -> Result<(Report, DryRun)> {
        let variable = variable.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let program = Program { environment: variable.into_iter().collect(), ..program.clone() };
        let _ = fs::remove_file(&out);
        let report = installed.run(&program, Duration::MAX)?;
        let done = read_done(&out, report.status)?;
        Ok((report, done))
    };
    let (report, done) = run(None)?;
    let mut compared = compared(&recorded, &report, &done);
    // A number that changes with the addresses of segments is marked: the driver chooses them.
    if !compared.lines.is_whole() && compared.notes.is_empty() {
        let (_, other) = run(Some((variables::ADDRESSES, "falling")))?;
        compared.mark_addresses(other.stdout != done.stdout);
    }
    let python = &installed.torch.python;
    if !compared.lines.is_whole() && compared.notes.is_empty() && python != RECORDING_PYTHON {
        let (report, done) = run(Some(("KEEP_CLOSED", "1")))?;
        if self::compared(&recorded, &report, &done).lines.is_whole() {
            compared.notes.push(format!(
                "Python {RECORDING_PYTHON}, which recorded it, keeps what a closed generator holds, and Python \
                 {python} frees it: all lines are equal if no generator is closed"
            ));
        }
    }
    Ok(compared)
}

/// The Python of the recordings. Its `close` of a generator frees none of the generator's variables
/// (CPython's issue 118272).
const RECORDING_PYTHON: &str = "3.12.3";

fn compared(recorded: &RecordedProgram, report: &Report, done: &DryRun) -> Comparison {
    let (expected, found) = recorded.stdout.lines(&done.stdout);
    let (mut events, mut is_same_set) = (Share::default(), true);
    let none = Vec::new();
    for (device, trace) in recorded.traces() {
        let mut expected: Vec<(String, u64)> = trace
            .iter()
            .map(|event| {
                let action = event.first().and_then(Json::as_str).unwrap_or_default().to_owned();
                (action, event.get(2).and_then(Json::as_u64).unwrap_or(0))
            })
            .collect();
        let mut found = done.traces.get(device).unwrap_or(&none).clone();
        events.add(Share::of(&found, &expected));
        found.sort();
        expected.sort();
        is_same_set &= found == expected;
    }
    let first = (0..expected.len().max(found.len()))
        .find(|line| expected.get(*line) != found.get(*line))
        .map(|line| format!("line {line}: expected {:?}, found {:?}", expected.get(line), found.get(line)));
    let mut notes = report.sentences();
    if report.is_cut && notes.is_empty() {
        notes.push(format!("the process ended with status {}", report.status));
    }
    let is_reordered = is_same_set && !events.is_whole();
    let lines = Share::of(&found, &expected);
    Comparison {
        lines,
        events,
        is_reordered,
        notes,
        error: done.error.clone(),
        first,
        text: done.stdout.clone(),
    }
}

/// Reads the output and the requests of a dry run, as the driver wrote them.
fn read_done(out: &Path, status: i32) -> Result<DryRun> {
    Ok(match fs::read_to_string(out) {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_missing) => {
            DryRun { error: Some(format!("the process ended with status {status}")), ..DryRun::default() }
        }
    })
}
