//! `cargo xtask truth torch-oracle`: random operator calls and programs on PyTorch's own code and on our operators.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;

use super::{
    Call, CallComparison, CallOutcome, Calls, Cycles, Jobs, JobsOutcome, Networks, OracleReport,
    OurProcesses, OurSide, PyTorch, RecordedCall, Sides, Times, compare_calls, known_causes, read_findings,
    unexpected,
};
use crate::installed::default_python;

/// How many calls one process makes.
const CALLS_OF_A_PROCESS: usize = 8000;
/// How many programs one process runs: the first of them finds the libraries without workspaces.
const PROGRAMS_OF_A_PROCESS: usize = 200;
/// How many programs with cycles one process runs: what a program never frees stays until the process ends.
const CYCLES_OF_A_PROCESS: usize = 50;
/// The exit status where PyTorch is not installed.
const NO_PYTORCH: u8 = 3;

/// Run random operator calls and programs on PyTorch's own code, without a GPU, and on our operators, and
/// compare every allocation and free.
///
/// The exit status is 1 if a call differs without a mark, unless the cause is known and comes no more often
/// than known (`xtask/truth/src/torch_oracle/known.txt`).
#[derive(Debug, Args)]
pub struct TorchOracleOptions {
    /// A Python with PyTorch 2.11.0 for CUDA; else that of `BLOCKYARD_TORCH_PYTHON`, or one that is fetched once
    /// (530 MB).
    #[arg(long, default_value_t = default_python(), hide_default_value = true)]
    python: String,
    /// Calls of operators.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    calls: usize,
    /// Whole programs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    programs: usize,
    /// Programs with cycles of references, whose lines are compared too.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cycles: usize,
    /// The same seed makes the same calls.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Processes of PyTorch at the same time; else the processors of this machine.
    #[arg(long, value_name = "N", default_value_t = processors(), hide_default_value = true)]
    jobs: usize,
    /// No further calls begin after this time, and no further programs after as long again; the result says
    /// how many were made.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Only lines of the table of calls (`xtask/truth/src/torch_oracle/calls.txt`) that contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The file for the result, also while the run goes on.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The file for the smallest call of each operator and cause that differs, with PyTorch's events, as lines
    /// of JSON, also while the run goes on.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Only the calls of such a file; with --write, those that are equal are written, with PyTorch's events.
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    /// End with status 3 where PYTHON has no PyTorch for CUDA.
    #[arg(long)]
    if_present: bool,
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Makes the calls and prints the comparison.
///
/// # Errors
///
/// When there is no PyTorch, or a file cannot be read or written.
pub fn run(options: &TorchOracleOptions) -> Result<ExitCode> {
    let pytorch = match PyTorch::find(&options.python) {
        Err(error) if options.if_present => {
            println!("{error:#}");
            return Ok(ExitCode::from(NO_PYTORCH));
        }
        found => found?,
    };
    let ours = OurSide::Apart(OurProcesses::new(
        std::env::current_exe()?,
        pytorch.folder().to_owned(),
        options.python.clone(),
    ));
    let sides = Sides { pytorch: &pytorch, ours: &ours };
    if let Some(path) = &options.again {
        return compare_file(sides, path, options.write.as_deref());
    }
    let known = known_causes()?;
    let mut told = ResultFiles { options, before: String::new(), findings: String::new() };
    let mut text = format!("PyTorch {}, seed {}\n", pytorch.version(), options.seed);
    let mut unknown = Vec::new();
    let calls = Calls::new(options.seed, options.only.as_deref())?.take(options.calls);
    let programs = Networks::new(options.seed).take(options.programs);
    let cycles = Cycles::new(options.seed).take(options.cycles);
    let parts: [(&str, usize, Box<dyn Iterator<Item = Call> + Send>); 3] = [
        ("calls", CALLS_OF_A_PROCESS, Box::new(calls)),
        ("programs", PROGRAMS_OF_A_PROCESS, Box::new(programs)),
        ("cycles", CYCLES_OF_A_PROCESS, Box::new(cycles)),
    ];
    for (name, batch, calls) in parts {
        let begun = Instant::now();
        let until = options.seconds.map(|seconds| begun + Duration::from_secs(seconds));
        let jobs = Jobs { jobs: options.jobs, batch, until };
        let finished = jobs.run(sides, name, calls, |finished| told.tell(name, begun, finished))?;
        if finished.calls > 0 {
            text += &result(name, begun, &finished, options.jobs);
        }
        told.before.clone_from(&text);
        told.findings += &lines(&finished.report)?;
        let report = &finished.report;
        unknown.extend(unexpected(&report.differences(), &known, report.compared()));
    }
    print!("{text}");
    for sentence in &unknown {
        println!("{sentence}");
    }
    Ok(ExitCode::from(u8::from(!unknown.is_empty())))
}

/// The files of results, which are written again while the run continues.
struct ResultFiles<'a> {
    options: &'a TorchOracleOptions,
    /// The result of the parts that are complete.
    before: String,
    /// The findings of the parts that are complete.
    findings: String,
}

