//! Layouts of ranks, which the Python half makes tasks of a cluster.

use blockyard_budget::Mesh;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::BlockyardError;

/// The layouts of a mesh that multiply to this number of ranks, in the command's order. A layout has the
/// number of ranks of each dimension by its name.
#[pyfunction]
pub(crate) fn layouts<'py>(py: Python<'py>, mesh: &str, ranks: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let mesh: Mesh = mesh
        .parse()
        .map_err(|error: blockyard_budget::MeshError| BlockyardError::new_err(error.to_string()))?;
    let all = mesh.layouts(ranks).into_iter().map(|layout| {
        let sizes = PyDict::new(py);
        layout.sizes().try_for_each(|(name, size)| sizes.set_item(name, size)).map(|()| sizes)
    });
    all.collect()
}
