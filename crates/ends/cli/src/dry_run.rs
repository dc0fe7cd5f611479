//! `blockyard dry-run`: a program with the PyTorch that is installed, on a machine without a GPU.

mod addresses;
pub(crate) mod growth;
mod options;
mod orders;
mod ranks;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use blockyard_answers::DryRunAnswer;
use blockyard_dry_run::{
    LibraryFolder, Program, Ranks, Torch, find_standin, prepare, run_interruptible, run_other_orders,
    run_ranks,
};
use blockyard_gpus::GpuProfile;
use blockyard_hooks::variables;

pub(crate) use self::options::{DryRunOptions, ProgramOptions, PythonOption, gpu as gpu_of};
use crate::exit_status::ExitStatus;
use crate::page::{OpenOptions, PageOptions};
use crate::{output, page};

/// Whether Ctrl-C ends this process; while the program runs, Ctrl-C ends only the program.
static IS_PROGRAM_DONE: AtomicBool = AtomicBool::new(false);

/// Whether there was a Ctrl-C.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn dry_run(options: &DryRunOptions) -> anyhow::Result<ExitCode> {
    let gpus = gpus(options);
    let [gpu, others @ ..] = gpus.as_slice() else { bail!("--gpu names no GPU") };
    if !options.file.is_file() {
        bail!("{}: no such file", options.file.display());
    }
    let ranks = options.ranks.ranks()?;
    if ranks.as_ref().is_some_and(|ranks| ranks.running().len() > 1) && options.opens_page {
        bail!("--page opens one snapshot: name one rank with --ranks");
    }
    let torch = Torch::find(&options.program.python.command())?;
    let prepared = prepare(&torch, &find_standin()?)?;
    let opened = OpenedSnapshot::of(options)?;
    let program = Program {
        totals: others.iter().map(|gpu| gpu.total_memory).collect(),
        snapshot: opened.path.clone(),
        ..program(options, ranks.as_ref(), gpu)
    };
    // A terminal sends the signal to the program too, and this process still prints the report.
    ctrlc::set_handler(interrupted).context("cannot pass Ctrl-C on to the program")?;
    let runner = ProgramRun { options, gpus: &gpus, program: &program, torch: &torch, prepared: &prepared };
    let done = match &ranks {
        Some(ranks) => runner.run_ranks(ranks)?,
        None => runner.run()?,
    };
    if !options.quiet {
        std::io::stderr().lock().write_all(done.text.as_bytes())?;
    }
    if let Some(path) = &options.json {
        output::write_whole(path, (serde_json::to_string(&done.answer)? + "\n").as_bytes())?;
    }
    IS_PROGRAM_DONE.store(true, Ordering::Relaxed);
    if options.opens_page {
        opened.open(options)?;
    }
    Ok(ExitStatus::of_program(done.status))
}

/// The program of the options on its GPU.
fn program(options: &DryRunOptions, ranks: Option<&Ranks>, gpu: &GpuProfile) -> Program {
    Program {
        arguments: options.arguments.clone(),
        devices: u32::from(options.program.devices).max(ranks.map_or(1, Ranks::per_node)),
        conf: options.program.conf.clone(),
        iterations: options.steps,
        counts_non_pytorch: options.program.memory.leaves_out_non_pytorch(),
        keeps_requests: !options.address_orders,
        lists_lines: options.json.is_some() || options.address_orders,
        environment: environment(options),
        ..Program::new(options.file.clone(), options.program.python.command(), gpu.clone())
    }
}

/// A program and what it runs with.
struct ProgramRun<'a> {
    options: &'a DryRunOptions,
    gpus: &'a [GpuProfile],
    program: &'a Program,
    torch: &'a Torch,
    prepared: &'a LibraryFolder,
}

/// A program that ran: its exit status, and its report as text and as JSON.
struct Done {
    status: i32,
    text: String,
    answer: DryRunAnswer,
}

