//! The objects that `lib/torch` registers for this library, such as the class `Tensor`.

use std::cell::RefCell;
use std::collections::HashMap;

use pyo3::prelude::*;

thread_local! {
    static OBJECTS: RefCell<HashMap<String, Py<PyAny>>> = RefCell::default();
}

/// Keeps an object of our own Python under a name.
#[pyfunction]
pub(crate) fn register(name: &str, object: Py<PyAny>) {
    let before = OBJECTS.with_borrow_mut(|objects| objects.insert(name.to_owned(), object));
    // The old object may run Python when it dies, and Python may come back here.
    drop(before);
}

/// The object of a name; `None` before `torch` was imported.
pub(crate) fn get<'py>(python: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    OBJECTS.with_borrow(|objects| objects.get(name).map(|object| object.bind(python).clone()))
}
