//! Results of runs, kept between calls: one JSON value a line.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blockyard_dry_run::{DryRunError, cache_folder};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::FitError;
use super::runs::{RunConditions, Runs};
use crate::Probe;

/// The version of the format of the file, which rises with each change of the kept data.
const FORMAT: u32 = 5;
/// The beginnings of the names of environment variables that may change the memory of a program.
const VARIABLES: [&str; 9] =
    ["PYTORCH", "TORCH", "CUDA", "CUBLAS", "CUDNN", "NCCL", "HF_", "STANDIN", "PYTHON"];

/// One run: the number of its question, its result, and hashes of the program's files.
#[derive(Debug, Serialize, Deserialize)]
struct RunRecord {
    key: u64,
    probe: Probe,
    files: Vec<(PathBuf, u64)>,
}

/// The kept runs of a program.
#[derive(Debug)]
pub struct RunCache {
    path: PathBuf,
    lines: Mutex<Vec<RunRecord>>,
}

impl RunCache {
    /// Reads the runs of a file; none if the file does not exist. A line that cannot be read is skipped, so
    /// its run is made again.
    #[must_use]
    pub fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { path, lines: Mutex::new(lines) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lines(&self) -> MutexGuard<'_, Vec<RunRecord>> {
        // The list is consistent after a panic, because each line is pushed as a whole.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of a run with this value, if the files that it loaded did not change.
    pub(super) fn find(&self, key: u64, value: u64) -> Option<Probe> {
        let lines = self.lines();
        let line = lines.iter().rev().find(|line| line.key == key && line.probe.value == value)?;
        line.files.iter().all(|(path, hash)| file_hash(path) == Some(*hash)).then(|| line.probe.clone())
    }

    /// The path of the file with the requests of a run. The file is written before the run is kept, so that a
    /// kept run has one.
    pub(super) fn recording(&self, key: u64) -> PathBuf {
        self.path.with_extension("requests").join(format!("{key:016x}.pickle.gz"))
    }

    /// Keeps the requests of a run: a snapshot of PyTorch.
    pub(super) fn add_recording(&self, key: u64, snapshot: &Path) -> Result<PathBuf, FitError> {
        let path = self.recording(key);
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
            let mut file = GzEncoder::new(Vec::new(), Compression::fast());
            file.write_all(&std::fs::read(snapshot)?)?;
            // The file has its name once it is complete.
            let unfinished = path.with_extension("unfinished");
            std::fs::write(&unfinished, file.finish()?)?;
            std::fs::rename(unfinished, &path)
        };
        write().map_err(FitError::file(&path))?;
        Ok(path)
    }

    /// Deletes a file of kept runs and the recordings beside it.
    ///
    /// # Errors
    ///
    /// [`FitError::File`] if a file cannot be deleted.
    pub fn forget(path: &Path) -> Result<(), FitError> {
        let folder = path.with_extension("requests");
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_recording = entry.file_name().to_string_lossy().ends_with(".pickle.gz");
            if is_recording {
                std::fs::remove_file(entry.path()).map_err(FitError::file(entry.path()))?;
            }
        }
        // The folder is removed only if it is empty, so that other files of a person stay.
        let _ = std::fs::remove_dir(&folder);
        if path.exists() {
            std::fs::remove_file(path).map_err(FitError::file(path))?;
        }
        Ok(())
    }

    /// Writes a run to the file at once, so that nothing is lost if the next run fails.
    pub(super) fn add(&self, key: u64, probe: &Probe, files: &[PathBuf]) -> Result<(), FitError> {
        let files = files.iter().filter_map(|path| Some((path.clone(), file_hash(path)?))).collect();
        let record = RunRecord { key, probe: probe.clone(), files };
        // The lock is held while the line is written, because several runs may end at the same time.
        let mut lines = self.lines();
        let write = || -> std::io::Result<()> {
            if let Some(folder) = self.path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all((serde_json::to_string(&record)? + "\n").as_bytes())
        };
        write().map_err(FitError::file(&self.path))?;
        lines.push(record);
        Ok(())
    }
}

/// The number of a question: a hash of everything that may change its answer, except the bytes of the
/// program's files. `asked` names the searched option, or the ranks that run.
pub(super) fn key(runs: &Runs<'_>, conditions: &RunConditions, asked: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    let program = runs.program;
    let absolute = std::path::absolute(&program.file).unwrap_or_else(|_error| program.file.clone());
    (FORMAT, absolute, &program.arguments, &conditions.sets, &conditions.environment).hash(&mut hasher);
    asked.hash(&mut hasher);
    (program.steps, program.devices, &program.python, &runs.torch.version).hash(&mut hasher);
    // The name of this folder changes with PyTorch's libraries and with ours.
    runs.prepared.folder.hash(&mut hasher);
    (conditions.gpu.id, conditions.gpu.total_memory, conditions.limit(), &conditions.terms.conf)
        .hash(&mut hasher);
    std::env::current_dir().ok().hash(&mut hasher);
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| VARIABLES.iter().any(|start| name.starts_with(start)))
        .collect();
    variables.sort();
    variables.hash(&mut hasher);
    packages(runs.torch.folder()).hash(&mut hasher);
    hasher.finish()
}

/// The names of the packages that are installed beside PyTorch, which include versions.
fn packages(torch: &Path) -> Vec<String> {
    let entries = torch.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let names = entries.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".dist-info")).collect();
    names.sort();
    names
}

fn file_hash(path: &Path) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    std::fs::read(path).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// The file of a program's kept runs in the user's cache directory.
///
/// # Errors
///
/// [`DryRunError`] if the user has no cache directory.
pub fn kept_file(program: &Path) -> Result<PathBuf, DryRunError> {
    let folder = cache_folder()?.join("fit");
    let absolute = std::path::absolute(program).unwrap_or_else(|_error| program.to_owned());
    let mut hasher = DefaultHasher::new();
    absolute.hash(&mut hasher);
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(folder.join(format!("{stem}-{:016x}.jsonl", hasher.finish())))
}
