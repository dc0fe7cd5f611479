//! The options of `blockyard guard`.

use std::path::PathBuf;

use blockyard_budget::guard::{ProgramEntry, Tolerance};
use blockyard_record::Bytes;
use clap::Args;

use crate::dry_run::{PythonOption, gpu_of};
use crate::options::{MemoryOption, gpu_help, size};

#[derive(Debug, Args)]
pub(crate) struct GuardOptions {
    /// The program, below the folder of the file; without a program, all programs of the file.
    pub(crate) program: Option<PathBuf>,
    /// The file. Programs start in its folder.
    #[arg(long, default_value = "memory.toml", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Store the memory that the programs take now in the file. A program that the file does not have is
    /// added.
    #[arg(long)]
    pub(crate) update: bool,
    #[arg(long, value_name = "GPU", requires = "program", value_parser = gpu, help = gpu_help("The GPU that the program sees"))]
    pub(crate) gpu: Option<String>,
    /// End the program after this many steps of its first optimizer.
    #[arg(long, value_name = "N", requires = "program", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: Option<u32>,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; without this option, the environment's.
    #[arg(long, value_name = "SETTINGS", requires = "program")]
    pub(crate) conf: Option<String>,
    /// The most that the program may reserve, as bytes or with a unit ("60 GiB").
    #[arg(long, value_name = "SIZE", requires = "program", value_parser = size)]
    pub(crate) budget: Option<Bytes>,
    /// How much more than the baseline the peaks may be: a share ("1%") or a size ("64 MiB"); without this
    /// option, 1%.
    #[arg(long, value_name = "SHARE|SIZE", requires = "program")]
    pub(crate) tolerance: Option<Tolerance>,
    #[command(flatten)]
    pub(crate) python: PythonOption,
    #[command(flatten)]
    pub(crate) memory: MemoryOption,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only failures.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The program's own arguments, after `--`.
    #[arg(last = true, requires = "program")]
    pub(crate) arguments: Vec<String>,
}

fn gpu(name: &str) -> anyhow::Result<String> {
    Ok(gpu_of(name)?.id.to_owned())
}

impl GuardOptions {
    /// An entry for a program that the file does not have.
    pub(crate) fn entry(&self, program: String) -> ProgramEntry {
        ProgramEntry {
            program,
            arguments: self.arguments.clone(),
            gpu: self.gpu.clone().unwrap_or_else(|| ProgramEntry::GPU.to_owned()),
            lines: ProgramEntry::LINES,
            ..ProgramEntry::default()
        }
    }

    /// Replaces values of the entry by those of the options.
    pub(crate) fn change(&self, entry: &mut ProgramEntry) {
        entry.iterations = self.steps.or(entry.iterations);
        entry.conf = self.conf.clone().or_else(|| entry.conf.take());
        entry.budget = self.budget.or(entry.budget);
        entry.tolerance = self.tolerance.unwrap_or(entry.tolerance);
    }
}
