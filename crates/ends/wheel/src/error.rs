//! Errors as Python's exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    blockyard,
    BlockyardError,
    PyException,
    "Blockyard cannot do what was asked; the text says why."
);
