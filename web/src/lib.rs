//! The Blockyard page.
//!
//! State lives in one `Session`: few signals are written, everything else is computed from them by the pure crates,
//! from the workload's text to the scene. This crate draws scenes, listens to the reader, and keeps long work in a
//! worker. It decides nothing about memory and lays out no figure.

// Nothing but the page's start and the worker's is for others.
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

/// Shows the page.
pub fn start() {
    view::mount();
}
