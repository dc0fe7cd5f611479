//! The runs of the program: one for each value and setting.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use blockyard_dry_run::{LibraryFolder, Program, ProgramLine, Report, RunOom, Torch, run_until};
use blockyard_fit::{HolderBytes, Probe, memory_fraction};
use blockyard_gpus::{GpuProfile, pytorch_memory, pytorch_memory_beside};
use blockyard_record::Bytes;
use indicatif::ProgressBar;

use super::cache::{RunCache, key};
use super::options::FitOptions;
use super::run_queue::RunQueue;
use super::sites;
use super::vary::{Set, Vary, arguments, environment};
use crate::dry_run::is_interrupted;

/// The most lines of a program that failed that are shown.
const MAX_LINES: usize = 20;
/// A GPU on which everything fits has this many times the memory of the real GPU.
const ENDLESS_GPU_FACTOR: u64 = 16;

/// Why a run gave no answer.
#[derive(Debug)]
pub(super) enum RunEnd {
    /// Ctrl-C.
    Stopped,
    /// The program failed for another reason than memory, or did not run.
    Failed(String),
}

/// The conditions of a run of the program.
#[derive(Clone, Debug)]
pub(super) struct RunConditions {
    pub(super) gpu: GpuProfile,
    /// The most bytes that may be reserved; `None` for all bytes of the GPU.
    pub(super) limit: Option<Bytes>,
    pub(super) conf: Option<String>,
    /// The values that all runs get, in addition to the searched value.
    pub(super) sets: Vec<Set>,
    /// Further variables of the environment.
    pub(super) environment: Vec<(String, String)>,
}

impl RunConditions {
    /// A GPU of the same kind on which everything fits.
    pub(super) fn without_end(&self) -> Self {
        let total = Bytes::new(self.gpu.total_memory.get().saturating_mul(ENDLESS_GPU_FACTOR));
        Self { gpu: GpuProfile { total_memory: total, ..self.gpu.clone() }, limit: None, ..self.clone() }
    }

    /// The most bytes that may be reserved, before non-PyTorch memory is subtracted.
    pub(super) fn most(&self) -> Bytes {
        self.limit.unwrap_or(self.gpu.total_memory)
    }

    /// Whether non-PyTorch memory is subtracted from the GPU's memory. A limit counts PyTorch's memory alone.
    pub(super) fn counts_non_pytorch(&self) -> bool {
        self.limit.is_none()
    }

    /// The bytes that a run may reserve, without its non-PyTorch memory.
    pub(super) fn left(&self, probe: &Probe) -> Bytes {
        if !self.counts_non_pytorch() {
            return self.most();
        }
        let non_pytorch =
            probe.non_pytorch.iter().fold(Bytes::ZERO, |sum, held| sum.saturating_add(held.bytes));
        pytorch_memory_beside(non_pytorch, self.most())
    }

    /// The bytes that a run may probably reserve, before any run: a search begins there.
    pub(super) fn expected(&self) -> Bytes {
        if self.counts_non_pytorch() { pytorch_memory(self.most()) } else { self.most() }
    }

    /// These conditions with one more value that all runs get.
    pub(super) fn with(&self, set: Set) -> Self {
        let mut conditions = self.clone();
        conditions.sets.push(set);
        conditions
    }

    /// These conditions with other settings.
    pub(super) fn under(&self, conf: &str) -> Self {
        Self { conf: Some(conf.to_owned()), ..self.clone() }
    }
}

pub(super) struct Runs<'a> {
    pub(super) options: &'a FitOptions,
    pub(super) python: String,
    pub(super) torch: Torch,
    pub(super) prepared: LibraryFolder,
    pub(super) folder: &'a Path,
    pub(super) cache: RunCache,
    pub(super) bar: ProgressBar,
    pub(super) queue: RunQueue,
    /// How many files were made so far, for their names.
    pub(super) number: AtomicUsize,
    /// How many runs were made.
    pub(super) made_count: AtomicUsize,
    /// How many results of earlier runs were used.
    pub(super) cached_count: AtomicUsize,
}

