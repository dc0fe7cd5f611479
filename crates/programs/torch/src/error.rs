//! Errors of operators: PyTorch's exceptions and their texts.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

/// Why an operator failed; the variant is the class of the Python exception, the text is PyTorch's.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TorchError {
    /// `torch.OutOfMemoryError`.
    #[error("{text}")]
    OutOfMemory {
        /// PyTorch's text.
        text: String,
        /// Whether the text has the memory of the whole process.
        has_process: bool,
    },
    /// `RuntimeError`.
    #[error("{0}")]
    Runtime(String),
    /// `torch.AcceleratorError`.
    #[error("{0}")]
    Accelerator(String),
    /// `TypeError`.
    #[error("{0}")]
    Type(String),
    /// `ValueError`.
    #[error("{0}")]
    Value(String),
    /// `IndexError`.
    #[error("{0}")]
    Index(String),
    /// `NotImplementedError`: PyTorch can do this, this crate cannot.
    #[error("{0}")]
    NotImplemented(String),
    /// What a callback (a hook, a backward written in Python) failed with, passed through unread.
    #[error("a callback failed: {0}")]
    Callback(ForeignError),
}

/// An error of the caller's own kind.
#[derive(Clone)]
pub struct ForeignError(pub Rc<dyn Any>);

impl fmt::Debug for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignError")
    }
}

impl fmt::Display for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error of the caller's")
    }
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, TorchError>;

/// Fails with [`TorchError::Runtime`].
pub(crate) fn runtime<T>(text: impl Into<String>) -> Result<T> {
    Err(TorchError::Runtime(text.into()))
}

/// Fails with [`TorchError::NotImplemented`].
pub(crate) fn not_implemented<T>(text: impl Into<String>) -> Result<T> {
    Err(TorchError::NotImplemented(text.into()))
}
