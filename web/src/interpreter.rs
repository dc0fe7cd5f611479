//! Runs Python programs in workers. Python is fetched and compiled once, for the first program. Each program has
//! a separate worker, so that ending the worker stops the program.

use std::cell::RefCell;

use blockyard_program::{PrintedText, ProgramError, ProgramJob, ProgramReply, ProgramRun, Referrers};
use js_sys::{Function, Promise, Uint8Array};
use thiserror::Error;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::Worker;

use crate::browser;
use crate::python_program::{NoPython, PYTHON, PythonProgram};

/// A report on a program; the reports come in the order of these variants.
pub(crate) enum ProgramReport {
    /// Python is being fetched; this many bytes have arrived.
    Loading(f64),
    /// Python is still being fetched and built by `cargo xtask play`. The page asks for it again until it is
    /// built.
    Building,
    /// Python has been fetched, and starts.
    Starting,
    /// The program runs now.
    Started,
    /// The program has printed these pieces.
    Printed(Vec<PrintedText>),
    /// The program has ended.
    Done(Box<Result<ProgramRun, ProgramError>>),
    /// The program has no result, because Python failed.
    Failed(InterpreterError),
}

/// Why Python could not be loaded, or failed while it ran.
#[derive(Clone, Debug, Error)]
pub(crate) enum InterpreterError {
    #[error("the page has no Python, or the network failed")]
    Missing,
    /// The page was built without Python, with the reason.
    #[error("{0}")]
    NotBuilt(String),
    #[error(
        "there is no network, and this browser has not stored Python yet: with a network, wait until the page for teachers says \"Ready offline\""
    )]
    Offline,
    #[error("this browser cannot run {PYTHON}, which needs a browser of 2023 or later")]
    NotCompiled,
    #[error("this browser does not start workers")]
    NoWorkers,
    /// The worker ended, with the browser's message.
    #[error("Python ended: {}", .0.trim_start_matches("Uncaught ").trim_start_matches("Error: "))]
    Worker(String),
    /// Python ended itself.
    #[error("Python gave up at this program; the command blockyard python may have room for it")]
    Aborted,
    /// The browser's stack is full.
    #[error("stopped: calls, brackets or lists are nested deeper than a page has room for")]
    TooDeep,
    /// The program ran for this many seconds, the most that it may.
    #[error(
        "stopped after {0} s, as long as a program may run in a page; the command blockyard python has a --time-limit"
    )]
    TimeIsOver(i32),
    #[error("a message cannot be read or written: {0}")]
    Message(#[from] postcard::Error),
}

/// What is said while Python is fetched.
pub(crate) fn loading_sentence(bytes: f64) -> String {
    format!("Loading {PYTHON}, once: {:.1} MB so far.", bytes / 1e6)
}

/// What is said while `cargo xtask play` makes Python's files.
pub(crate) const BUILDING_SENTENCE: &str = "Python is still being built by cargo xtask play, which takes minutes the first time. The \
                                            program starts when it is built; everything else of the page works.";

/// What is said while Python starts.
pub(crate) fn starting_sentence() -> String {
    format!("{PYTHON} starts.")
}

impl InterpreterError {
    /// Why a worker ended, from the browser's message.
    fn of_worker(why: String) -> Self {
        // The first words are of Chromium and Safari, the second of Firefox.
        if why.contains("call stack") || why.contains("too much recursion") {
            Self::TooDeep
        } else if why.contains("unreachable") {
            Self::Aborted
        } else {
            Self::Worker(why)
        }
    }
}

impl From<NoPython> for InterpreterError {
    fn from(why: NoPython) -> Self {
        match why {
            NoPython::Missing if browser::window().is_some_and(|window| !window.navigator().on_line()) => {
                Self::Offline
            }
            NoPython::Missing => Self::Missing,
            NoPython::NotCompiled => Self::NotCompiled,
        }
    }
}

type OnReport = Box<dyn FnMut(ProgramReport)>;

struct Interpreter {
    /// Python, once it is fetched.
    program: Option<PythonProgram>,
    worker: Option<Worker>,
    /// The number of the present run. Messages that carry another number come from a worker that was ended,
    /// and are ignored.
    generation: u32,
    on_report: Option<OnReport>,
}

thread_local! {
    static INTERPRETER: RefCell<Interpreter> = const {
        RefCell::new(Interpreter {
            program: None,
            worker: None,
            generation: 0,
            on_report: None,
        })
    };
}

/// Runs the program. A program that still runs is stopped first.
pub(crate) fn run(job: ProgramJob, on_report: impl FnMut(ProgramReport) + 'static) {
    stop();
    let generation = INTERPRETER.with_borrow_mut(|interpreter| {
        interpreter.generation += 1;
        interpreter.on_report = Some(Box::new(on_report));
        interpreter.generation
    });
    spawn_local(async move {
        let on_report = move |progress| report(generation, progress);
        if let Err(why) = load(move || is_running(generation), on_report).await {
            return report(generation, ProgramReport::Failed(why));
        }
        report(generation, ProgramReport::Starting);
        if let Err(why) = start(generation, &job) {
            report(generation, ProgramReport::Failed(why));
        }
    });
}

