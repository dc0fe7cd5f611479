//! Why a process is not watched, and why a frame of it cannot be applied.

use blockyard_pytorch::snapshot::SnapshotError;

use crate::frames::FORMAT;

/// Why a process is not watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The process is watched already.
    #[error("this process is watched already")]
    Twice,
    /// The socket cannot be opened, or no thread can be started.
    #[error("nobody reads: {0}")]
    NoReader(std::io::Error),
    /// The library is not loaded, or cannot be read.
    #[error("PyTorch's library libc10_cuda.so is not loaded")]
    NoLibrary,
    /// The library lacks a function that is needed.
    #[error(
        "this PyTorch's libc10_cuda.so does not have the functions of the allocator's trace by their known names"
    )]
    NoSymbols,
    /// The entries of the trace are not those that are known.
    #[error("this PyTorch's entries of the allocator's trace are not the known ones")]
    Layout,
}

/// Why a frame of a watched program cannot be applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchedError {
    /// The program sends frames of another format.
    #[error("the program sends the format {0}, this command reads {known}", known = FORMAT)]
    Format(u32),
    /// A snapshot of the program cannot be read.
    #[error("a snapshot of the program: {0}")]
    Snapshot(#[from] SnapshotError),
}
