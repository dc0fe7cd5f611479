//! The page's workers: the modules that they run, and the one way in which a worker is started, gets messages
//! and is ended. A module is fetched once, and workers are then started without the network.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::thread::LocalKey;

use js_sys::{Array, ArrayBuffer, Object, Reflect, Uint8Array};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::browser;

/// The script that the workers of our modules start with. It loads the module that the first message names.
const BOOT: &str = "worker.js";

/// A module for workers: its script and its WebAssembly code.
#[derive(Debug)]
pub(crate) struct WorkerModule {
    /// The beginning of the names of the module's files.
    name: &'static str,
    files: OnceCell<ModuleFiles>,
}

/// The fetched files of a module.
#[derive(Debug)]
struct ModuleFiles {
    code: ArrayBuffer,
    /// The addresses of copies of [`BOOT`] and of the module's script; `None` where the fetch failed.
    boot_script: Option<String>,
    script: Option<String>,
}

thread_local! {
    /// Reads files and makes long runs.
    pub(crate) static JOBS: WorkerModule = const { WorkerModule::new("blockyard-worker") };
    /// Answers the questions of the lab.
    pub(crate) static QUESTIONS: WorkerModule = const { WorkerModule::new("blockyard-questions") };
    /// Makes reports.
    pub(crate) static REPORTS: WorkerModule = const { WorkerModule::new("blockyard-report") };
    /// Uses the reader's GPU. The worker of [`JOBS`] loads this module, too.
    pub(crate) static GPU: WorkerModule = const { WorkerModule::new("blockyard-gpu") };
}

/// Fetches the files of a module, so that its workers need no network. If that fails, each worker fetches the
/// files itself.
pub(crate) async fn fetch(module: &'static LocalKey<WorkerModule>) {
    if module.with(WorkerModule::is_fetched) {
        return;
    }
    let (code, script) = module.with(|module| (module.code_file(), module.script_file()));
    if let Some(code) = browser::fetch_bytes(&code).await {
        let boot_script = browser::blob_url(BOOT).await;
        let script = browser::blob_url(&script).await;
        let files = ModuleFiles { code, boot_script, script };
        let _ = module.with(|module| module.files.set(files));
    }
}

impl WorkerModule {
    /// A module whose file names begin with `name`. A worker that starts before [`fetch`] has ended fetches
    /// the files itself.
    const fn new(name: &'static str) -> Self {
        Self { name, files: OnceCell::new() }
    }

    /// Whether the files are fetched.
    pub(crate) fn is_fetched(&self) -> bool {
        self.files.get().is_some()
    }

    fn code_file(&self) -> String {
        format!("{}_bg.wasm", self.name)
    }

    fn script_file(&self) -> String {
        format!("{}.js", self.name)
    }

    /// The address of the module's script.
    pub(crate) fn script(&self) -> JsValue {
        let script = self.files.get().and_then(|files| files.script.clone());
        script.unwrap_or_else(|| browser::page_address(&self.script_file())).into()
    }

    /// The code of the module, or the code's address if it is not fetched.
    pub(crate) fn code(&self) -> JsValue {
        match self.files.get() {
            Some(files) => files.code.clone().into(),
            None => browser::page_address(&self.code_file()).into(),
        }
    }

    /// Starts a worker that runs this module. `None` if the browser starts no workers.
    pub(crate) fn start(&self) -> Option<PageWorker> {
        let boot_script = self.files.get().and_then(|files| files.boot_script.as_deref());
        let files = object(&[("script", self.script()), ("module", self.code())]);
        PageWorker::new(boot_script.unwrap_or(BOOT), &files)
    }
}

/// Messages that wait until the worker can receive them, each with the objects that are moved to the worker;
/// `None` when the worker has sent its first message.
type UnsentMessages = Option<Vec<(JsValue, Array)>>;

/// A worker that was started. If this value is dropped, the worker is ended, and no message of it arrives any
/// more.
#[derive(Debug)]
pub(crate) struct PageWorker {
    worker: Worker,
    waiting: Rc<RefCell<UnsentMessages>>,
    is_ended: Rc<Cell<bool>>,
}

/// Gets a reply, or why it cannot be read.
pub(crate) type OnRead<R> = Box<dyn FnOnce(Result<R, String>)>;

