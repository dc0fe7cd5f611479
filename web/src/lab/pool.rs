//! A pool of workers that answer questions, at most one for each core. Each worker keeps the runs that its
//! last question was about. A separate worker, which ends with its task, makes a report.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use blockyard_lab::{LabAnswer, Question, RunSource};
use blockyard_questions::{LabReply, LabTask, ReportOptions, RunSummary};
use blockyard_replay::Progress;
use js_sys::{Object, Reflect, Uint8Array};
use thiserror::Error;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, Worker};

use crate::browser;
use crate::worker_program::WorkerProgram;

/// The pool has at most this many workers. More workers would wait for each other.
const MAX_WORKERS: usize = 8;
/// Files of at least this many bytes are read by at most two workers, because each worker keeps a copy.
const LARGE_BYTES: f64 = 8e6;

/// The reply to a task, as the page's handlers get it.
#[derive(Debug)]
pub(super) enum TaskReply {
    /// How much of the task is done.
    Progress(Progress),
    /// The worker has read these runs.
    Taken(Vec<RunSummary>),
    /// The answer.
    Answered(Box<LabAnswer>),
    /// The report, as HTML.
    Report(String),
    /// The task failed.
    Failed(TaskError),
}

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
    #[error("the answer cannot be read: {0}")]
    Reply(#[from] postcard::Error),
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
        let message = message(&LabTask::Take(source.clone()), content)?;
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

type OnReply = Rc<dyn Fn(TaskReply)>;

struct Task {
    /// The runs that the worker has to read first; `None` if the task brings its own.
    run_data: Option<Rc<RunData>>,
    message: JsValue,
    on_reply: OnReply,
}

struct PoolWorker {
    worker: Worker,
    number: u32,
    is_ready: bool,
    /// The runs that the worker has read last.
    run_data: Option<Rc<RunData>>,
    /// The task that the worker is doing.
    task: Option<Task>,
}

struct WorkerPool {
    program: WorkerProgram,
    members: Vec<PoolWorker>,
    queue: VecDeque<Task>,
    last_number: u32,
}

thread_local! {
    static POOL: RefCell<WorkerPool> = const {
        RefCell::new(WorkerPool {
            program: WorkerProgram::new("blockyard-questions"),
            members: Vec::new(),
            queue: VecDeque::new(),
            last_number: 0,
        })
    };
}

/// Fetches the module of the workers, so that questions need no network.
pub(crate) async fn prepare() {
    let program = POOL.with_borrow(|pool| pool.program.clone());
    if !program.is_fetched() {
        let program = program.fetch().await;
        POOL.with_borrow_mut(|pool| pool.program = program);
    }
}

fn message(task: &LabTask, content: Option<&Blob>) -> Option<JsValue> {
    let bytes = postcard::to_allocvec(task).ok()?;
    let message = Object::new();
    Reflect::set(&message, &"lab".into(), &Uint8Array::from(bytes.as_slice())).ok()?;
    if let Some(content) = content {
        Reflect::set(&message, &"content".into(), content).ok()?;
    }
    Some(message.into())
}

/// Puts a question into the queue. A worker answers it as soon as one is free.
pub(super) fn ask(
    run_data: &Rc<RunData>,
    run: Option<usize>,
    question: Question,
    content: Option<&Blob>,
    on_reply: impl Fn(TaskReply) + 'static,
) {
    let Some(message) = message(&LabTask::Ask { run, question }, content) else {
        return on_reply(TaskReply::Failed(TaskError::NotSent));
    };
    put(Task { run_data: Some(run_data.clone()), message, on_reply: Rc::new(on_reply) });
}

/// A report that is being made, in a separate worker: its module is fetched for the first report.
struct Reporter {
    worker: Worker,
    message: JsValue,
    on_reply: OnReply,
}

thread_local! {
    static REPORTER: RefCell<Option<Reporter>> = const { RefCell::new(None) };
}

/// Has a report made, and ends one that is still being made; `content` is the content of the file that the
/// source names.
pub(super) fn report(
    source: RunSource,
    options: ReportOptions,
    content: Option<&Blob>,
    on_reply: impl Fn(TaskReply) + 'static,
) {
    let Some(message) = message(&LabTask::Report { source, options }, content) else {
        return on_reply(TaskReply::Failed(TaskError::NotSent));
    };
    let worker = WorkerProgram::new("blockyard-report").start(
        |message| receive_from_reporter(&message),
        |why| end_report(TaskReply::Failed(TaskError::Worker(why))),
    );
    let Some(worker) = worker else { return on_reply(TaskReply::Failed(TaskError::NoWorkers)) };
    let before = REPORTER.replace(Some(Reporter { worker, message, on_reply: Rc::new(on_reply) }));
    if let Some(before) = before {
        before.worker.terminate();
    }
}

/// Handles a message of the worker that makes a report.
fn receive_from_reporter(message: &JsValue) {
    let Some(bytes) = message.dyn_ref::<Uint8Array>() else {
        // The only other message reports that the worker is ready.
        REPORTER.with_borrow(|reporter| {
            let Some(reporter) = reporter else { return };
            let _ = reporter.worker.post_message(&reporter.message);
        });
        return;
    };
    match postcard::from_bytes::<LabReply>(&bytes.to_vec()) {
        Ok(LabReply::Progress(progress)) => {
            let on_reply = REPORTER.with_borrow(|reporter| Some(reporter.as_ref()?.on_reply.clone()));
            if let Some(on_reply) = on_reply {
                on_reply(TaskReply::Progress(progress));
            }
        }
        Ok(LabReply::Report(html)) => end_report(TaskReply::Report(html)),
        Ok(LabReply::Failed(why)) => end_report(TaskReply::Failed(TaskError::Lab(why))),
        Ok(LabReply::Taken(_) | LabReply::Answered(_)) => {}
        Err(error) => end_report(TaskReply::Failed(error.into())),
    }
}

/// Ends the worker, which holds the whole file, and hands over its last reply.
fn end_report(reply: TaskReply) {
    if let Some(reporter) = REPORTER.take() {
        reporter.worker.terminate();
        (reporter.on_reply)(reply);
    }
}

fn put(task: Task) {
    let failed = POOL.with_borrow_mut(|pool| {
        pool.queue.push_back(task);
        pool.dispatch()
    });
    if let Some(task) = failed {
        (task.on_reply)(TaskReply::Failed(TaskError::NoWorkers));
    }
}

/// Ends the tasks that are being done, and drops those in the queue.
pub(super) fn cancel() {
    POOL.with_borrow_mut(|pool| {
        pool.queue.clear();
        // A worker reads no message while it computes, so the only way to stop it is to end it.
        pool.members.retain(|member| {
            if member.task.is_some() {
                member.worker.terminate();
            }
            member.task.is_none()
        });
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
        let on_message = move |message: JsValue| receive(number, &message);
        let worker = self.program.start(on_message, move |why| worker_failed(number, why))?;
        self.members.push(PoolWorker { worker, number, is_ready: false, run_data: None, task: None });
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
        let (true, Some(task)) = (self.is_ready, &self.task) else { return };
        let unread = task.run_data.as_ref().filter(|needed| !self.has_read(Some(needed)));
        let message = unread.map_or(&task.message, |needed| &needed.message);
        let _ = self.worker.post_message(message);
    }
}

/// Handles a message of a worker.
fn receive(number: u32, message: &JsValue) {
    let reply =
        message.dyn_ref::<Uint8Array>().map(|bytes| postcard::from_bytes::<LabReply>(&bytes.to_vec()));
    let handled = POOL.with_borrow_mut(|pool| {
        let member = pool.members.iter_mut().find(|member| member.number == number)?;
        let reply = match reply {
            // The only other message reports that the worker is ready.
            None => {
                member.is_ready = true;
                member.send_next();
                return None;
            }
            Some(Ok(LabReply::Progress(progress))) => TaskReply::Progress(progress),
            Some(Ok(LabReply::Taken(runs))) => {
                member.run_data = member.task.as_ref().and_then(|task| task.run_data.clone());
                member.send_next();
                TaskReply::Taken(runs)
            }
            Some(Ok(LabReply::Answered(answer))) => TaskReply::Answered(answer),
            // The page asks these workers for no report.
            Some(Ok(LabReply::Report(_))) => return None,
            Some(Ok(LabReply::Failed(why))) => TaskReply::Failed(TaskError::Lab(why)),
            Some(Err(error)) => TaskReply::Failed(error.into()),
        };
        let is_over = matches!(reply, TaskReply::Answered(_) | TaskReply::Failed(_));
        let on_reply = member.task.as_ref().map(|task| task.on_reply.clone());
        if is_over {
            member.task = None;
            pool.dispatch();
        }
        Some((on_reply?, reply))
    });
    if let Some((on_reply, reply)) = handled {
        on_reply(reply);
    }
}

/// Handles the end of a worker that trapped or ran out of memory.
fn worker_failed(number: u32, why: String) {
    let task = POOL.with_borrow_mut(|pool| {
        let place = pool.members.iter().position(|member| member.number == number)?;
        let member = pool.members.remove(place);
        member.worker.terminate();
        pool.dispatch();
        member.task
    });
    if let Some(task) = task {
        (task.on_reply)(TaskReply::Failed(TaskError::Worker(why)));
    }
}
