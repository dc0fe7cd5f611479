//! Jobs in a worker, which runs the module [`workers::JOBS`]. A file is handed over as a `File` or `Blob`, and
//! the worker reads it in pieces.

use std::cell::RefCell;

use blockyard_replay::job::{Job, JobError, JobOutput};
use blockyard_replay::{Comparison, Progress};
pub(crate) use blockyard_worker::jobs::JobReport;
use blockyard_worker::jobs::{JobReply, JobTask};
use thiserror::Error;
use wasm_bindgen::JsValue;
use web_sys::Blob;

use crate::workers::{self, PageWorker, WorkerMessage};

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

type OnJobReport = Box<dyn FnMut(JobReport)>;
type OnJobOutput = Box<dyn FnOnce(Result<JobOutput, JobFailure>)>;
type OnCompared = Box<dyn FnMut(ComparisonReply)>;

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

/// The handlers of the running job.
struct CurrentJob {
    report: OnJobReport,
    done: OnJobOutput,
    /// The handler of the comparison that follows when a file is open; `None` for other jobs.
    compared: Option<OnCompared>,
}

/// The worker and its jobs.
struct JobRunner {
    worker: Option<PageWorker>,
    running: Option<CurrentJob>,
    /// The handler of the comparison of an opened file, until the comparison is done.
    comparing: Option<OnCompared>,
    /// Whether the worker has not been asked for the comparison yet.
    is_to_compare: bool,
}

thread_local! {
    static RUNNER: RefCell<JobRunner> = const {
        RefCell::new(JobRunner { worker: None, running: None, comparing: None, is_to_compare: false })
    };
}

/// Fetches the module of the worker and starts the worker, so that jobs need no network.
pub(crate) async fn prepare() {
    workers::fetch(&workers::JOBS).await;
    RUNNER.with_borrow_mut(JobRunner::start_worker);
}

/// Runs a workload in the worker, on the reader's GPU if `is_on_gpu`. A job that still runs is ended, and its
/// `on_done` is not called.
pub(crate) fn start(
    job: Job,
    is_on_gpu: bool,
    on_report: impl FnMut(JobReport) + 'static,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
) {
    let running = CurrentJob { report: Box::new(on_report), done: Box::new(on_done), compared: None };
    if is_on_gpu {
        let module = workers::GPU.with(|gpu| [("script", gpu.script()), ("wasm", gpu.code())]);
        send(&JobTask::OnGpu(job), &module, running);
    } else {
        send(&JobTask::Do(job), &[], running);
    }
}

/// Opens a file. The comparison with our allocator follows after `on_done`, and is reported to `on_compared`.
pub(crate) fn open(
    file: &Blob,
    name: &str,
    device: Option<usize>,
    on_report: impl FnMut(JobReport) + 'static,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
    on_compared: impl FnMut(ComparisonReply) + 'static,
) {
    let task = JobTask::Do(Job::Open { name: name.to_owned(), bytes: Vec::new(), device });
    let running = CurrentJob {
        report: Box::new(on_report),
        done: Box::new(on_done),
        compared: Some(Box::new(on_compared)),
    };
    send(&task, &[("file", file.into())], running);
}

/// Opens a file that is not compared: the next one follows soon.
pub(crate) fn open_uncompared(
    file: &Blob,
    name: &str,
    device: Option<usize>,
    on_done: impl FnOnce(Result<JobOutput, JobFailure>) + 'static,
) {
    let task = JobTask::Do(Job::Open { name: name.to_owned(), bytes: Vec::new(), device });
    let running = CurrentJob { report: Box::new(|_| ()), done: Box::new(on_done), compared: None };
    send(&task, &[("file", file.into())], running);
}

fn send(task: &JobTask, more: &[(&str, JsValue)], running: CurrentJob) {
    let message = match workers::task(task, more) {
        Ok(message) => message,
        Err(error) => return (running.done)(Err(JobFailure::Worker(error.to_string()))),
    };
    stop();
    let is_started = RUNNER.with_borrow_mut(|runner| {
        runner.running = Some(running);
        runner.start_worker();
        runner.worker.as_ref().map(|worker| worker.send(&message)).is_some()
    });
    if !is_started {
        finish(Err(JobFailure::Worker("this browser does not start workers".to_owned())));
    }
}

/// Asks the worker to compare the file that was opened last with our allocator, unless the worker was asked
/// before. The caller has drawn the figures, which come first.
pub(crate) fn compare() {
    RUNNER.with_borrow_mut(|runner| {
        if let (true, Some(worker)) = (std::mem::take(&mut runner.is_to_compare), &runner.worker)
            && let Ok(message) = workers::task(&JobTask::Compare, &[])
        {
            worker.send(&message);
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
            runner.worker = None;
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
        runner.comparing = running.compared.take().filter(|_| result.is_ok());
        runner.is_to_compare = runner.comparing.is_some();
        Some(running)
    });
    match running {
        Some(running) => (running.done)(result),
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
    /// Starts the worker, unless that has been done.
    fn start_worker(&mut self) {
        if self.worker.is_none() {
            let worker = workers::JOBS.with(workers::WorkerModule::start);
            self.worker = worker.map(|worker| worker.listen(receive));
        }
    }
}

/// Handles a message of the worker.
fn receive(message: WorkerMessage<JobReply>) {
    match message {
        WorkerMessage::Ready => {}
        WorkerMessage::Reply(JobReply::Report(report)) => pass_on(report),
        WorkerMessage::Reply(JobReply::Done(result)) => finish((*result).map_err(JobFailure::Job)),
        WorkerMessage::Reply(JobReply::Compared(result)) => {
            finish_comparing((*result).map_err(JobFailure::Job));
        }
        WorkerMessage::Failed(why) => {
            RUNNER.with_borrow_mut(|runner| runner.worker = None);
            finish(Err(JobFailure::Worker(why)));
        }
    }
}

/// Calls the handler of the running job, or of the comparison.
fn pass_on(report: JobReport) {
    // The handler is taken out while it is called, because it may start or stop jobs, which borrow `RUNNER`.
    let handler = RUNNER.with_borrow_mut(|runner| {
        let running = runner.running.as_mut()?;
        Some(std::mem::replace(&mut running.report, Box::new(|_| ())))
    });
    if let Some(mut handler) = handler {
        handler(report);
        RUNNER.with_borrow_mut(|runner| {
            if let Some(running) = &mut runner.running {
                running.report = handler;
            }
        });
    } else if let JobReport::Progress(progress) = report {
        let handler = RUNNER.with_borrow_mut(|runner| runner.comparing.take());
        if let Some(mut handler) = handler {
            handler(ComparisonReply::Progress(progress));
            RUNNER.with_borrow_mut(|runner| runner.comparing = Some(handler));
        }
    }
}
