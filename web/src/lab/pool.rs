//! A pool of workers that answer questions, at most one for each core. Each worker keeps the runs that its
//! last question was about. A separate worker, which ends with its task, makes a report.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use blockyard_lab::RunSource;
use blockyard_worker::questions::{LabReply, LabTask, ReportOptions};
use thiserror::Error;
use wasm_bindgen::prelude::*;
use web_sys::Blob;

use crate::browser;
use crate::view::parts;
use crate::workers::{self, PageWorker, WorkerMessage, WorkerModule};

/// The pool has at most this many workers. More workers would wait for each other.
const MAX_WORKERS: usize = 8;
/// Files of at least this many bytes are read by at most two workers, because each worker keeps a copy.
const LARGE_BYTES: f64 = 8e6;

/// The reply to a task, as the page's handlers get it. A reply that the task failed is an error.
pub(super) type TaskReply = Result<LabReply, TaskError>;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub(super) enum TaskError {
    #[error("the question cannot be sent")]
    NotSent,
    #[error("this browser does not start workers")]
    NoWorkers,
    /// The lab's error about the run or the question.
    #[error("{0}")]
    Lab(String),
    /// The worker trapped or ran out of memory, with the browser's message.
    #[error("the background worker failed: {0}")]
    Worker(String),
}

/// The message that gives runs to a worker.
pub(super) struct RunData {
    message: JsValue,
    is_large: bool,
}

impl RunData {
    /// The message for a source; `content` is the content of the file that the source names. `None` if it
    /// cannot be encoded.
    pub(super) fn new(source: &RunSource, content: Option<&Blob>) -> Option<Rc<Self>> {
        let message = message(&LabTask::Take(source.clone()), content).ok()?;
        let is_large = content.is_some_and(|content| content.size() >= LARGE_BYTES);
        Some(Rc::new(Self { message, is_large }))
    }

    fn most_workers(&self) -> usize {
        if self.is_large { most_workers().min(2) } else { most_workers() }
    }
}

fn most_workers() -> usize {
    browser::cores().clamp(1, MAX_WORKERS)
}

pub(super) type OnReply = Rc<dyn Fn(TaskReply)>;

struct Task {
    /// The runs that the worker has to read first; `None` if the task brings its own.
    run_data: Option<Rc<RunData>>,
    message: JsValue,
    on_reply: OnReply,
}

struct PoolWorker {
    worker: PageWorker,
    number: u32,
    /// The runs that the worker has read last.
    run_data: Option<Rc<RunData>>,
    /// The task that the worker is doing.
    task: Option<Task>,
}

struct WorkerPool {
    members: Vec<PoolWorker>,
    queue: VecDeque<Task>,
    last_number: u32,
}

/// A report that is being made, in a separate worker: its module is fetched for the first report.
struct Reporter {
    worker: PageWorker,
    on_reply: OnReply,
}

thread_local! {
    static POOL: RefCell<WorkerPool> = const {
        RefCell::new(WorkerPool { members: Vec::new(), queue: VecDeque::new(), last_number: 0 })
    };
    static REPORTER: RefCell<Option<Reporter>> = const { RefCell::new(None) };
}

fn message(task: &LabTask, content: Option<&Blob>) -> Result<JsValue, TaskError> {
    let file: Vec<_> = content.map(|content| ("file", content.into())).into_iter().collect();
    workers::task(task, &file).map_err(|_| TaskError::NotSent)
}

/// Puts a task about runs into the queue. A worker does it as soon as one is free.
pub(super) fn ask(run_data: &Rc<RunData>, task: &LabTask, content: Option<&Blob>, on_reply: OnReply) {
    match message(task, content) {
        Ok(message) => put(Task { run_data: Some(run_data.clone()), message, on_reply }),
        Err(why) => on_reply(Err(why)),
    }
}

/// Has a report made, and ends one that is still being made; `content` is the content of the file that the
/// source names.
pub(super) fn report(
    source: RunSource,
    options: ReportOptions,
    content: Option<&Blob>,
    on_reply: impl Fn(TaskReply) + 'static,
) {
    let message = match message(&LabTask::Report { source, options }, content) {
        Ok(message) => message,
        Err(why) => return on_reply(Err(why)),
    };
    let Some(worker) = workers::REPORTS.with(WorkerModule::start) else {
        return on_reply(Err(TaskError::NoWorkers));
    };
    let worker = worker.listen_with(parts::read_lab_reply, receive_from_reporter);
    let reporter = Reporter { worker, on_reply: Rc::new(on_reply) };
    reporter.worker.send(&message);
    REPORTER.set(Some(reporter));
}

