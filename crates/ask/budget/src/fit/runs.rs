//! The runs of the program: one for each value and setting.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blockyard_answers::{FitConditions, FitFailedRequest, FitGpu, FitHolder, FitPeaks, FitRunEnd};
use blockyard_dry_run::{LibraryFolder, PreloadedProcess, Program, Report, RunOom, Torch, run_until};
use blockyard_gpus::{GpuProfile, pytorch_memory, pytorch_memory_beside};
use blockyard_record::Bytes;

use super::FitError;
use super::cache::{RunCache, key};
use super::layouts::RunRanks;
use super::run_queue::RunQueue;
use super::vary::{Set, Vary, arguments, environment};
use crate::program_end::{failure, line};
use crate::{Probe, memory_fraction};

/// A GPU on which everything fits has this many times the memory of the real GPU.
const ENDLESS_GPU_FACTOR: u64 = 16;

/// The conditions of a run of the program.
#[derive(Clone, Debug)]
pub struct RunConditions {
    pub(super) gpu: GpuProfile,
    /// The GPU, the limit and the settings, as answers have them.
    pub(super) terms: FitConditions,
    /// The values that all runs get, in addition to the searched value.
    pub(super) sets: Vec<Set>,
    /// Further variables of the environment.
    pub(super) environment: Vec<(String, String)>,
}

impl RunConditions {
    /// Runs on a GPU under settings. Without a limit, all bytes of the GPU may be reserved.
    ///
    /// # Errors
    ///
    /// [`FitError::Question`] if the limit is 0 or above the GPU's memory.
    pub fn new(gpu: GpuProfile, limit: Option<Bytes>, conf: Option<String>) -> Result<Self, FitError> {
        let total = gpu.total_memory;
        let fraction = limit.map(|limit| {
            memory_fraction(limit, total).ok_or_else(|| {
                let name = gpu.name;
                FitError::Question(format!("--limit {limit} is not between 1 byte and the {total} of {name}"))
            })
        });
        let terms = FitConditions {
            gpu: FitGpu { name: gpu.name.to_owned(), id: gpu.id.to_owned(), total },
            limit: limit.unwrap_or(total),
            fraction: fraction.transpose()?,
            conf,
        };
        Ok(Self { gpu, terms, sets: Vec::new(), environment: Vec::new() })
    }

    /// A GPU of the same kind on which everything fits.
    pub(super) fn without_end(&self) -> Self {
        let mut conditions = self.clone();
        let total = Bytes::new(self.gpu.total_memory.get().saturating_mul(ENDLESS_GPU_FACTOR));
        conditions.gpu.total_memory = total;
        conditions.terms.gpu.total = total;
        (conditions.terms.limit, conditions.terms.fraction) = (total, None);
        conditions
    }

    /// The most bytes that may be reserved; `None` for all bytes of the GPU.
    pub(super) fn limit(&self) -> Option<Bytes> {
        self.terms.fraction.map(|_| self.terms.limit)
    }

    /// The bytes that a run may reserve, without its non-PyTorch memory.
    pub(super) fn left(&self, probe: &Probe) -> Bytes {
        left(&self.terms, &probe.run)
    }

    /// The bytes that a run may probably reserve, before any run: a search begins there.
    pub(super) fn expected(&self) -> Bytes {
        expected(&self.terms)
    }

    /// These conditions with one more value that all runs get.
    pub(super) fn with(&self, set: Set) -> Self {
        let mut conditions = self.clone();
        conditions.sets.push(set);
        conditions
    }

    /// These conditions with other settings.
    pub(super) fn under(&self, conf: &str) -> Self {
        let mut conditions = self.clone();
        conditions.terms.conf = Some(conf.to_owned());
        conditions
    }
}

/// Whether non-PyTorch memory is subtracted from the GPU's memory. A limit counts PyTorch's memory alone.
pub(super) fn counts_non_pytorch(terms: &FitConditions) -> bool {
    terms.fraction.is_none()
}

