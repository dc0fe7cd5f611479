//! The program of the worker. All code is in the library.
//!
//! The function that JavaScript calls is exported here and not in the library: an export stays in every
//! module that uses the library, and the page uses the library for its messages.

use wasm_bindgen::prelude::*;

/// Waits for jobs; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_worker::jobs::listen();
}

fn main() {}
