//! Jobs in a worker. The page sends a [`Job`] as bytes, and the worker sends progress and a [`JobOutput`]
//! back. A file is handed over as a `File` or `Blob`, and the worker reads it in pieces.
//!
//! The worker is a separate module (`web/worker`), fetched when the first screen is complete.

use std::cell::RefCell;

use blockyard_replay::job::{Job, JobError, JobOutput};
use blockyard_replay::{Comparison, Progress};
use blockyard_worker::{COMPARE, ReadPart, Reply};
use js_sys::{Reflect, Uint8Array};
use thiserror::Error;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, Worker};

use crate::gpu::Adapter;
use crate::worker_program::WorkerProgram;

/// Why a job has no output.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum JobFailure {
    /// The job failed.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The worker could not start, trapped, or ran out of memory.
    #[error("the background worker failed: {0}")]
    Worker(String),
}

type OnAdapter = Box<dyn FnMut(Adapter)>;
type OnJobReport = Box<dyn FnMut(JobReport)>;
type OnJobOutput = Box<dyn FnOnce(Result<JobOutput, JobFailure>)>;
type OnCompared = Box<dyn FnMut(ComparisonReply)>;

/// A report on a job before the job is done.
#[derive(Debug)]
pub(crate) enum JobReport {
    /// How much of the job is done.
    Progress(Progress),
    /// The part of the trace of a file that has been read.
    Read(ReadPart),
}

/// A report on the comparison of an opened file with our allocator.
#[derive(Debug)]
pub(crate) enum ComparisonReply {
    /// How much of the comparison is done.
    Progress(Progress),
    /// The comparison has ended.
    Done(Result<Comparison, JobFailure>),
    /// Another job ended the comparison.
    Stopped,
}

/// The running job and its handlers.
struct CurrentJob {
    /// The message with the bytes of the job and, where the job needs them, a file or the module of the GPU.
    message: JsValue,
    on_adapter: OnAdapter,
    on_progress: OnJobReport,
    on_done: OnJobOutput,
    /// The handler of the comparison that follows when a file is open; `None` for other jobs.
    on_compared: Option<OnCompared>,
}

/// The worker and its jobs.
struct JobRunner {
    /// The module of the worker.
    program: WorkerProgram,
    /// The module for the reader's GPU, which the worker loads.
    gpu: WorkerProgram,
    worker: Option<Worker>,
    /// The number of the worker. Messages that carry another number come from a worker that was ended, and
    /// are ignored.
    generation: u32,
    /// Whether the worker has said that it can receive messages.
    is_ready: bool,
    running: Option<CurrentJob>,
    /// The handler of the comparison of an opened file, until the comparison is done.
    comparing: Option<OnCompared>,
    /// Whether the worker has not been asked for the comparison yet.
    is_to_compare: bool,
}

thread_local! {
    static RUNNER: RefCell<JobRunner> = const {
        RefCell::new(JobRunner {
            program: WorkerProgram::new("blockyard-worker"),
            gpu: WorkerProgram::new("blockyard-gpu"),
            comparing: None,
            is_to_compare: false,
            worker: None,
            generation: 0,
            is_ready: false,
            running: None,
        })
    };
}

/// Fetches the module of the worker and starts the worker, so that jobs need no network.
pub(crate) async fn prepare() {
    let program = RUNNER.with_borrow(|runner| runner.program.clone());
    if program.is_fetched() {
        return;
    }
    let program = program.fetch().await;
    RUNNER.with_borrow_mut(|runner| {
        runner.program = program;
        if runner.worker.is_none() {
            runner.start_worker();
        }
    });
}

/// Fetches the module for the GPU, so that later uses need no network.
pub(crate) async fn prepare_gpu() -> WorkerProgram {
    let mut program = RUNNER.with_borrow(|runner| runner.gpu.clone());
    if !program.is_fetched() {
        program = program.fetch().await;
        RUNNER.with_borrow_mut(|runner| runner.gpu = program.clone());
    }
    program
}

