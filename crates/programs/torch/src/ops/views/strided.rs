//! Views that name their strides: `diagonal`, `unfold`, `as_strided`.

use crate::autograd::nodes;
use crate::autograd::view::as_strided_function;
use crate::error::runtime;
use crate::{Result, Tensor, Value};

use super::super::kernels::record_linear;
use super::super::{copy, creation};
use super::{viewed, wrap};

/// `diagonal`.
pub(crate) fn diagonal(tensor: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let (a, b) = (wrap(dim1, tensor.dim())?, wrap(dim2, tensor.dim())?);
    let (shape, strides) = (tensor.shape(), tensor.strides());
    let at = |list: &[i64], dim: usize| list.get(dim).copied().unwrap_or(1);
    let length = if offset >= 0 {
        at(&shape, a).min(at(&shape, b) - offset)
    } else {
        (at(&shape, a) + offset).min(at(&shape, b))
    }
    .max(0);
    let start = if length == 0 {
        0
    } else if offset >= 0 {
        offset * at(&strides, b)
    } else {
        -offset * at(&strides, a)
    };
    let keep = |list: &[i64]| -> Vec<i64> {
        list.iter().enumerate().filter(|(dim, _)| *dim != a && *dim != b).map(|(_, value)| *value).collect()
    };
    let (mut new_shape, mut new_strides) = (keep(&shape), keep(&strides));
    new_shape.push(length);
    new_strides.push(at(&strides, a) + at(&strides, b));
    let from = shape;
    viewed(nodes::DiagonalBackward0, tensor, &new_shape, &new_strides, tensor.offset() + start, move |grad| {
        let full = creation::zeros(&from, grad.dtype(), grad.device())?;
        copy::copy_below(&diagonal(&full, offset, dim1, dim2)?, grad, false)?;
        Ok(full)
    })
}

/// `Tensor.unfold`.
pub(super) fn unfold(tensor: &Tensor, dim: i64, size: i64, step: i64) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())?;
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    if let (Some(length), Some(stride)) = (shape.get_mut(at), strides.get_mut(at)) {
        let input = *stride;
        if size < 0 {
            return runtime(format!("size is {size} but must be >= 0"));
        }
        if size > *length {
            return runtime(format!(
                "maximum size for tensor at dimension {at} is {length} but size is {size}"
            ));
        }
        if step <= 0 {
            return runtime(format!("step is {step} but must be > 0"));
        }
        *length = (*length - size) / step + 1;
        *stride = stride.saturating_mul(step);
        shape.push(size);
        strides.push(input);
    }
    let from = tensor.shape();
    viewed(nodes::UnfoldBackward0, tensor, &shape, &strides, tensor.offset(), move |grad| {
        let result = creation::zeros(&from, grad.dtype(), grad.device())?;
        // `unfold_backward` counts along the dimension.
        let count = from.get(at).copied().unwrap_or(0);
        drop(creation::empty(&[count], crate::Dtype::I64, grad.device())?);
        record_linear(nodes::UnfoldBackwardBackward0, grad, None, &[], &result, move |grad, _| {
            unfold(grad, at as i64, size, step)
        })?;
        Ok(result)
    })
}

/// `as_strided`.
pub(super) fn as_strided(
    tensor: &Tensor,
    shape: &[i64],
    strides: &[i64],
    storage_offset: Option<i64>,
) -> Result<Value> {
    let offset = storage_offset.unwrap_or(tensor.offset());
    let backward = as_strided_function(tensor, &tensor.alias(shape, strides, offset));
    Ok(viewed(nodes::AsStridedBackward0, tensor, shape, strides, offset, backward)?.into())
}
