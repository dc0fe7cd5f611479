//! The runs of the program: one for each value and setting.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::Context;
use blockyard_dry_run::{FailedRequest, Place, Prepared, Program, Report, Torch, run_until};
use blockyard_fit::{Held, Probe, memory_fraction};
use blockyard_gpus::GpuProfile;
use blockyard_record::Bytes;
use indicatif::ProgressBar;

use super::kept::{Kept, key};
use super::options::FitOptions;
use super::sites;
use crate::dry_run::is_interrupted;

/// So many lines of a program that failed are shown.
const SHOWN_LINES: usize = 20;
/// A GPU without an end: so many times the memory of the real one.
const WITHOUT_END: u64 = 16;

/// Why a run gave no answer.
#[derive(Debug)]
pub(super) enum Ended {
    /// Ctrl-C.
    Stopped,
    /// The program failed for another reason than memory, or did not run.
    Failed(String),
}

/// Under which terms the program runs.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) gpu: GpuProfile,
    /// The most that may be reserved; none for all that there is.
    pub(super) limit: Option<Bytes>,
    pub(super) conf: Option<String>,
}

impl Terms {
    /// A GPU of the same kind on which everything fits.
    pub(super) fn without_end(&self) -> Self {
        let total = Bytes::new(self.gpu.total_memory.get().saturating_mul(WITHOUT_END));
        Self {
            gpu: GpuProfile { total_memory: total, ..self.gpu.clone() },
            limit: None,
            conf: self.conf.clone(),
        }
    }
}

pub(super) struct Runs<'a> {
    pub(super) options: &'a FitOptions,
    pub(super) python: String,
    pub(super) torch: Torch,
    pub(super) prepared: Prepared,
    pub(super) folder: &'a Path,
    pub(super) kept: Kept,
    pub(super) bar: ProgressBar,
    /// How many runs were made, and how many were known from before.
    pub(super) made: Cell<usize>,
    pub(super) known: Cell<usize>,
}

impl Runs<'_> {
    /// What a run with this value says, from before where it is known.
    pub(super) fn probe(&self, terms: &Terms, value: u64) -> Result<Probe, Ended> {
        let key = key(self, terms);
        if let Some(probe) = self.kept.find(key, value) {
            self.known.set(self.known.get() + 1);
            return Ok(probe);
        }
        let conf = terms.conf.as_deref().map(|conf| format!(" under {conf}")).unwrap_or_default();
        self.bar.set_message(format!("{} {value} on {}{conf}", self.options.vary.name, terms.gpu.name));
        let (probe, files) = self.run(terms, value)?;
        self.made.set(self.made.get() + 1);
        self.kept.add(key, &probe, &files).map_err(|error| Ended::Failed(format!("{error:#}")))?;
        Ok(probe)
    }

    fn run(&self, terms: &Terms, value: u64) -> Result<(Probe, Vec<PathBuf>), Ended> {
        if is_interrupted() {
            return Err(Ended::Stopped);
        }
        let failed = |error: anyhow::Error| Ended::Failed(format!("{error:#}"));
        let (snapshot, output) = (self.folder.join("snapshot.pickle"), self.folder.join("output"));
        let _ = std::fs::remove_file(&snapshot);
        let fraction = terms.limit.map(|limit| {
            memory_fraction(limit, terms.gpu.total_memory).with_context(|| {
                format!("{limit} is no part of the {} of {}", terms.gpu.total_memory, terms.gpu.name)
            })
        });
        let program = Program {
            arguments: self.options.vary.arguments(&self.options.arguments, value),
            devices: u32::from(self.options.devices),
            conf: terms.conf.clone(),
            snapshot: Some(snapshot.clone()),
            steps: Some(self.options.steps),
            fraction: fraction.transpose().map_err(failed)?,
            ends_at_oom: true,
            environment: self.options.vary.environment(value),
            output: Some(output.clone()),
            ..Program::new(self.options.file.clone(), self.python.clone(), terms.gpu.clone())
        };
        let report = run_until(&program, &self.torch, &self.prepared, is_interrupted)
            .map_err(|error| Ended::Failed(error.to_string()))?;
        if is_interrupted() {
            return Err(Ended::Stopped);
        }
        let mut probe = probe(&report, value).map_err(|what| {
            let text = std::fs::read_to_string(&output).unwrap_or_default();
            Ended::Failed(what + &last_lines(&text))
        })?;
        if probe.is_fitting {
            match sites::sites(&snapshot) {
                Ok(sites) => probe.sites = sites,
                Err(error) => {
                    probe.remarks.push(format!("the lines that hold memory are not known: {error:#}"));
                }
            }
        }
        Ok((probe, report.files))
    }
}

/// What a report says of a value; the sentence of a program that failed.
fn probe(report: &Report, value: u64) -> Result<Probe, String> {
    let has_run_out = report.failed.is_some() || report.error.as_deref() == Some("OutOfMemoryError");
    if !has_run_out {
        let error = report.error.as_deref().unwrap_or("no exception");
        let at = report.error_at.as_ref().map(|place| format!(" at {}", line(place))).unwrap_or_default();
        if report.status != 0 || report.error.is_some() || report.is_cut {
            return Err(format!("the program ended with status {} ({error}{at})", report.status));
        }
        if report.devices.is_empty() {
            return Err("the program did not use the GPU".to_owned());
        }
    }
    let devices = || report.devices.iter();
    Ok(Probe {
        value,
        is_fitting: !has_run_out,
        peak_allocated: devices().map(|device| device.peak_allocated).max().unwrap_or_default(),
        peak_reserved: devices().map(|device| device.peak_reserved).max().unwrap_or_default(),
        is_exact: report.is_exact(),
        failed: report.failed.as_ref().map(request).or_else(|| {
            has_run_out.then(|| blockyard_fit::FailedRequest {
                at: report.error_at.as_ref().map(line),
                ..Default::default()
            })
        }),
        steps: u32::try_from(report.steps.len()).unwrap_or(u32::MAX),
        is_steady: report.is_steady(),
        holders: report.holders.iter().map(|row| Held { what: row.what.clone(), bytes: row.bytes }).collect(),
        sites: Vec::new(),
        notes: report.sentences(),
        remarks: report.remarks.clone(),
    })
}

fn request(failed: &FailedRequest) -> blockyard_fit::FailedRequest {
    blockyard_fit::FailedRequest {
        bytes: failed.bytes,
        at: failed.at.as_ref().map(line),
        is_below: failed.is_below,
    }
}

/// A line of the program, with the end of its path alone.
fn line(place: &Place) -> String {
    format!("{}:{}", blockyard_record::short_path(&place.file), place.line)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    let last = lines.get(from..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("\n    {}", last.join("\n    ")) }
}
