//! Views of the parts of a tensor: `split`, `chunk`, `unbind`.

use crate::arguments::{Argument, FromArgument, integer};
use crate::autograd::{nodes, record};
use crate::error::runtime;
use crate::schema::ArgumentKind;
use crate::{Result, Tensor, Value};

use super::super::{creation, join};
use super::{view_of, wrap};

/// `split_with_sizes`: one node for all parts.
pub(crate) fn split_with_sizes(tensor: &Tensor, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    split_named(nodes::SplitWithSizesBackward0, tensor, sizes, dim)
}

fn split_named(name: &'static str, tensor: &Tensor, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    let at = wrap(dim, tensor.dim())?;
    crate::limits::check_parts(sizes.len() as i64)?;
    let total = sizes.iter().fold(0_i64, |total, size| total.saturating_add(*size));
    if sizes.iter().any(|size| *size < 0) {
        return runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes:?}"
        ));
    }
    if total != tensor.size(at as i64) {
        return runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {at}), but got \
             split_sizes={sizes:?}",
            tensor.size(at as i64)
        ));
    }
    let stride = tensor.strides().get(at).copied().unwrap_or(1);
    let mut start = 0;
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut shape = tensor.shape().to_vec();
        if let Some(slot) = shape.get_mut(at) {
            *slot = *size;
        }
        parts.push(view_of(tensor, &shape, &tensor.strides(), tensor.offset() + start * stride));
        start += size;
    }
    let shapes: Vec<_> = parts.iter().map(Tensor::shape).collect();
    let (dtype, device) = (tensor.dtype(), tensor.device());
    record(name, &[tensor], &parts.iter().collect::<Vec<_>>(), &[], move |_, grads| {
        Ok(vec![Some(cat_of_grads(grads, &shapes, dim, dtype, device)?)])
    })?;
    Ok(parts)
}

/// The gradients of all parts, joined, with zeros for missing gradients.
fn cat_of_grads(
    grads: &[Option<Tensor>],
    shapes: &[crate::Shape],
    dim: i64,
    dtype: crate::Dtype,
    device: crate::Device,
) -> Result<Tensor> {
    let mut all = Vec::with_capacity(grads.len());
    for (grad, shape) in grads.iter().zip(shapes) {
        all.push(match grad {
            Some(grad) => grad.clone(),
            None => creation::zeros(shape, dtype, device)?,
        });
    }
    join::cat(&all, dim)
}

/// `split` into parts of `size`; the last part may be smaller.
pub(crate) fn split(tensor: &Tensor, size: i64, dim: i64) -> Result<Vec<Tensor>> {
    let at = wrap(dim, tensor.dim())?;
    let total = tensor.size(at as i64);
    if size < 0 {
        return runtime(format!("split expects split_size be non-negative, but got split_size={size}"));
    }
    let count = if size == 0 { 1 } else { (total / size + i64::from(total % size > 0)).max(1) };
    crate::limits::check_parts(count)?;
    let sizes: Vec<i64> = (0..count).map(|index| size.min(total - index * size).max(0)).collect();
    split_named(nodes::SplitBackward0, tensor, &sizes, dim)
}

/// `chunk`.
pub(crate) fn chunk(tensor: &Tensor, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
    if chunks <= 0 {
        return runtime(format!("chunk expects `chunks` to be greater than 0, got: {chunks}"));
    }
    let total = tensor.size(wrap(dim, tensor.dim())? as i64);
    split(tensor, (total / chunks + i64::from(total % chunks > 0)).max(1), dim)
}

/// `unbind`.
pub(crate) fn unbind(tensor: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
    let at = wrap(dim, tensor.dim())?;
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    if shape.is_empty() {
        return runtime("Dimension specified as 0 but tensor has no dimensions");
    }
    let count = shape.remove(at);
    crate::limits::check_parts(count)?;
    let stride = strides.remove(at);
    let parts: Vec<Tensor> =
        (0..count).map(|index| view_of(tensor, &shape, &strides, tensor.offset() + index * stride)).collect();
    let (dtype, device) = (tensor.dtype(), tensor.device());
    record(nodes::UnbindBackward0, &[tensor], &parts.iter().collect::<Vec<_>>(), &[], move |_, grads| {
        let mut all = Vec::with_capacity(grads.len());
        for grad in grads {
            all.push(match grad {
                Some(grad) => grad.clone(),
                None => creation::zeros(&shape, dtype, device)?,
            });
        }
        Ok(vec![Some(join::stack(&all, dim)?)])
    })?;
    Ok(parts)
}

/// `split`: into parts of one size, or of the sizes of a list.
pub(super) fn split_by(tensor: &Tensor, sizes: SplitSizes, dim: i64) -> Result<Vec<Tensor>> {
    match sizes {
        SplitSizes::Each(sizes) => split_with_sizes(tensor, &sizes, dim),
        SplitSizes::All(size) => split(tensor, size, dim),
    }
}

/// The sizes of the parts.
pub(super) enum SplitSizes {
    Each(Vec<i64>),
    All(i64),
}

impl<'a> FromArgument<'a> for SplitSizes {
    const KINDS: &'static [ArgumentKind] = &[ArgumentKind::Any];

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.value() {
            Value::List(sizes) => sizes.iter().map(integer).collect::<Result<_>>().map(Self::Each),
            size => integer(size).map(Self::All),
        }
    }
}
