//! Sparse gradients of embeddings.

use crate::autograd::GradModeGuard;
use crate::error::runtime;
use crate::sparse::SparseParts;
use crate::{Dtype, Result, Scalar, Tensor};

use super::super::copy::{contiguous, to_dtype};
use super::super::creation::{empty, empty_like, wrapped};
use super::super::index::index;
use super::super::scatter::index_select;
use super::super::{pointwise, views};
use super::{BagMode, Rows};

/// The tensors about bags that the forward pass makes for the backward pass.
pub(super) struct Bags {
    pub(super) of_index: Tensor,
    pub(super) sizes: Tensor,
    pub(super) weights: Option<Tensor>,
}

impl Rows {
    /// `embedding_sparse_backward`: indices and gradient as they are, without the rows of the padding.
    pub(super) fn sparse_backward(self, grad: &Tensor, indices: &Tensor, rows: i64) -> Result<Tensor> {
        if self.scales {
            return runtime("embedding_backward: scale_grad_by_freq not supported with sparse gradients");
        }
        let _no_grad = GradModeGuard::new(false);
        let width = grad.size(-1);
        let (mut indices, mut grad) = (indices.clone(), grad.clone());
        if self.padding != -1 {
            let mask = pointwise::ne(&indices, &wrapped(Scalar::Int(self.padding)))?;
            indices = index(&indices, &[Some(mask.clone())])?;
            grad = index(&grad, &[Some(mask)])?;
        }
        let shape = [rows, width];
        if grad.numel() == 0 {
            let nothing = empty(&[1, 0], Dtype::I64, indices.device())?;
            let parts = SparseParts::new(nothing, empty(&[0, width], grad.dtype(), grad.device())?);
            return Tensor::sparse(&parts, &shape);
        }
        let places = to_dtype(&views::reshape(&indices, &[1, -1])?, Dtype::I64)?;
        let values = views::reshape(&grad, &[-1, width])?;
        Tensor::sparse(&SparseParts::new(places, values), &shape)
    }

    /// `_embedding_bag_sparse_backward`.
    pub(super) fn sparse_bag_backward(
        self,
        grad: &Tensor,
        indices: &Tensor,
        bags: &Bags,
        mode: BagMode,
        rows: i64,
    ) -> Result<Tensor> {
        let _no_grad = GradModeGuard::new(false);
        let of_index = contiguous(&bags.of_index)?;
        let of_rows = index_select(grad, 0, &of_index)?;
        if mode == BagMode::Mean {
            let sizes = to_dtype(&bags.sizes, of_rows.dtype())?;
            let inverse = empty_like(&sizes)?;
            let chosen = index_select(&views::unsqueeze(&inverse, 1)?, 0, &of_index)?;
            drop(inverse);
            drop(sizes);
            pointwise::mul_in_place(&of_rows, &chosen)?;
        }
        if let Some(weights) = &bags.weights {
            pointwise::mul_in_place(&of_rows, &views::unsqueeze(weights, 1)?)?;
        }
        self.sparse_backward(&of_rows, indices, rows)
    }
}
