//! Why a program could not be run.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a program has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No Python starts.
    #[error("no Python starts as {0}: install Python 3.10 or later, or name one with --python")]
    NoPython(String),
    /// The Python is older than 3.10.
    #[error("{command} is Python {version}: programs need Python 3.10 or later, which --python may name")]
    OldPython {
        /// The command that starts it.
        command: String,
        /// Its version.
        version: String,
    },
    /// Our extension is not beside the program.
    #[error(
        "the file lib_blockyard of the tensors is not beside this program: build both with `cargo build --release -p blockyard-cli`"
    )]
    NoExtension,
    /// A file of the run cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The process did not start.
    #[error("{command} does not start: {error}")]
    Start {
        /// The command of the Python.
        command: String,
        /// Why.
        error: io::Error,
    },
    /// The process cannot be waited for.
    #[error("the process of the program: {0}")]
    Wait(io::Error),
    /// The program went on after its time, because one call of code that is not Python's did not end.
    #[error("the program was ended after {} s: one call did not end", .0.as_secs())]
    Time(Duration),
    /// The process ended before the program did.
    #[error("the process of the program ended before the program did: {0}")]
    Ended(ExitStatus),
    /// The program of somebody else cannot be confined here.
    #[error("{0}")]
    NotConfined(String),
    /// What the two processes said to each other cannot be read.
    #[error("the run's own messages: {0}")]
    Job(String),
}
