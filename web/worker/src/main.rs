//! The program of the worker; the library holds all of it.
//!
//! What JavaScript calls is exported here and not in the library: an export stays in every module that knows of it, and the page
//! knows the library for its messages.

use wasm_bindgen::prelude::*;

/// Waits for jobs; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_worker::listen();
}

fn main() {}
