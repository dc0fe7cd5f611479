use std::path::PathBuf;

use blockyard_record::Bytes;
use clap::{Args, Parser, Subcommand};

/// PyTorch's CUDA caching allocator without a GPU: run operations through it, compare it with recordings of the real
/// one, play workloads.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run operations through the allocator and write what it did, in the format of the input.
    Run(RunOptions),
    /// Replay recordings of PyTorch's allocator and compare everything that they contain.
    ///
    /// Prints a line a file. The exit status is 0 if all files are identical, 1 if any differs, 2 if one could not be
    /// replayed.
    Verify(VerifyOptions),
    /// Run a workload and print its segments step by step.
    Play(PlayOptions),
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Operations, one JSON value a line, plain or gzip; `-` for standard input. Recorded results are passed over.
    pub(crate) operations: PathBuf,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; without it, those that the file names.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Option<String>,
    /// The device's memory, as bytes or with a unit ("80 GiB"); without it, what the file names.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) total_memory: Option<Bytes>,
    /// Place segments by the virtual device's own rule, even if the file says where the driver placed them.
    #[arg(long)]
    pub(crate) virtual_addresses: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// Recordings, one JSON value a line, plain or gzip.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// One JSON value a file instead of lines for people.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlayOptions {
    /// A workload's text or a recording, one JSON value a line, plain or gzip; `-` for standard input; or the name of a
    /// preset. A recording is played under its own settings.
    pub(crate) workload: PathBuf,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Option<String>,
    /// The device's memory, as bytes or with a unit; 1 GiB without it, or what a preset names.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) total_memory: Option<Bytes>,
    /// Print only the end, not every step.
    #[arg(long)]
    pub(crate) last: bool,
    /// One JSON value a step instead of pictures for people.
    #[arg(long)]
    pub(crate) json: bool,
}

fn size(text: &str) -> Result<Bytes, String> {
    blockyard_workload::parse_size(text).map_err(|error| error.to_string())
}
