//! The way of messages between a worker and the page.

use js_sys::{Array, Function, Reflect, Uint8Array};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, MessageEvent};

#[wasm_bindgen]
extern "C" {
    // A worker's own `postMessage`, which a window has with other arguments. The buffers in `transferred` are
    // moved to the page and not copied.
    #[wasm_bindgen(js_name = postMessage)]
    fn post(message: &JsValue, transferred: &Array);
}

/// Calls `on_task` with each task of the page from now on. The second argument is the message with the task.
pub(crate) fn listen<T: DeserializeOwned>(mut on_task: impl FnMut(T, JsValue) + 'static) {
    let listener = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        let message = event.data();
        let bytes = Uint8Array::new(&member(&message, "task")).to_vec();
        match postcard::from_bytes(&bytes) {
            Ok(task) => on_task(task, message),
            // The page has just encoded the task, so this error cannot happen; without an exception the page
            // would wait without an end.
            Err(error) => wasm_bindgen::throw_str(&error.to_string()),
        }
    });
    let scope = js_sys::global();
    let _ = Reflect::set(&scope, &"onmessage".into(), listener.as_ref().unchecked_ref::<Function>());
    listener.forget();
}

/// Sends a reply to the page.
pub(crate) fn reply(reply: &impl Serialize) {
    match postcard::to_allocvec(reply) {
        Ok(bytes) => {
            let message = Uint8Array::from(bytes.as_slice());
            drop(bytes);
            post(&message, &Array::of1(&message.buffer()));
        }
        Err(error) => wasm_bindgen::throw_str(&error.to_string()),
    }
}

/// A member of a message; `undefined` for a message without it.
pub(crate) fn member(message: &JsValue, name: &str) -> JsValue {
    Reflect::get(message, &name.into()).unwrap_or_default()
}

/// The file of a message.
pub(crate) fn file_of(message: &JsValue) -> Option<Blob> {
    member(message, "file").dyn_into().ok()
}