impl ProgramRun<'_> {
    /// Runs the program as one process.
    fn run(&self) -> anyhow::Result<Done> {
        let Self { options, gpus, program, torch, prepared } = *self;
        let mut report = run_interruptible(program, torch, prepared, is_interrupted)?;
        growth::add_growth(&mut report);
        if program.keeps_requests {
            addresses::replay(&mut report, program);
        }
        let is_tried = options.address_orders && !is_interrupted();
        let run_others = || run_other_orders(program, &report, torch, prepared, is_interrupted);
        let others = is_tried.then(run_others).transpose()?;
        let mut answer = report.to_answer(gpus);
        if let Some(others) = &others {
            orders::add_orders(&mut answer.run, others.to_answer(&report));
        }
        let text = text::text(&report, others.as_ref(), gpus, torch)?;
        Ok(Done { status: report.status, text, answer })
    }

    /// Runs a process for each rank.
    fn run_ranks(&self, ranks: &Ranks) -> anyhow::Result<Done> {
        let Self { options, gpus, program, torch, prepared } = *self;
        let of = |rank| rank_program(program, ranks, rank);
        let mut report = run_ranks(ranks, options.ranks.master_port, of, torch, prepared, is_interrupted)?;
        for rank in &mut report.ranks {
            growth::add_growth(&mut rank.report);
            addresses::replay(&mut rank.report, program);
        }
        let text = ranks::text(&report, ranks, gpus, torch)?;
        Ok(Done { status: report.status(), text, answer: report.to_answer(ranks, gpus) })
    }
}

/// The program with the environment of one rank.
fn rank_program(program: &Program, ranks: &Ranks, rank: u32) -> Program {
    let snapshot = program.snapshot.as_ref().map(|path| ranks.path(path, rank));
    Program { snapshot, ..program.clone() }
}

/// The variables of the program's environment for the stand-in and the runner.
fn environment(options: &DryRunOptions) -> Vec<(String, String)> {
    let mut environment = Vec::new();
    if !options.assume.is_empty() {
        environment.push((variables::ASSUME.to_owned(), options.assume.join("\n")));
    }
    if options.skip_init {
        environment.push((variables::SKIP_INIT.to_owned(), "1".to_owned()));
    }
    environment
}

/// Remembers a Ctrl-C.
pub(crate) fn interrupt() {
    IS_INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Whether there was a Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}

fn interrupted() {
    interrupt();
    if IS_PROGRAM_DONE.load(Ordering::Relaxed) {
        std::process::exit(ExitStatus::Interrupted.code().into());
    }
}

/// The named GPUs; the first has the memory of `--total-memory`, if the option is given.
fn gpus(options: &DryRunOptions) -> Vec<GpuProfile> {
    let mut gpus = options.gpu.clone();
    if let (Some(first), Some(total)) = (gpus.first_mut(), options.total_memory) {
        first.total_memory = total;
    }
    gpus
}

/// The file of the snapshot: the one that the user names, or a temporary file for the page.
struct OpenedSnapshot {
    path: Option<PathBuf>,
}

impl OpenedSnapshot {
    fn of(options: &DryRunOptions) -> anyhow::Result<Self> {
        if options.snapshot.is_some() || !options.opens_page {
            return Ok(Self { path: options.snapshot.clone() });
        }
        let stem = options.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = tempfile::tempdir().context("cannot make a folder for the snapshot")?.keep();
        Ok(Self { path: Some(folder.join(format!("{stem}.pickle"))) })
    }

    /// Serves the page until Ctrl-C. A temporary file stays until then, for a page that is loaded again.
    fn open(&self, options: &DryRunOptions) -> anyhow::Result<()> {
        let Some(file) = self.path.as_deref().filter(|path| Path::is_file(path)) else {
            return Ok(output::warn(
                "no snapshot can be opened: the program did not use the GPU to its end",
            )?);
        };
        let page = OpenOptions {
            file: file.to_owned(),
            port: 0,
            no_browser: options.no_browser,
            page: PageOptions { page: None },
        };
        page::open(&page).map(|_code| ())
    }
}