impl Runs<'_> {
    /// The result of a run with this value; a kept result is used.
    pub(super) fn probe(&self, conditions: &RunConditions, vary: &Vary, value: u64) -> Result<Probe, RunEnd> {
        let key = key(self, conditions, &(&vary.name, vary.is_variable));
        if let Some(probe) = self.find(key, value) {
            return Ok(probe);
        }
        self.say(&format!("{} {value}", vary.name), conditions);
        let (mut probe, files) =
            self.run(&conditions.with(vary.set(value)), &self.file("snapshot.pickle"))?;
        probe.value = value;
        self.keep(key, &probe, &files)?;
        Ok(probe)
    }

    /// The result of a run without a searched value; a kept result is used.
    pub(super) fn plain(&self, conditions: &RunConditions) -> Result<Probe, RunEnd> {
        let key = key(self, conditions, &"the program");
        if let Some(probe) = self.find(key, 0) {
            return Ok(probe);
        }
        self.say("the program", conditions);
        let (probe, files) = self.run(conditions, &self.file("snapshot.pickle"))?;
        self.keep(key, &probe, &files)?;
        Ok(probe)
    }

    /// The result of a run, and the file of its requests; a kept run is used.
    pub(super) fn record(&self, conditions: &RunConditions) -> Result<(Probe, PathBuf), RunEnd> {
        let key = key(self, conditions, &"its requests");
        let path = self.cache.recording(key);
        if path.is_file()
            && let Some(probe) = self.find(key, 0)
        {
            return Ok((probe, path));
        }
        self.say("the program", conditions);
        let snapshot = self.file("requests.pickle");
        let (probe, files) = self.run_to(conditions, &snapshot)?;
        if probe.fits {
            let kept = self.cache.add_recording(key, &snapshot);
            let path = kept.map_err(|error| RunEnd::Failed(format!("{error:#}")))?;
            let _ = std::fs::remove_file(&snapshot);
            self.keep(key, &probe, &files)?;
            return Ok((probe, path));
        }
        self.made_count.fetch_add(1, Ordering::Relaxed);
        Ok((probe, snapshot))
    }

    /// A path for a file that no other run uses.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.folder.join(format!("{number}-{name}"))
    }

    pub(super) fn find(&self, key: u64, value: u64) -> Option<Probe> {
        let probe = self.cache.find(key, value)?;
        self.cached_count.fetch_add(1, Ordering::Relaxed);
        Some(probe)
    }

    pub(super) fn keep(&self, key: u64, probe: &Probe, files: &[PathBuf]) -> Result<(), RunEnd> {
        self.made_count.fetch_add(1, Ordering::Relaxed);
        self.cache.add(key, probe, files).map_err(|error| RunEnd::Failed(format!("{error:#}")))
    }

    /// Shows what runs now in the line on standard error.
    pub(super) fn say(&self, what: &str, conditions: &RunConditions) {
        let conf = conditions.conf.as_deref().map(|conf| format!(" under {conf}")).unwrap_or_default();
        let sets: Vec<String> =
            conditions.sets.iter().map(|set| format!(", {} {}", set.name, set.value)).collect();
        self.bar.set_message(format!("{what}{} on {}{conf}", sets.concat(), conditions.gpu.name));
    }

    /// The program under these conditions.
    pub(super) fn program(&self, conditions: &RunConditions) -> anyhow::Result<Program> {
        let fraction = conditions.limit.map(|limit| {
            memory_fraction(limit, conditions.gpu.total_memory).with_context(|| {
                format!(
                    "{limit} is not between 1 byte and the {} of {}",
                    conditions.gpu.total_memory, conditions.gpu.name
                )
            })
        });
        Ok(Program {
            arguments: arguments(&self.options.arguments, &conditions.sets),
            devices: u32::from(self.options.devices),
            conf: conditions.conf.clone(),
            iterations: Some(self.options.steps),
            fraction: fraction.transpose()?,
            counts_non_pytorch: conditions.counts_non_pytorch(),
            ends_at_oom: true,
            environment: [environment(&conditions.sets), conditions.environment.clone()].concat(),
            ..Program::new(self.options.file.clone(), self.python.clone(), conditions.gpu.clone())
        })
    }

    fn run(&self, conditions: &RunConditions, snapshot: &Path) -> Result<(Probe, Vec<PathBuf>), RunEnd> {
        let found = self.run_to(conditions, snapshot);
        // The snapshots of many runs would fill the disk.
        let _ = std::fs::remove_file(snapshot);
        found
    }

    fn run_to(&self, conditions: &RunConditions, snapshot: &Path) -> Result<(Probe, Vec<PathBuf>), RunEnd> {
        let permit = self.queue.wait();
        if is_interrupted() {
            return Err(RunEnd::Stopped);
        }
        let output = self.file("output");
        let program = self.program(conditions).map_err(|error| RunEnd::Failed(format!("{error:#}")))?;
        let program =
            Program { snapshot: Some(snapshot.to_owned()), output: Some(output.clone()), ..program };
        let report = run_until(&program, &self.torch, &self.prepared, is_interrupted)
            .map_err(|error| RunEnd::Failed(error.to_string()))?;
        if is_interrupted() {
            return Err(RunEnd::Stopped);
        }
        permit.took(report.host_peak.get());
        let probe = probe(&report, &conditions.gpu, &output);
        let _ = std::fs::remove_file(&output);
        let mut probe = probe.map_err(RunEnd::Failed)?;
        if probe.fits {
            match sites::sites(snapshot) {
                Ok(sites) => probe.sites = sites,
                Err(error) => {
                    probe.remarks.push(format!("the lines that hold memory are not known: {error:#}"));
                }
            }
        }
        Ok((probe, report.files))
    }
}

