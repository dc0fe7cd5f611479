//! Dry runs of the programs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use blockyard_dry_run::{LibraryFolder, Program, Report, Torch, run_until};
use blockyard_guard::{MeasuredRun, ProgramEntry, RunFailure};
use blockyard_record::shortened_path;

use super::lines::holders;
use crate::dry_run::{gpu_of, is_interrupted};

/// At most this many lines of a failed program are shown.
const MAX_LINES: usize = 20;

pub(super) struct Runs<'a> {
    /// The folder in which the programs start.
    pub(super) folder: &'a Path,
    pub(super) python: String,
    pub(super) torch: Torch,
    pub(super) prepared: LibraryFolder,
}

impl Runs<'_> {
    /// Runs a program and returns the memory that it takes, with the report; `None` after Ctrl-C.
    pub(super) fn run(&self, entry: &ProgramEntry) -> anyhow::Result<Option<(MeasuredRun, Report)>> {
        let scratch = tempfile::tempdir().context("cannot make a folder for the files of a run")?;
        let (snapshot, output) = (scratch.path().join("snapshot.pickle"), scratch.path().join("output"));
        let file = PathBuf::from(&entry.program);
        if !self.folder.join(&file).is_file() {
            anyhow::bail!("{}: no such file", entry.program);
        }
        let program = Program {
            arguments: entry.arguments.clone(),
            folder: Some(self.folder.to_owned()),
            conf: entry.conf.clone(),
            snapshot: Some(snapshot.clone()),
            iterations: entry.iterations,
            lists_lines: true,
            output: Some(output.clone()),
            ..Program::new(file, self.python.clone(), gpu_of(&entry.gpu)?)
        };
        let report = run_until(&program, &self.torch, &self.prepared, is_interrupted)?;
        if is_interrupted() {
            return Ok(None);
        }
        let mut run = measured(&report, &self.torch);
        if let Some(RunFailure::Failed(why)) = &mut run.failure {
            why.push_str(&last_lines(&std::fs::read_to_string(&output).unwrap_or_default()));
        }
        if !report.devices.is_empty() {
            match holders(&snapshot, self.folder) {
                Ok(holders) => run.holders = holders,
                Err(error) => {
                    run.remarks.push(format!("the lines that hold memory are not known: {error:#}"));
                }
            }
        }
        Ok(Some((run, report)))
    }
}

fn measured(report: &Report, torch: &Torch) -> MeasuredRun {
    let devices = || report.devices.iter();
    let steps = report.iterations.iter().map(|step| step.devices.iter().map(|device| device.peak_allocated));
    let children = report.children.iter().filter(|_| !report.is_of_children).map(|child| {
        format!(
            "the program started process {}, which takes {}; no number here counts these bytes",
            child.process, child.bytes
        )
    });
    MeasuredRun {
        torch: torch.version.clone(),
        is_exact: report.is_exact(),
        notes: report.sentences(),
        remarks: report.remarks.iter().cloned().chain(children).collect(),
        peak_allocated: devices().map(|device| device.peak_allocated).max().unwrap_or_default(),
        peak_reserved: devices().map(|device| device.peak_reserved).max().unwrap_or_default(),
        iteration_peaks: steps.map(|peaks| peaks.max().unwrap_or_default()).collect(),
        holders: Vec::new(),
        failure: run_failure(report),
    }
}

/// Why the run is not one of the whole program; `None` if it is.
fn run_failure(report: &Report) -> Option<RunFailure> {
    let at = report.error_at.as_ref().map(|place| format!("{}:{}", shortened_path(&place.file), place.line));
    if report.error.as_deref() == Some("OutOfMemoryError") {
        return Some(RunFailure::OutOfMemory(at));
    }
    if report.status != 0 || report.error.is_some() || report.is_cut {
        let error = report.error.as_deref().unwrap_or("no exception");
        let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
        return Some(RunFailure::Failed(format!(
            "the program ended with status {} ({error}{at})",
            report.status
        )));
    }
    report.devices.is_empty().then(|| {
        RunFailure::Failed(
            "the program did not use the GPU: move its model and its data to `cuda`".to_owned(),
        )
    })
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(MAX_LINES);
    let last = lines.get(from..).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("\n    {}", last.join("\n    ")) }
}
