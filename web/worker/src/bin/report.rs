//! The module of the worker that makes a report. All of its code is in the library.

use wasm_bindgen::prelude::*;

/// Waits for a task; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_worker::questions::listen_for_reports();
}

fn main() {}
