//! Python programs: an interpreter, and the `torch` package on top of the crate `torch`.
//!
//! A program runs to its end or to a limit of [`ProgramSettings`]. Its output goes to an [`Output`] as it is
//! printed; its allocations on each device are in [`ProgramOutcome`].
//!
//! # Example
//!
//! ```no_run
//! use blockyard_python::{ProgramSource, ProgramSettings, run_on_thread};
//!
//! let source = "import torch\nx = torch.ones(1024, device='cuda')\nprint(torch.cuda.memory_allocated())";
//! let program = ProgramSource { file: "ones.py".into(), source: source.into(), arguments: Vec::new() };
//! let finished = run_on_thread(program, ProgramSettings::default(), |text: &str| assert_eq!(text.trim(), "4096"))?;
//! assert_eq!(finished.status, 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Reading order
//!
//! `run` (a program from its start to its end), `host` (output and limits), `modules` (what `import` finds),
//! `deallocation` and `collector` (when objects die, as in CPython), `position` and `traceback` (lines of the
//! program), `unknown` (numbers that no recording of a GPU gives), `integers` (integers that are too long),
//! `referrers` (why memory is alive at a step), `kept_graphs` (backward graphs that a list keeps), `brackets`
//! (a bracket that is never closed).
//!
//! # Decisions
//!
//! - **The interpreter is RustPython**: its lifetimes are CPython's reference counts, so a tensor's block is
//!   freed where PyTorch frees it. Its standard library is left out, because building the library takes 84
//!   seconds of CPU without optimization. The standard library and `torch` are our own Python (`lib`),
//!   compiled into the crate.
//! - **Objects die as in CPython 3.12**: `deallocation` makes lists and tuples, closed generators,
//!   `enumerate`, `zip` and `dict.items` drop their objects in CPython's order, and names the remaining
//!   difference. The interpreter's garbage collector goes through objects by address, so `collector` replaces
//!   it.
//! - **Every run is the same.** A clock that only the program moves is the only clock. For WebAssembly,
//!   `.cargo/config.toml` sets `getrandom_backend="custom"`, and the module gives the interpreter constant
//!   bytes for random ones.
//! - **A run has limits.** A sentence ends a run that has called too many operators, asked for too many
//!   allocations and frees, or taken too much time or too much of the computer's memory.
//! - **Integers**: those of RustPython are an LGPL crate, so three small crates over `num-bigint` replace
//!   them (`bigint`, `[patch.crates-io]`).
//! - **References**: the published interpreter counts up to 32,767 references to one object where a word has
//!   32 bits, and each number refers to its class. So `xtask/src/references.rs` builds the page with one
//!   constant changed, in a copy below `target/`. (Trunk, which only checks that the page is whole, builds
//!   the page unchanged.) Release 0.6 counts further, but its parser needs Rust 1.96.
//! - **Why memory is alive is asked by running again.** Since every run of a program is the same, the page
//!   runs the program once more up to the step under the cursor, and `referrers` looks through the names, the
//!   backward graphs and what libraries hold just before the next request. A run that nobody asks about pays
//!   nothing for it.

mod brackets;
mod collector;
mod deallocation;
mod host;
mod integers;
mod kept_graphs;
mod modules;
mod position;
mod referrers;
mod run;
mod traceback;
mod unknown;

pub use host::{Output, ProgramNote};
pub use referrers::{Reason, Referrers};
#[cfg(not(target_arch = "wasm32"))]
pub use run::run_on_thread;
pub use run::{DeviceRun, HostMemoryLimit, ProgramOutcome, ProgramSettings, ProgramSource, run, run_to_step};
