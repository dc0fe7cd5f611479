//! The program of the workers that answer questions; the library holds all of it.

use wasm_bindgen::prelude::*;

/// Waits for tasks; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_questions::listen();
}

fn main() {}
