//! Long work beside the page: runs that take long, and files that are read.

use std::cell::RefCell;
use std::ops::ControlFlow;

use blockyard_record::Bytes;
use blockyard_replay::job::{
    Job, JobError, JobOutput, OpenFile, PartialTrace, PendingComparison, open, perform,
};
use blockyard_replay::{Comparison, Progress};
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use crate::channel::{self, file_of, member, reply};
use crate::content::BlobReader;
use crate::run;

/// The least time between two reports of progress, because the page draws each of them.
const BETWEEN_REPORTS_MILLIS: f64 = 100.0;

/// A file that takes longer than this to open gets a figure while it is read, and the figure is sent again
/// after each such span of time.
const BETWEEN_FIGURES_MILLIS: f64 = 400.0;

/// A message of the page.
#[derive(Debug, Serialize, Deserialize)]
pub enum JobTask {
    /// Does a job. The file of [`Job::Open`] comes with the task.
    Do(Job),
    /// Runs a workload on the GPU, whose module comes with the task.
    OnGpu(Job),
    /// Compares the file that was opened last with our allocator.
    Compare,
}

/// A message of the worker to the page.
#[derive(Debug, Serialize, Deserialize)]
pub enum JobReply {
    /// A report on the job, or on the comparison, before it is done.
    Report(JobReport),
    /// The job is done, or failed. A file that was opened is compared with our allocator once the page asks
    /// for that.
    Done(Box<Result<JobOutput, JobError>>),
    /// The comparison of the opened file with our allocator.
    Compared(Box<Result<Comparison, JobError>>),
}

/// A report on a job before the job is done.
#[derive(Debug, Serialize, Deserialize)]
pub enum JobReport {
    /// The GPU that the job runs on.
    Adapter(Adapter),
    /// How much of the job is done.
    Progress(Progress),
    /// The part that has been read of the trace of a file that is being opened.
    Read(ReadPart),
}

/// Memory over time of the part of a trace that has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPart {
    /// How many entries of the trace have been read.
    pub entries: u64,
    /// The most requested and the most reserved bytes of each column; each column covers the same number of
    /// entries.
    pub columns: Vec<(Bytes, Bytes)>,
}

/// An adapter, which is WebGPU's word for a GPU, and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// The name that the browser gives.
    pub name: String,
    /// Whether the adapter is software, which computes on the processor.
    pub is_software: bool,
    /// The largest segment, in bytes.
    pub largest_buffer: u64,
    /// The most bytes that one compute pass sees.
    pub largest_binding: u64,
}

thread_local! {
    /// The comparison of the file that was opened last, until the page asks for it.
    static PENDING: RefCell<Option<PendingComparison>> = const { RefCell::new(None) };
}

/// Reports progress to the page: each new phase, and otherwise at most one report in
/// [`BETWEEN_REPORTS_MILLIS`].
#[derive(Default)]
struct Reports {
    phase: String,
    last_millis: f64,
}

impl Reports {
    fn report(&mut self, progress: Progress) -> ControlFlow<()> {
        let now = js_sys::Date::now();
        if progress.phase != self.phase || now - self.last_millis >= BETWEEN_REPORTS_MILLIS {
            self.phase.clone_from(&progress.phase);
            self.last_millis = now;
            reply(&JobReply::Report(JobReport::Progress(progress)));
        }
        ControlFlow::Continue(())
    }
}

/// Receives the jobs of the page from now on.
pub fn listen() {
    channel::listen(|task, message| match (task, file_of(&message)) {
        (JobTask::Do(Job::Open { name, device, .. }), Some(file)) => open_file(&name, device, file),
        (JobTask::Do(job), _) => {
            let mut reports = Reports::default();
            let result = perform(&job, &mut |progress| reports.report(progress));
            reply(&JobReply::Done(Box::new(result)));
        }
        (JobTask::OnGpu(job), _) => spawn_local(work_on_gpu(job, message)),
        (JobTask::Compare, _) => compare(),
    });
}

/// Does a job on the GPU.
async fn work_on_gpu(job: Job, message: JsValue) {
    let (script, wasm) = (member(&message, "script"), member(&message, "wasm"));
    let on_report = |report| reply(&JobReply::Report(report));
    let result = run::run(&job, &script, &wasm, on_report).await;
    reply(&JobReply::Done(Box::new(result)));
}

/// Opens a file piece by piece. The figures do not wait for the comparison.
fn open_file(name: &str, device: Option<usize>, file: Blob) {
    // The file before is not compared any more, and its memory is freed for the next file.
    PENDING.with_borrow_mut(Option::take);
    let content = BlobReader::new(file);
    let opening = OpenFile { name, length: content.length(), device };
    let mut reports = Reports::default();
    let mut last_figure = js_sys::Date::now();
    let mut on_trace = |so_far: &PartialTrace| {
        let now = js_sys::Date::now();
        if now - last_figure >= BETWEEN_FIGURES_MILLIS {
            last_figure = now;
            let columns = so_far.columns().collect();
            let part = ReadPart { entries: so_far.entries() as u64, columns };
            reply(&JobReply::Report(JobReport::Read(part)));
        }
    };
    let opened = open(&opening, content, &mut |progress| reports.report(progress), &mut on_trace);
    let result = opened.map(|(output, pending)| {
        PENDING.with_borrow_mut(|place| *place = Some(pending));
        output
    });
    reply(&JobReply::Done(Box::new(result)));
}

/// Compares the file that was opened last with our allocator.
fn compare() {
    let Some(pending) = PENDING.with_borrow_mut(Option::take) else { return };
    let mut reports = Reports::default();
    let result = pending.compare(&mut |progress| reports.report(progress));
    reply(&JobReply::Compared(Box::new(result)));
}
