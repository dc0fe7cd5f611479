//! `max_unpool`, and the second derivative of maxima: both by their places.

use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::{Dtype, Result, Tensor, Value};

use super::super::copy::contiguous_in;
use super::super::views::{first, view};
use super::value_or_last;

/// `max_pool_double_backward`: what was the greatest of each window is gathered.
pub(super) fn max_pool_double_backward(grad: &Tensor, indices: &Tensor, dims: usize) -> Result<Tensor> {
    let shape = indices.shape();
    let mut flat: Vec<i64> = shape.iter().take(shape.len().saturating_sub(dims)).copied().collect();
    flat.push(-1);
    let positions = view(indices, &flat)?;
    let read = contiguous_in(grad, indices.suggested_format())?;
    let rows = view(&read, &flat)?;
    let gathered = super::super::scatter::gather(&rows, -1, &positions)?;
    view(&gathered, &shape)
}

/// `max_unpool2d` and `max_unpool3d`: what pooling chose, back in its place among zeros.
pub(super) fn max_unpool(input: &Tensor, indices: &Tensor, size: &[i64], dims: usize) -> Result<Value> {
    if indices.dtype() != Dtype::I64 {
        return runtime(format!(
            "elements in indices should be type int64 but got: {}",
            indices.dtype().scalar_name()
        ));
    }
    if input.shape() != indices.shape() {
        return runtime(format!(
            "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: {:?}",
            input.shape(),
            indices.shape()
        ));
    }
    let leading = input.dim().saturating_sub(dims);
    let mut shape: Vec<i64> = input.shape().iter().take(leading).copied().collect();
    shape.extend((0..dims).map(|index| value_or_last(size, index)));
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let read = super::super::copy::contiguous(input)?;
        let places = super::super::copy::contiguous(indices)?;
        let output = super::super::creation::zeros(&shape, input.dtype(), input.device())?;
        drop(places);
        drop(read);
        output
    };
    let node = if dims == 3 { nodes::MaxUnpool3DBackward0 } else { nodes::MaxUnpool2DBackward0 };
    record(node, &[input], &[&output], &[Save::Input(Some(indices))], move |ctx, grads| {
        Ok(vec![Some(max_pool_double_backward(first(grads)?, &ctx.saved(0)?, dims)?)])
    })?;
    Ok(output.into())
}
