//! Python programs: an interpreter, and the `torch` package on top of the crate `torch`.

mod host;
mod modules;
mod position;
mod run;
mod traceback;

pub use host::{Note, Output};
pub use run::{Finished, Program, run};
