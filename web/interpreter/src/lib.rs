//! The page's Python interpreter: a [`ProgramJob`] comes as bytes, [`ProgramReply`]s go back.
//!
//! One worker runs one program: the page ends the worker to stop a program.

mod random;
mod report;

use std::cell::RefCell;
use std::rc::Rc;

use blockyard_allocator::AllocatorConfig;
use blockyard_program::{PrintedText, ProgramError, ProgramJob, ProgramReply, ProgramRun};
use blockyard_python::{Program, ProgramSettings, run};
use blockyard_torch::GpuProfile;
use js_sys::{Date, Function, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::MessageEvent;

#[wasm_bindgen]
extern "C" {
    // A worker's own `postMessage`, which a window has with other arguments.
    #[wasm_bindgen(js_name = postMessage)]
    fn post(message: &JsValue);
}

/// Takes programs from now on.
pub fn listen() {
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        if let Some(bytes) = event.data().dyn_ref::<Uint8Array>() {
            work(&bytes.to_vec());
        }
    });
    let scope = js_sys::global();
    let _ = Reflect::set(&scope, &"onmessage".into(), listener.as_ref().unchecked_ref::<Function>());
    listener.forget();
}

fn work(bytes: &[u8]) {
    match postcard::from_bytes::<ProgramJob>(bytes) {
        Ok(job) => {
            let printer = Rc::new(RefCell::new(Printer::default()));
            let result = perform(job, &printer);
            printer.borrow_mut().send();
            reply(&ProgramReply::Done(Box::new(result)));
        }
        // The page encoded it a moment ago; saying nothing would leave the page waiting.
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}

fn perform(job: ProgramJob, printer: &Rc<RefCell<Printer>>) -> Result<ProgramRun, ProgramError> {
    let mut gpu = GpuProfile::from_id(&job.gpu).ok_or(ProgramError::Gpu(job.gpu))?;
    if let Some(capacity) = job.capacity {
        gpu.total_memory = capacity;
    }
    let config: AllocatorConfig =
        job.config.parse().map_err(|error| ProgramError::Config(format!("{error}")))?;
    let settings = ProgramSettings { gpu, config, is_recorded: true, ..ProgramSettings::default() };
    let program = Program { file: "program.py".to_owned(), source: job.source, arguments: Vec::new() };
    let printer = Rc::clone(printer);
    let output = Box::new(move |text: &str| printer.borrow_mut().print(text));
    Ok(report::report(run(&program, &settings, output)))
}

/// A program that prints much does not send much: one message in so many milliseconds in the mean.
const PAUSE_MILLIS: f64 = 40.0;
/// So many messages may come without any pause, so that the lines before a long loop are seen while the loop runs.
const MOST_AT_ONCE: f64 = 50.0;

/// Sends what is printed, several pieces at a time where a program prints much.
#[derive(Default)]
struct Printer {
    kept: Vec<PrintedText>,
    /// Up to which time messages are spent, each worth [`PAUSE_MILLIS`].
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
        let unspent = Date::now() - MOST_AT_ONCE * PAUSE_MILLIS;
        self.spent_millis = self.spent_millis.max(unspent) + PAUSE_MILLIS;
    }
}

/// How many steps the recording of the first GPU has by now.
fn steps() -> usize {
    blockyard_torch::session().device(0).map_or(0, |device| device.step_count())
}

fn reply(reply: &ProgramReply) {
    match postcard::to_allocvec(reply) {
        Ok(bytes) => post(&Uint8Array::from(bytes.as_slice())),
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}
