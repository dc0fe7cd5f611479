//! The native half of the Python package `blockyard`.
//!
//! Python classes over the crates that do the work: `file` opens files of PyTorch, `run` has the requests of
//! a run and the questions about them, `program` runs a program without PyTorch, `report` and `page` write
//! reports, other formats and the page, `arrow` makes tables, `signals` watches for Ctrl-C, and `command` is
//! the `blockyard` command; `fit` lists layouts of ranks. The functions that PyTorch takes from the plug-in
//! are exported from the same library. Answers go to Python as JSON texts, which `blockyard/_answers.py`
//! turns into dataclasses; events and allocations go as Arrow streams. Long work releases Python's lock, and
//! ends when a signal handler raises (Ctrl-C).
//!
//! # Example
//!
//! The Python half (`python/blockyard`) calls the native half:
//!
//! ```python
//! import blockyard
//!
//! snapshot = blockyard.open("snapshot.pickle")
//! print(snapshot.devices)
//! ```

#![allow(unsafe_code, reason = "Arrow's C interface and Python's border")]

mod arrow;
mod command;
mod error;
mod file;
mod fit;
mod page;
mod program;
mod report;
mod run;
mod signals;

// Its C functions are exported with this library; nothing of it is called from here.
use blockyard_torch_plugin as _;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrow::{Table, table};
    #[pymodule_export]
    use crate::command::{command, version};
    #[pymodule_export]
    use crate::error::BlockyardError;
    #[pymodule_export]
    use crate::file::{SnapshotData, is_recording, is_recording_bytes, open_bytes, open_path};
    #[pymodule_export]
    use crate::fit::layouts;
    #[pymodule_export]
    use crate::page::{export, frame};
    #[pymodule_export]
    use crate::program::run_program;
    #[pymodule_export]
    use crate::report::{ReportArguments, report};
    #[pymodule_export]
    use crate::run::{RunData, counted, limit_text, run_of_recording, run_of_workload, size_text};
}