/// Does the job in the worker. A job that still runs is ended, and its `on_done` is not called.
pub(crate) fn start(
    job: &Job,
    on_progress: impl FnMut(JobReport) + 'static,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
) {
    begin(job, None, Box::new(on_progress), Box::new(on_done));
}

/// Does the job as [`start`] does, on the reader's GPU. `on_adapter` is called when the adapter is open.
pub(crate) fn start_on_gpu(
    job: &Job,
    on_adapter: impl FnMut(Adapter) + 'static,
    on_progress: impl FnMut(JobReport) + 'static,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
) {
    begin(job, Some(Box::new(on_adapter)), Box::new(on_progress), Box::new(on_done));
}

/// Opens a file. The comparison with our allocator follows after `on_done`, and is reported to `on_compared`.
pub(crate) fn open(
    file: &Blob,
    name: &str,
    device: Option<usize>,
    on_progress: impl FnMut(JobReport) + 'static,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
    on_compared: impl FnMut(ComparisonReply) + 'static,
) {
    let job = Job::Open { name: name.to_owned(), bytes: Vec::new(), device };
    let message = match encode(&job) {
        Ok(bytes) => {
            let message = js_sys::Object::new();
            let _ = Reflect::set(&message, &"job".into(), &bytes);
            let _ = Reflect::set(&message, &"file".into(), file);
            message.into()
        }
        Err(failure) => return on_done(Err(failure)),
    };
    send(CurrentJob {
        message,
        on_adapter: Box::new(|_| ()),
        on_progress: Box::new(on_progress),
        on_done: Box::new(on_done),
        on_compared: Some(Box::new(on_compared)),
    });
}

fn encode(job: &Job) -> Result<Uint8Array, JobFailure> {
    match postcard::to_allocvec(job) {
        Ok(bytes) => Ok(Uint8Array::from(bytes.as_slice())),
        Err(error) => Err(JobFailure::Worker(error.to_string())),
    }
}

fn begin(job: &Job, on_adapter: Option<OnAdapter>, on_progress: OnJobReport, on_done: OnJobOutput) {
    let bytes = match encode(job) {
        Ok(bytes) => bytes,
        Err(failure) => return on_done(Err(failure)),
    };
    let message = match on_adapter {
        Some(_) => RUNNER.with_borrow(|runner| gpu_message(&runner.gpu, &bytes)),
        None => bytes.into(),
    };
    let on_adapter = on_adapter.unwrap_or_else(|| Box::new(|_| ()));
    send(CurrentJob { message, on_adapter, on_progress, on_done, on_compared: None });
}

/// The message of a job for the GPU: the job, and the script and the code of the module for the GPU.
fn gpu_message(program: &WorkerProgram, job: &Uint8Array) -> JsValue {
    let message = js_sys::Object::new();
    for (name, value) in [("job", job.into()), ("script", program.script().into()), ("wasm", program.code())]
    {
        let _ = Reflect::set(&message, &name.into(), &value);
    }
    message.into()
}

fn send(running: CurrentJob) {
    stop();
    let is_started = RUNNER.with_borrow_mut(|runner| {
        runner.running = Some(running);
        if runner.worker.is_some() {
            runner.send();
            return true;
        }
        runner.start_worker()
    });
    if !is_started {
        finish(Err(JobFailure::Worker("this browser does not start workers".to_owned())));
    }
}

/// Asks the worker to compare the file that was opened last with our allocator, unless the worker was asked
/// before. The caller has drawn the figures, which come first.
pub(crate) fn compare() {
    RUNNER.with_borrow_mut(|runner| {
        if let (true, Some(worker)) = (std::mem::take(&mut runner.is_to_compare), &runner.worker) {
            let _ = worker.post_message(&COMPARE.into());
        }
    });
}

/// Ends the running job or comparison, if there is one.
pub(crate) fn stop() {
    let comparing = RUNNER.with_borrow_mut(|runner| {
        let comparing = runner.comparing.take();
        runner.is_to_compare = false;
        if runner.running.take().is_some() || comparing.is_some() {
            // The worker reads no message while it computes, so the only way to stop it is to end it.
            runner.end_worker();
            runner.start_worker();
        }
        comparing
    });
    if let Some(mut on_compared) = comparing {
        on_compared(ComparisonReply::Stopped);
    }
}