/// Ends the running program.
pub(crate) fn stop() {
    INTERPRETER.with_borrow_mut(|interpreter| {
        interpreter.generation += 1;
        interpreter.on_report = None;
        end(&mut interpreter.worker);
    });
}

fn report(generation: u32, progress: ProgramReport) {
    let is_last = matches!(progress, ProgramReport::Done(_) | ProgramReport::Failed(_));
    // The handler is taken out while it is called, because it may start or stop programs, which borrow
    // `INTERPRETER`.
    let handler = INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation != generation {
            return None;
        }
        if is_last {
            end(&mut interpreter.worker);
        }
        interpreter.on_report.take()
    });
    let Some(mut handler) = handler else { return };
    handler(progress);
    INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation == generation && !is_last {
            interpreter.on_report = Some(handler);
        }
    });
}

/// Fetches and compiles Python, unless that has been done. While Python is being built, the page asks again for
/// it as long as `is_asked` returns true.
async fn load(
    is_asked: impl Fn() -> bool,
    on_report: impl Fn(ProgramReport) + Copy + 'static,
) -> Result<(), InterpreterError> {
    if INTERPRETER.with_borrow(|interpreter| interpreter.program.is_some()) {
        return Ok(());
    }
    let on_bytes = move |bytes: f64| on_report(ProgramReport::Loading(bytes));
    let program = loop {
        let why = match PythonProgram::fetch(on_bytes).await {
            Ok(program) => break program,
            Err(why) => why,
        };
        match why_absent().await {
            Some(text) if text == "building" && is_asked() => {
                on_report(ProgramReport::Building);
                browser::pause(ASK_AGAIN_MILLIS).await;
            }
            Some(text) if text.starts_with(NOT_BUILT) => return Err(InterpreterError::NotBuilt(text)),
            _ => return Err(why.into()),
        }
    };
    INTERPRETER.with_borrow_mut(|interpreter| interpreter.program.get_or_insert(program).prepare());
    Ok(())
}

/// How long a program may run.
const MAX_SECONDS: i32 = 600;
/// How long a program that a class has handed in may run: a loop without an end must not hold up the files
/// after it.
const MAX_ANSWER_SECONDS: i32 = 10;

/// Ends a program that still runs when its time is over.
async fn end_in_time(generation: u32) {
    browser::pause(MAX_SECONDS * 1000).await;
    report(generation, ProgramReport::Failed(InterpreterError::TimeIsOver(MAX_SECONDS)));
}

/// How long the page waits before it asks again for a Python that is being built.
const ASK_AGAIN_MILLIS: i32 = 1500;

fn is_running(generation: u32) -> bool {
    INTERPRETER.with_borrow(|interpreter| interpreter.generation == generation)
}

/// How the reason begins for which a page was built without Python.
const NOT_BUILT: &str = "this page was built without Python";

/// What the file beside the page says that stands where Python is not: `building`, while `cargo xtask play` makes
/// Python's files, or a reason.
async fn why_absent() -> Option<String> {
    let text = browser::fetch_text("python/absent.txt").await?;
    Some(text.trim().to_owned())
}

fn start(generation: u32, job: &ProgramJob) -> Result<(), InterpreterError> {
    let bytes = postcard::to_allocvec(job).map_err(InterpreterError::Message)?;
    let on_message = move |data: JsValue| {
        let Some(bytes) = data.dyn_ref::<Uint8Array>() else {
            // The only other message reports that the program starts.
            report(generation, ProgramReport::Started);
            return spawn_local(end_in_time(generation));
        };
        let progress = match postcard::from_bytes::<ProgramReply>(&bytes.to_vec()) {
            Ok(ProgramReply::Printed(pieces)) => ProgramReport::Printed(pieces),
            // A job that runs the program asks for no referrers.
            Ok(ProgramReply::Referrers(_)) => return,
            Ok(ProgramReply::Done(result)) => ProgramReport::Done(result),
            Err(error) => ProgramReport::Failed(InterpreterError::Message(error)),
        };
        report(generation, progress);
    };
    let on_end = move |why| report(generation, ProgramReport::Failed(InterpreterError::of_worker(why)));
    INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation == generation {
            let program = interpreter.program.as_ref().ok_or(InterpreterError::Missing)?;
            let worker = program.start(&Uint8Array::from(bytes.as_slice()), on_message, on_end);
            interpreter.worker = Some(worker.ok_or(InterpreterError::NoWorkers)?);
        }
        Ok(())
    })
}

/// A run beside the program in the editor.
struct RunBeside {
    worker: Option<Worker>,
    /// The number of the run. Messages of an ended worker carry an older number and are ignored.
    generation: u32,
}

type SecondRun = &'static std::thread::LocalKey<RefCell<RunBeside>>;

thread_local! {
    static QUESTION: RefCell<RunBeside> = const { RefCell::new(RunBeside { worker: None, generation: 0 }) };
    static ANSWER: RefCell<RunBeside> = const { RefCell::new(RunBeside { worker: None, generation: 0 }) };
    static TRIAL: RefCell<RunBeside> = const { RefCell::new(RunBeside { worker: None, generation: 0 }) };
}