/// Handles a message of the worker that makes a report. The worker, which holds the whole file, ends with its
/// last reply.
fn receive_from_reporter(message: WorkerMessage<LabReply>) {
    let Some(reply) = reply_of(message) else { return };
    let on_reply = if matches!(reply, Ok(LabReply::Progress(_))) {
        REPORTER.with_borrow(|reporter| reporter.as_ref().map(|reporter| reporter.on_reply.clone()))
    } else {
        REPORTER.take().map(|reporter| reporter.on_reply)
    };
    if let Some(on_reply) = on_reply {
        on_reply(reply);
    }
}

/// The reply in a message; `None` for the message that a worker is ready.
fn reply_of(message: WorkerMessage<LabReply>) -> Option<TaskReply> {
    match message {
        WorkerMessage::Ready => None,
        WorkerMessage::Reply(LabReply::Failed(why)) => Some(Err(TaskError::Lab(why))),
        WorkerMessage::Reply(reply) => Some(Ok(reply)),
        WorkerMessage::Failed(why) => Some(Err(TaskError::Worker(why))),
    }
}

fn put(task: Task) {
    let failed = POOL.with_borrow_mut(|pool| {
        pool.queue.push_back(task);
        pool.dispatch()
    });
    if let Some(task) = failed {
        (task.on_reply)(Err(TaskError::NoWorkers));
    }
}

/// Ends the tasks that are being done, and drops those in the queue.
pub(super) fn cancel() {
    POOL.with_borrow_mut(|pool| {
        pool.queue.clear();
        // A worker reads no message while it computes, so the only way to stop it is to end it.
        pool.members.retain(|member| member.task.is_none());
    });
}

impl WorkerPool {
    /// Gives the tasks of the queue to free workers. Returns a task if no worker can be started for it.
    fn dispatch(&mut self) -> Option<Task> {
        while let Some(task) = self.queue.pop_front() {
            let free = || self.members.iter().enumerate().filter(|(_, member)| member.task.is_none());
            // A worker that has read the runs is best; else a new worker, while the pool may grow.
            let most = task.run_data.as_ref().map_or_else(most_workers, |run_data| run_data.most_workers());
            let place = free().find(|(_, member)| member.has_read(task.run_data.as_ref())).or_else(|| {
                let is_full = self.members.len() >= most;
                free().next().filter(|_| is_full)
            });
            let place = place.map(|(place, _)| place);
            let place = match place {
                Some(place) => place,
                None if self.members.len() < most => match self.start_worker() {
                    Some(place) => place,
                    None if self.members.is_empty() => return Some(task),
                    None => {
                        self.queue.push_front(task);
                        return None;
                    }
                },
                None => {
                    self.queue.push_front(task);
                    return None;
                }
            };
            if let Some(member) = self.members.get_mut(place) {
                member.task = Some(task);
                member.send_next();
            }
        }
        None
    }

    fn start_worker(&mut self) -> Option<usize> {
        self.last_number += 1;
        let number = self.last_number;
        let worker = workers::QUESTIONS.with(WorkerModule::start)?;
        let worker = worker.listen_with(parts::read_lab_reply, move |message| receive(number, message));
        self.members.push(PoolWorker { worker, number, run_data: None, task: None });
        Some(self.members.len() - 1)
    }
}

impl PoolWorker {
    /// Whether the worker has read the runs that a task needs.
    fn has_read(&self, needed: Option<&Rc<RunData>>) -> bool {
        let Some(needed) = needed else { return true };
        self.run_data.as_ref().is_some_and(|last| Rc::ptr_eq(last, needed))
    }

    /// Sends the question of the task, or first the runs that the question is about.
    fn send_next(&self) {
        let Some(task) = &self.task else { return };
        let unread = task.run_data.as_ref().filter(|needed| !self.has_read(Some(needed)));
        let message = unread.map_or(&task.message, |needed| &needed.message);
        self.worker.send(message);
    }
}

/// Handles a message of a worker. A worker that trapped or ran out of memory has left the pool with its task.
fn receive(number: u32, message: WorkerMessage<LabReply>) {
    let has_failed = matches!(message, WorkerMessage::Failed(_));
    let Some(reply) = reply_of(message) else { return };
    let on_reply = POOL.with_borrow_mut(|pool| {
        let place = pool.members.iter().position(|member| member.number == number)?;
        let member = pool.members.get_mut(place)?;
        let on_reply = member.task.as_ref().map(|task| task.on_reply.clone());
        match &reply {
            Ok(LabReply::Taken(_)) => {
                member.run_data = member.task.as_ref().and_then(|task| task.run_data.clone());
                member.send_next();
            }
            Ok(LabReply::Progress(_)) => {}
            Ok(_) | Err(_) => {
                member.task = None;
                if has_failed {
                    pool.members.remove(place);
                }
                pool.dispatch();
            }
        }
        on_reply
    });
    if let Some(on_reply) = on_reply {
        on_reply(reply);
    }
}
