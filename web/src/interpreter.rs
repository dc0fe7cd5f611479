//! Runs Python programs in workers. Python is fetched and compiled once, for the first program. Each program has
//! a separate worker, so that ending the worker stops the program.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::LocalKey;

use blockyard_program::{PrintedText, ProgramJob, ProgramReply, ProgramRun, Referrers};
use js_sys::{Function, Promise, Uint8Array};
use thiserror::Error;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::browser;
use crate::program::ProgramStatus;
use crate::python_program::{NoPython, PYTHON, PythonProgram};
use crate::workers::{PageWorker, WorkerMessage};

/// A report on a program.
pub(crate) enum ProgramReport {
    /// The program waits for Python, runs, or has no result.
    Status(ProgramStatus),
    /// The program has printed these pieces.
    Printed(Vec<PrintedText>),
    /// The program has ended.
    Done(Box<ProgramRun>),
}

/// Why Python could not be loaded, or failed while it ran.
#[derive(Clone, Debug, Error)]
enum InterpreterError {
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

/// A place for one run of a program. Another run in the same place gives the run up.
struct RunPlace {
    worker: Option<PageWorker>,
    /// The number of the present run.
    number: u32,
}

type RunSlot = &'static LocalKey<RefCell<RunPlace>>;

thread_local! {
    /// Python, once it is fetched.
    static PYTHON_PROGRAM: RefCell<Option<PythonProgram>> = const { RefCell::new(None) };
    /// The program in the editor, or of an exercise.
    static PROGRAM: RefCell<RunPlace> = const { RefCell::new(RunPlace { worker: None, number: 0 }) };
    // Runs beside this program.
    static QUESTION: RefCell<RunPlace> = const { RefCell::new(RunPlace { worker: None, number: 0 }) };
    static ANSWER: RefCell<RunPlace> = const { RefCell::new(RunPlace { worker: None, number: 0 }) };
    static TRIAL: RefCell<RunPlace> = const { RefCell::new(RunPlace { worker: None, number: 0 }) };
}

/// An event of a run. After the last one, an end or another reply than output, the worker is ended.
enum RunEvent {
    Started,
    Reply(ProgramReply),
    Failed(InterpreterError),
}

type OnEvent = Rc<dyn Fn(RunEvent)>;

/// How long a program may run.
const MAX_SECONDS: i32 = 600;
/// How long a program that a class has handed in may run: a loop without an end must not hold up the files
/// after it.
const MAX_ANSWER_SECONDS: i32 = 10;
/// How long the page waits before it asks again for a Python that is being built.
const ASK_AGAIN_MILLIS: i32 = 1500;
/// How the reason begins for which a page was built without Python.
const NOT_BUILT: &str = "this page was built without Python";

/// Runs the program. A program that still runs is stopped first.
pub(crate) fn run(job: ProgramJob, on_report: impl Fn(ProgramReport) + 'static) {
    let number = begin(&PROGRAM);
    let on_report = Rc::new(on_report);
    let on_status = {
        let on_report = on_report.clone();
        move |status| {
            if is_present(&PROGRAM, number) {
                on_report(ProgramReport::Status(status));
            }
        }
    };
    let on_event: OnEvent = Rc::new(move |event| {
        on_report(match event {
            RunEvent::Started => ProgramReport::Status(ProgramStatus::Running),
            RunEvent::Reply(ProgramReply::Printed(pieces)) => ProgramReport::Printed(pieces),
            // A job that runs the program asks for no referrers.
            RunEvent::Reply(ProgramReply::Referrers(_)) => return,
            RunEvent::Reply(ProgramReply::Done(result)) => match *result {
                Ok(run) => ProgramReport::Done(Box::new(run)),
                Err(error) => ProgramReport::Status(ProgramStatus::Failed(error.to_string())),
            },
            RunEvent::Failed(why) => ProgramReport::Status(ProgramStatus::Failed(why.to_string())),
        });
    });
    spawn_local(async move {
        match load(move || is_present(&PROGRAM, number), on_status.clone()).await {
            Ok(()) => {
                on_status(ProgramStatus::Starting);
                start(&PROGRAM, number, &job, Some(MAX_SECONDS), &on_event);
            }
            Err(why) => tell(&PROGRAM, number, RunEvent::Failed(why), &*on_event),
        }
    });
}

/// Ends the running program.
pub(crate) fn stop() {
    begin(&PROGRAM);
}

/// Fetches and compiles Python, unless that has been done. While Python is being built, the page asks again for
/// it as long as `is_asked` returns true.
async fn load(
    is_asked: impl Fn() -> bool,
    on_status: impl Fn(ProgramStatus),
) -> Result<(), InterpreterError> {
    if PYTHON_PROGRAM.with_borrow(Option::is_some) {
        return Ok(());
    }
    let program = loop {
        let why = match PythonProgram::fetch(|bytes| on_status(ProgramStatus::Loading(bytes))).await {
            Ok(program) => break program,
            Err(why) => why,
        };
        match why_absent().await {
            Some(text) if text == "building" && is_asked() => {
                on_status(ProgramStatus::Building);
                browser::pause(ASK_AGAIN_MILLIS).await;
            }
            Some(text) if text.starts_with(NOT_BUILT) => return Err(InterpreterError::NotBuilt(text)),
            _ => return Err(why.into()),
        }
    };
    PYTHON_PROGRAM.with_borrow_mut(|kept| kept.get_or_insert(program).prepare());
    Ok(())
}

/// What the file beside the page says that stands where Python is not: `building`, while `cargo xtask play` makes
/// Python's files, or a reason.
async fn why_absent() -> Option<String> {
    let text = browser::fetch_text("python/absent.txt").await?;
    Some(text.trim().to_owned())
}

/// Runs a job in a separate worker. With `most_seconds`, a program that still runs so long after its start is
/// ended.
fn start(place: RunSlot, number: u32, job: &ProgramJob, most_seconds: Option<i32>, on_event: &OnEvent) {
    if !is_present(place, number) {
        return;
    }
    let of_worker = on_event.clone();
    let on_message = move |message| {
        let event = match message {
            WorkerMessage::Ready => RunEvent::Started,
            WorkerMessage::Reply(reply) => RunEvent::Reply(reply),
            WorkerMessage::Failed(why) => RunEvent::Failed(InterpreterError::of_worker(why)),
        };
        if let (RunEvent::Started, Some(seconds)) = (&event, most_seconds) {
            spawn_local(end_in_time(place, number, seconds, of_worker.clone()));
        }
        tell(place, number, event, &*of_worker);
    };
    let program = PYTHON_PROGRAM.with_borrow(Clone::clone).ok_or(InterpreterError::Missing);
    let worker = program.and_then(|program| {
        let bytes = postcard::to_allocvec(job)?;
        program.start(&Uint8Array::from(bytes.as_slice()), on_message).ok_or(InterpreterError::NoWorkers)
    });
    match worker {
        Ok(worker) => place.with_borrow_mut(|place| place.worker = Some(worker)),
        Err(why) => tell(place, number, RunEvent::Failed(why), &**on_event),
    }
}

/// Ends a program that still runs when its time is over.
async fn end_in_time(place: RunSlot, number: u32, seconds: i32, on_event: OnEvent) {
    browser::pause(seconds * 1000).await;
    tell(place, number, RunEvent::Failed(InterpreterError::TimeIsOver(seconds)), &*on_event);
}

/// Passes an event of a run on, unless the run was given up.
fn tell(place: RunSlot, number: u32, event: RunEvent, on_event: &dyn Fn(RunEvent)) {
    if !is_present(place, number) {
        return;
    }
    if !matches!(event, RunEvent::Started | RunEvent::Reply(ProgramReply::Printed(_))) {
        begin(place);
    }
    on_event(event);
}

fn is_present(place: RunSlot, number: u32) -> bool {
    place.with_borrow(|place| place.number == number)
}

/// Ends the present run of a place, and returns the number of the next run. Python starts in another worker for
/// the next program.
fn begin(place: RunSlot) -> u32 {
    let (had_worker, number) = place.with_borrow_mut(|place| {
        place.number += 1;
        (place.worker.take().is_some(), place.number)
    });
    if had_worker {
        spawn_local(async {
            // The caller may start the next program at once, in a new worker.
            browser::pause(0).await;
            PYTHON_PROGRAM.with_borrow(|program| program.as_ref().map(PythonProgram::prepare));
        });
    }
    number
}

/// Runs a job beside the program in the editor, whose run and output stay. `on_end` gets the first reply other
/// than output, or why there is none; an earlier run in the place is given up.
fn run_beside(
    place: RunSlot,
    job: &ProgramJob,
    most_seconds: i32,
    on_end: impl Fn(Result<ProgramReply, InterpreterError>) + 'static,
) {
    let number = begin(place);
    let on_event: OnEvent = Rc::new(move |event| match event {
        RunEvent::Started | RunEvent::Reply(ProgramReply::Printed(_)) => {}
        RunEvent::Reply(reply) => on_end(Ok(reply)),
        RunEvent::Failed(why) => on_end(Err(why)),
    });
    start(place, number, job, None, &on_event);
    spawn_local(end_in_time(place, number, most_seconds, on_event));
}

/// The run in the last reply of a program; or why there is none.
fn result_of(end: Result<ProgramReply, InterpreterError>) -> Result<ProgramRun, String> {
    match end {
        Ok(ProgramReply::Done(result)) => (*result).map_err(|error| error.to_string()),
        Ok(_) => Err("the program has no result".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

/// Asks why memory is alive at the job's step. The program runs again up to this step; an earlier question is
/// given up. If the run ends without an answer, `on_answer` is called with `None`.
pub(crate) fn ask(job: &ProgramJob, on_answer: impl Fn(Option<Referrers>) + 'static) {
    run_beside(&QUESTION, job, MAX_SECONDS, move |end| {
        on_answer(match end {
            Ok(ProgramReply::Referrers(referrers)) => Some(referrers),
            _ => None,
        });
    });
}

/// Runs the job beside the program in the editor. An earlier trial is given up.
pub(crate) fn try_out(job: &ProgramJob, on_end: impl Fn(Result<ProgramRun, String>) + 'static) {
    run_beside(&TRIAL, job, MAX_SECONDS, move |end| on_end(result_of(end)));
}

/// Ends the trial that runs.
pub(crate) fn cancel_trial() {
    begin(&TRIAL);
}

/// Runs a program that a class has handed in, beside the program in the editor. `on_bytes` is called while
/// Python is fetched, with the number of bytes that have arrived.
pub(crate) async fn run_answer(job: ProgramJob, on_bytes: impl Fn(f64)) -> Result<ProgramRun, String> {
    let on_status = move |status| {
        if let ProgramStatus::Loading(bytes) = status {
            on_bytes(bytes);
        }
    };
    load(|| true, on_status).await.map_err(|why| why.to_string())?;
    let end = Rc::new(RefCell::new(None));
    let given = end.clone();
    // This promise is never rejected.
    let promise = Promise::new(&mut move |resolve: Function, _reject| {
        let given = given.clone();
        run_beside(&ANSWER, &job, MAX_ANSWER_SECONDS, move |end| {
            given.replace(Some(end));
            let _ = resolve.call0(&JsValue::NULL);
        });
    });
    let _ended = JsFuture::from(promise).await;
    end.take().map_or_else(|| Err("the program has no result".to_owned()), result_of)
}
