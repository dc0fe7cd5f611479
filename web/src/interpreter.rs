//! Python programs in a worker of their own: the interpreter (`web/interpreter`) is fetched for the first program, compiled once,
//! and each program gets a worker, so that stopping a program is ending its worker.

use std::cell::RefCell;

use blockyard_program::{PrintedText, ProgramError, ProgramJob, ProgramReply, ProgramRun};
use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::browser;

/// What a running program reports, in order.
pub(crate) enum Progress {
    /// The interpreter is fetched: bytes so far.
    Loading(f64),
    /// The program runs now.
    Started,
    Printed(Vec<PrintedText>),
    Done(Box<Result<ProgramRun, ProgramError>>),
    /// The interpreter could not be loaded, or it broke down: why.
    Broken(String),
}

type OnProgress = Box<dyn FnMut(Progress)>;

#[derive(Default)]
struct Interpreter {
    /// The compiled module.
    module: Option<JsValue>,
    script: Option<String>,
    worker: Option<Worker>,
    // Which run it is: what an ended worker still says does not count.
    generation: u32,
    on_progress: Option<OnProgress>,
}

thread_local! {
    static INTERPRETER: RefCell<Interpreter> = RefCell::default();
}

/// Runs the program; one that still runs is stopped.
pub(crate) fn run(job: ProgramJob, on_progress: impl FnMut(Progress) + 'static) {
    stop();
    let generation = INTERPRETER.with_borrow_mut(|interpreter| {
        interpreter.generation += 1;
        interpreter.on_progress = Some(Box::new(on_progress));
        interpreter.generation
    });
    spawn_local(async move {
        if let Err(why) = load(generation).await {
            return report(generation, Progress::Broken(why));
        }
        if let Err(why) = start(generation, &job) {
            report(generation, Progress::Broken(why));
        }
    });
}

/// Ends the running program.
pub(crate) fn stop() {
    INTERPRETER.with_borrow_mut(|interpreter| {
        interpreter.generation += 1;
        interpreter.on_progress = None;
        if let Some(worker) = interpreter.worker.take() {
            worker.terminate();
        }
    });
}

fn report(generation: u32, progress: Progress) {
    let is_last = matches!(progress, Progress::Done(_) | Progress::Broken(_));
    // Taken out while it is called, since it may start or stop programs.
    let handler = INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation != generation {
            return None;
        }
        if is_last && let Some(worker) = interpreter.worker.take() {
            worker.terminate();
        }
        interpreter.on_progress.take()
    });
    let Some(mut handler) = handler else { return };
    handler(progress);
    INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation == generation && !is_last {
            interpreter.on_progress = Some(handler);
        }
    });
}

/// Fetches and compiles the interpreter, unless that is done.
async fn load(generation: u32) -> Result<(), String> {
    if INTERPRETER.with_borrow(|interpreter| interpreter.module.is_some()) {
        return Ok(());
    }
    let on_bytes = move |bytes: f64| report(generation, Progress::Loading(bytes));
    let code = browser::fetch_with_progress("blockyard-interpreter_bg.wasm", on_bytes)
        .await
        .ok_or("this page was built without the Python interpreter, or the network failed")?;
    let module = JsFuture::from(js_sys::WebAssembly::compile(&code)).await;
    let module = module.map_err(|_| "this browser cannot compile the Python interpreter".to_owned())?;
    let script = browser::blob_url("blockyard-interpreter.js").await;
    INTERPRETER.with_borrow_mut(|interpreter| {
        interpreter.module = Some(module);
        interpreter.script = script;
    });
    Ok(())
}

fn start(generation: u32, job: &ProgramJob) -> Result<(), String> {
    let bytes = postcard::to_allocvec(job).map_err(|error| error.to_string())?;
    let message = Uint8Array::from(bytes.as_slice());
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    let no_worker = |_| "this browser does not start workers".to_owned();
    let worker = Worker::new_with_options("worker.js", &options).map_err(no_worker)?;
    let replies = worker.clone();
    browser::listen(&worker, "message", move |event: MessageEvent| {
        let data = event.data();
        let Some(bytes) = data.dyn_ref::<Uint8Array>() else {
            // Anything else is its greeting: it is ready.
            report(generation, Progress::Started);
            let _ = replies.post_message(&message);
            return;
        };
        let progress = match postcard::from_bytes::<ProgramReply>(&bytes.to_vec()) {
            Ok(ProgramReply::Printed(pieces)) => Progress::Printed(pieces),
            Ok(ProgramReply::Done(result)) => Progress::Done(result),
            Err(error) => Progress::Broken(error.to_string()),
        };
        report(generation, progress);
    });
    browser::listen(&worker, "error", move |event: web_sys::Event| {
        let why = Reflect::get(&event, &"message".into()).ok().and_then(|text| text.as_string());
        let why = why.unwrap_or_else(|| "the worker could not be loaded".to_owned());
        report(generation, Progress::Broken(format!("the interpreter broke down ({why})")));
    });
    let greeting = js_sys::Object::new();
    INTERPRETER.with_borrow_mut(|interpreter| {
        if interpreter.generation != generation {
            worker.terminate();
            return Ok(());
        }
        let script = interpreter.script.clone();
        let script = script.unwrap_or_else(|| browser::page_address("blockyard-interpreter.js"));
        let module = interpreter.module.clone().unwrap_or(JsValue::UNDEFINED);
        let _ = Reflect::set(&greeting, &"script".into(), &script.into());
        let _ = Reflect::set(&greeting, &"module".into(), &module);
        worker.post_message(&greeting).map_err(|_| "the worker takes no messages".to_owned())?;
        interpreter.worker = Some(worker);
        Ok(())
    })
}