/// The bytes that a run may reserve, without its non-PyTorch memory.
pub(super) fn left(terms: &FitConditions, run: &FitPeaks) -> Bytes {
    if !counts_non_pytorch(terms) {
        return terms.limit;
    }
    pytorch_memory_beside(run.non_pytorch.iter().map(|held| held.bytes).sum(), terms.limit)
}

/// The bytes that a run may probably reserve, before any run.
pub(super) fn expected(terms: &FitConditions) -> Bytes {
    if counts_non_pytorch(terms) { pytorch_memory(terms.limit) } else { terms.limit }
}

/// A program, and how it runs.
#[derive(Clone, Debug)]
pub struct FitProgram {
    /// The file of the program.
    pub file: PathBuf,
    /// The program's own arguments.
    pub arguments: Vec<String>,
    /// The Python that runs the program.
    pub python: String,
    /// After how many steps of its first optimizer a run ends.
    pub steps: u32,
    /// How many GPUs the program sees.
    pub devices: u32,
    /// Whether the largest value is searched with other settings too.
    pub searches_settings: bool,
    /// How many ranks a node has.
    pub per_node: Option<u32>,
    /// The ranks that run of each layout; `None` for those that differ.
    pub run_ranks: Option<RunRanks>,
    /// Modules of Python that a process loads once for all layouts.
    pub preload: Vec<String>,
}

/// What the caller of the runs does for them.
pub trait RunCaller: fmt::Debug + Sync {
    /// Whether no further run is wanted.
    fn is_stopped(&self) -> bool;
    /// Shows what runs now.
    fn show(&self, what: String);
    /// The lines of the program that hold the peak allocated in a snapshot, the line that holds most first.
    ///
    /// # Errors
    ///
    /// Why the lines are not known, as a sentence.
    fn lines_at_peak(&self, snapshot: &Path) -> Result<Vec<FitHolder>, String>;
}

/// How many runs there were.
#[derive(Debug, Default)]
pub struct RunCounts {
    /// How many files were made so far, for their names.
    files: AtomicUsize,
    /// How many runs were made.
    pub(super) made: AtomicUsize,
    /// How many results of earlier calls were used.
    pub(super) known: AtomicUsize,
}

/// The process that has run the first imports of the program, once one is needed: runs are copies of it, which
/// saves them the time of the imports.
#[derive(Debug, Default)]
pub struct ImportsProcess(Mutex<ImportsState>);

#[derive(Debug, Default)]
enum ImportsState {
    #[default]
    NotStarted,
    Started(PreloadedProcess),
    /// The process cannot be copied, for example because a module uses the GPU while it is loaded.
    Unusable,
}

impl ImportsProcess {
    fn state(&self) -> MutexGuard<'_, ImportsState> {
        // The state is replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process for a run of `program`; `None` if the run needs a separate process.
    fn of(&self, program: &Program, torch: &Torch, prepared: &LibraryFolder) -> Option<PreloadedProcess> {
        // Modules may read these variables while they are loaded.
        if !program.environment.is_empty() {
            return None;
        }
        let mut state = self.state();
        if matches!(*state, ImportsState::NotStarted) {
            // Settings of one run are not those of the others.
            let program = Program { conf: None, counts_non_pytorch: false, ..program.clone() };
            let started = PreloadedProcess::load_imports(&program, torch, prepared);
            *state = started.map_or(ImportsState::Unusable, ImportsState::Started);
        }
        match &*state {
            ImportsState::Started(process) => Some(process.clone()),
            ImportsState::NotStarted | ImportsState::Unusable => None,
        }
    }
}

/// The runs of one call.
#[derive(Debug)]
pub struct Runs<'a> {
    /// The program.
    pub program: &'a FitProgram,
    /// The installed PyTorch.
    pub torch: &'a Torch,
    /// The libraries over which PyTorch runs.
    pub prepared: &'a LibraryFolder,
    /// The folder for the files of runs.
    pub folder: &'a Path,
    /// The kept runs.
    pub cache: RunCache,
    /// How many runs are open at one time.
    pub queue: RunQueue,
    /// The caller.
    pub caller: &'a dyn RunCaller,
    /// How many runs there were.
    pub counts: RunCounts,
    /// The process of which runs are copies.
    pub imports: ImportsProcess,
}

