//! The requests of a run, and questions about them.

use blockyard_lab::Run;
use blockyard_pytorch::RecordedRun;
use blockyard_record::{Bytes, OomLimit, with_causes};
use blockyard_replay::OnProgress;
use blockyard_workload::Workload;
use blockyard_workload::edit::with_header;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::error::BlockyardError;
use crate::signals::Signals;

/// The requests of one run of one device.
#[pyclass(module = "blockyard", frozen)]
pub(crate) struct RunData {
    run: Run,
    /// The file or text from which the run was made; `None` for a device of a snapshot.
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
        let recorded = RecordedRun::read(bytes).map_err(|error| with_causes(&error))?;
        Run::from_recorded(&recorded, &mut |progress| signals.check(&progress))
            .map_err(|error| with_causes(&error))
    });
    signals.into_result()?;
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
    /// The name of the run.
    #[getter]
    fn name(&self) -> &str {
        &self.run.name
    }

    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    #[getter]
    fn conf(&self) -> &str {
        &self.run.conf
    }

    /// The file or text from which the run was made; `None` for a device of a snapshot.
    fn content<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.content.as_deref().map(|content| PyBytes::new(py, content))
    }

    /// All bytes of the device.
    #[getter]
    fn capacity(&self) -> u64 {
        self.run.capacity.get()
    }

    /// How many requests the run has.
    #[getter]
    fn requests(&self) -> u64 {
        self.run.request_count()
    }

    /// What is not known about the run, in sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.run.notes()
    }

    /// Answers a question of the command, with its options, as the JSON that the command prints.
    #[expect(clippy::needless_pass_by_value, reason = "Python gives lists as vectors")]
    fn ask(&self, py: Python<'_>, question: &str, options: Vec<String>) -> PyResult<String> {
        answer_json(py, |on_progress| blockyard_cli::ask(&self.run, question, &options, on_progress))
    }

    /// What changed from this run to another, as the JSON that the command prints.
    fn diff(&self, py: Python<'_>, after: &Self) -> PyResult<String> {
        answer_json(py, |on_progress| blockyard_cli::ask_diff(&self.run, &after.run, on_progress))
    }

    /// What changed from one step of this run to another, as the JSON that the command prints.
    fn diff_steps(&self, py: Python<'_>, first: usize, second: usize) -> PyResult<String> {
        answer_json(py, |on_progress| {
            blockyard_cli::ask_diff_iterations(&self.run, first, second, on_progress)
        })
    }
}

/// The JSON of an answer, which is computed without Python's lock.
pub(crate) fn answer_json<A: Serialize>(
    py: Python<'_>,
    ask: impl FnOnce(OnProgress) -> anyhow::Result<A> + Send,
) -> PyResult<String> {
    let mut signals = Signals::new(py);
    let found = py.detach(|| {
        ask(&mut |progress| signals.check(&progress))
            .and_then(|answer| blockyard_cli::json_line(&answer))
            .map_err(|error| format!("{error:#}"))
    });
    signals.into_result()?;
    found.map_err(BlockyardError::new_err)
}

/// A size for people, as the command writes it.
#[pyfunction]
pub(crate) fn size_text(count: u64) -> String {
    Bytes::new(count).to_string()
}

/// How many of something, for people, as the command writes it: `1 block`, `2,000 blocks`.
#[pyfunction]
pub(crate) fn counted(count: u64, noun: &str) -> String {
    blockyard_record::counted(count, noun)
}

/// A limit for people, as the command writes it: one size, or `between 594 MiB and 614 MiB`.
#[pyfunction]
pub(crate) fn limit_text(low: u64, high: u64) -> String {
    OomLimit { lowest: Bytes::new(low), highest: Bytes::new(high), used_by_others: Bytes::ZERO }.range_text()
}
