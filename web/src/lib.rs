//! The Blockyard page.
//!
//! All state is in one `Session` (`session.rs`). Few signals are written; everything else, from the workload's text to the scene, is
//! computed from them by the pure crates. This crate draws scenes, handles events, and leaves long work to workers. It decides nothing
//! about memory and lays out no figure.
//!
//! To find the way: `view` has the views, `commands`, `program` and `files` what the reader can do, `session` the state, `navigation`
//! and `link` the address, `jobs`, `interpreter`, `lab/pool` and `painter` the workers, `browser` the calls of the browser.

mod browser;
mod canvas;
mod commands;
mod draft;
mod export;
mod files;
mod frames;
mod gpu;
mod history;
mod interpreter;
mod jobs;
mod kept;
mod keys;
mod lab;
mod link;
mod navigation;
mod painter;
mod parts;
mod program;
mod ptr_eq;
mod run;
mod session;
mod surface;
mod theme;
mod view;
mod worker_program;

#[cfg(test)]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// Shows the page.
pub fn start() {
    view::mount();
}
