//! Why a process is not watched.

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
