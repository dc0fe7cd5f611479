//! Programs of others, which run confined.

use std::time::Duration;

use blockyard_confine::Confinement;
use blockyard_record::Bytes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Takes from this process what a program of somebody else does not need. `readable` are folders, `outcome` is
/// the descriptor of the file that the outcome is written to.
#[pyfunction]
fn confine(readable: Vec<String>, outcome: i32, seconds: f64, memory: u64) -> PyResult<()> {
    let processor_time =
        Duration::try_from_secs_f64(seconds).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let confinement = Confinement {
        readable: readable.into_iter().map(Into::into).collect(),
        writable: Vec::new(),
        kept_descriptors: vec![outcome],
        memory: Bytes::new(memory),
        processor_time,
    };
    blockyard_confine::confine(&confinement)
        .map_err(|error| PyRuntimeError::new_err(blockyard_record::with_causes(&error)))
}

/// Adds the function of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(confine, module)?)
}