impl ResultFiles<'_> {
    fn tell(&self, name: &str, begun: Instant, finished: &JobsOutcome) -> Result<()> {
        let different = finished.report.count(CallComparison::Different);
        eprintln!("{} {name}, {different} different", finished.calls);
        if let Some(path) = &self.options.report {
            write_whole(path, &(self.before.clone() + &result(name, begun, finished, self.options.jobs)))?;
        }
        if let Some(path) = &self.options.write {
            write_whole(path, &(self.findings.clone() + &lines(&finished.report)?))?;
        }
        Ok(())
    }
}

/// Replaces a file at once, so that a reader never finds a part of it.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, text).with_context(|| part.display().to_string())?;
    fs::rename(&part, path).with_context(|| path.display().to_string())
}

fn result(name: &str, begun: Instant, finished: &JobsOutcome, jobs: usize) -> String {
    let count = f64::from(u32::try_from(finished.calls).unwrap_or(u32::MAX));
    let rate = |time: Duration| count / time.as_secs_f64().max(0.001);
    let Times { ours, pytorch } = finished.times;
    format!(
        "{}{} {name} in {:.0} s, {jobs} at a time; a process of PyTorch makes {:.0} a second, and one of ours {:.0}; {} of ours ended early\n",
        finished.report,
        finished.calls,
        begun.elapsed().as_secs_f64(),
        rate(pytorch),
        rate(ours),
        finished.died,
    )
}

/// Compares the calls of a file, and writes those that are equal with PyTorch's events.
fn compare_file(sides: Sides<'_>, path: &Path, write: Option<&Path>) -> Result<ExitCode> {
    let findings = read_findings(&fs::read_to_string(path)?)?;
    let calls: Vec<_> = findings.iter().map(|finding| finding.call.clone()).collect();
    let mut report = OracleReport::default();
    let mut equal = String::new();
    let compared = compare_calls(sides, "again", &calls, &mut Times::default());
    for ((finding, call), compared) in findings.into_iter().zip(&calls).zip(compared) {
        if compared.outcome == CallOutcome::Compared(CallComparison::Equal) {
            equal += &to_line(&RecordedCall { events: compared.theirs.events.clone(), ..finding })?;
        }
        report.add(call, compared);
    }
    print!("{report}");
    if let Some(write) = write {
        fs::write(write, equal)?;
    }
    Ok(ExitCode::from(u8::from(report.count(CallComparison::Different) > 0)))
}

fn lines(report: &OracleReport) -> Result<String> {
    report.findings().iter().map(to_line).collect()
}

fn to_line(finding: &RecordedCall) -> Result<String> {
    Ok(serde_json::to_string(finding)? + "\n")
}
