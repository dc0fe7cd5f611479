//! The options of `blockyard dry-run`.

use std::path::PathBuf;

use blockyard_dry_run::{RankError, Ranks};
use blockyard_gpus::{Assumption, AssumptionError, GpuProfile};
use blockyard_record::Bytes;
use clap::Args;

use crate::options::{MemoryOption, gpu_help, size};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command")]
pub(crate) struct DryRunOptions {
    /// The program.
    pub(crate) file: PathBuf,
    /// The program's own arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    #[arg(
        long, default_value = "h200", value_name = "GPU,...", value_delimiter = ',', value_parser = gpu,
        help = format!("{}. Further GPUs, separated by commas: the report says whether the program fits each", gpu_help("The GPU that the program sees"))
    )]
    pub(crate) gpu: Vec<GpuProfile>,
    /// End the program after this many steps of its first optimizer; the report has the peak of each step and
    /// who holds it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: Option<u32>,
    #[command(flatten)]
    pub(crate) ranks: RankOptions,
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// The memory of the first GPU, as bytes or with a unit ("24 GiB"); without this option, the GPU's own.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) total_memory: Option<Bytes>,
    /// The value that a line reads from the device, if the dry run does not know it: a number, true or false,
    /// or the number of results if the line counts results. Once for each line.
    #[arg(long, value_name = "FILE:LINE=VALUE", value_parser = assumption)]
    pub(crate) assume: Vec<String>,
    /// Run the program under two further orders of the addresses that a driver gives segments, without its
    /// output, and say which numbers depend on them.
    #[arg(long, conflicts_with = "nproc_per_node")]
    pub(crate) address_orders: bool,
    /// Do not initialize parameters above 1 MiB on the host: a large model that is made on the host then
    /// takes no memory of the host. The report is an estimate.
    #[arg(long)]
    pub(crate) skip_init: bool,
    /// Write PyTorch's memory snapshot with Python's stacks to this file; all questions of this command read
    /// the file.
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print only the program's output.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Open the snapshot in the page at the end, as `blockyard open` does.
    #[arg(long = "page")]
    pub(crate) opens_page: bool,
    /// Only print the page's address.
    #[arg(long, requires = "opens_page")]
    pub(crate) no_browser: bool,
}

/// Programs of several processes.
#[derive(Debug, Args)]
pub(crate) struct RankOptions {
    /// Start this many processes, each with the variables that torchrun sets (`RANK`, `WORLD_SIZE`, ...), and
    /// as many GPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    nproc_per_node: Option<u8>,
    /// The number of nodes, each with as many processes. Only the ranks of `--ranks` are started.
    #[arg(long, value_name = "N", requires = "nproc_per_node", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    nnodes: Option<u32>,
    /// The ranks that are started, separated by commas; without this option, all ranks of one node, or rank 0
    /// of several nodes.
    #[arg(long, value_name = "RANK,...", requires = "nproc_per_node", value_delimiter = ',')]
    ranks: Vec<u32>,
    /// The port at which the ranks find each other on 127.0.0.1; without this option, a free port.
    #[arg(long, value_name = "PORT", requires = "nproc_per_node", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) master_port: Option<u16>,
}

impl RankOptions {
    /// The ranks; none where the program is one process.
    pub(crate) fn ranks(&self) -> Result<Option<Ranks>, RankError> {
        let per_node = self.nproc_per_node.map(u32::from);
        per_node.map(|per_node| Ranks::new(self.nnodes.unwrap_or(1), per_node, &self.ranks)).transpose()
    }
}

/// What `dry-run` and `fit` run a program with.
#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// How many GPUs the program sees.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) devices: u8,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; without this option, the environment's.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Option<String>,
    #[command(flatten)]
    pub(crate) memory: MemoryOption,
    #[command(flatten)]
    pub(crate) python: PythonOption,
}

/// The Python of a program.
#[derive(Debug, Args)]
pub(crate) struct PythonOption {
    /// The Python that has PyTorch; without this option, the command in `BLOCKYARD_PYTHON`, or `python3`.
    #[arg(long, value_name = "COMMAND")]
    python: Option<String>,
}

impl PythonOption {
    /// The command that starts Python.
    pub(crate) fn command(&self) -> String {
        let named = self.python.clone().or_else(|| std::env::var("BLOCKYARD_PYTHON").ok());
        named.filter(|command| !command.is_empty()).unwrap_or_else(|| "python3".to_owned())
    }
}

/// The GPU of a short name.
pub(crate) fn gpu(name: &str) -> anyhow::Result<GpuProfile> {
    GpuProfile::from_id(name.trim()).ok_or_else(|| {
        let known: Vec<&str> = GpuProfile::ALL.iter().map(|profile| profile.id).collect();
        anyhow::anyhow!("no GPU has this name; the names are {}", known.join(", "))
    })
}

/// An assumption, as the person wrote it: the library that stands for CUDA's reads it as this command does.
fn assumption(text: &str) -> Result<String, AssumptionError> {
    text.parse::<Assumption>().map(|_assumption| text.to_owned())
}
