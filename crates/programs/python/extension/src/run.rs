//! `_host`: a run from its job to its outcome, with its clock, its limits and its remarks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use blockyard_answers::ProgramNote;
use blockyard_gpus::GpuProfile;
use blockyard_python::{AllocationOrigin, DeviceRun, PrintedMark, ProcessJob, ProgramOutcome, Referrers};
use blockyard_record::grouped;
use blockyard_rules::{AllocatorConfig, BlasVariables};
use blockyard_torch::memory::{Origin, SimulatedGpu};
use blockyard_torch::{Session, SessionSettings, session};
use pyo3::exceptions::{PyRuntimeError, PySystemExit, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::{growth, line};

/// The clock of a program begins with the year 2026. Only the program moves the clock, so that every run is
/// the same.
const EPOCH: f64 = 1_767_225_600.0;
/// Seconds that each look at the clock takes, so that no duration is zero.
const TICK: f64 = 1e-4;
/// Seconds that an operator takes.
const OPERATOR_TIME: f64 = 1e-5;

/// What is counted of the run on this thread.
struct RunState {
    file: String,
    notes: Vec<ProgramNote>,
    /// The lines with a branch that is assumed, in the order of their notes.
    assumed_lines: Vec<u32>,
    printed: Vec<PrintedMark>,
    /// Seconds since [`EPOCH`].
    clock: f64,
    operators: u64,
    max_operators: u64,
    max_requests: u64,
    referrers_at: Option<usize>,
    referrers: Option<Referrers>,
}

thread_local! {
    static RUN: RefCell<Option<RunState>> = const { RefCell::new(None) };
}

fn with<R>(action: impl FnOnce(&mut RunState) -> R) -> Option<R> {
    RUN.with(|run| run.try_borrow_mut().ok()?.as_mut().map(action))
}

/// Begins the run of a job, whose text is `file`: makes its devices. `file` is the object that code objects
/// name as their file.
pub(crate) fn begin_job(file: &Bound<'_, PyString>, job: &ProcessJob) -> PyResult<()> {
    let Some(mut profile) = GpuProfile::from_id(&job.gpu) else {
        return Err(PyValueError::new_err(format!("there is no GPU {:?} here", job.gpu)));
    };
    profile.total_memory = job.total_memory;
    let config = AllocatorConfig::parse(&job.conf, job.release)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let session = Rc::new(Session::new(SessionSettings {
        profile,
        devices: job.devices,
        config,
        non_pytorch: job.non_pytorch,
        is_recorded: job.is_recorded,
    }));
    drop(blockyard_torch::install(Rc::clone(&session)));
    for device in devices(&session) {
        device.start_log();
    }
    line::set_file(Some(file.clone().unbind()));
    RUN.replace(Some(RunState {
        file: job.file.clone(),
        notes: Vec::new(),
        assumed_lines: Vec::new(),
        printed: Vec::new(),
        clock: 0.0,
        operators: 0,
        max_operators: job.max_operators,
        max_requests: job.max_requests,
        referrers_at: job.referrers_at,
        referrers: None,
    }));
    session.set_line_source(Some(Rc::new(|| Python::attach(line::current))));
    Ok(())
}

fn devices(session: &Session) -> impl Iterator<Item = &Rc<SimulatedGpu>> {
    (0..session.device_count()).filter_map(|index| session.device(index).ok())
}

/// The outcome of the run that ends now. `names` are the names of the first device's allocations that the
/// program still holds, by the allocation's number; `keepers` is the text of `lib/_growth.py`. An error where no run
/// has begun.
pub(crate) fn end_run(
    status: i32,
    traceback: Option<String>,
    cause: Option<(u32, String)>,
    names: BTreeMap<u32, String>,
    keepers: String,
) -> PyResult<ProgramOutcome> {
    let run = RUN.take().ok_or_else(|| PyRuntimeError::new_err("no run has begun"))?;
    let session = session();
    if let Some(first) = session.device(0).ok().filter(|device| device.is_recorded()) {
        first.name_allocations(names);
    }
    session.set_line_source(None);
    line::set_file(None);
    Ok(ProgramOutcome {
        status,
        traceback,
        cause: cause.map(|(line, text)| ProgramNote { line, text }),
        notes: run.notes,
        estimates: session.estimates(),
        second_derivatives: blockyard_torch::autograd::second_derivatives(),
        devices: devices(&session).map(|device| device_run(device, &run.file)).collect(),
        printed: run.printed,
        keepers,
        referrers: run.referrers,
    })
}

fn device_run(device: &SimulatedGpu, file: &str) -> DeviceRun {
    let mut operators = Vec::new();
    let mut numbers = HashMap::new();
    let origins = device.origins().into_iter().map(|origin| {
        let operator = *numbers.entry(origin.operator).or_insert_with(|| {
            operators.push(origin.operator.to_owned());
            u32::try_from(operators.len() - 1).unwrap_or(u32::MAX)
        });
        let Origin { allocation, requested, line, operator: _, phase, category } = origin;
        AllocationOrigin { allocation, requested, line, operator, phase, category }
    });
    DeviceRun {
        conf: device.config().map(|config| config.text().to_owned()).unwrap_or_default(),
        stats: device.stats(),
        snapshot: device.snapshot(),
        origins: origins.collect(),
        operators,
        requests: device.take_log(),
        step_lines: device.step_lines(),
        // A recorder that was never asked for gives none; one that fails has nothing to give.
        recording: device.finish(file).ok().flatten(),
    }
}

/// The file of the program that runs, as tracebacks name it.
pub(crate) fn file() -> String {
    with(|run| run.file.clone()).unwrap_or_default()
}

/// Counts a call of an operator. An error, which ends the program, after the most operators, or after the
/// most allocations and frees.
pub(crate) fn count_operator(python: Python<'_>) -> PyResult<()> {
    let requests = session().request_count();
    growth::look(python, requests);
    let over = with(|run| {
        run.operators += 1;
        run.clock += OPERATOR_TIME;
        if run.operators > run.max_operators {
            Some(format!("called {} operators", grouped(run.max_operators)))
        } else if requests >= run.max_requests {
            Some(format!("asked for {} allocations and frees of GPU memory", grouped(run.max_requests)))
        } else {
            None
        }
    });
    let Some(over) = over else {
        return Err(PyRuntimeError::new_err(
            "torch runs on the thread of the program alone here: call it there, or run the program with `blockyard dry-run`",
        ));
    };
    let Some(what) = over else { return Ok(()) };
    let line = line::current(python);
    Err(PySystemExit::new_err(stop_text(&format!("at line {line}: it {what}, as many as one run may"))))
}

/// The text that a program is stopped with.
#[pyfunction]
fn stop_text(reason: &str) -> String {
    /// Where the limit can be raised.
    const HINT: &str =
        if cfg!(target_os = "emscripten") { "" } else { " (other limits: blockyard python --help)" };
    format!("blockyard: the program was stopped {reason}{HINT}")
}

/// Notes a remark once for each line.
pub(crate) fn add_note(line: u32, text: impl Into<String>) {
    let note = ProgramNote { line, text: text.into() };
    with(|run| {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    });
}

/// Notes a remark about the line that runs.
#[pyfunction]
fn note(python: Python<'_>, text: String) {
    add_note(line::current(python), text);
}

/// Notes a remark about a branch of the line that runs, which is assumed.
#[pyfunction]
fn note_branch(python: Python<'_>, text: String) {
    let line = line::current(python);
    add_note(line, text);
    with(|run| {
        if !run.assumed_lines.contains(&line) {
            run.assumed_lines.push(line);
        }
    });
}

/// The lines with a branch that is assumed.
#[pyfunction]
fn assumed_lines() -> Vec<u32> {
    with(|run| run.assumed_lines.clone()).unwrap_or_default()
}

/// Notes a remark about a line.
#[pyfunction]
fn note_at(line: u32, text: String) {
    add_note(line, text);
}

thread_local! {
    /// Whether the program asked for the collection that runs.
    static IS_ASKED: Cell<bool> = const { Cell::new(false) };
    /// How many allocations and frees of GPU memory came before the collection that runs.
    static REQUESTS_BEFORE: Cell<u64> = const { Cell::new(0) };
}

/// Python's own `gc.collect`.
static COLLECT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// `gc.collect`, which a program calls itself.
#[pyfunction]
#[pyo3(signature = (generation = 2))]
fn collect(python: Python<'_>, generation: i32) -> PyResult<Bound<'_, PyAny>> {
    let collect = COLLECT.get(python).ok_or_else(|| PyRuntimeError::new_err("no run has begun"))?;
    let before = IS_ASKED.replace(true);
    let found = collect.bind(python).call1((generation,));
    IS_ASKED.set(before);
    found
}

/// One of `gc.callbacks`: a collection that Python began by itself, and that freed memory of a GPU, is noted,
/// and the lines after it are marked.
#[pyfunction]
fn note_collection(python: Python<'_>, phase: &str, _info: Bound<'_, PyAny>) {
    const TEXT: &str = "Python's garbage collector ran here and freed GPU tensors that only a cycle of references held; in a \
                        real run the moment differs, since it depends on every object of every package";
    let session = session();
    if phase == "start" {
        REQUESTS_BEFORE.set(session.request_count());
    } else if !IS_ASKED.get() && session.request_count() > REQUESTS_BEFORE.get() {
        session.count_estimate();
        add_note(line::current(python), TEXT);
    }
}

/// Watches the collections of the program that begins, until [`leave_collections`]: `gc.collect` is
/// [`collect`] from now on.
#[pyfunction]
fn watch_collections(host: Bound<'_, PyAny>) -> PyResult<()> {
    IS_ASKED.set(false);
    let python = host.py();
    let module = python.import("gc")?;
    if COLLECT.set(python, module.getattr("collect")?.unbind()).is_err() {
        // An earlier run of this process did it.
        return Ok(());
    }
    module.setattr("collect", host.getattr("collect")?)?;
    module.getattr("callbacks")?.call_method1("append", (host.getattr("note_collection")?,))?;
    Ok(())
}

/// Collections are no longer the program's.
#[pyfunction]
fn leave_collections() {
    IS_ASKED.set(true);
}

/// Notes that a piece of standard output ends, this many bytes after the output's beginning.
#[pyfunction]
fn note_printed(bytes: usize) {
    let session = session();
    let mark = PrintedMark { bytes, requests: session.request_count(), estimates: session.estimate_count() };
    with(|run| run.printed.push(mark));
}

/// The seconds since 1970 by the program's clock.
#[pyfunction]
fn time() -> f64 {
    EPOCH + clock()
}

/// The seconds since the program's start by the program's clock.
#[pyfunction]
fn clock() -> f64 {
    with(|run| {
        run.clock += TICK;
        run.clock
    })
    .unwrap_or_default()
}

/// Moves the program's clock.
#[pyfunction]
fn sleep(seconds: f64) {
    with(|run| run.clock += seconds);
}

/// Notes a change of the environment that the allocator's settings or workspaces may read.
#[pyfunction]
fn environment_changed(python: Python<'_>, key: &str, value: &str) -> PyResult<()> {
    let line = line::current(python);
    if BlasVariables::NAMES.contains(&key) {
        let session = session();
        let mut variables = session.blas_variables();
        if !variables.set(key, value) {
            add_note(line, format!("{key} is not understood, as in PyTorch: it changes nothing"));
        } else if !session.set_blas_variables(variables) {
            add_note(
                line,
                format!(
                    "{key} is read at the first product of matrices, which was before this line: it changes nothing"
                ),
            );
        }
        return Ok(());
    }
    if !matches!(key, "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF") {
        return Ok(());
    }
    let session = session();
    let config = AllocatorConfig::parse(value, session.release())
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    for warning in config.warnings().iter().map(String::as_str).chain(config.warning_about_pair()) {
        add_note(line, warning.to_owned());
    }
    if !session.configure(&config) {
        add_note(
            line,
            format!(
                "{key} is read at the first allocation on a GPU, which was before this line: it changes nothing"
            ),
        );
    }
    Ok(())
}

/// A job's text, its arguments, its folder, the folders that it may read if it is confined, its seconds, and
/// its bytes of the host's memory.
type JobParts = (String, Vec<String>, Option<String>, Option<Vec<String>>, Option<f64>, Option<u64>);

fn read_job(bytes: &[u8]) -> PyResult<ProcessJob> {
    postcard::from_bytes(bytes).map_err(|error| PyValueError::new_err(format!("the job: {error}")))
}

/// The file's name of a job, as tracebacks show it.
#[pyfunction]
fn file_of(job: &[u8]) -> PyResult<String> {
    Ok(read_job(job)?.file)
}

/// Begins the run of a job. `file` is the object that code objects name as their file.
#[pyfunction]
fn begin(file: Bound<'_, PyString>, job: &[u8]) -> PyResult<JobParts> {
    let job = read_job(job)?;
    begin_job(&file, &job)?;
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let readable = job.readable.map(|folders| folders.into_iter().map(text).collect());
    let folder = job.folder.map(text);
    let memory = job.host_memory.map(blockyard_record::Bytes::get);
    let seconds = job.time_limit.map(|limit| limit.as_secs_f64());
    Ok((job.source, job.arguments, folder, readable, seconds, memory))
}

/// Ends the run; returns its outcome as bytes.
#[pyfunction]
#[pyo3(signature = (status, traceback, cause, names, keepers))]
fn end(
    status: i32,
    traceback: Option<String>,
    cause: Option<(u32, String)>,
    names: BTreeMap<u32, String>,
    keepers: String,
) -> PyResult<Vec<u8>> {
    let outcome = end_run(status, traceback, cause, names, keepers)?;
    postcard::to_allocvec(&outcome).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The step at which somebody asks why memory is alive.
#[pyfunction]
fn referrers_at() -> Option<usize> {
    with(|run| run.referrers_at).flatten()
}

/// Keeps why memory is alive for the outcome.
pub(crate) fn set_referrers(referrers: Referrers) {
    with(|run| run.referrers = Some(referrers));
}

/// Adds the functions of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* }
    }
    add!(stop_text note note_at note_branch assumed_lines collect note_collection watch_collections leave_collections note_printed time clock sleep environment_changed file_of begin end referrers_at);
    Ok(())
}
