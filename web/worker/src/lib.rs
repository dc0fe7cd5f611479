//! Long work beside the page: the page sends a [`Job`] as bytes, and the worker answers with [`Reply`]s.
//!
//! The page knows this crate for its messages alone; the program that does the work is a separate module, so
//! that a visitor who opens no file never waits for the code that reads files.

mod content;
mod device;
mod run;

pub use content::{bytes_in, content_in};

use std::cell::RefCell;
use std::ops::ControlFlow;

use blockyard_record::Bytes;
use blockyard_replay::job::{
    Job, JobError, JobOutput, OpenFile, PartialTrace, PendingComparison, open, perform,
};
use blockyard_replay::{Comparison, Progress};
use js_sys::{Array, Function, Reflect, Uint8Array};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Blob, MessageEvent};

use content::BlobReader;

/// The least time between two reports of progress, because the page draws each of them.
const BETWEEN_REPORTS_MILLIS: f64 = 100.0;

/// A file that takes longer than this to open gets a figure while it is read, and the figure is sent again
/// after each such span of time.
const BETWEEN_FIGURES_MILLIS: f64 = 400.0;

#[wasm_bindgen]
extern "C" {
    // A worker's own `postMessage`, which a window has with other arguments.
    #[wasm_bindgen(js_name = postMessage)]
    pub(crate) fn post(message: &JsValue);
    // The `postMessage` with a list: the buffers in `transferred` are moved to the page and not copied.
    #[wasm_bindgen(js_name = postMessage)]
    fn post_transferred(message: &JsValue, transferred: &Array);
}

/// A message of the worker to the page.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The GPU that the job runs on.
    Adapter(Adapter),
    /// How much of the job is done.
    Progress(Progress),
    /// The part that has been read of the trace of a file that is being opened.
    Read(ReadPart),
    /// The job is done, or failed. A file that was opened is compared with our allocator once the page asks
    /// for that.
    Done(Box<Result<JobOutput, JobError>>),
    /// The comparison of the opened file with our allocator.
    Compared(Box<Result<Comparison, JobError>>),
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

/// The message by which the page asks for the comparison of the file that was opened last.
pub const COMPARE: &str = "compare";

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
            reply(&Reply::Progress(progress));
        }
        ControlFlow::Continue(())
    }
}

/// Receives the jobs of the page from now on.
pub fn listen() {
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let message = event.data();
        if message.as_string().is_some_and(|message| message == COMPARE) {
            return compare();
        }
        match message.dyn_ref::<Uint8Array>() {
            Some(bytes) => work(&bytes.to_vec()),
            None => match content::file_in(&message, "file") {
                Some(file) => open_file(&message, file),
                None => spawn_local(work_on_gpu(message)),
            },
        }
    });
    let scope = js_sys::global();
    let _ = Reflect::set(&scope, &"onmessage".into(), listener.as_ref().unchecked_ref::<Function>());
    listener.forget();
}

fn decode(bytes: &[u8]) -> Job {
    match postcard::from_bytes(bytes) {
        Ok(job) => job,
        // The page has just encoded the job, so this error cannot happen; without an exception the page would
        // wait without an end.
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}

/// Does a job that comes with a device.
async fn work_on_gpu(message: JsValue) {
    let part = |name: &str| Reflect::get(&message, &name.into()).unwrap_or_default();
    let job = decode(&Uint8Array::new(&part("job")).to_vec());
    let on_adapter = |adapter| reply(&Reply::Adapter(adapter));
    let on_progress = |progress| reply(&Reply::Progress(progress));
    let result = run::run(&job, &part("script"), &part("wasm"), on_adapter, on_progress).await;
    reply(&Reply::Done(Box::new(result)));
}

fn work(bytes: &[u8]) {
    let job = decode(bytes);
    let mut reports = Reports::default();
    let result = perform(&job, &mut |progress| reports.report(progress));
    reply(&Reply::Done(Box::new(result)));
}

/// Opens a file piece by piece. The figures do not wait for the comparison.
fn open_file(message: &JsValue, file: Blob) {
    let job = bytes_in(message, "job").map(|bytes| decode(&bytes.to_vec()));
    let Some(Job::Open { name, device, .. }) = job else { return };
    // The file before is not compared any more, and its memory is freed for the next file.
    PENDING.with_borrow_mut(Option::take);
    let content = BlobReader::new(file);
    let opening = OpenFile { name: &name, length: content.length(), device };
    let mut reports = Reports::default();
    let mut last_figure = js_sys::Date::now();
    let mut on_trace = |so_far: &PartialTrace| {
        let now = js_sys::Date::now();
        if now - last_figure >= BETWEEN_FIGURES_MILLIS {
            last_figure = now;
            let columns = so_far.columns().collect();
            reply(&Reply::Read(ReadPart { entries: so_far.entries() as u64, columns }));
        }
    };
    let opened = open(&opening, content, &mut |progress| reports.report(progress), &mut on_trace);
    let result = opened.map(|(output, pending)| {
        PENDING.with_borrow_mut(|place| *place = Some(pending));
        output
    });
    reply(&Reply::Done(Box::new(result)));
}

/// Compares the file that was opened last with our allocator.
fn compare() {
    let Some(pending) = PENDING.with_borrow_mut(Option::take) else { return };
    let mut reports = Reports::default();
    let result = pending.compare(&mut |progress| reports.report(progress));
    reply(&Reply::Compared(Box::new(result)));
}

fn reply(reply: &Reply) {
    match postcard::to_allocvec(reply) {
        Ok(bytes) => {
            let message = Uint8Array::from(bytes.as_slice());
            drop(bytes);
            post_transferred(&message, &Array::of1(&message.buffer()));
        }
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}
