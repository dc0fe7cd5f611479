//! The page's messages: a [`ProgramJob`] begins a run, and [`ProgramReply`]s are sent back.

use std::collections::BTreeMap;

use blockyard_gpus::GpuProfile;
use blockyard_program::{
    AllocationOrigin, LineMemory, PrintedText, ProgramError, ProgramJob, ProgramReply, ProgramRun, Referrers,
};
use blockyard_python::{DeviceRun, ProcessJob, ProgramOutcome};
use blockyard_record::Bytes;
use blockyard_rules::AllocatorConfig;
use blockyard_torch::memory::{Category, LogEntry, Phase};
use blockyard_torch::session;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{line, run};

/// The most requests of a program: a figure of this many steps still follows the pointer.
const MAX_REQUESTS: u64 = 2_000_000;

fn encode(reply: &ProgramReply) -> PyResult<Vec<u8>> {
    postcard::to_allocvec(reply).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The job of a message of the page.
fn job_of(message: ProgramJob, file: String) -> Result<ProcessJob, ProgramError> {
    let gpu = GpuProfile::from_id(&message.gpu).ok_or(ProgramError::Gpu(message.gpu))?;
    AllocatorConfig::parse(&message.conf, message.release)
        .map_err(|error| ProgramError::Config(error.to_string()))?;
    Ok(ProcessJob {
        file,
        source: message.source,
        arguments: message.arguments,
        folder: None,
        gpu: gpu.id.to_owned(),
        total_memory: message.capacity.unwrap_or(gpu.total_memory),
        devices: 1,
        release: message.release,
        conf: message.conf,
        non_pytorch: if message.counts_non_pytorch {
            blockyard_gpus::context_and_libraries()
        } else {
            Bytes::ZERO
        },
        is_recorded: true,
        readable: None,
        max_operators: 5_000_000,
        max_requests: MAX_REQUESTS,
        time_limit: None,
        host_memory: None,
        referrers_at: message.referrers_at,
    })
}

/// The program's text, its arguments and the step at which the page asks why memory is alive.
type PageJob = (String, Vec<String>, Option<usize>);

/// Begins the run of a message of the page. The reply to send in place of a run if the run cannot begin.
#[pyfunction]
fn page_begin(file: Bound<'_, PyString>, message: &[u8]) -> PyResult<(Option<PageJob>, Vec<u8>)> {
    let message: ProgramJob =
        postcard::from_bytes(message).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let own_lines = message.own_lines;
    match job_of(message, file.to_string()) {
        Ok(job) => {
            run::begin_job(&file, &job)?;
            line::set_own_lines(own_lines);
            Ok((Some((job.source, job.arguments, job.referrers_at)), Vec::new()))
        }
        Err(error) => Ok((None, encode(&ProgramReply::Done(Box::new(Err(error))))?)),
    }
}

/// How many steps the recording of the first GPU has now.
#[pyfunction]
fn page_steps() -> usize {
    session().device(0).map_or(0, |device| device.step_count())
}

/// The reply of pieces of output, each with the steps of the recording when it was printed.
#[pyfunction]
fn page_printed(pieces: Vec<(String, usize)>) -> PyResult<Vec<u8>> {
    let pieces = pieces.into_iter().map(|(text, steps)| PrintedText { text, steps });
    encode(&ProgramReply::Printed(pieces.collect()))
}

/// The reply of why memory is alive: the reasons of each allocation of the first GPU, by its number.
#[pyfunction]
fn page_referrers(python: Python<'_>, step: usize, reasons: BTreeMap<u32, Vec<String>>) -> PyResult<Vec<u8>> {
    let session = session();
    let origins = session.device(0).map(|device| device.origins()).unwrap_or_default();
    let allocation = |number: u32| origins.get(usize::try_from(number).ok()?)?.allocation;
    let reasons = reasons.into_iter().filter_map(|(number, reasons)| Some((allocation(number)?, reasons)));
    let (line, operator) = (line::current(python), session.operator().to_owned());
    encode(&ProgramReply::Referrers(Referrers { step, line, operator, reasons: reasons.collect() }))
}

/// Ends the run; the reply of its outcome.
#[pyfunction]
#[pyo3(signature = (status, traceback, cause, names, keepers))]
fn page_end(
    status: i32,
    traceback: Option<String>,
    cause: Option<(u32, String)>,
    names: BTreeMap<u32, String>,
    keepers: String,
) -> PyResult<Vec<u8>> {
    let non_pytorch = session().non_pytorch();
    let outcome = run::end_run(status, traceback, cause, names, keepers)?;
    encode(&ProgramReply::Done(Box::new(Ok(report(outcome, non_pytorch)))))
}

/// Adds the functions of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(page_begin, module)?)?;
    module.add_function(wrap_pyfunction!(page_steps, module)?)?;
    module.add_function(wrap_pyfunction!(page_printed, module)?)?;
    module.add_function(wrap_pyfunction!(page_referrers, module)?)?;
    module.add_function(wrap_pyfunction!(page_end, module)?)
}

