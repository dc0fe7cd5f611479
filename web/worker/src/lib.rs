//! The page's workers: their messages, and their work.
//!
//! Each program of this crate (`src/bin`) is a module that the page loads when it needs it: [`jobs`] run long
//! workloads and read files, [`questions`] answer questions about runs and make reports. The page knows this
//! crate for its messages alone, and contains none of the work.
//!
//! A message of the page is an object: `task` has the bytes of the task, `file` the file that the task is
//! about, and `script` and `wasm` the module for the GPU. A worker replies with bytes.

pub mod jobs;
pub mod questions;

mod channel;
mod content;
mod device;
mod run;
