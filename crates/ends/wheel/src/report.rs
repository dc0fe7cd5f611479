//! Reports: a run as one HTML page.

use blockyard_lab::{Conditions, Run, RunSource};
use blockyard_pytorch::snapshot::MemoryName;
use blockyard_record::{Bytes, with_causes};
use blockyard_report::{ReportOptions, ReportSource, report_under};
use pyo3::prelude::*;

use crate::error::BlockyardError;
use crate::signals::Signals;

/// The parts of a report, and the terms of its replays.
#[pyclass(module = "blockyard", frozen)]
pub(crate) struct ReportArguments {
    redact: bool,
    notes: Vec<String>,
    conf: Option<String>,
    limit: Option<Bytes>,
    capacity: Option<Bytes>,
}

#[pymethods]
impl ReportArguments {
    #[new]
    #[pyo3(signature = (redact, notes, conf, limit, capacity))]
    fn new(
        redact: bool,
        notes: Vec<String>,
        conf: Option<String>,
        limit: Option<u64>,
        capacity: Option<u64>,
    ) -> Self {
        Self { redact, notes, conf, limit: limit.map(Bytes::new), capacity: capacity.map(Bytes::new) }
    }
}

/// The report about the file of a run or of a `fit`, as HTML; `name` is the file's name in the report.
#[pyfunction]
pub(crate) fn report(
    py: Python<'_>,
    name: &str,
    content: Vec<u8>,
    arguments: &ReportArguments,
) -> PyResult<String> {
    let source = RunSource::File { name: name.to_owned(), bytes: content };
    arguments.write(py, ReportSource::Asked(source), None)
}

impl ReportArguments {
    /// Writes the page; other threads of Python run during the work.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        source: ReportSource<'_>,
        device: Option<MemoryName>,
    ) -> PyResult<String> {
        let options = ReportOptions {
            is_redacted: self.redact,
            notes: self.notes.clone(),
            device,
            ..ReportOptions::default()
        };
        let conditions = |run: &Run| {
            let conf = self.conf.clone().unwrap_or_else(|| run.conditions().conf);
            Conditions { conf, limit: self.limit, capacity: self.capacity, release: None }
        };
        let mut signals = Signals::new(py);
        let found = py.detach(|| {
            report_under(source, &options, &conditions, &mut |progress| signals.check(&progress))
                .map_err(|error| with_causes(&error))
        });
        signals.into_result()?;
        found.map_err(BlockyardError::new_err)
    }
}