/// `non_pytorch` is the memory that the driver and CUDA's libraries took of the GPU.
fn report(finished: ProgramOutcome, non_pytorch: Bytes) -> ProgramRun {
    // Parts that a training does not have are left out.
    let parts = blockyard_gpus::parts_of_training().map(|(name, bytes)| (name.to_owned(), bytes));
    let non_pytorch_parts = if non_pytorch.is_zero() { Vec::new() } else { parts.to_vec() };
    let mut devices = finished.devices.into_iter();
    let first = devices.next();
    let further_devices = devices.filter(|device| !device.origins.is_empty()).count();
    let lines = first.as_ref().map(line_memory).unwrap_or_default();
    let (recording, step_lines, origins) = first.map_or((None, Vec::new(), Vec::new()), |device| {
        let origins = device.origins.iter().map(|found| origin(&device, found)).collect();
        (device.recording, device.step_lines, origins)
    });
    ProgramRun {
        status: finished.status,
        traceback: finished.traceback,
        cause: finished.cause,
        notes: finished.notes,
        estimates: finished.estimates,
        keepers: finished.keepers,
        recording,
        non_pytorch,
        non_pytorch_parts,
        step_lines,
        origins,
        lines,
        further_devices,
    }
}

fn origin(device: &DeviceRun, origin: &blockyard_python::AllocationOrigin) -> AllocationOrigin {
    let phase = match origin.phase {
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Optimizer => "optimizer",
    };
    let category = match origin.category {
        Category::Temporary => "temporaries",
        Category::Input => "input",
        Category::Parameter => "parameters",
        Category::Gradient => "gradients",
        Category::OptimizerState => "optimizer",
        Category::Activation => "activations",
        Category::Workspace => "workspaces",
    };
    AllocationOrigin {
        allocation: origin.allocation,
        line: origin.line,
        operator: device.operator(origin).to_owned(),
        phase: phase.to_owned(),
        category: category.to_owned(),
    }
}

/// The memory of each line, in the order of lines. Allocations outside of any line are left out.
fn line_memory(device: &DeviceRun) -> Vec<LineMemory> {
    let mut lines: BTreeMap<u32, (LineMemory, Bytes)> = BTreeMap::new();
    let of = |number: u32| device.origins.get(usize::try_from(number).ok()?);
    for request in &device.requests {
        match *request {
            LogEntry::Allocate(number, bytes) => {
                let Some(origin) = of(number).filter(|origin| origin.line > 0) else { continue };
                let (memory, alive) = lines.entry(origin.line).or_default();
                let bytes = Bytes::new(bytes);
                memory.line = origin.line;
                memory.allocations = memory.allocations.saturating_add(1);
                memory.requested = memory.requested.saturating_add(bytes);
                *alive = alive.saturating_add(bytes);
                memory.peak = memory.peak.max(*alive);
            }
            LogEntry::Free(number) => {
                let Some(origin) = of(number) else { continue };
                if let Some((_, alive)) = lines.get_mut(&origin.line) {
                    *alive = alive.saturating_sub(origin.requested);
                }
            }
            // The order of frees changes no sum.
            LogEntry::Unordered(_) => {}
        }
    }
    lines.into_values().map(|(memory, _)| memory).collect()
}
