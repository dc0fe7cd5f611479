//! The requests of a run, and questions about them.

use blockyard_lab::{Run, RunSource};
use blockyard_pytorch::RecordedRun;
use blockyard_record::Bytes;
use blockyard_report::ReportSource;
use blockyard_workload::Workload;
use blockyard_workload::edit::with_header;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::BlockyardError;
use crate::file::text_of;
use crate::report::AskedReport;
use crate::signals::Signals;

/// The requests of one run of one device.
#[pyclass(module = "blockyard", frozen)]
pub(crate) struct RunData {
    run: Run,
    /// The file or text that the run was made of; none for a device of a snapshot.
    content: Option<Vec<u8>>,
}

impl From<Run> for RunData {
    fn from(run: Run) -> Self {
        Self { run, content: None }
    }
}

/// The run that a recording holds; the bytes are those of the file.
#[pyfunction]
pub(crate) fn run_of_recording(py: Python<'_>, bytes: &[u8]) -> PyResult<RunData> {
    let mut signals = Signals::new(py);
    let found = py.detach(|| {
        let recorded = RecordedRun::read(bytes).map_err(|error| text_of(&error))?;
        Run::from_recorded(&recorded, &mut |progress| signals.check(&progress))
            .map_err(|error| text_of(&error))
    });
    signals.raised()?;
    Ok(RunData { run: found.map_err(BlockyardError::new_err)?, content: Some(bytes.to_vec()) })
}

/// The run of a workload's text on a device of `capacity` bytes.
#[pyfunction]
pub(crate) fn run_of_workload(text: &str, name: &str, conf: &str, capacity: u64) -> PyResult<RunData> {
    let workload = Workload::parse(text).map_err(|error| BlockyardError::new_err(error.to_string()))?;
    let content = with_header(text, &capacity.to_string(), conf).into_bytes();
    Ok(RunData {
        run: Run::from_workload(name, workload, conf, Bytes::new(capacity)),
        content: Some(content),
    })
}

#[pymethods]
impl RunData {
    /// What to call the run.
    #[getter]
    fn name(&self) -> &str {
        &self.run.name
    }

    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    #[getter]
    fn conf(&self) -> &str {
        &self.run.config
    }

    /// The file or text that the run was made of; none for a device of a snapshot.
    fn content<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.content.as_deref().map(|content| PyBytes::new(py, content))
    }

    /// The report about the run, as HTML; `name` is what to call it.
    fn report(&self, py: Python<'_>, name: &str, asked: &AskedReport) -> PyResult<String> {
        let bytes = self.content.clone().unwrap_or_default();
        asked.write(py, ReportSource::Asked(RunSource::File { name: name.to_owned(), bytes }), None)
    }

    /// All bytes of the device.
    #[getter]
    fn capacity(&self) -> u64 {
        self.run.capacity.get()
    }

    /// How many requests the run has.
    #[getter]
    fn requests(&self) -> usize {
        self.run.requests().len()
    }

    /// What is not known about the run, in sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.run.notes().to_vec()
    }

    /// Answers a question of the command, with its options, as the JSON that the command prints.
    #[expect(clippy::needless_pass_by_value, reason = "Python gives lists as vectors")]
    fn ask(&self, py: Python<'_>, question: &str, arguments: Vec<String>) -> PyResult<String> {
        let mut signals = Signals::new(py);
        let found = py.detach(|| {
            blockyard_cli::ask(&self.run, question, &arguments, &mut |progress| signals.check(&progress))
                .map(|answer| answer.to_string())
                .map_err(|error| format!("{error:#}"))
        });
        signals.raised()?;
        found.map_err(BlockyardError::new_err)
    }

    /// What changed from this run to another, as the JSON that the command prints.
    fn diff(&self, py: Python<'_>, after: &Self) -> PyResult<String> {
        let mut signals = Signals::new(py);
        let found = py.detach(|| {
            blockyard_cli::ask_diff(&self.run, &after.run, &mut |progress| signals.check(&progress))
                .map(|answer| answer.to_string())
                .map_err(|error| format!("{error:#}"))
        });
        signals.raised()?;
        found.map_err(BlockyardError::new_err)
    }

    /// What changed from one step of this run to another, as the JSON that the command prints.
    fn diff_steps(&self, py: Python<'_>, first: usize, second: usize) -> PyResult<String> {
        let mut signals = Signals::new(py);
        let found = py.detach(|| {
            let on_progress = &mut |progress| signals.check(&progress);
            blockyard_cli::ask_diff_steps(&self.run, first, second, on_progress)
                .map(|answer| answer.to_string())
                .map_err(|error| format!("{error:#}"))
        });
        signals.raised()?;
        found.map_err(BlockyardError::new_err)
    }
}
