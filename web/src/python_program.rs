//! The files of Python and the workers that run it. The files are fetched once, for the first program.
//!
//! A worker runs one program. When it has ended, the next worker starts Python before there is a job for it,
//! so that only the first program waits until Python has started.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use blockyard_program::ProgramReply;
use js_sys::{ArrayBuffer, Uint8Array, WebAssembly};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::browser;
use crate::workers::{PageWorker, WorkerMessage, object};

/// The release of Python that the page runs.
pub(crate) const PYTHON: &str = "Python 3.13.2";

/// The script of each worker.
const BOOT: &str = "python.js";

/// How a file reaches the worker.
#[derive(Clone, Copy)]
enum Form {
    /// The address of a copy of a script.
    Script,
    /// WebAssembly, compiled once for all workers.
    Code,
    /// The bytes.
    Archive,
}

/// The files, each with its name in the worker's first message. All are compressed.
const FILES: [(&str, &str, Form); 6] = [
    ("loader", "python/pyodide.mjs.gz", Form::Script),
    ("script", "python/pyodide.asm.js.gz", Form::Script),
    ("code", "python/pyodide.asm.wasm.gz", Form::Code),
    ("extension", "python/blockyard.wasm.gz", Form::Code),
    ("library", "python/library.zip.gz", Form::Archive),
    ("packages", "python/torch.zip.gz", Form::Archive),
];

/// Python, once it is fetched.
#[derive(Clone, Debug)]
pub(crate) struct PythonProgram {
    /// The address of a copy of [`BOOT`].
    boot_script: String,
    /// The first message of a worker.
    files: JsValue,
    /// A worker that has no job yet.
    spare: Rc<RefCell<Option<PageWorker>>>,
}

/// Why Python cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPython {
    /// A file could not be fetched.
    Missing,
    /// The browser cannot unpack or compile the files.
    NotCompiled,
}

impl PythonProgram {
    /// Fetches and compiles the files. `on_bytes` is called with the number of bytes that have arrived.
    ///
    /// # Errors
    ///
    /// [`NoPython::Missing`] if a file cannot be fetched, [`NoPython::NotCompiled`] if the browser cannot use
    /// one.
    pub(crate) async fn fetch(on_bytes: impl Fn(f64)) -> Result<Self, NoPython> {
        let boot_script = browser::blob_url(BOOT).await.ok_or(NoPython::Missing)?;
        let mut files = Vec::new();
        let arrived = Cell::new(0.0);
        for (name, address, form) in FILES {
            let before = arrived.get();
            let fetched = browser::fetch_with_progress(address, |bytes| {
                arrived.set(before + bytes);
                on_bytes(arrived.get());
            });
            let file = fetched.await.ok_or(NoPython::Missing)?;
            files.push((name, ready(&file, form).await.ok_or(NoPython::NotCompiled)?));
        }
        Ok(Self { boot_script, files: object(&files), spare: Rc::default() })
    }

    /// Gives a job to a worker, and calls `on_message` with the worker's messages: first that the program
    /// starts now, then its replies. `None` if the browser starts no workers.
    pub(crate) fn start(
        &self,
        job: &Uint8Array,
        on_message: impl Fn(WorkerMessage<ProgramReply>) + 'static,
    ) -> Option<PageWorker> {
        let spare = self.spare.take();
        let worker = spare.or_else(|| self.new_worker())?.listen(on_message);
        worker.send_now(job);
        Some(worker)
    }

    /// Starts Python for the next job, unless that has been done.
    pub(crate) fn prepare(&self) {
        let mut spare = self.spare.borrow_mut();
        if spare.is_none() {
            *spare = self.new_worker();
        }
    }

    fn new_worker(&self) -> Option<PageWorker> {
        PageWorker::new(&self.boot_script, &self.files)
    }
}

/// The content of a compressed file as the worker gets it; `None` if the browser cannot make it.
async fn ready(file: &ArrayBuffer, form: Form) -> Option<JsValue> {
    let bytes = browser::unpacked(file).await?;
    match form {
        Form::Script => browser::script_url(&bytes).map(JsValue::from),
        Form::Code => JsFuture::from(WebAssembly::compile(&bytes)).await.ok(),
        Form::Archive => Some(Uint8Array::new(&bytes).into()),
    }
}
