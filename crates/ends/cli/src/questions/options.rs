//! The options of each question about a run.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use blockyard_lab::{Conditions, Run, pytorch_memory};
use blockyard_record::Bytes;
use blockyard_rules::Release;
use clap::Args;

use crate::options::{MemoryOption, size};

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
#[derive(Debug, Args)]
pub(crate) struct WhatIfQuestion {
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`; may be given several times. Without it, the run's own.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Vec<String>,
    /// The conditions.
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Write memory over time too, with --json.
    #[arg(long)]
    pub(crate) timeline: bool,
}

/// Which settings are best for a run.
#[derive(Debug, Args)]
pub(crate) struct SearchQuestion {
    /// Settings to try beside the usual ones; may be given several times.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Vec<String>,
    /// The conditions.
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Print every setting that was tried, not only the best ones.
    #[arg(long)]
    pub(crate) all: bool,
}

/// How good any allocator could be.
#[derive(Debug, Args)]
pub(crate) struct BoundQuestion {
    /// Write the layout too, with --json: the address of each allocation, and from when to when it lives.
    #[arg(long)]
    pub(crate) layout: bool,
}

/// What other allocators would have reserved for the same requests.
#[derive(Debug, Args)]
pub(crate) struct AllocatorsQuestion {
    /// The conditions.
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
    /// Leave host times out, so that the answer is the same every time.
    #[arg(long)]
    pub(crate) no_times: bool,
}

/// Under which settings and conditions a run is replayed.
#[derive(Debug, Args)]
pub(crate) struct ConfOptions {
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`. Without it, the run's own.
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) conf: Option<String>,
    /// The conditions.
    #[command(flatten)]
    pub(crate) conditions: ConditionOptions,
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
#[derive(Debug, Args)]
pub(crate) struct ConditionOptions {
    /// The most that may be reserved, as a memory fraction limits it: bytes, or with a unit ("70 GiB").
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) limit: Option<Bytes>,
    /// The same as a share of the device, as `torch.cuda.set_per_process_memory_fraction` takes it.
    #[arg(long, value_name = "SHARE", conflicts_with = "limit", value_parser = share)]
    pub(crate) fraction: Option<f64>,
    /// The device's memory, as bytes or with a unit; without it, that of the run's own device.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) total_memory: Option<Bytes>,
    /// How much of `total_memory` PyTorch may reserve.
    #[command(flatten)]
    pub(crate) memory: MemoryOption,
    /// The release of PyTorch whose rules hold ("2.15"); without it, the run's own.
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: Option<Release>,
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
