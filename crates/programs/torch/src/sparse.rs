//! Sparse tensors of coordinates (COO): the indices of rows, and a value or a dense part for each.

use std::rc::Rc;

use crate::memory::Category;
use crate::{Dtype, Result, Storage, Tensor, contiguous_strides};

/// The two tensors that a sparse tensor is made of: indices and values.
#[derive(Clone, Debug)]
pub struct SparseParts {
    /// The first field, since fields are dropped in order and PyTorch frees the values before the indices.
    values: Tensor,
    indices: Tensor,
    is_coalesced: bool,
}

impl SparseParts {
    /// Parts as an operator makes them: they count as coalesced if there are fewer than two values.
    #[must_use]
    pub fn new(indices: Tensor, values: Tensor) -> Self {
        let is_coalesced = values.size(0) < 2;
        Self { values, indices, is_coalesced }
    }

    /// The same parts with the flag that says whether they are coalesced.
    #[must_use]
    pub fn coalesced(self, is_coalesced: bool) -> Self {
        Self { is_coalesced, ..self }
    }

    /// The indices: a column for each value, a row for each sparse dimension.
    pub fn indices(&self) -> &Tensor {
        &self.indices
    }

    /// The values, or dense parts.
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// Whether each place comes once, in order.
    pub fn is_coalesced(&self) -> bool {
        self.is_coalesced
    }

    /// How many values there are (`nnz`).
    pub fn count(&self) -> i64 {
        self.values.size(0)
    }

    /// How many dimensions have indices.
    pub fn sparse_dim(&self) -> i64 {
        self.indices.size(0)
    }

    /// How many dimensions each value has.
    pub fn dense_dim(&self) -> i64 {
        self.values.dim() as i64 - 1
    }

    /// Other tensors over the same memory, without history.
    pub(crate) fn shallow_copy(&self) -> Self {
        Self {
            values: self.values.shallow_copy(),
            indices: self.indices.shallow_copy(),
            is_coalesced: self.is_coalesced,
        }
    }
}

impl Tensor {
    /// A sparse tensor over these parts (`_sparse_coo_tensor_unsafe`).
    ///
    /// # Errors
    ///
    /// None in practice: its own storage has no bytes.
    pub fn sparse(parts: &SparseParts, shape: &[i64]) -> Result<Self> {
        let values = parts.values();
        let tensor =
            empty_sparse(shape, values.dtype(), &Storage::new(values.device(), 0, Category::Temporary)?);
        tensor.set_sparse_parts(Some(parts.shallow_copy()));
        Ok(tensor)
    }

    /// Whether the tensor is sparse.
    pub fn is_sparse(&self) -> bool {
        self.sparse_cell().borrow().is_some()
    }

    /// The parts of a sparse tensor; `None` for a dense one.
    pub fn sparse_parts(&self) -> Option<SparseParts> {
        self.sparse_cell().borrow().clone()
    }

    /// Gives a sparse tensor other parts. The parts before are dropped here, which frees their memory if
    /// nothing else holds it.
    pub(crate) fn set_sparse_parts(&self, parts: Option<SparseParts>) {
        let old = self.sparse_cell().replace(parts);
        if let Some(SparseParts { values, indices, .. }) = old {
            // PyTorch assigns the new indices first.
            drop(indices);
            drop(values);
        }
    }
}

fn empty_sparse(shape: &[i64], dtype: Dtype, storage: &Rc<Storage>) -> Tensor {
    Tensor::over(Rc::clone(storage), shape, &contiguous_strides(shape), 0, dtype)
}