impl Runs<'_> {
    /// The result of a run with this value; a kept result is used.
    pub(super) fn probe(
        &self,
        conditions: &RunConditions,
        vary: &Vary,
        value: u64,
    ) -> Result<Probe, FitRunEnd> {
        let key = key(self, conditions, &(&vary.name, vary.is_variable));
        let what = format!("{} {value}", vary.name);
        self.kept(key, value, &what, conditions, &conditions.with(vary.set(value)))
    }

    /// The result of a run without a searched value; a kept result is used.
    pub(super) fn plain(&self, conditions: &RunConditions) -> Result<Probe, FitRunEnd> {
        self.kept(key(self, conditions, &"the program"), 0, "the program", conditions, conditions)
    }

    /// The kept result, or the result of a run under the conditions `with`; `what` and `shown` are shown
    /// meanwhile.
    fn kept(
        &self,
        key: u64,
        value: u64,
        what: &str,
        shown: &RunConditions,
        with: &RunConditions,
    ) -> Result<Probe, FitRunEnd> {
        if let Some(probe) = self.find(key, value) {
            return Ok(probe);
        }
        self.show(what, shown);
        let snapshot = self.file("snapshot.pickle");
        let found = self.run(with, &snapshot);
        // The snapshots of many runs would fill the disk.
        let _ = std::fs::remove_file(&snapshot);
        let (mut probe, files) = found?;
        probe.value = value;
        self.keep(key, &probe, &files)?;
        Ok(probe)
    }

    /// The result of a run, and the file of its requests; a kept run is used.
    pub(super) fn record(&self, conditions: &RunConditions) -> Result<(Probe, PathBuf), FitRunEnd> {
        let key = key(self, conditions, &"its requests");
        let path = self.cache.recording(key);
        if path.is_file()
            && let Some(probe) = self.find(key, 0)
        {
            return Ok((probe, path));
        }
        self.show("the program", conditions);
        let snapshot = self.file("requests.pickle");
        let (probe, files) = self.run(conditions, &snapshot)?;
        if probe.run.fits {
            let path = self.cache.add_recording(key, &snapshot).map_err(FitRunEnd::failed)?;
            let _ = std::fs::remove_file(&snapshot);
            self.keep(key, &probe, &files)?;
            return Ok((probe, path));
        }
        self.counts.made.fetch_add(1, Ordering::Relaxed);
        Ok((probe, snapshot))
    }

    /// A path for a file that no other run uses.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let number = self.counts.files.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{number}-{name}"))
    }

    fn find(&self, key: u64, value: u64) -> Option<Probe> {
        let probe = self.cache.find(key, value)?;
        self.counts.known.fetch_add(1, Ordering::Relaxed);
        Some(probe)
    }

    fn keep(&self, key: u64, probe: &Probe, files: &[PathBuf]) -> Result<(), FitRunEnd> {
        self.counts.made.fetch_add(1, Ordering::Relaxed);
        self.cache.add(key, probe, files).map_err(FitRunEnd::failed)
    }

    /// Shows what runs now.
    pub(super) fn show(&self, what: &str, conditions: &RunConditions) {
        let conf = conditions.terms.conf.as_deref().map(|conf| format!(" under {conf}")).unwrap_or_default();
        let sets: Vec<String> =
            conditions.sets.iter().map(|set| format!(", {} {}", set.name, set.value)).collect();
        self.caller.show(format!("{what}{} on {}{conf}", sets.concat(), conditions.gpu.name));
    }

    /// The program under these conditions.
    pub(super) fn program(&self, conditions: &RunConditions) -> Program {
        let FitProgram { file, arguments: own, python, steps, devices, .. } = self.program;
        Program {
            arguments: arguments(own, &conditions.sets),
            devices: *devices,
            conf: conditions.terms.conf.clone(),
            iterations: Some(*steps),
            fraction: conditions.terms.fraction,
            counts_non_pytorch: counts_non_pytorch(&conditions.terms),
            ends_at_oom: true,
            environment: [environment(&conditions.sets), conditions.environment.clone()].concat(),
            ..Program::new(file.clone(), python.clone(), conditions.gpu.clone())
        }
    }

    fn run(&self, conditions: &RunConditions, snapshot: &Path) -> Result<(Probe, Vec<PathBuf>), FitRunEnd> {
        let permit = self.queue.wait();
        let is_stopped = || self.caller.is_stopped();
        if is_stopped() {
            return Err(FitRunEnd::Stopped);
        }
        let output = self.file("output");
        let program = Program {
            snapshot: Some(snapshot.to_owned()),
            output: Some(output.clone()),
            ..self.program(conditions)
        };
        let run = |preloaded: Option<PreloadedProcess>| {
            let program = Program { preloaded, ..program.clone() };
            run_until(&program, self.torch, self.prepared, is_stopped)
        };
        let imports = self.imports.of(&program, self.torch, self.prepared);
        let report = match run(imports.clone()) {
            Err(_) if imports.is_some() => {
                *self.imports.state() = ImportsState::Unusable;
                run(None)
            }
            report => report,
        };
        let report = report.map_err(FitRunEnd::failed)?;
        if is_stopped() {
            return Err(FitRunEnd::Stopped);
        }
        permit.took(report.host_peak.get());
        let probe = probe(&report, &conditions.gpu, &output);
        let _ = std::fs::remove_file(&output);
        let mut probe = probe.map_err(FitRunEnd::Failed)?;
        if probe.run.fits {
            match self.caller.lines_at_peak(snapshot) {
                Ok(sites) => probe.run.sites = sites,
                Err(error) => {
                    probe.run.remarks.push(format!("the lines that hold memory are not known: {error}"));
                }
            }
        }
        Ok((probe, report.files))
    }
}

