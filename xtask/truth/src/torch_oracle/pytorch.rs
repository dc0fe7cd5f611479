//! A program on PyTorch's own code, without a GPU.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use blockyard_dry_run::{PreloadedProcess, Program};
use serde::Deserialize;

use super::run::{PrintedLine, ProgramRun};
use crate::installed::InstalledTorch;

const DRIVER: &str = include_str!("driver.py");

/// The release of PyTorch whose operators `crates/programs/torch` follows.
const RELEASE: &str = "2.11.0";

/// Modules that are loaded once for all programs.
const MODULES: [&str; 5] =
    ["torch", "torch._dynamo", "torch.distributions", "torch.func", "torch.utils.checkpoint"];

/// How long a program may take.
const MAX_TIME: Duration = Duration::from_mins(2);

/// How much PyTorch's run knows about the values on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// No value is known, which is several times as fast. A call that reads a value is marked as unsure.
    Unknown,
    /// Small results are computed.
    Followed,
}

/// An installed PyTorch whose modules are loaded. Threads may run programs at the same time.
#[derive(Debug)]
pub struct PyTorch {
    installed: InstalledTorch,
    preloaded: PreloadedProcess,
}

/// The file that the driver writes.
#[derive(Debug, Deserialize)]
struct ProgramOutput {
    /// The text of each line, how many requests came before its end, and how often a value was unsure until
    /// then.
    lines: Vec<(String, usize, u64)>,
    events: Vec<i64>,
    error: Option<String>,
}

impl PyTorch {
    /// The PyTorch that is installed for this Python.
    ///
    /// # Errors
    ///
    /// When the Python has no PyTorch, or the stand-in for CUDA's libraries is not built.
    pub fn find(python: &str) -> Result<Self> {
        let installed = InstalledTorch::find(python, None)?;
        ensure!(
            installed.torch.version.starts_with(RELEASE),
            "{python} has PyTorch {}, and our operators are those of {RELEASE}",
            installed.torch.version
        );
        fs::write(installed.file("driver", "py"), DRIVER)?;
        let (program, modules) = (program(&installed), MODULES.map(str::to_owned));
        let preloaded = PreloadedProcess::load(&program, &modules, &installed.torch, &installed.prepared)?;
        Ok(Self { installed, preloaded })
    }

    /// The version of PyTorch.
    pub fn version(&self) -> &str {
        &self.installed.torch.version
    }

    /// The folder for the files of runs.
    pub fn folder(&self) -> &Path {
        &self.installed.folder
    }

    /// Runs a program in a separate process.
    ///
    /// # Errors
    ///
    /// When the process ended before its events were written.
    pub fn run(&self, name: &str, source: &str, values: Values) -> Result<ProgramRun> {
        let [path, out, printed] = ["py", "json", "txt"].map(|ending| self.installed.file(name, ending));
        fs::write(&path, source)?;
        let values = match values {
            Values::Unknown => "unknown",
            Values::Followed => "followed",
        };
        let program = Program {
            arguments: vec![path.display().to_string(), out.display().to_string(), values.to_owned()],
            output: Some(printed.clone()),
            preloaded: Some(self.preloaded.clone()),
            ..program(&self.installed)
        };
        let report = self.installed.run(&program, MAX_TIME)?;
        let written = fs::read_to_string(&out);
        for used in [path, out, printed] {
            // A file that stays is in the folder of temporary files.
            let _ = fs::remove_file(used);
        }
        let Ok(text) = written else {
            bail!("PyTorch's process ended with status {}", report.status);
        };
        let written: ProgramOutput = serde_json::from_str(&text)?;
        let lines = written.lines.into_iter();
        let lines =
            lines.map(|(text, requests, unsure)| PrintedLine { text, requests, estimated: 0, unsure });
        Ok(ProgramRun {
            lines: lines.collect(),
            events: written.events,
            unordered: Vec::new(),
            error: written.error,
        })
    }
}

/// A run of the driver, in which PyTorch has one thread on the host: its work there is small, and many
/// programs run at the same time.
fn program(installed: &InstalledTorch) -> Program {
    Program {
        environment: vec![("OMP_NUM_THREADS".to_owned(), "1".to_owned())],
        ..installed.program(installed.file("driver", "py"))
    }
}
