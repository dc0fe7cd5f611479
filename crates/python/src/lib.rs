//! Python programs: an interpreter, and the `torch` package on top of the crate `torch`.

mod collector;
mod host;
mod lifetimes;
mod modules;
mod position;
mod run;
mod traceback;
mod unknown;

pub use host::{Output, ProgramNote};
#[cfg(not(target_arch = "wasm32"))]
pub use run::run_on_thread;
pub use run::{DeviceRun, Finished, Program, ProgramSettings, run};
