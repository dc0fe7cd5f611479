//! A program on PyTorch's own code, without a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use blockyard_dry_run::{LibraryFolder, PreloadedProcess, Program, Torch, find_standin, prepare, run_until};
use blockyard_gpus::GpuProfile;
use serde::Deserialize;

use crate::run::{PrintedLine, ProgramRun};

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

/// An installed PyTorch, with a folder for the files of its runs. Threads may run programs at the same time.
#[derive(Debug)]
pub struct PyTorch {
    python: String,
    torch: Torch,
    prepared: LibraryFolder,
    preloaded: PreloadedProcess,
    folder: PathBuf,
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
        let torch = Torch::find(python)?;
        ensure!(
            torch.version.starts_with(RELEASE),
            "{python} has PyTorch {}, and our operators are those of {RELEASE}",
            torch.version
        );
        let prepared = prepare(&torch, &find_standin()?)?;
        let folder = std::env::temp_dir().join(format!("torch-oracle-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let driver = folder.join("driver.py");
        fs::write(&driver, DRIVER)?;
        let program = program(driver, python.to_owned());
        let preloaded = PreloadedProcess::load(&program, &MODULES.map(str::to_owned), &torch, &prepared)?;
        Ok(Self { python: python.to_owned(), torch, prepared, preloaded, folder })
    }

    /// The version of PyTorch.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.torch.version
    }

    /// The folder for the files of runs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a program in a separate process.
    ///
    /// # Errors
    ///
    /// When the process ended before its events were written.
    pub fn run(&self, name: &str, source: &str, values: Values) -> Result<ProgramRun> {
        let in_folder = |ending: &str| self.folder.join(format!("{name}.{ending}"));
        let (path, out, printed) = (in_folder("py"), in_folder("json"), in_folder("txt"));
        fs::write(&path, source)?;
        let values = match values {
            Values::Unknown => "unknown",
            Values::Followed => "followed",
        };
        let program = Program {
            arguments: vec![path.display().to_string(), out.display().to_string(), values.to_owned()],
            output: Some(printed.clone()),
            preloaded: Some(self.preloaded.clone()),
            ..program(self.folder.join("driver.py"), self.python.clone())
        };
        let end = Instant::now() + MAX_TIME;
        let report = run_until(&program, &self.torch, &self.prepared, || Instant::now() > end)?;
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
fn program(driver: PathBuf, python: String) -> Program {
    Program {
        environment: vec![("OMP_NUM_THREADS".to_owned(), "1".to_owned())],
        ..Program::new(driver, python, GpuProfile::H200)
    }
}

impl Drop for PyTorch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
