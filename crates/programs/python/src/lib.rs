//! PyTorch programs, without PyTorch and without a GPU: `CPython` runs them, over the crate `torch`.
//!
//! A program runs in a separate process, to its end or to a limit of [`ProgramSettings`]. Its allocations on
//! each device are in [`ProgramOutcome`].
//!
//! # Example
//!
//! ```no_run
//! use blockyard_python::{Output, ProgramSettings, ProgramSource, run};
//!
//! let source = "import torch\nx = torch.ones(1024, device='cuda')\nprint(torch.cuda.memory_allocated())";
//! let program = ProgramSource { file: "ones.py".into(), source: source.into(), arguments: Vec::new() };
//! let outcome = run(&program, &ProgramSettings::default(), Output::Shown)?;
//! assert_eq!(outcome.status, 0);
//! # Ok::<(), blockyard_python::RunError>(())
//! ```
//!
//! # Reading order
//!
//! `program` (a program, its settings, its outcome), `interpreter` (which Python runs it), `library` (our own
//! Python as files), `job` and `child` (the process). `lib/_run.py` runs in the process. The folder `lib` has
//! the package `torch`, over the native module of the crate in `extension`. The folder `fallbacks` has packages
//! that a program may import where they are not installed.
//!
//! # Decisions
//!
//! - **Python itself runs the program**, the one of the machine: its reference counts, its garbage collector
//!   and its standard library, so a tensor's block is freed where PyTorch frees it.
//! - **A process for each program.** The program runs with the rights of its user, as `python FILE` does. What
//!   somebody else handed in is confined ([`ProgramSettings::is_confined`]).
//! - **Every run is the same.** A clock that only the program moves is the only clock, and the seeds of hashes
//!   and of `random` are fixed.
//! - **A run has limits.** A sentence ends a run that has called too many operators, asked for too many
//!   allocations and frees, or taken too much time or too much of the computer's memory.

#[cfg(not(target_family = "wasm"))]
mod child;
#[cfg(not(target_family = "wasm"))]
mod error;
#[cfg(not(target_family = "wasm"))]
mod interpreter;
mod job;
#[cfg(not(target_family = "wasm"))]
mod library;
mod program;

#[cfg(not(target_family = "wasm"))]
pub use child::{Output, run, run_to_step};
#[cfg(not(target_family = "wasm"))]
pub use error::RunError;
#[cfg(not(target_family = "wasm"))]
pub use interpreter::{Interpreter, pyenv_commands};
pub use job::ProcessJob;
pub use program::{
    AllocationOrigin, DeviceRun, PrintedLine, PrintedMark, ProgramOutcome, ProgramSettings, ProgramSource,
    Referrers,
};
