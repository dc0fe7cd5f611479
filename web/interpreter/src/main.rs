//! The module of the interpreter's worker. All of its code is in the library.

use wasm_bindgen::prelude::*;

/// Waits for programs; called by `worker.js`.
#[wasm_bindgen]
pub fn worker_main() {
    blockyard_interpreter::listen();
}

fn main() {}
