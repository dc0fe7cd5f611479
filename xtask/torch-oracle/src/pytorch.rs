//! A program on PyTorch's own code, without a GPU.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use blockyard_dry_run::{LibraryFolder, Program, Torch, find_standin, prepare, run};
use blockyard_gpus::GpuProfile;
use serde::Deserialize;

use crate::run::{Line, Run};

const DRIVER: &str = include_str!("driver.py");

/// An installed PyTorch, with a folder for what its runs write.
#[derive(Debug)]
pub struct PyTorch {
    python: String,
    torch: Torch,
    prepared: LibraryFolder,
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
struct ProgramOutput {
    lines: Vec<(String, usize)>,
    events: Vec<i64>,
    error: Option<String>,
}

/// A run, with the lines of the program that depend on an assumption.
#[derive(Debug)]
pub struct PyTorchRun {
    /// The run.
    pub run: Run,
    /// Lines of the program, counted from 1, each with what was assumed.
    pub assumed: Vec<(u32, String)>,
}

impl PyTorch {
    /// The PyTorch that this Python has.
    ///
    /// # Errors
    ///
    /// When it has none, or the library that stands for CUDA's is not built.
    pub fn find(python: &str) -> Result<Self> {
        let torch = Torch::find(python)?;
        let prepared = prepare(&torch, &find_standin()?)?;
        let folder = std::env::temp_dir().join(format!("torch-oracle-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        fs::write(folder.join("driver.py"), DRIVER)?;
        Ok(Self { python: python.to_owned(), torch, prepared, folder })
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.torch.version
    }

    /// Runs a program.
    ///
    /// # Errors
    ///
    /// When the process ended before what it did was written.
    pub fn run(&self, name: &str, source: &str) -> Result<PyTorchRun> {
        let in_folder = |ending: &str| self.folder.join(format!("{name}.{ending}"));
        let (path, out) = (in_folder("py"), in_folder("json"));
        fs::write(&path, source)?;
        let program = Program {
            arguments: vec![path.display().to_string(), out.display().to_string()],
            output: Some(in_folder("txt")),
            ..Program::new(self.folder.join("driver.py"), self.python.clone(), GpuProfile::H200)
        };
        let report = run(&program, &self.torch, &self.prepared)?;
        let Ok(text) = fs::read_to_string(&out) else {
            bail!("PyTorch's process ended with status {} in {}", report.status, path.display());
        };
        let written: ProgramOutput = serde_json::from_str(&text)?;
        let lines = written.lines.into_iter().map(|(text, requests)| Line { text, requests, marked: 0 });
        let here = path.display().to_string();
        let assumed = report.notes.iter().filter(|note| note.file == here);
        let assumed = assumed.map(|note| (note.line, note.sentence())).collect();
        for used in [path, out, in_folder("txt")] {
            // A file that stays is in the folder of temporary files.
            let _ = fs::remove_file(used);
        }
        Ok(PyTorchRun {
            run: Run {
                lines: lines.collect(),
                events: written.events,
                unordered: Vec::new(),
                error: written.error,
            },
            assumed,
        })
    }
}

impl Drop for PyTorch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
