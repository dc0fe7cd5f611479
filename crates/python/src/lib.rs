//! Python programs: an interpreter, and the `torch` package on top of the crate `torch`.
//!
//! A program runs to its end or to a limit of [`ProgramSettings`]. What it prints goes to an [`Output`] as it is printed; what it
//! allocated on each device is in [`Finished`].
//!
//! # Example
//!
//! ```no_run
//! use blockyard_python::{Program, ProgramSettings, run_on_thread};
//!
//! let source = "import torch\nx = torch.ones(1024, device='cuda')\nprint(torch.cuda.memory_allocated())";
//! let program = Program { file: "ones.py".into(), source: source.into(), arguments: Vec::new() };
//! let finished = run_on_thread(program, ProgramSettings::default(), |text: &str| assert_eq!(text.trim(), "4096"))?;
//! assert_eq!(finished.status, 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Reading order
//!
//! `run` (a program from its start to its end), `host` (output and limits), `modules` (what `import` finds), `lifetimes` and
//! `collector` (when objects die, as in CPython), `position` and `traceback` (lines of the program), `unknown` (numbers that
//! no record of a GPU gives), `integers` (those that are too long), `holders` (why memory is alive at a step).

mod collector;
mod holders;
mod host;
mod integers;
mod lifetimes;
mod modules;
mod position;
mod run;
mod traceback;
mod unknown;

pub use holders::{Holders, Reason};
pub use host::{Output, ProgramNote};
#[cfg(not(target_arch = "wasm32"))]
pub use run::run_on_thread;
pub use run::{DeviceRun, Finished, HostMemory, Program, ProgramSettings, run, run_to_step};
