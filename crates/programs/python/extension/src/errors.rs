//! Errors of the crate `torch` as Python exceptions, and exceptions of callbacks as its errors.

use std::rc::Rc;

use blockyard_torch::{ForeignError, TorchError, session};
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::{line, objects, run};

/// The exception with PyTorch's class and text.
pub(crate) fn to_exception(python: Python<'_>, error: TorchError) -> PyErr {
    match error {
        TorchError::OutOfMemory { text, has_process } => {
            if has_process {
                note_non_pytorch(python);
            }
            match class_of(python, "OutOfMemoryError") {
                Some(class) => PyErr::from_type(class, text),
                None => PyMemoryError::new_err(text),
            }
        }
        TorchError::Accelerator(text) => match class_of(python, "AcceleratorError") {
            Some(class) => PyErr::from_type(class, text),
            None => PyRuntimeError::new_err(text),
        },
        TorchError::Type(text) => PyTypeError::new_err(text),
        TorchError::Value(text) => PyValueError::new_err(text),
        TorchError::Index(text) => PyIndexError::new_err(text),
        TorchError::NotImplemented(text) => PyNotImplementedError::new_err(text),
        TorchError::Callback(foreign) => match foreign.0.downcast::<PyErr>() {
            Ok(exception) => exception.clone_ref(python),
            Err(_other) => PyRuntimeError::new_err("a callback failed"),
        },
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Notes that a message has memory that the program's own libraries need not have taken.
fn note_non_pytorch(python: Python<'_>) {
    let bytes = session().non_pytorch();
    if !bytes.is_zero() {
        let text = format!(
            "the message counts {} MiB for the CUDA context and libraries from the start, as recorded on an H100",
            bytes.get() >> 20
        );
        run::add_note(line::current(python), text);
    }
}

fn class_of<'py>(python: Python<'py>, name: &str) -> Option<Bound<'py, PyType>> {
    objects::get(python, name).and_then(|class| class.cast_into().ok())
}

/// An exception of a callback as an error that passes through the crate `torch` unchanged.
pub(crate) fn from_exception(exception: PyErr) -> TorchError {
    TorchError::Callback(ForeignError(Rc::new(exception)))
}

/// A result with its error as an exception.
pub(crate) fn result<T>(python: Python<'_>, result: Result<T, TorchError>) -> PyResult<T> {
    result.map_err(|error| to_exception(python, error))
}
