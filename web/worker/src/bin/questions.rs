//! The module of the workers that answer questions. All of its code is in the library.

use wasm_bindgen::prelude::*;

/// Waits for tasks; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_worker::questions::listen();
}

fn main() {}
