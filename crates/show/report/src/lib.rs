//! A run as one HTML page to read, to send and to print. The page has no script and needs no network.
//!
//! [`report`] takes a file (a snapshot of PyTorch, a recording, the text of a workload) and makes the page: a
//! verdict, the figures, the holders of the memory, the effect of other settings, the certificate, notes, and
//! the sources of the numbers. A snapshot of several devices has a part for each.
//!
//! With [`ReportOptions::is_redacted`] the page has no stacks, and no names of functions, files or tensors.
//! They are taken out of the data before anything is computed, so that no later sentence can contain one.
//!
//! [`fit_report`] makes the page of another answer: which value of a program's option fits a GPU, as a curve.
//!
//! This crate knows no file, no screen and no clock: the same input gives the same page.
//!
//! # Example
//!
//! ```
//! use blockyard_lab::RunSource;
//! use blockyard_report::{ReportOptions, report};
//! use std::ops::ControlFlow;
//!
//! let bytes = b"a = alloc 3 MiB; b = alloc 30 MiB; free a, b".to_vec();
//! let source = RunSource::File { name: "example.workload".to_owned(), bytes };
//! let html = report(source, &ReportOptions::default(), &mut |_| ControlFlow::Continue(()))?;
//! assert!(html.starts_with("<!doctype html>") && html.contains("example.workload"));
//! # Ok::<(), blockyard_report::ReportError>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod document;
mod figures;
mod fit;
mod holding_lines;
mod html;
mod moment;
mod redact;
mod settings;
mod source;
mod verdict;

pub use self::fit::{FitCurve, FitOutcome, FitPoint, FitReport, fit_page, fit_report};
use blockyard_lab::{Conditions, LabError, Run, RunSource};
use blockyard_pytorch::snapshot::{MemoryName, SnapshotFile};
use blockyard_record::RecordingError;
use blockyard_replay::OnProgress;
use serde::{Deserialize, Serialize};

/// The options of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportOptions {
    /// Whether stacks and names are left out: of functions, files and tensors, and the file's own.
    pub is_redacted: bool,
    /// The remarks of the person who made the report, a paragraph each.
    pub notes: Vec<String>,
    /// The conditions that the person tried, a row each beside the settings that every report tries:
    /// settings, devices, limits and releases in place of the run's own.
    pub tried: Vec<Conditions>,
    /// The device of a snapshot, or its host memory; `None` for all. Options in JSON, which a worker of the
    /// page gets, have no such field.
    #[serde(skip)]
    pub device: Option<MemoryName>,
}

/// The subject of a report.
#[derive(Clone, Debug)]
pub enum ReportSource<'a> {
    /// A file's bytes, or a workload.
    Asked(RunSource),
    /// A snapshot that was read, and the name of its file.
    Snapshot(Box<SnapshotFile>, &'a str),
}

impl From<RunSource> for ReportSource<'_> {
    fn from(source: RunSource) -> Self {
        Self::Asked(source)
    }
}

/// Why a report was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The file cannot be read, or the work was cancelled.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The recording is damaged.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The file has neither segments nor events of the device.
    #[error("the file has nothing about {wanted}; it has {known}")]
    NoDevice {
        /// The memory that was asked for.
        wanted: MemoryName,
        /// The names of the devices that the file has, as a list in words.
        known: String,
    },
    /// The snapshot is empty.
    #[error(
        "the snapshot has neither segments nor traces: memory history was not recorded, or was recorded on another device"
    )]
    Empty,
}

/// The report about a run, or about the JSON of `blockyard fit`, under its own settings and the limit that
/// its file implies.
///
/// # Errors
///
/// [`ReportError`] says why the report was not made.
pub fn report(
    source: RunSource,
    options: &ReportOptions,
    on_progress: OnProgress,
) -> Result<String, ReportError> {
    report_under(source.into(), options, &Run::conditions, on_progress)
}

/// The report that [`report`] makes, under the conditions that `conditions_of` gives for each run: other
/// settings, a limit, a capacity.
///
/// The figures of a snapshot or a recording show what happened; the verdict and the table of settings are
/// replays under these conditions. The figures of a workload follow its settings and capacity.
///
/// # Errors
///
/// The errors of [`report`].
pub fn report_under(
    source: ReportSource<'_>,
    options: &ReportOptions,
    conditions_of: &dyn Fn(&Run) -> Conditions,
    on_progress: OnProgress,
) -> Result<String, ReportError> {
    if let ReportSource::Asked(RunSource::File { bytes, .. }) = &source
        && let Some(page) = fit::page_of_answer(bytes)
    {
        return Ok(page);
    }
    let opened = match source {
        ReportSource::Asked(source) => source::open(source, options, conditions_of, on_progress)?,
        ReportSource::Snapshot(file, name) => source::open_snapshot(name, *file, options, on_progress)?,
    };
    document::write(&opened, options, conditions_of, on_progress)
}
