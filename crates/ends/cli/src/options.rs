//! The commands of `blockyard`, as clap reads them, and options that several commands have.

use std::path::PathBuf;

use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;
use clap::{Args, Parser, Subcommand};

use crate::bench::BenchOptions;
use crate::dry_run::DryRunOptions;
use crate::export::ExportOptions;
use crate::fit::FitOptions;
use crate::guard::GuardOptions;
use crate::lesson::LessonOptions;
#[cfg(feature = "mcp")]
use crate::mcp::McpOptions;
use crate::page::OpenOptions;
use crate::play::PlayOptions;
#[cfg(feature = "python")]
use crate::python::PythonOptions;
use crate::questions::{
    AllocatorsQuestion, BoundQuestion, ConfOptions, FileOptions, SearchQuestion, WhatIfQuestion,
};
use crate::report::ReportOptions;
use crate::run::RunOptions;
use crate::site::SiteOptions;
use crate::snapshot::SnapshotOptions;
use crate::verify::VerifyOptions;
#[cfg(unix)]
use crate::watch::WatchOptions;

/// PyTorch's CUDA caching allocator without a GPU: show what happened in memory snapshots, run operations,
/// compare the allocator with recordings of PyTorch's own, play workloads.
///
/// `blockyard FILE` is short for `blockyard verdict FILE`.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    verdict: FileOptions<ConfOptions>,
}

impl Options {
    /// The command; that of the verdict where only files are named.
    pub(crate) fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Verdict(self.verdict))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the verdict about runs: what happened, how sure that is, what grows, what helps, and what does
    /// not.
    ///
    /// The exit status is 0 if every run fits, 1 if one goes out of memory, 2 if a file cannot be read or
    /// replayed.
    Verdict(FileOptions<ConfOptions>),
    /// Run operations through the allocator and write the results, in the format of the input.
    Run(RunOptions),
    /// Replay recordings of PyTorch's allocator and compare everything that they contain.
    ///
    /// Prints a line a file. The exit status is 0 if all files are identical, 1 if any differs, 2 if one
    /// could not be replayed.
    Verify(VerifyOptions),
    /// Run a workload and print its segments step by step.
    Play(PlayOptions),
    /// Open PyTorch's memory snapshots (`torch.cuda.memory._dump_snapshot`): devices, peaks, who holds what,
    /// and whether our allocator decides each placement the same way.
    ///
    /// Files are pickles, also packed with gzip, zstd or zip, or what `_memory_viz.py` writes as JSON or
    /// HTML; folders stand for the files in them, one a rank. No code in a file is ever run. The exit status
    /// is 0 if all files could be opened, else 2.
    Snapshot(SnapshotOptions),
    /// Write a run in another format, by the end of the file's name: `pickle` for `pytorch.org/memory_viz`
    /// and `_memory_viz.py`, `jsonl` as a recording, `svg` and `png` as a figure of memory over time, `csv`
    /// as a table, `html` as one page that opens without a network.
    Export(ExportOptions),
    /// Write a report about a run: one HTML page to read, to send and to print, without a script and without
    /// a network.
    ///
    /// The report says what happened, who holds the memory, what other settings do, and how sure that is.
    Report(ReportOptions),
    /// Show a snapshot, a recording or a workload in the browser: serves the page on this machine until
    /// Ctrl-C.
    Open(OpenOptions),
    /// Write a course for any web server: the page with its lessons, your own files beside it, and an index
    /// of both.
    ///
    /// After one visit the site opens without a network, its Python included. The server needs no settings. A
    /// browser keeps a site only if the site comes over HTTPS, or from the same machine.
    Site(SiteOptions),
    /// Measure what allocations cost on a device, beside the driver's own allocators where it has them.
    ///
    /// Prints a table: nanoseconds as the median of all rounds with the range, and as a multiple of our time.
    /// Contenders take turns in each round.
    Bench(BenchOptions),
    /// Replay the requests of runs under other settings, another capacity or another limit.
    ///
    /// Files are snapshots, recordings or workloads' texts. The exit status is 0 if every setting fits every
    /// file, 1 if one runs out of memory, 2 if a file or a setting is wrong.
    WhatIf(FileOptions<WhatIfQuestion>),
    /// Try all sensible settings and pairs of them, and say which is best.
    ///
    /// Prints the settings that no other beats in both peak reserved and device calls, and the line to copy.
    /// The exit status is 0 if the run's own settings are as good as any, 1 if another is better, 2 if a file
    /// cannot be read.
    Search(FileOptions<SearchQuestion>),
    /// Say why runs went out of memory, and what would have helped, each change proved by a replay.
    ///
    /// The exit status is 0 if no run goes out of memory, 1 if one does, 2 if a file cannot be read or
    /// replayed.
    Autopsy(FileOptions<ConfOptions>),
    /// Say how good any allocator could be: the peak of live bytes, and a layout that knows all lifetimes.
    Bound(FileOptions<BoundQuestion>),
    /// Run the same requests through other allocators.
    ///
    /// TensorFlow's BFC, TLSF, buddy, RMM's arena, stitching, no caching, and a model of cudaMallocAsync,
    /// beside PyTorch's own.
    CompareAllocators(FileOptions<AllocatorsQuestion>),
    /// Say what changed from one run to others: the change of the peaks, as a sum over call sites that adds
    /// up to the byte.
    ///
    /// Each run is replayed under its own settings. The exit status is 0 if nothing changed, 1 if something
    /// did, 2 if a file cannot be read.
    Diff(DiffOptions),
    /// Say what grows from iteration to iteration, by call site.
    ///
    /// The exit status is 0 if nothing grows, 1 if something does, 2 if a file cannot be read.
    Leaks(FileOptions<ConfOptions>),
    /// Read a lesson in the terminal, check an answer to its exercise, print a handout.
    ///
    /// Without a lesson, lists all lessons of Blockyard.
    Lesson(LessonOptions),
    /// Run a PyTorch program without PyTorch and without a GPU, and print what it would print.
    ///
    /// Allocations are PyTorch's, to the byte; values on the GPU are not computed and print as `?`. Each
    /// unverified estimate is named on standard error, with its line. The exit status is the program's.
    #[cfg(feature = "python")]
    Python(PythonOptions),
    /// Run a PyTorch program with the PyTorch that is installed, without a GPU, and say how much of a GPU's
    /// memory it takes.
    ///
    /// PyTorch's own build for CUDA runs over our stand-ins for CUDA's libraries: kernels do not run,
    /// everything else is PyTorch's own. The program's output comes first, then a report on standard error.
    /// Most values that a kernel would have computed are not known: a number reads as 1 and then as less, and
    /// the report names each line that reads one. The exit status is the program's.
    DryRun(DryRunOptions),
    /// Watch a running PyTorch program: the true peaks of each step, what grows, and the step that will run out of
    /// memory.
    ///
    /// `blockyard watch -- python train.py ARGUMENTS` starts the program and prints lines to standard error. The
    /// program never waits for this command. The exit status is the program's.
    #[cfg(unix)]
    Watch(WatchOptions),
    /// Find the largest value of a program's option (a batch size) that fits a GPU, by dry runs of the
    /// program.
    ///
    /// `blockyard fit train.py --vary batch-size=1..512 --gpu h100 -- OTHER ARGUMENTS`. The answer says which
    /// value fits, where the next value runs out of memory, how memory grows with the value, and what helps.
    /// The exit status is 0 if a value fits each GPU, 1 if none fits one, 2 if a run fails for another
    /// reason.
    Fit(FitOptions),
    /// Compare the GPU memory of programs with their limits in `memory.toml`, by dry runs of the programs.
    ///
    /// `blockyard guard --update train.py --gpu h100 --steps 3 --budget "60 GiB" -- ARGUMENTS` adds a program
    /// with the memory that it takes now, the baseline; `blockyard guard` runs all programs of the file,
    /// fails where a budget is exceeded or a peak grew by more than the tolerance, and says which lines the
    /// change comes from, to the byte; `blockyard guard --update` stores the new peaks. The exit status is 0
    /// if all pass, 1 if one fails, 2 if one does not run or the file cannot be read.
    Guard(GuardOptions),
    /// Answer a program that speaks the Model Context Protocol, such as an editor or an agent, on standard
    /// input and output.
    ///
    /// Its tools are `verdict`, `open`, `holders`, `what_if`, `search` and `fit`, with the JSON of this
    /// command. They read the files of one folder. The server ends with its input.
    #[cfg(feature = "mcp")]
    Mcp(McpOptions),
}

