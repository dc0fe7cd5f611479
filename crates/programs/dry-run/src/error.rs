//! Errors of dry runs.

use std::io;
use std::path::{Path, PathBuf};

/// Why a program did not run. A program that fails by itself is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DryRunError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A file is not a shared library of this system.
    #[error("{}: this is not a shared library that can be read: {text}", path.display())]
    Library {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        text: String,
    },
    /// Python does not start.
    #[error("{python} does not start ({error}): name the Python that has PyTorch with --python")]
    NoPython {
        /// The command that starts Python.
        python: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Python runs and has no PyTorch.
    #[error(
        "{python} has no PyTorch: install it with `pip install torch` (or, without NVIDIA's libraries, which are not needed here, \
         `pip install --no-deps torch` and what it imports: typing_extensions filelock sympy mpmath networkx jinja2 markupsafe fsspec \
         numpy); --python names another Python that has it"
    )]
    NoTorch {
        /// The command that starts Python.
        python: String,
    },
    /// The PyTorch was built for processors only.
    #[error(
        "{}: this PyTorch ({version}) was built without CUDA; install the build for CUDA, which `pip \
         install torch` gives on Linux",
        path.display()
    )]
    NoCuda {
        /// The folder of the package.
        path: PathBuf,
        /// The version of the package.
        version: String,
    },
    /// The stand-in for CUDA's libraries is not found.
    #[error(
        "libblockyard_standin.so, which stands for CUDA's libraries, is not beside this program: build it \
         with `cargo build -p blockyard-standin`, or name its path in BLOCKYARD_STANDIN"
    )]
    NoStandin,
    /// The system is not Linux on an x86-64 processor.
    #[error(
        "a dry run needs Linux on an x86-64 processor: run the program in a container or a virtual machine with such a system"
    )]
    System,
    /// The ranks of the program cannot find each other.
    #[error("cannot open the store of the ranks{}: {error}", port.map(|port| format!(" on port {port} of 127.0.0.1")).unwrap_or_default())]
    Port {
        /// The port of the question, if it names one.
        port: Option<u16>,
        /// The error of the system.
        error: io::Error,
    },
    /// The folder for the files of a run cannot be made.
    #[error("cannot make a folder of temporary files: {0}; TMPDIR names another place")]
    NoScratch(io::Error),
    /// No cache directory is known.
    #[error("no cache directory is known: set XDG_CACHE_HOME or HOME")]
    NoCache,
}

impl DryRunError {
    /// Makes the error of a failed access to the file from its I/O error, for `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
