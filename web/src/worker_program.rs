//! Programs for workers: fetched once, and started any number of times without the network.

use js_sys::{Object, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::browser;

/// The script that a worker starts with; it loads the program that the first message names.
const BOOT: &str = "worker.js";

/// A program for workers.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgram {
    /// How the files of the program begin.
    name: &'static str,
    boot_script: Option<String>,
    script: Option<String>,
    /// The bytes of the code, or the compiled module.
    code: JsValue,
}

impl WorkerProgram {
    /// A program whose files begin with `name`. They are not fetched yet: a worker that is started now fetches them itself.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, boot_script: None, script: None, code: JsValue::UNDEFINED }
    }

    /// Whether its files are there.
    pub(crate) fn is_fetched(&self) -> bool {
        !self.code.is_undefined()
    }

    /// Fetches the files; one that does not come is fetched by each worker.
    pub(crate) async fn fetch(mut self) -> Self {
        if let Some(bytes) = browser::fetch_bytes(&self.code_file()).await {
            self.code = bytes.into();
            self.fetch_scripts().await;
        }
        self
    }

    /// As [`Self::fetch`], for a large program: compiles it, once for all workers. `on_bytes` gets the number of bytes so far.
    ///
    /// # Errors
    ///
    /// The page has no such program, or the browser cannot compile it.
    pub(crate) async fn fetch_compiled(mut self, on_bytes: impl FnMut(f64)) -> Result<Self, NoProgram> {
        let bytes = browser::fetch_with_progress(&self.code_file(), on_bytes).await;
        let bytes = bytes.ok_or(NoProgram::Missing)?;
        let compiled = JsFuture::from(js_sys::WebAssembly::compile(&bytes)).await;
        self.code = compiled.map_err(|_| NoProgram::NotCompiled)?;
        self.fetch_scripts().await;
        Ok(self)
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

    /// The address of its script.
    pub(crate) fn script(&self) -> String {
        self.script.clone().unwrap_or_else(|| browser::page_address(&self.script_file()))
    }

    /// Its code, or the address of its code.
    pub(crate) fn code(&self) -> JsValue {
        if self.is_fetched() { self.code.clone() } else { browser::page_address(&self.code_file()).into() }
    }

    /// Starts a worker. The worker's first message is a greeting; it takes messages from then on. If the worker breaks down, `on_end`
    /// gets the reason. `None` where the browser starts no workers.
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
        let greeting = Object::new();
        Reflect::set(&greeting, &"script".into(), &self.script().into()).ok()?;
        Reflect::set(&greeting, &"module".into(), &self.code()).ok()?;
        worker.post_message(&greeting).ok()?;
        Some(worker)
    }
}

/// Why a program cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoProgram {
    /// It was not fetched.
    Missing,
    /// It was fetched, but the browser cannot compile it.
    NotCompiled,
}
