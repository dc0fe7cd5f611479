//! What the numbers were measured on, and keeping a program on one core.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

/// The machine and the tools.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// Load of the last minute when the run began: others at work make times longer.
    pub load: String,
    /// The compiler of our side.
    pub rustc: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .arg("--version")
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self {
            processor: name.map_or("unknown processor", |(_, name)| name).to_owned(),
            cores: cores().map_or(1, |cores| cores.len()),
            load: load.split_whitespace().next().unwrap_or("unknown").to_owned(),
            rustc: rustc.unwrap_or_default(),
        }
    }

    /// The machine in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { processor, cores, load, rustc } = self;
        format!("{processor}, {cores} cores, load {load} at the start, {rustc}")
    }
}

/// The cores that this thread may use, ascending.
///
/// # Errors
///
/// When the system does not say.
pub fn cores() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask for the cores of this process")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Keeps this thread, and those that it starts, on `cores`.
///
/// # Errors
///
/// When the system refuses.
pub fn pin(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    sched_setaffinity(None, &set).with_context(|| format!("cannot stay on the cores {cores:?}"))
}
