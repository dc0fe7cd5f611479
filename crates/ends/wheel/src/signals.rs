//! Ctrl-C and progress during long work without Python's lock.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use blockyard_replay::Progress;
use pyo3::prelude::*;

/// The time between two questions to Python; each question takes Python's lock.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Asks Python from time to time whether a signal handler raised, and reports to `blockyard._progress` how
/// far the work is.
pub(crate) struct Signals {
    asked: Instant,
    report: Option<Py<PyAny>>,
    has_reported: bool,
    error: Option<PyErr>,
}

impl Signals {
    /// Signals of work that begins now; progress is reported where `blockyard._progress` can be imported.
    pub(crate) fn new(py: Python<'_>) -> Self {
        // Without the Python half of the package, nothing receives the progress.
        let report = py.import("blockyard._progress").and_then(|module| module.getattr("report"));
        Self {
            asked: Instant::now(),
            report: report.ok().map(Bound::unbind),
            has_reported: false,
            error: None,
        }
    }

    /// Whether the work is to continue. The caller does not hold Python's lock.
    pub(crate) fn check(&mut self, progress: &Progress) -> ControlFlow<()> {
        if self.error.is_some() {
            return ControlFlow::Break(());
        }
        if self.asked.elapsed() < CHECK_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.asked = Instant::now();
        let checked = Python::attach(|py| {
            py.check_signals()?;
            if let Some(report) = &self.report {
                self.has_reported = true;
                report.call1(py, (progress.phase.as_str(), progress.done, progress.total))?;
            }
            Ok(())
        });
        self.error = checked.err();
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the exception that a signal handler raised, if any, after the work has ended. The caller holds
    /// Python's lock.
    pub(crate) fn into_result(self) -> PyResult<()> {
        if let (true, Some(report)) = (self.has_reported, &self.report) {
            let closed = Python::attach(|py| report.call1(py, (py.None(), 0, 0)).map(drop));
            closed?;
        }
        self.error.map_or(Ok(()), Err)
    }
}
