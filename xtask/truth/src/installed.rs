//! The PyTorch that is installed for a Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use blockyard_dry_run::{LibraryFolder, Program, Report, Torch, find_standin, prepare, run_until};
use blockyard_gpus::GpuProfile;
use tempfile::TempDir;

/// The Python that has PyTorch, where no option names one.
pub(crate) fn default_python() -> String {
    std::env::var("BLOCKYARD_TORCH_PYTHON").unwrap_or_else(|_missing| "python3".to_owned())
}

/// An installed PyTorch over the stand-in for CUDA's libraries, and a folder for the files of its runs.
/// Threads may run programs at the same time.
#[derive(Debug)]
pub(crate) struct InstalledTorch {
    pub(crate) python: String,
    pub(crate) torch: Torch,
    pub(crate) prepared: LibraryFolder,
    pub(crate) folder: PathBuf,
    /// The folder, where it is removed after the runs.
    _temporary: Option<TempDir>,
}

impl InstalledTorch {
    /// The PyTorch of this Python. Files go to `folder`, or to a folder of temporary files that is removed.
    pub(crate) fn find(python: &str, folder: Option<&Path>) -> Result<Self> {
        let torch = Torch::find(python)?;
        let prepared = prepare(&torch, &find_standin()?)?;
        let temporary = folder.is_none().then(tempfile::tempdir).transpose()?;
        let folder = folder.or(temporary.as_ref().map(TempDir::path)).unwrap_or(Path::new(".")).to_owned();
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { python: python.to_owned(), torch, prepared, folder, _temporary: temporary })
    }

    /// A file in the folder, by its name without the ending.
    pub(crate) fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// A program that sees an H200.
    pub(crate) fn program(&self, file: PathBuf) -> Program {
        Program::new(file, self.python.clone(), GpuProfile::H200)
    }

    /// Runs a program, at most for this time.
    pub(crate) fn run(&self, program: &Program, time: Duration) -> Result<Report> {
        let begun = Instant::now();
        Ok(run_until(program, &self.torch, &self.prepared, || begun.elapsed() > time)?)
    }
}
