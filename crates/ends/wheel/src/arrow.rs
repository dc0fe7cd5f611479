//! Tables as Arrow streams through the `PyCapsule` interface, so that polars, pandas, pyarrow and `DuckDB`
//! take them without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::BlockyardError;

/// A table whose columns any Arrow library can take.
#[pyclass(module = "blockyard", frozen)]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    /// The table of these columns, which have one length.
    pub(crate) fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let batch = RecordBatch::try_from_iter(columns).map_err(|error| failed(&error))?;
        Ok(Self { batch })
    }
}

#[pymethods]
impl Table {
    /// How many rows the table has.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<blockyard.Table: {} rows of {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// The table as an Arrow stream. The stream does not follow a requested schema, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok::<_, ArrowError>(self.batch.clone())], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// A column of texts with few different texts: each text is stored once. `keys` are indices into `texts`,
/// `None` for no text.
pub(crate) fn texts(
    keys: impl IntoIterator<Item = Option<i32>>,
    texts: impl IntoIterator<Item = String>,
) -> PyResult<ArrayRef> {
    let keys: Int32Array = keys.into_iter().collect();
    let texts: StringArray = texts.into_iter().map(Some).collect();
    let column =
        DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts)).map_err(|error| failed(&error))?;
    Ok(Arc::new(column))
}

/// A cell of a table whose columns Python passes: a number or a text.
#[derive(FromPyObject)]
pub(crate) enum Cell {
    Number(i64),
    Text(String),
}

/// A table of named columns of numbers or texts, `None` for no value. A column with a text in any cell is a
/// column of texts.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python gives lists as vectors")]
pub(crate) fn table(columns: Vec<(String, Vec<Option<Cell>>)>) -> PyResult<Table> {
    let arrays = columns.iter().map(|(name, cells)| {
        let array: ArrayRef = if cells.iter().flatten().any(|cell| matches!(cell, Cell::Text(_))) {
            let text = |cell: &Cell| match cell {
                Cell::Number(number) => number.to_string(),
                Cell::Text(text) => text.clone(),
            };
            Arc::new(cells.iter().map(|cell| cell.as_ref().map(text)).collect::<StringArray>())
        } else {
            let number = |cell: &Cell| match cell {
                Cell::Number(number) => Some(*number),
                Cell::Text(_) => None,
            };
            Arc::new(cells.iter().map(|cell| cell.as_ref().and_then(number)).collect::<Int64Array>())
        };
        (name.as_str(), array)
    });
    Table::new(arrays.collect())
}

fn failed(error: &ArrowError) -> PyErr {
    BlockyardError::new_err(error.to_string())
}