fn finish(result: Result<JobOutput, JobFailure>) {
    let running = RUNNER.with_borrow_mut(|runner| {
        let mut running = runner.running.take()?;
        runner.comparing = running.on_compared.take().filter(|_| result.is_ok());
        runner.is_to_compare = runner.comparing.is_some();
        Some(running)
    });
    match running {
        Some(running) => (running.on_done)(result),
        // No job runs, so the worker has failed during a comparison.
        None => {
            if let Err(failure) = result {
                finish_comparing(Err(failure));
            }
        }
    }
}

fn finish_comparing(result: Result<Comparison, JobFailure>) {
    let comparing = RUNNER.with_borrow_mut(|runner| runner.comparing.take());
    if let Some(mut on_compared) = comparing {
        on_compared(ComparisonReply::Done(result));
    }
}

impl JobRunner {
    fn start_worker(&mut self) -> bool {
        self.generation += 1;
        let generation = self.generation;
        let on_message = move |message: JsValue| {
            if is_current(generation) {
                receive(&message);
            }
        };
        let on_end = move |why| {
            if is_current(generation) {
                RUNNER.with_borrow_mut(JobRunner::end_worker);
                finish(Err(JobFailure::Worker(why)));
            }
        };
        self.worker = self.program.start(on_message, on_end);
        self.is_ready = false;
        self.worker.is_some()
    }

    fn end_worker(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.terminate();
        }
    }

    fn send(&self) {
        if let (true, Some(worker), Some(running)) = (self.is_ready, &self.worker, &self.running) {
            let _ = worker.post_message(&running.message);
        }
    }
}

fn is_current(generation: u32) -> bool {
    RUNNER.with_borrow(|runner| runner.generation == generation && runner.worker.is_some())
}

/// Handles a message of the worker.
fn receive(message: &JsValue) {
    let Some(bytes) = message.dyn_ref::<Uint8Array>() else {
        // The only other message reports that the worker is ready.
        return RUNNER.with_borrow_mut(|runner| {
            runner.is_ready = true;
            runner.send();
        });
    };
    match postcard::from_bytes::<Reply>(&bytes.to_vec()) {
        Ok(Reply::Adapter(adapter)) => {
            let handler = RUNNER.with_borrow_mut(|runner| {
                let running = runner.running.as_mut()?;
                Some(std::mem::replace(&mut running.on_adapter, Box::new(|_| ())))
            });
            if let Some(mut handler) = handler {
                handler(adapter);
            }
        }
        Ok(Reply::Progress(progress)) if RUNNER.with_borrow(|runner| runner.running.is_none()) => {
            let handler = RUNNER.with_borrow_mut(|runner| runner.comparing.take());
            if let Some(mut handler) = handler {
                handler(ComparisonReply::Progress(progress));
                RUNNER.with_borrow_mut(|runner| runner.comparing = Some(handler));
            }
        }
        Ok(Reply::Progress(progress)) => pass_on(JobReport::Progress(progress)),
        Ok(Reply::Read(part)) => pass_on(JobReport::Read(part)),
        Ok(Reply::Done(result)) => finish((*result).map_err(JobFailure::Job)),
        Ok(Reply::Compared(result)) => finish_comparing((*result).map_err(JobFailure::Job)),
        Err(error) => finish(Err(JobFailure::Worker(error.to_string()))),
    }
}

/// Calls the progress handler of the running job.
fn pass_on(report: JobReport) {
    // The handler is taken out while it is called, because it may start or stop jobs, which borrow `RUNNER`.
    let handler = RUNNER.with_borrow_mut(|runner| {
        let running = runner.running.as_mut()?;
        Some(std::mem::replace(&mut running.on_progress, Box::new(|_| ())))
    });
    if let Some(mut handler) = handler {
        handler(report);
        RUNNER.with_borrow_mut(|runner| {
            if let Some(running) = &mut runner.running {
                running.on_progress = handler;
            }
        });
    }
}
