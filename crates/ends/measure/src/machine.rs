//! The machine that a measurement ran on.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine that the numbers were measured on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The GPU, if one was measured.
    pub device: Option<String>,
    /// The processor's name.
    pub processor: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// The system's load average of the minute before the run: other programs make times longer.
    pub load: Option<String>,
    /// The compiler, the driver and the libraries, each with its version.
    pub software: Vec<String>,
}

impl Machine {
    /// This machine, without a GPU and without software.
    #[must_use]
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            device: None,
            processor: name.map_or("unknown processor", |(_, name)| name).trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load.split_whitespace().next().map(str::to_owned),
            software: Vec::new(),
        }
    }

    /// The machine in one line.
    pub fn line(&self) -> String {
        let Self { device, processor, cores, load, software } = self;
        let plural = if *cores == 1 { "" } else { "s" };
        let load = load.as_ref().map(|load| format!("load {load} at the start"));
        let hardware = device.iter().cloned().chain([processor.clone(), format!("{cores} core{plural}")]);
        hardware.chain(load).chain(software.iter().cloned()).collect::<Vec<_>>().join(", ")
    }
}