/// A message of a worker.
pub(crate) enum WorkerMessage<R> {
    /// The first message: the worker can receive messages, or has begun with its task.
    Ready,
    /// A reply.
    Reply(R),
    /// The worker could not start, trapped, or ran out of memory, with the browser's message.
    Failed(String),
}

impl PageWorker {
    /// Starts a worker with this script, which gets its files in the first message. `None` if the browser
    /// starts no workers.
    pub(crate) fn new(script: &str, files: &JsValue) -> Option<Self> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options(script, &options).ok()?;
        worker.post_message(files).ok()?;
        let waiting = Rc::new(RefCell::new(Some(Vec::new())));
        Some(Self { worker, waiting, is_ended: Rc::default() })
    }

    /// Calls `on_message` with each message of the worker, whose replies are bytes of `R`.
    pub(crate) fn listen<R: DeserializeOwned + 'static>(
        self,
        on_message: impl Fn(WorkerMessage<R>) + 'static,
    ) -> Self {
        self.listen_with(
            |reply, then| then(postcard::from_bytes(&bytes(reply)).map_err(|error| error.to_string())),
            on_message,
        )
    }

    /// Calls `on_message` with each message of the worker. `read` reads a reply, at once or later; a reply that is read
    /// when the worker has ended is dropped.
    pub(crate) fn listen_with<R: 'static>(
        self,
        read: fn(JsValue, OnRead<R>),
        on_message: impl Fn(WorkerMessage<R>) + 'static,
    ) -> Self {
        let on_message = Rc::new(on_message);
        let (of_error, is_ended) = (on_message.clone(), self.is_ended.clone());
        browser::listen(&self.worker, "error", move |event: web_sys::Event| {
            let why = Reflect::get(&event, &"message".into()).ok().and_then(|text| text.as_string());
            if !is_ended.get() {
                of_error(WorkerMessage::Failed(why.unwrap_or_else(|| "it could not be loaded".to_owned())));
            }
        });
        let (worker, waiting, is_ended) = (self.worker.clone(), self.waiting.clone(), self.is_ended.clone());
        browser::listen(&self.worker, "message", move |event: MessageEvent| {
            if is_ended.get() {
                return;
            }
            let Some(messages) = waiting.take() else {
                let (on_message, is_ended) = (on_message.clone(), is_ended.clone());
                let on_read = move |reply: Result<R, String>| {
                    if !is_ended.get() {
                        on_message(reply.map_or_else(WorkerMessage::Failed, WorkerMessage::Reply));
                    }
                };
                return read(event.data(), Box::new(on_read));
            };
            for (message, moved) in messages {
                let _ = worker.post_message_with_transfer(&message, &moved);
            }
            on_message(WorkerMessage::Ready);
        });
        self
    }

    /// Sends a message as soon as the worker can receive it.
    pub(crate) fn send(&self, message: &JsValue) {
        self.send_and_move(message, &Array::new());
    }

    /// Sends a message as [`Self::send`] does, and moves these objects to the worker.
    pub(crate) fn send_and_move(&self, message: &JsValue, moved: &Array) {
        match self.waiting.borrow_mut().as_mut() {
            Some(waiting) => waiting.push((message.clone(), moved.clone())),
            None => {
                let _ = self.worker.post_message_with_transfer(message, moved);
            }
        }
    }

    /// Sends a message to a worker that receives messages from the beginning.
    pub(crate) fn send_now(&self, message: &JsValue) {
        let _ = self.worker.post_message(message);
    }
}

impl Drop for PageWorker {
    fn drop(&mut self) {
        self.is_ended.set(true);
        self.worker.terminate();
    }
}

/// The bytes of a reply.
pub(crate) fn bytes(reply: JsValue) -> Vec<u8> {
    reply.unchecked_into::<Uint8Array>().to_vec()
}

/// An object with these members.
pub(crate) fn object(members: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in members {
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

/// A message with a task, and with what comes with the task: a file, or a module.
pub(crate) fn task(task: &impl Serialize, more: &[(&str, JsValue)]) -> Result<JsValue, postcard::Error> {
    let bytes = postcard::to_allocvec(task)?;
    let task = ("task", Uint8Array::from(bytes.as_slice()).into());
    Ok(object(&[&[task], more].concat()))
}
