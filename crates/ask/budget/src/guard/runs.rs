//! Dry runs of the programs.

use std::path::{Path, PathBuf};

use blockyard_answers::{GuardFailure, GuardHolder};
use blockyard_dry_run::{DryRunError, LibraryFolder, Program, Report, Torch, run_until};
use blockyard_gpus::GpuProfile;

use super::{GuardedRun, MeasuredRun, ProgramEntry, compare};
use crate::program_end::{failure, line};

/// How the programs of a file run.
#[derive(Debug)]
pub struct GuardRuns<'a> {
    /// The folder in which the programs start.
    pub folder: &'a Path,
    /// The Python that runs the programs.
    pub python: String,
    /// The installed PyTorch.
    pub torch: Torch,
    /// The libraries over which PyTorch runs.
    pub prepared: LibraryFolder,
    /// Whether the non-PyTorch memory is left out of the GPU's memory.
    pub counts_non_pytorch: bool,
}

impl GuardRuns<'_> {
    /// Runs a program and compares the memory that it takes with its entry; `None` once `is_stopped` is true.
    /// The files of the run are in the folder `scratch`. `lines_at_peak` reads the lines that hold the peak
    /// allocated from a snapshot.
    ///
    /// # Errors
    ///
    /// A Python that does not start, and files that cannot be written.
    pub fn run(
        &self,
        entry: ProgramEntry,
        gpu: &GpuProfile,
        scratch: &Path,
        is_stopped: impl Fn() -> bool,
        lines_at_peak: impl Fn(&Path) -> Result<Vec<GuardHolder>, String>,
    ) -> Result<Option<GuardedRun>, DryRunError> {
        let (snapshot, output) = (scratch.join("snapshot.pickle"), scratch.join("output"));
        let program = Program {
            arguments: entry.arguments.clone(),
            folder: Some(self.folder.to_owned()),
            conf: entry.conf.clone(),
            snapshot: Some(snapshot.clone()),
            iterations: entry.iterations,
            lists_lines: true,
            counts_non_pytorch: self.counts_non_pytorch,
            output: Some(output.clone()),
            ..Program::new(PathBuf::from(&entry.program), self.python.clone(), gpu.clone())
        };
        let report = run_until(&program, &self.torch, &self.prepared, &is_stopped)?;
        if is_stopped() {
            return Ok(None);
        }
        let mut run = measured(&report, &self.torch, &output);
        if !report.devices.is_empty() {
            match lines_at_peak(&snapshot) {
                Ok(holders) => run.holders = holders,
                Err(error) => {
                    run.remarks.push(format!("the lines that hold memory are not known: {error}"));
                }
            }
        }
        let found = compare(&entry, &run);
        Ok(Some(GuardedRun { entry, run, report: report.to_answer(std::slice::from_ref(gpu)), found }))
    }
}

fn measured(report: &Report, torch: &Torch, output: &Path) -> MeasuredRun {
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
        failure: if report.has_oom_error() {
            Some(GuardFailure::OutOfMemory { at: report.error_at.as_ref().map(line) })
        } else {
            failure(report, output).map(|why| GuardFailure::Error { why })
        },
    }
}
