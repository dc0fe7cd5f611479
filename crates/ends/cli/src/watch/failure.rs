//! The report of a failed request, beside the recording.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use blockyard_lab::Run;
use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_report::{ReportOptions, ReportSource, report_under};

use super::text::Say;
use crate::output;

/// For how long a report is made at most: the command ends after it.
const MAX_TIME: Duration = Duration::from_mins(1);

/// Makes reports, one at a time. A thread makes them, so that the program's events are read meanwhile.
#[derive(Debug, Default)]
pub(super) struct FailureReport {
    path: PathBuf,
    /// Whether the report was written.
    thread: Option<JoinHandle<bool>>,
}

impl FailureReport {
    /// Begins to make the report of a recording, unless another one is being made.
    pub(super) fn begin(&mut self, recording: &Path, file: SnapshotFile, say: &Say) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        // Not over the recording, whatever its name is.
        self.path = recording.with_extension("report.html");
        let name = recording.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (path, say) = (self.path.clone(), say.clone());
        self.thread = Some(std::thread::spawn(move || {
            // The program has the processors first. Where that is not permitted, the report is made all the same.
            let _ = rustix::process::nice(10);
            let written = write(file, &name, &path);
            if let Err(error) = &written {
                say.note(&format!("the report is not written: {error:#}"));
            }
            written.is_ok()
        }));
    }

    /// Waits for the report. Returns its file, if it was written.
    pub(super) fn finish(&mut self) -> Option<&Path> {
        let is_written = self.thread.take()?.join().unwrap_or(false);
        is_written.then_some(&self.path)
    }
}

fn write(file: SnapshotFile, name: &str, path: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let go_on =
        &mut |_| if began.elapsed() > MAX_TIME { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let source = ReportSource::Snapshot(Box::new(file), name);
    let html = report_under(source, &ReportOptions::default(), &Run::conditions, go_on)?;
    output::write_whole(path, html.as_bytes())
}