/// The result in a report. For a program that failed, the error is a sentence and the last lines that the
/// program printed to `output`.
pub(super) fn probe(report: &Report, gpu: &GpuProfile, output: &Path) -> Result<Probe, String> {
    let has_run_out = report.failed.is_some() || report.has_oom_error();
    if !has_run_out && let Some(why) = failure(report, output) {
        return Err(why);
    }
    let devices = || report.devices.iter();
    let non_pytorch = report.largest_non_pytorch(gpu);
    let held = |(what, bytes): (String, Bytes)| FitHolder { what, bytes };
    let run = FitPeaks {
        fits: !has_run_out,
        peak_allocated: devices().map(|device| device.peak_allocated).max().unwrap_or_default(),
        peak_reserved: devices().map(|device| device.peak_reserved).max().unwrap_or_default(),
        exact: report.is_exact(),
        failed: report.failed.as_ref().map(request).or_else(|| {
            let at = report.error_at.as_ref().map(line);
            has_run_out.then(|| FitFailedRequest { at, ..FitFailedRequest::default() })
        }),
        steps: u32::try_from(report.iterations.len()).unwrap_or(u32::MAX),
        steady: report.is_steady(),
        sites: Vec::new(),
        non_pytorch: non_pytorch.parts.into_iter().map(held).collect(),
        unknown_non_pytorch: non_pytorch.unknown,
        notes: report.sentences(),
        remarks: report.remarks.clone(),
    };
    let holders = report.holders.iter().map(|row| held((row.what.clone(), row.bytes))).collect();
    Ok(Probe { value: 0, run, holders, has_released: report.has_released() })
}

fn request(failed: &RunOom) -> FitFailedRequest {
    FitFailedRequest {
        bytes: failed.bytes,
        at: failed.at.as_ref().map(line),
        is_of_other_thread: failed.is_of_other_thread,
    }
}
