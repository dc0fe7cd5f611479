//! The page's Python interpreter. The page sends a [`ProgramJob`] as bytes, and the worker sends
//! [`ProgramReply`]s back.
//!
//! A worker runs one program. The page ends the worker to stop the program.

#[cfg(target_arch = "wasm32")]
mod heap;
mod random;
mod report;

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_program::{PrintedText, ProgramError, ProgramJob, ProgramReply, ProgramRun};
use blockyard_python::{ProgramSettings, ProgramSource, run, run_to_step};
use blockyard_record::Bytes;
use blockyard_rules::AllocatorConfig;
use blockyard_torch::GpuProfile;
use js_sys::{Date, Function, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::MessageEvent;

#[wasm_bindgen]
extern "C" {
    // The `postMessage` of a worker. That of a window has other arguments.
    #[wasm_bindgen(js_name = postMessage)]
    fn post(message: &JsValue);
}

/// Receives messages of the page from now on.
pub fn listen() {
    // Without this hook, the browser's message of a panic would be `unreachable`.
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        if let Some(bytes) = event.data().dyn_ref::<Uint8Array>() {
            run_job(&bytes.to_vec());
        }
    });
    let scope = js_sys::global();
    let _ = Reflect::set(&scope, &"onmessage".into(), listener.as_ref().unchecked_ref::<Function>());
    listener.forget();
}

fn run_job(bytes: &[u8]) {
    match postcard::from_bytes::<ProgramJob>(bytes) {
        Ok(job) => {
            let printer = Rc::new(RefCell::new(Printer::default()));
            let result = run_program(job, &printer);
            printer.borrow_mut().send();
            reply(&ProgramReply::Done(Box::new(result)));
        }
        // The page has just encoded the job, so this error cannot happen. Without the exception the page
        // would wait without an end.
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}

/// The most requests of a program: a figure of this many steps still follows the pointer.
const MAX_REQUESTS: u64 = 2_000_000;

fn run_program(job: ProgramJob, printer: &Rc<RefCell<Printer>>) -> Result<ProgramRun, ProgramError> {
    let mut gpu = GpuProfile::from_id(&job.gpu).ok_or(ProgramError::Gpu(job.gpu))?;
    if let Some(capacity) = job.capacity {
        gpu.total_memory = capacity;
    }
    let config = AllocatorConfig::parse(&job.conf, job.release)
        .map_err(|error| ProgramError::Config(format!("{error}")))?;
    let settings = ProgramSettings {
        gpu,
        config,
        non_pytorch: if job.counts_non_pytorch {
            blockyard_gpus::context_and_libraries()
        } else {
            Bytes::ZERO
        },
        is_recorded: true,
        max_requests: MAX_REQUESTS,
        ..ProgramSettings::default()
    };
    let program =
        ProgramSource { file: "program.py".to_owned(), source: job.source, arguments: job.arguments };
    if let Some(step) = job.referrers_at {
        let report = |referrers| reply(&ProgramReply::Referrers(report::referrers(referrers)));
        return Ok(report::report(run_to_step(&program, &settings, step, report), settings.non_pytorch));
    }
    let printer = Rc::clone(printer);
    let output = Box::new(move |text: &str| printer.borrow_mut().print(text));
    Ok(report::report(run(&program, &settings, output), settings.non_pytorch))
}

/// However much a program prints, on average at most one message is sent in this time.
const PAUSE_MILLIS: f64 = 40.0;
/// This many messages may be sent at once, so that the lines before a long loop are seen while the loop runs.
const MAX_AT_ONCE: f64 = 50.0;

/// Sends the output of the program. If the program prints much, a message has several pieces.
#[derive(Default)]
struct Printer {
    kept: Vec<PrintedText>,
    /// The next message may be sent at this time, by `Date.now`. Each message adds [`PAUSE_MILLIS`].
    spent_millis: f64,
}

impl Printer {
    fn print(&mut self, text: &str) {
        let steps = steps();
        match self.kept.last_mut() {
            Some(last) if last.steps == steps => last.text.push_str(text),
            _ => self.kept.push(PrintedText { text: text.to_owned(), steps }),
        }
        if text.ends_with(['\n', '\r']) && self.spent_millis <= Date::now() {
            self.send();
        }
    }

    fn send(&mut self) {
        if !self.kept.is_empty() {
            reply(&ProgramReply::Printed(std::mem::take(&mut self.kept)));
        }
        let unspent = Date::now() - MAX_AT_ONCE * PAUSE_MILLIS;
        self.spent_millis = self.spent_millis.max(unspent) + PAUSE_MILLIS;
    }
}

/// How many steps the recording of the first GPU has now.
fn steps() -> usize {
    blockyard_torch::session().device(0).map_or(0, |device| device.step_count())
}

fn reply(reply: &ProgramReply) {
    match postcard::to_allocvec(reply) {
        Ok(bytes) => post(&Uint8Array::from(bytes.as_slice())),
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}
