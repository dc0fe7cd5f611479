//! The program of the interpreter's worker; the library holds all of it.

use wasm_bindgen::prelude::*;

/// Waits for programs; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_interpreter::listen();
}

fn main() {}
