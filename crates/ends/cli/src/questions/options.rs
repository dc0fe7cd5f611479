//! What can be asked about a run: the options of each question, without files.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use blockyard_lab::{Conditions, Run, pytorch_memory};
use blockyard_record::Bytes;
use blockyard_rules::Release;
use clap::{Args, Parser, Subcommand};

use crate::options::{MemoryOption, size};

/// A question about one run, as a command names it and with the command's options.
#[derive(Clone, Debug, Subcommand)]
pub enum RunQuestion {
    /// What happened.
    Verdict(ConfOptions),
    /// The run under other settings.
    WhatIf(WhatIfQuestion),
    /// The run under all sensible settings.
    Search(SearchQuestion),
    /// Why the run goes out of memory.
    Autopsy(ConfOptions),
    /// How good any allocator could be.
    Bound(BoundQuestion),
    /// The run through other allocators.
    CompareAllocators(AllocatorsQuestion),
    /// What grows from iteration to iteration.
    Leaks(ConfOptions),
}

impl RunQuestion {
    /// The question of a command's name and its options: `what-if`, `--conf`, `expandable_segments:True`.
    ///
    /// # Errors
    ///
    /// A name that is not a question about one run, a wrong option.
    pub fn parse(name: &str, options: &[String]) -> anyhow::Result<Self> {
        let words = ["blockyard", name].into_iter().chain(options.iter().map(String::as_str));
        Ok(AskedQuestion::try_parse_from(words)?.question)
    }
}

#[derive(Debug, Parser)]
#[command(name = "blockyard")]
struct AskedQuestion {
    #[command(subcommand)]
    question: RunQuestion,
    /// Answers are JSON anyway.
    #[arg(long, global = true, hide = true)]
    json: bool,
}

/// A question about the runs of files.
#[derive(Debug, Args)]
pub(crate) struct FileOptions<Q: Args> {
    /// Recordings or snapshots, also packed, or workloads' texts, or names of presets.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) question: Q,
    /// One JSON value a run instead of text for people; docs/questions-json.md describes it.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a run would do under other settings.
#[derive(Clone, Debug, Default, Args)]
pub struct WhatIfQuestion {
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; may be given several times. Without it, the run's own.
    #[arg(long, value_name = "SETTINGS")]
    pub conf: Vec<String>,
    /// The conditions.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// Write memory over time too, with --json.
    #[arg(long)]
    pub timeline: bool,
}

/// Which settings are best for a run.
#[derive(Clone, Debug, Default, Args)]
pub struct SearchQuestion {
    /// Settings to try beside the usual ones; may be given several times.
    #[arg(long, value_name = "SETTINGS")]
    pub conf: Vec<String>,
    /// The conditions.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// Print every setting that was tried, not only the best ones.
    #[arg(long)]
    pub all: bool,
}

/// How good any allocator could be.
#[derive(Clone, Debug, Default, Args)]
pub struct BoundQuestion {
    /// Write the layout too, with --json: the address of each allocation, and from when to when it lives.
    #[arg(long)]
    pub layout: bool,
}

/// What other allocators would have reserved for the same requests.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AllocatorsQuestion {
    /// The conditions.
    #[command(flatten)]
    pub conditions: ConditionOptions,
    /// Leave host times out, so that the answer is the same every time.
    #[arg(long)]
    pub no_times: bool,
}

/// Under which settings and conditions a run is replayed.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfOptions {
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`. Without it, the run's own.
    #[arg(long, value_name = "SETTINGS")]
    pub conf: Option<String>,
    /// The conditions.
    #[command(flatten)]
    pub conditions: ConditionOptions,
}

impl ConfOptions {
    /// The settings, or the run's own without any, under the conditions.
    pub(crate) fn of_run(&self, run: &Run) -> Conditions {
        let own = self.conditions.of_run(run);
        match &self.conf {
            Some(conf) => own.and_conf(conf),
            None => own,
        }
    }
}

/// Which device and which limit a run is replayed with.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ConditionOptions {
    /// The most that may be reserved, as a memory fraction limits it: bytes, or with a unit ("70 GiB").
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub limit: Option<Bytes>,
    /// The same as a share of the device, as `torch.cuda.set_per_process_memory_fraction` takes it.
    #[arg(long, value_name = "SHARE", conflicts_with = "limit", value_parser = share)]
    pub fraction: Option<f64>,
    /// The device's memory, as bytes or with a unit; without it, that of the run's own device.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub total_memory: Option<Bytes>,
    /// How much of `total_memory` PyTorch may reserve.
    #[command(flatten)]
    pub memory: MemoryOption,
    /// The release of PyTorch whose rules hold ("2.15"); without it, the run's own.
    #[arg(long, value_name = "RELEASE")]
    pub release: Option<Release>,
}

impl ConditionOptions {
    /// The run's own settings under these conditions.
    pub(crate) fn of_run(&self, run: &Run) -> Conditions {
        let own = Conditions {
            capacity: self.total_memory.map(|total| {
                if self.memory.leaves_out_non_pytorch() { pytorch_memory(total) } else { total }
            }),
            limit: self.limit,
            release: self.release,
            ..run.conditions()
        };
        match self.fraction {
            Some(fraction) => {
                let total = self.total_memory.unwrap_or(run.capacity);
                let limit = own.release_of(run).memory_limit(total, fraction);
                Conditions { limit: Some(limit), ..own }
            }
            None => own,
        }
    }
}

fn share(text: &str) -> anyhow::Result<f64> {
    let share: f64 = text.parse().context("not a number")?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { bail!("not from 0 to 1") }
}

#[cfg(test)]
mod tests {
    use blockyard_workload::Workload;

    use super::*;

    #[test]
    fn a_fraction_limits_as_the_release_rounds() {
        let capacity = Bytes::new(150_109_880_320);
        let run = Run::from_workload("run", Workload::parse("a = alloc 1 MiB").unwrap(), "", capacity);
        let limit = |release| {
            let options = ConditionOptions {
                limit: None,
                // 249,561,088 bytes as a program computes the share.
                fraction: Some(249_561_088.0 / 150_109_880_320.0),
                total_memory: None,
                memory: MemoryOption::default(),
                release: Some(release),
            };
            options.of_run(&run).limit.map(Bytes::get)
        };
        assert_eq!(limit(Release::V2_12), Some(249_561_087));
        assert_eq!(limit(Release::V2_13), Some(249_561_088));
    }
}
