use std::io;
use std::path::{Path, PathBuf};

/// Why a program did not run. A program that fails by itself is not an error.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// A file that cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A library that is not a shared library of this system.
    #[error("{}: this is not a shared library that can be read: {text}", path.display())]
    Library {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        text: String,
    },
    /// Python does not start.
    #[error("{python} does not start ({error}): name the Python that has PyTorch with --python")]
    NoPython {
        /// The command.
        python: String,
        /// The system's words.
        error: io::Error,
    },
    /// Python runs and has no PyTorch.
    #[error(
        "{python} has no PyTorch: install it with `pip install torch` (or, without NVIDIA's libraries, which are not needed here, \
         `pip install --no-deps torch` and what it imports: typing_extensions filelock sympy mpmath networkx jinja2 markupsafe fsspec \
         numpy); --python names another Python that has it"
    )]
    NoTorch {
        /// The command.
        python: String,
    },
    /// A PyTorch for processors only.
    #[error(
        "{}: this PyTorch ({version}) was built without CUDA; install the build for CUDA, which `pip install torch` gives on Linux",
        path.display()
    )]
    NoCuda {
        /// Its folder.
        path: PathBuf,
        /// What it says it is.
        version: String,
    },
    /// Our own library is not there.
    #[error(
        "libblockyard_standin.so, which stands for CUDA's libraries, is not beside this program: build it \
         with `cargo build -p blockyard-standin`, or name its path in BLOCKYARD_STANDIN"
    )]
    NoStandin,
    /// A system that no library is written for.
    #[error(
        "a dry run needs Linux on an x86-64 processor: on other systems no dry run of PyTorch's build for CUDA was tried"
    )]
    System,
    /// The ranks of the program cannot find each other.
    #[error("cannot open the store of the ranks{}: {error}", port.map(|port| format!(" on port {port} of 127.0.0.1")).unwrap_or_default())]
    Port {
        /// The port that was asked for.
        port: Option<u16>,
        /// The system's words.
        error: io::Error,
    },
    /// No folder to keep files in.
    #[error("there is no cache directory: set XDG_CACHE_HOME or HOME")]
    NoCache,
}

impl DryRunError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
