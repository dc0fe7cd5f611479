//! The reader's own GPU: whether there is one, and what the worker needs to run on it.
//!
//! The device lives in a module of its own (`web/gpu`), which the worker loads for its first run.

use js_sys::{Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::browser;

pub(crate) use blockyard_worker::Adapter;

/// What the page knows of the reader's GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not asked yet.
    #[default]
    Unknown,
    /// There is none, or it failed: why.
    Absent(String),
    /// The browser has an adapter for us.
    Present,
    /// It was opened.
    Open(Adapter),
}

/// Asks the browser for an adapter, without opening it.
pub(crate) async fn ask() -> Presence {
    let gpu = browser::window().and_then(|window| Reflect::get(&window.navigator(), &"gpu".into()).ok());
    let Some(gpu) = gpu.filter(JsValue::is_object) else {
        return Presence::Absent("this browser has no WebGPU".to_owned());
    };
    let asked = Reflect::get(&gpu, &"requestAdapter".into()).and_then(|ask| {
        let ask: Function = ask.dyn_into()?;
        ask.call0(&gpu)?.dyn_into::<Promise>()
    });
    let adapter = match asked {
        Ok(promise) => JsFuture::from(promise).await,
        Err(error) => Err(error),
    };
    match adapter {
        Ok(adapter) if adapter.is_object() => Presence::Present,
        _ => Presence::Absent("this browser has no adapter for WebGPU".to_owned()),
    }
}

/// The program of the device, fetched ahead so that it starts without the network.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    script: Option<String>,
    wasm: JsValue,
}

impl Program {
    /// Nothing of it is there yet.
    pub(crate) const fn new() -> Self {
        Self { script: None, wasm: JsValue::UNDEFINED }
    }

    /// Fetches it.
    pub(crate) async fn fetch() -> Self {
        let script = browser::blob_url("blockyard-gpu.js").await;
        let wasm = browser::fetch_bytes("blockyard-gpu_bg.wasm").await;
        Self { script, wasm: wasm.map_or(JsValue::UNDEFINED, Into::into) }
    }

    /// A job as a message to the worker, with where to get the device.
    pub(crate) fn message(&self, job: &Uint8Array) -> JsValue {
        let message = js_sys::Object::new();
        let script = self.script.clone().unwrap_or_else(|| browser::page_address("blockyard-gpu.js"));
        let wasm = if self.wasm.is_undefined() {
            JsValue::from(browser::page_address("blockyard-gpu_bg.wasm"))
        } else {
            self.wasm.clone()
        };
        for (name, value) in [("job", job.into()), ("script", script.into()), ("wasm", wasm)] {
            let _ = Reflect::set(&message, &name.into(), &value);
        }
        message.into()
    }
}
