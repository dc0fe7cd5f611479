//! Runs in other formats and in the page.

use std::path::PathBuf;

use blockyard_cli::{BuiltPage, Export, PageFile, export_bytes};
use blockyard_pytorch::snapshot::{MemoryName, MemoryNameError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::BlockyardError;
use crate::signals::Signals;

/// Reads which memory of a snapshot is meant: the number of a device as a text, or `host`; `None` for all
/// memory.
pub(crate) fn memory(name: Option<&str>) -> PyResult<Option<MemoryName>> {
    let name = name.map(str::parse).transpose();
    name.map_err(|error: MemoryNameError| BlockyardError::new_err(error.to_string()))
}

/// The content of a file in another format: what `blockyard export` writes.
#[pyfunction]
#[pyo3(signature = (content, name, format, device, page))]
pub(crate) fn export<'py>(
    py: Python<'py>,
    content: &[u8],
    name: &str,
    format: &str,
    device: Option<&str>,
    page: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let device = memory(device)?;
    let mut signals = Signals::new(py);
    let watched = &mut signals;
    let found = py.detach(move || {
        let export = Export { format, device, page: page.as_deref() };
        export_bytes(name, content.to_vec(), &export, &mut |progress| watched.check(&progress))
            .map_err(|error| format!("{error:#}"))
    });
    signals.into_result()?;
    Ok(PyBytes::new(py, &found.map_err(BlockyardError::new_err)?))
}

/// The page in a frame for a notebook, with the file opened in it; `None` where the packed file takes more
/// than `most_bytes`.
#[pyfunction]
#[pyo3(signature = (content, name, device, page, most_bytes))]
pub(crate) fn frame(
    py: Python<'_>,
    content: &[u8],
    name: &str,
    device: Option<&str>,
    page: Option<PathBuf>,
    most_bytes: usize,
) -> PyResult<Option<String>> {
    let device = memory(device)?;
    let found = py.detach(move || {
        let page = BuiltPage::find(page.as_deref())?;
        let file = PageFile::new(name, content.to_vec(), device)?;
        if file.packed_len() > most_bytes { Ok(None) } else { blockyard_cli::frame(&page, &file).map(Some) }
    });
    found.map_err(|error: anyhow::Error| BlockyardError::new_err(format!("{error:#}")))
}
