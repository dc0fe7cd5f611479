//! The options of `blockyard fit`.

use std::path::PathBuf;

use anyhow::bail;
use blockyard_budget::Mesh;
use blockyard_budget::fit::{FitProgram, Question, RunRanks, Vary, VaryOption};
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;
use clap::Args;

use crate::dry_run::{ProgramOptions, gpu_of};
use crate::options::{gpu_help, size};

#[derive(Debug, Args)]
pub(crate) struct FitOptions {
    /// The program.
    pub(crate) file: PathBuf,
    /// The option or variable to search, and its values: `batch-size=1..512` for the program's option
    /// `--batch-size`, `env:NAME=1..64` for a variable of the program's environment; `8..512:8` are the
    /// multiples of 8, `1,2,4` is a list. If an argument of the program has `{batch-size}`, the value
    /// replaces these words. With a second `--vary` the largest value of the first option is searched for
    /// each value of the second. `conf=SETTINGS` names settings as in `PYTORCH_CUDA_ALLOC_CONF`, which are
    /// replayed over the requests of one run.
    #[arg(long, value_name = "NAME=LOW..HIGH", required_unless_present = "mesh")]
    pub(crate) vary: Vec<VaryOption>,
    /// Layouts of ranks: `dp=1..64,tp=1,2,4,8,pp=1,2,4` for the program's options `--dp`, `--tp` and `--pp`,
    /// or `{dp}` in its arguments. Each layout whose product is the number of ranks runs; with `--vary` the
    /// largest value of the option is searched for each layout.
    #[arg(long, value_name = "NAME=VALUES,...", requires = "ranks")]
    pub(crate) mesh: Option<Mesh>,
    /// How many ranks the layouts have. Rank 0 runs, as with `blockyard dry-run --ranks`; with stages of a
    /// pipeline also the last rank, and with more than two stages also a rank of a stage between.
    #[arg(long, value_name = "N", requires = "mesh", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) ranks: Option<u32>,
    /// Run these ranks of each layout, separated by commas, or all: for ranks that take different bytes, as
    /// with uneven shards.
    #[arg(long, value_name = "RANK,...", requires = "mesh")]
    pub(crate) run_ranks: Option<RunRanks>,
    /// How many ranks and GPUs a node has; without this option 8, or all ranks if a layout has fewer.
    #[arg(long, value_name = "N", requires = "mesh", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) nproc_per_node: Option<u8>,
    /// Load these modules of Python once: each layout is then a copy of the process that has loaded them.
    /// Name `torch` and the modules of `torch` that the program loads. The modules do not see variables of
    /// the environment that the program sets.
    #[arg(long, value_name = "MODULE,...", requires = "mesh", value_delimiter = ',')]
    pub(crate) preload: Vec<String>,
    /// Make each layout a task of a cluster: `dask://HOST:PORT`, `ray` or `ray://HOST:PORT`. The command of
    /// the Python package does this.
    #[arg(long, value_name = "SCHEDULER", requires = "mesh")]
    pub(crate) on: Option<String>,
    /// Run this many layouts, or searches for several GPUs, values or settings, side by side, as far as the
    /// host's memory allows.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) at_once: u8,
    #[arg(
        long, default_value = "h200", value_name = "GPU,...", value_delimiter = ',', value_parser = gpus,
        help = format!("{}; or all", gpu_help("The GPUs, separated by commas"))
    )]
    pub(crate) gpu: Vec<Gpus>,
    /// The most that may be reserved on each device, as bytes or with a unit ("16 GiB"), as
    /// `torch.cuda.set_per_process_memory_fraction` limits memory; without this option, the GPU's memory.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) limit: Option<Bytes>,
    /// End each run after this many steps of its first optimizer.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// Search for the largest value with expandable segments, too; without this option, expandable segments
    /// are tried with the first value that does not fit.
    #[arg(long)]
    pub(crate) try_settings: bool,
    /// Keep the results of runs in this file, and use the results that the file has; without this option, a
    /// file in the cache directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    /// Forget the results of earlier runs.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a page of HTML to this file: the peaks by value, a line for each search, with the limit, and the
    /// report.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print only the answer.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The program's own arguments, after `--`.
    #[arg(last = true)]
    pub(crate) arguments: Vec<String>,
}

/// The GPUs that a name of `--gpu` means.
#[derive(Clone, Debug)]
pub(crate) struct Gpus(Vec<GpuProfile>);

fn gpus(name: &str) -> anyhow::Result<Gpus> {
    Ok(Gpus(if name.trim() == "all" { GpuProfile::ALL.to_vec() } else { vec![gpu_of(name)?] }))
}

impl FitOptions {
    pub(crate) fn question(&self) -> anyhow::Result<Question> {
        if self.on.is_some() {
            bail!(
                "--on is done by the command of the Python package, since a scheduler is spoken to in \
                 Python: pip install blockyard"
            );
        }
        let question = self.asked()?;
        if self.report.is_some() && matches!(question, Question::Settings(_) | Question::Layouts(..)) {
            bail!("--report draws the runs of a search: --vary names an option or a variable");
        }
        Ok(question)
    }

    fn asked(&self) -> anyhow::Result<Question> {
        let mut numbers: Vec<Vary> = Vec::new();
        let mut settings: Vec<String> = Vec::new();
        for varied in &self.vary {
            match varied {
                VaryOption::Numbers(vary) => numbers.push(vary.clone()),
                VaryOption::Settings(more) => settings.extend(more.iter().cloned()),
            }
        }
        if let (Some(mesh), Some(ranks)) = (&self.mesh, self.ranks) {
            return match (numbers.as_slice(), settings.is_empty()) {
                ([], true) => Ok(Question::Layouts(mesh.clone(), ranks)),
                ([one], true) if mesh.names().all(|name| name != one.name) => {
                    Ok(Question::ByLayouts(one.clone(), mesh.clone(), ranks))
                }
                _ => {
                    bail!("with --mesh, --vary names one option or variable, and no dimension of the mesh")
                }
            };
        }
        match (numbers.as_slice(), settings.is_empty()) {
            ([], false) => Ok(Question::Settings(settings)),
            ([one], true) => Ok(Question::Largest(one.clone())),
            ([one], false) => Ok(Question::BySettings(one.clone(), settings)),
            ([one, other], true) if (&one.name, one.is_variable) != (&other.name, other.is_variable) => {
                Ok(Question::ByOther(one.clone(), other.clone()))
            }
            _ => {
                bail!("--vary names one option or variable, two different ones, or one of them and settings")
            }
        }
    }

    /// The program, and how it runs.
    pub(crate) fn program(&self) -> FitProgram {
        FitProgram {
            file: self.file.clone(),
            arguments: self.arguments.clone(),
            python: self.program.python.command(),
            steps: self.steps,
            devices: self.program.devices.into(),
            searches_settings: self.try_settings,
            per_node: self.nproc_per_node.map(u32::from),
            run_ranks: self.run_ranks.clone(),
            preload: self.preload.clone(),
        }
    }

    /// The GPUs, each once.
    pub(crate) fn gpus(&self) -> Vec<GpuProfile> {
        let mut all: Vec<GpuProfile> = Vec::new();
        for gpu in self.gpu.iter().flat_map(|gpus| &gpus.0) {
            if !all.contains(gpu) {
                all.push(gpu.clone());
            }
        }
        all
    }
}
