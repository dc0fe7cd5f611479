use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    blockyard,
    BlockyardError,
    PyException,
    "Something could not be done; the text says what and why."
);
