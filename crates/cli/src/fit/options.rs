//! The options of `blockyard fit`.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use blockyard_fit::Values;
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;
use clap::Args;

use crate::dry_run::gpu_of;
use crate::options::size;

#[derive(Debug, Args)]
pub(crate) struct FitOptions {
    /// The program.
    pub(crate) file: PathBuf,
    /// What is varied, and its values: `batch-size=1..512` for the program's own option `--batch-size`, `env:NAME=1..64` for a variable of
    /// its environment; `8..512:8` are the multiples of 8. Where an argument of the program has `{batch-size}`, the value goes there.
    #[arg(long, value_name = "NAME=LOW..HIGH")]
    pub(crate) vary: Vary,
    /// The GPUs, after commas: h200, h100, a100, a100-40g, l4, t4, rtx4090; or all.
    #[arg(long, default_value = "h200", value_name = "GPU,...", value_delimiter = ',', value_parser = gpus)]
    pub(crate) gpu: Vec<Gpus>,
    /// The most that may be reserved on each device, as bytes or with a unit ("16 GiB"), as `torch.cuda.set_per_process_memory_fraction` limits
    /// it; without it, the GPU's memory.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) limit: Option<Bytes>,
    /// End each run after so many steps of its first optimizer.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; without it, the environment's.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Option<String>,
    /// How many GPUs the program sees.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) devices: u8,
    /// Search for the largest value with expandable segments too; without it, they are tried with the first value that does not fit.
    #[arg(long)]
    pub(crate) try_settings: bool,
    /// The Python that has PyTorch; without it, what `BLOCKYARD_PYTHON` says, or `python3`.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) python: Option<String>,
    /// Keep what runs said in this file, and go on from what it has; without it, a file in the cache directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    /// Forget what earlier runs of this question said.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Write the report there, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print the answer alone.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The program's own arguments, behind `--`.
    #[arg(last = true)]
    pub(crate) arguments: Vec<String>,
}

/// What a name of `--gpu` stands for.
#[derive(Clone, Debug)]
pub(crate) struct Gpus(Vec<GpuProfile>);

fn gpus(name: &str) -> anyhow::Result<Gpus> {
    Ok(Gpus(if name.trim() == "all" { GpuProfile::ALL.to_vec() } else { vec![gpu_of(name)?] }))
}

impl FitOptions {
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

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vary {
    /// The option without hyphens, or the variable.
    pub(crate) name: String,
    pub(crate) is_variable: bool,
    pub(crate) values: Values,
}

impl FromStr for Vary {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((name, values)) = text.split_once('=') else {
            bail!("write NAME=LOW..HIGH, as batch-size=1..512 or env:BATCH=1..64");
        };
        let (name, is_variable) = match name.strip_prefix("env:") {
            Some(name) => (name, true),
            None => (name.trim_start_matches('-'), false),
        };
        if name.is_empty() {
            bail!("the name before `=` is missing");
        }
        Ok(Self { name: name.to_owned(), is_variable, values: values.parse()? })
    }
}

impl Vary {
    /// The program's arguments with this value.
    pub(crate) fn arguments(&self, own: &[String], value: u64) -> Vec<String> {
        if self.is_variable {
            return own.to_vec();
        }
        let place = format!("{{{}}}", self.name);
        if own.iter().any(|argument| argument.contains(&place)) {
            return own.iter().map(|argument| argument.replace(&place, &value.to_string())).collect();
        }
        own.iter().cloned().chain([format!("--{}", self.name), value.to_string()]).collect()
    }

    /// The program's variables with this value.
    pub(crate) fn environment(&self, value: u64) -> Vec<(String, String)> {
        if self.is_variable { vec![(self.name.clone(), value.to_string())] } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_goes_where_the_program_reads_it() {
        let own = ["--lr".to_owned(), "1".to_owned()];
        let option: Vary = "batch-size=1..8".parse().unwrap();
        assert_eq!(option.arguments(&own, 4), ["--lr", "1", "--batch-size", "4"]);
        assert_eq!(option.arguments(&["data.batch={batch-size}".to_owned()], 4), ["data.batch=4"]);
        let variable: Vary = "env:BATCH=1..8".parse().unwrap();
        assert_eq!(variable.arguments(&own, 4), own);
        assert_eq!(variable.environment(4), [("BATCH".to_owned(), "4".to_owned())]);
        for wrong in ["batch-size", "=1..8", "env:=1..8", "batch-size=8..1"] {
            assert!(wrong.parse::<Vary>().is_err(), "{wrong}");
        }
    }
}
