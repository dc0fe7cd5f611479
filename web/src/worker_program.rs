//! The modules that workers run. A module is fetched once, and workers are then started without the network.

use js_sys::{Object, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::browser;

/// The script that every worker starts with. It loads the module that the first message names.
const BOOT: &str = "worker.js";

/// A module for workers: its script and its WebAssembly code.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgram {
    /// The beginning of the names of the module's files.
    name: &'static str,
    /// The address of a copy of `worker.js`, once it is fetched.
    boot_script: Option<String>,
    /// The address of a copy of the module's script, once it is fetched.
    script: Option<String>,
    /// The bytes of the code.
    code: JsValue,
}

impl WorkerProgram {
    /// A module whose file names begin with `name`. The files are not fetched yet; a worker that starts
    /// before [`Self::fetch`] has ended fetches them itself.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, boot_script: None, script: None, code: JsValue::UNDEFINED }
    }

    /// Whether the files are fetched.
    pub(crate) fn is_fetched(&self) -> bool {
        !self.code.is_undefined()
    }

    /// Fetches the files. If that fails, each worker fetches them itself.
    pub(crate) async fn fetch(mut self) -> Self {
        if let Some(bytes) = browser::fetch_bytes(&self.code_file()).await {
            self.code = bytes.into();
            self.fetch_scripts().await;
        }
        self
    }

    async fn fetch_scripts(&mut self) {
        self.boot_script = browser::blob_url(BOOT).await;
        self.script = browser::blob_url(&self.script_file()).await;
    }

    fn code_file(&self) -> String {
        format!("{}_bg.wasm", self.name)
    }

    fn script_file(&self) -> String {
        format!("{}.js", self.name)
    }

    /// The address of the module's script.
    pub(crate) fn script(&self) -> String {
        self.script.clone().unwrap_or_else(|| browser::page_address(&self.script_file()))
    }

    /// The code of the module, or the code's address if it is not fetched.
    pub(crate) fn code(&self) -> JsValue {
        if self.is_fetched() { self.code.clone() } else { browser::page_address(&self.code_file()).into() }
    }

    /// Starts a worker. The first message of the worker says that it can receive messages. If the worker
    /// fails, `on_end` is called with the reason. `None` if the browser starts no workers.
    pub(crate) fn start(
        &self,
        mut on_message: impl FnMut(JsValue) + 'static,
        mut on_end: impl FnMut(String) + 'static,
    ) -> Option<Worker> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let boot_script = self.boot_script.as_deref().unwrap_or(BOOT);
        let worker = Worker::new_with_options(boot_script, &options).ok()?;
        browser::listen(&worker, "message", move |event: MessageEvent| on_message(event.data()));
        browser::listen(&worker, "error", move |event: web_sys::Event| {
            let why = Reflect::get(&event, &"message".into()).ok().and_then(|text| text.as_string());
            on_end(why.unwrap_or_else(|| "it could not be loaded".to_owned()));
        });
        let module = Object::new();
        Reflect::set(&module, &"script".into(), &self.script().into()).ok()?;
        Reflect::set(&module, &"module".into(), &self.code()).ok()?;
        worker.post_message(&module).ok()?;
        Some(worker)
    }
}