/// How much of a GPU's memory PyTorch may reserve.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct MemoryOption {
    /// PyTorch may reserve all of the GPU's memory; without this option, all without the non-PyTorch memory,
    /// which the CUDA context and libraries take.
    #[arg(long)]
    pub(crate) all_memory: bool,
}

impl MemoryOption {
    /// Whether the non-PyTorch memory is left out of the GPU's memory.
    pub(crate) const fn leaves_out_non_pytorch(self) -> bool {
        !self.all_memory
    }
}

#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// The run to compare with: a recording or a snapshot, also packed, or a workload's text, or the name of
    /// a preset.
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,
    /// The runs that are compared with the first.
    #[arg(required_unless_present = "steps", value_name = "AFTER")]
    pub(crate) files: Vec<PathBuf>,
    /// Compare two steps of the first run instead, counted from 1; steps are found as `leaks` finds them.
    #[arg(long, num_args = 2, value_names = ["STEP", "STEP"], conflicts_with = "files")]
    pub(crate) steps: Vec<usize>,
    #[command(flatten)]
    pub(crate) under: ConfOptions,
    /// One JSON value a run instead of sentences for people; docs/questions-json.md describes it.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The help of an option `--gpu`, with the names of all GPUs: first those whose numbers were checked against
/// recordings.
pub(crate) fn gpu_help(what: &str) -> String {
    let names = |is_proved: bool| {
        let those = GpuProfile::ALL.iter().filter(|profile| profile.is_proved == is_proved);
        those.map(|profile| profile.id).collect::<Vec<_>>().join(", ")
    };
    format!("{what}: {}, and {} with derived numbers", names(true), names(false))
}

pub(crate) fn size(text: &str) -> anyhow::Result<Bytes> {
    Ok(blockyard_workload::parse_rounded_size(text)?)
}