/// Asks why memory is alive at the job's step. The program runs again up to this step, in a separate worker;
/// an earlier question is given up. If the run ends without an answer, `on_answer` is called with `None`.
pub(crate) fn ask(job: &ProgramJob, on_answer: impl Fn(Option<Referrers>) + 'static) {
    run_beside(&QUESTION, job, MAX_SECONDS, move |end| {
        on_answer(match end {
            Ok(ProgramReply::Referrers(referrers)) => Some(referrers),
            _ => None,
        });
    });
}

/// Runs the job beside the program in the editor, whose run and output stay. An earlier trial is given up.
pub(crate) fn try_out(job: &ProgramJob, on_end: impl Fn(Result<ProgramRun, String>) + 'static) {
    run_beside(&TRIAL, job, MAX_SECONDS, move |end| {
        on_end(match end {
            Ok(ProgramReply::Done(result)) => (*result).map_err(|error| error.to_string()),
            Ok(_) => return,
            Err(why) => Err(why.to_string()),
        });
    });
}

/// Runs a program that a class has handed in, beside the program in the editor. `on_bytes` is called while
/// Python is fetched, with the number of bytes that have arrived.
pub(crate) async fn run_answer(
    job: ProgramJob,
    on_bytes: impl Fn(f64) + Copy + 'static,
) -> Result<ProgramRun, String> {
    let on_report = move |report| {
        if let ProgramReport::Loading(bytes) = report {
            on_bytes(bytes);
        }
    };
    load(|| true, on_report).await.map_err(|why| why.to_string())?;
    let end = std::rc::Rc::new(RefCell::new(None));
    let given = std::rc::Rc::clone(&end);
    // This promise is never rejected.
    let promise = Promise::new(&mut move |resolve: Function, _reject| {
        let given = std::rc::Rc::clone(&given);
        run_beside(&ANSWER, &job, MAX_ANSWER_SECONDS, move |end| {
            given.replace(Some(end));
            let _ = resolve.call0(&JsValue::NULL);
        });
    });
    let _ended = JsFuture::from(promise).await;
    match end.take() {
        Some(Ok(ProgramReply::Done(result))) => (*result).map_err(|error| error.to_string()),
        Some(Err(why)) => Err(why.to_string()),
        _ => Err("the program has no result".to_owned()),
    }
}

/// Ends the trial that runs.
pub(crate) fn cancel_trial() {
    begin(&TRIAL);
}

/// Ends the present run beside the program, and returns the number of the next run.
fn begin(beside: SecondRun) -> u32 {
    beside.with_borrow_mut(|beside| {
        beside.generation += 1;
        end(&mut beside.worker);
        beside.generation
    })
}

/// Runs a job in a separate worker. `on_end` gets the first reply other than output, or why the worker sent
/// none; an earlier run is given up.
fn run_beside(
    beside: SecondRun,
    job: &ProgramJob,
    most_seconds: i32,
    on_end: impl Fn(Result<ProgramReply, InterpreterError>) + 'static,
) {
    let generation = begin(beside);
    let program = INTERPRETER.with_borrow(|interpreter| interpreter.program.clone());
    let on_end: std::rc::Rc<dyn Fn(Result<ProgramReply, InterpreterError>)> = std::rc::Rc::new(on_end);
    let (Some(bytes), Some(program)) = (postcard::to_allocvec(job).ok(), program) else {
        return on_end(Err(InterpreterError::Missing));
    };
    let is_asked = move || beside.with_borrow(|beside| beside.generation == generation);
    let (failed, late) = (std::rc::Rc::clone(&on_end), std::rc::Rc::clone(&on_end));
    let on_message = move |data: JsValue| {
        if !is_asked() {
            return;
        }
        // The only other message reports that the program starts.
        let Some(bytes) = data.dyn_ref::<Uint8Array>() else { return };
        let reply = match postcard::from_bytes::<ProgramReply>(&bytes.to_vec()) {
            Ok(ProgramReply::Printed(_)) => return,
            Ok(reply) => Ok(reply),
            Err(error) => Err(InterpreterError::Message(error)),
        };
        begin(beside);
        on_end(reply);
    };
    let on_failure = move |why| {
        if is_asked() {
            begin(beside);
            failed(Err(InterpreterError::of_worker(why)));
        }
    };
    let worker = program.start(&Uint8Array::from(bytes.as_slice()), on_message, on_failure);
    beside.with_borrow_mut(|beside| beside.worker = worker);
    spawn_local(async move {
        browser::pause(most_seconds * 1000).await;
        if is_asked() {
            begin(beside);
            late(Err(InterpreterError::TimeIsOver(most_seconds)));
        }
    });
}

/// Ends a worker. Python starts in another one for the next program.
fn end(worker: &mut Option<Worker>) {
    if let Some(worker) = worker.take() {
        worker.terminate();
        spawn_local(async {
            // The caller has borrowed the interpreter, or starts the next program at once, in a new worker.
            browser::pause(0).await;
            INTERPRETER.with_borrow(|interpreter| interpreter.program.as_ref().map(PythonProgram::prepare));
        });
    }
}