/// The result in a report. For a program that failed, the error is a sentence and the last lines that the
/// program printed to `output`.
pub(super) fn probe(report: &Report, gpu: &GpuProfile, output: &Path) -> Result<Probe, String> {
    probe_of_report(report, gpu)
        .map_err(|what| what + &last_lines(&std::fs::read_to_string(output).unwrap_or_default()))
}

fn probe_of_report(report: &Report, gpu: &GpuProfile) -> Result<Probe, String> {
    let has_run_out = report.failed.is_some() || report.error.as_deref() == Some("OutOfMemoryError");
    if !has_run_out {
        let error = report.error.as_deref().unwrap_or("no exception");
        let at = report.error_at.as_ref().map(|place| format!(" at {}", line(place))).unwrap_or_default();
        if report.status != 0 || report.error.is_some() || report.is_cut {
            return Err(format!("the program ended with status {} ({error}{at})", report.status));
        }
        if report.devices.is_empty() {
            return Err("the program did not use the GPU: move its model and its data to `cuda`".to_owned());
        }
    }
    let devices = || report.devices.iter();
    // Non-PyTorch memory is that of the device with the largest peak, the first of several.
    let non_pytorch = report.non_pytorch(gpu).into_iter().zip(devices()).rev();
    let non_pytorch = non_pytorch.max_by_key(|(_, device)| device.peak_reserved);
    let non_pytorch = non_pytorch.map(|(non_pytorch, _)| non_pytorch).unwrap_or_default();
    Ok(Probe {
        non_pytorch: non_pytorch.parts.into_iter().map(|(what, bytes)| HolderBytes { what, bytes }).collect(),
        non_pytorch_unknown: non_pytorch.unknown,
        value: 0,
        fits: !has_run_out,
        peak_allocated: devices().map(|device| device.peak_allocated).max().unwrap_or_default(),
        peak_reserved: devices().map(|device| device.peak_reserved).max().unwrap_or_default(),
        is_exact: report.is_exact(),
        failed: report.failed.as_ref().map(request).or_else(|| {
            has_run_out.then(|| blockyard_fit::ProbeOom {
                at: report.error_at.as_ref().map(line),
                ..Default::default()
            })
        }),
        iterations: u32::try_from(report.iterations.len()).unwrap_or(u32::MAX),
        is_steady: report.is_steady(),
        holders: report
            .holders
            .iter()
            .map(|row| HolderBytes { what: row.what.clone(), bytes: row.bytes })
            .collect(),
        sites: Vec::new(),
        notes: report.sentences(),
        remarks: report.remarks.clone(),
    })
}

fn request(failed: &RunOom) -> blockyard_fit::ProbeOom {
    blockyard_fit::ProbeOom {
        bytes: failed.bytes,
        at: failed.at.as_ref().map(line),
        is_of_other_thread: failed.is_of_other_thread,
    }
}

/// A line of the program, with the last part of its path.
fn line(place: &ProgramLine) -> String {
    format!("{}:{}", blockyard_record::shortened_path(&place.file), place.line)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(MAX_LINES);
    let last = lines.get(from..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("\n    {}", last.join("\n    ")) }
}
