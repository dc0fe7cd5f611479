//! Views: other shapes over the same memory.

mod shape;
mod split;
mod strided;

use crate::autograd::{Gradients, needs_history, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Scalar, Tensor, TorchError, Value, numel};

use super::kernels::record_linear;
use super::{copy, creation, reduce};

use shape::{infer, strides_for};
pub(crate) use split::{chunk, unbind};
use split::{split_by, split_with_sizes};
pub(crate) use strided::diagonal;
use strided::{as_strided, unfold};

/// A dimension's index; a negative number counts from the end. An error for a number that no dimension has.
pub(crate) fn wrap(dim: i64, count: usize) -> Result<usize> {
    let count = count as i64;
    let most = count.max(1);
    if dim < -most || dim >= most {
        return Err(TorchError::Index(format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -most,
            most - 1
        )));
    }
    Ok(if dim < 0 { dim + most } else { dim } as usize)
}

/// The gradient of a node's only output; an error where it is missing.
pub(crate) fn first(grads: &[Option<Tensor>]) -> Result<&Tensor> {
    grads
        .first()
        .and_then(Option::as_ref)
        .ok_or_else(|| TorchError::Runtime("a gradient is missing".to_owned()))
}

fn view_of(tensor: &Tensor, shape: &[i64], strides: &[i64], offset: i64) -> Tensor {
    let view = tensor.alias(shape, strides, offset);
    view.set_base(tensor);
    view
}

/// A view with its backward function.
fn viewed(
    name: &'static str,
    tensor: &Tensor,
    shape: &[i64],
    strides: &[i64],
    offset: i64,
    backward: impl Fn(&Tensor) -> Result<Tensor> + 'static,
) -> Result<Tensor> {
    let view = view_of(tensor, shape, strides, offset);
    if needs_history(&[tensor]) {
        record(name, &[tensor], &[&view], &[], move |_, grads| -> Result<Gradients> {
            Ok(vec![Some(backward(first(grads)?)?)])
        })?;
    }
    Ok(view)
}

/// `view`.
pub(crate) fn view(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = infer(shape, tensor.numel())?;
    let Some(strides) = strides_for(&tensor.shape(), &tensor.strides(), &shape) else {
        return runtime(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead.",
        );
    };
    let from = tensor.shape();
    viewed(nodes::ViewBackward0, tensor, &shape, &strides, tensor.offset(), move |grad| reshape(grad, &from))
}

/// `alias`: the same elements as another tensor.
pub(crate) fn alias(tensor: &Tensor) -> Result<Tensor> {
    viewed(nodes::AliasBackward0, tensor, &tensor.shape(), &tensor.strides(), tensor.offset(), |grad| {
        Ok(grad.clone())
    })
}

/// `reshape`: a view where that is possible, else a copy.
pub(crate) fn reshape(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = infer(shape, tensor.numel())?;
    if let Some(strides) = strides_for(&tensor.shape(), &tensor.strides(), &shape) {
        let from = tensor.shape();
        return viewed(nodes::ViewBackward0, tensor, &shape, &strides, tensor.offset(), move |grad| {
            reshape(grad, &from)
        });
    }
    // `_unsafe_view` of a copy.
    let copied = copy::clone(tensor, crate::MemoryFormat::Contiguous)?;
    unsafe_view(&copied, &shape)
}

/// `_unsafe_view`: another shape over the same memory, which autograd does not treat as a view.
pub(crate) fn unsafe_view(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let shape = infer(shape, tensor.numel())?;
    let Some(strides) = strides_for(&tensor.shape(), &tensor.strides(), &shape) else {
        return reshape(tensor, &shape);
    };
    let view = tensor.alias(&shape, &strides, tensor.offset());
    let from = tensor.shape();
    record(nodes::UnsafeViewBackward0, &[tensor], &[&view], &[], move |_, grads| {
        Ok(vec![Some(reshape(first(grads)?, &from)?)])
    })?;
    Ok(view)
}

/// `permute`.
pub(crate) fn permute(tensor: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let count = tensor.dim();
    if dims.len() != count {
        return runtime(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
             ordering of dimensions i.e. input.dim() = {count} is not equal to len(dims) = {}",
            dims.len()
        ));
    }
    let order: Vec<usize> = dims.iter().map(|dim| wrap(*dim, count)).collect::<Result<_>>()?;
    let mut inverse = vec![0_i64; count];
    for (to, from) in order.iter().enumerate() {
        if let Some(slot) = inverse.get_mut(*from) {
            *slot = to as i64;
        }
    }
    let pick =
        |list: &[i64]| -> Vec<i64> { order.iter().filter_map(|dim| list.get(*dim).copied()).collect() };
    viewed(
        nodes::PermuteBackward0,
        tensor,
        &pick(&tensor.shape()),
        &pick(&tensor.strides()),
        tensor.offset(),
        move |grad| permute(grad, &inverse),
    )
}

/// `transpose`.
pub(crate) fn transpose(tensor: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    transpose_named(nodes::TransposeBackward0, tensor, a, b)
}

fn transpose_named(name: &'static str, tensor: &Tensor, a: i64, b: i64) -> Result<Tensor> {
    let (x, y) = (wrap(a, tensor.dim())?, wrap(b, tensor.dim())?);
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    if !shape.is_empty() {
        shape.swap(x, y);
        strides.swap(x, y);
    }
    viewed(name, tensor, &shape, &strides, tensor.offset(), move |grad| transpose_named(name, grad, a, b))
}

/// `t`.
pub(crate) fn t(tensor: &Tensor) -> Result<Tensor> {
    match tensor.dim() {
        0 | 1 => view(tensor, &tensor.shape()),
        2 => transpose_named(nodes::TBackward0, tensor, 0, 1),
        dims => runtime(format!("t() expects a tensor with <= 2 dimensions, but self is {dims}D")),
    }
}

/// `expand` without a history; `None` where the shapes do not fit.
pub(crate) fn expand_quietly(tensor: &Tensor, shape: &[i64]) -> Option<Tensor> {
    let (sizes, strides) = (tensor.shape(), tensor.strides());
    let shift = shape.len().checked_sub(sizes.len())?;
    let mut new = vec![0; shape.len()];
    let mut below = 1_i64;
    for (dim, target) in shape.iter().enumerate().rev() {
        let stride = match dim.checked_sub(shift) {
            // All dimensions of a number are repeated, also those of size 1.
            None if *target != 1 || sizes.is_empty() => 0,
            None => below,
            Some(index) if sizes.get(index) == Some(target) => *strides.get(index)?,
            Some(index) if sizes.get(index) == Some(&1) => 0,
            Some(_) => return None,
        };
        if let Some(slot) = new.get_mut(dim) {
            *slot = stride;
        }
        below = target.saturating_mul(stride);
    }
    Some(tensor.alias(shape, &new, tensor.offset()))
}

/// `expand`.
pub(crate) fn expand(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let sizes = tensor.shape();
    if shape.len() < sizes.len() {
        return runtime(format!(
            "expand({}, size={shape:?}): the number of sizes provided ({}) must be greater or equal to the number of \
             dimensions in the tensor ({})",
            tensor.dtype(),
            shape.len(),
            sizes.len()
        ));
    }
    let shift = shape.len() - sizes.len();
    let mut full = Vec::with_capacity(shape.len());
    for (dim, size) in shape.iter().enumerate() {
        let input = dim.checked_sub(shift).and_then(|index| sizes.get(index)).copied();
        full.push(if *size == -1 { input.unwrap_or(-1) } else { *size });
    }
    let Some(view) = expand_quietly(tensor, &full) else {
        let dim = (0..shape.len())
            .rev()
            .find(|dim| {
                let input = dim.checked_sub(shift).and_then(|index| sizes.get(index)).copied().unwrap_or(1);
                input != 1 && full.get(*dim) != Some(&input)
            })
            .unwrap_or(0);
        let input = dim.checked_sub(shift).and_then(|index| sizes.get(index)).copied().unwrap_or(1);
        return runtime(format!(
            "The expanded size of the tensor ({}) must match the existing size ({input}) at non-singleton dimension {dim}.  \
             Target sizes: {shape:?}.  Tensor sizes: {sizes:?}",
            shape.get(dim).copied().unwrap_or(0)
        ));
    };
    let from = sizes;
    viewed(nodes::ExpandBackward0, tensor, &view.shape(), &view.strides(), view.offset(), move |grad| {
        reduce::sum_to(grad, &from)
    })
}

/// `unsqueeze`.
pub(crate) fn unsqueeze(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    let index = wrap(dim, tensor.dim() + 1)?;
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    let stride = match (shape.get(index), strides.get(index)) {
        (Some(size), Some(stride)) => size * stride,
        _ => 1,
    };
    shape.insert(index, 1);
    strides.insert(index, stride);
    viewed(nodes::UnsqueezeBackward0, tensor, &shape, &strides, tensor.offset(), move |grad| {
        squeeze(grad, Some(&[dim]))
    })
}

/// `squeeze` of the given dimensions, or of all of size 1.
pub(crate) fn squeeze(tensor: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    let wanted: Option<Vec<usize>> = dims
        .map(|dims| dims.iter().map(|dim| wrap(*dim, tensor.dim())).collect::<Result<_>>())
        .transpose()?;
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    for (index, (size, stride)) in tensor.shape().iter().zip(tensor.strides().iter()).enumerate() {
        let goes = *size == 1 && wanted.as_ref().is_none_or(|wanted| wanted.contains(&index));
        if !goes {
            shape.push(*size);
            strides.push(*stride);
        }
    }
    let from = tensor.shape();
    let node = match dims {
        None => nodes::SqueezeBackward0,
        Some([_]) => nodes::SqueezeBackward1,
        Some(_) => nodes::SqueezeBackward2,
    };
    viewed(node, tensor, &shape, &strides, tensor.offset(), move |grad| view(grad, &from))
}

/// `select`.
pub(crate) fn select(tensor: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    if tensor.dim() == 0 {
        return Err(TorchError::Index("select() cannot be applied to a 0-dim tensor.".to_owned()));
    }
    let at = wrap(dim, tensor.dim())?;
    let size = tensor.size(at as i64);
    if index < -size || index >= size {
        return Err(TorchError::Index(format!(
            "index {index} is out of bounds for dimension {at} with size {size}"
        )));
    }
    let index = if index < 0 { index + size } else { index };
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    shape.remove(at);
    let stride = strides.remove(at);
    let from = tensor.shape();
    viewed(
        nodes::SelectBackward0,
        tensor,
        &shape,
        &strides,
        tensor.offset() + index.saturating_mul(stride),
        move |grad| {
            let full = creation::full(&from, Scalar::Int(0), grad.dtype(), grad.device())?;
            copy::copy_below(&select(&full, dim, index)?, grad, false)?;
            record_linear(nodes::SelectBackwardBackward0, grad, None, &[], &full, move |grad_grad, _| {
                select(grad_grad, dim, index)
            })?;
            Ok(full)
        },
    )
}

/// `slice`: bounds may be negative and are clipped to the dimension, as Python's are.
pub(crate) fn slice(
    tensor: &Tensor,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Result<Tensor> {
    if step <= 0 {
        return Err(TorchError::Value("step must be greater than zero".to_owned()));
    }
    let at = wrap(dim, tensor.dim())?;
    let size = tensor.size(at as i64);
    let clip = |bound: i64| (if bound < 0 { bound + size } else { bound }).clamp(0, size);
    let start = clip(start.unwrap_or(0));
    let end = clip(end.unwrap_or(i64::MAX)).max(start);
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    let mut offset = tensor.offset();
    if let (Some(size), Some(stride)) = (shape.get_mut(at), strides.get_mut(at)) {
        let length = end - start;
        *size = length / step + i64::from(length % step > 0);
        // Saturating: the stride of a dimension of size 1, or of an expanded one, may be any number.
        offset = offset.saturating_add(start.saturating_mul(*stride));
        *stride = stride.saturating_mul(step);
    }
    let from = tensor.shape();
    viewed(nodes::SliceBackward0, tensor, &shape, &strides, offset, move |grad| {
        let full = creation::full(&from, Scalar::Int(0), grad.dtype(), grad.device())?;
        copy::copy_below(&slice(&full, dim, Some(start), Some(end), step)?, grad, false)?;
        record_linear(nodes::SliceBackwardBackward0, grad, None, &[], &full, move |grad_grad, _| {
            slice(grad_grad, dim, Some(start), Some(end), step)
        })?;
        Ok(full)
    })
}

/// `narrow`.
pub(crate) fn narrow(tensor: &Tensor, dim: i64, start: i64, length: i64) -> Result<Tensor> {
    let size = tensor.size(dim);
    let start = if start < 0 { start + size } else { start };
    if length < 0 || start < 0 || start.saturating_add(length) > size {
        return runtime(format!("start ({start}) + length ({length}) exceeds dimension size ({size})."));
    }
    slice(tensor, dim, Some(start), Some(start + length), 1)
}

/// `flatten`.
pub(crate) fn flatten(tensor: &Tensor, start: i64, end: i64) -> Result<Tensor> {
    let (start, end) = (wrap(start, tensor.dim())?, wrap(end, tensor.dim())?);
    if tensor.dim() == 0 {
        return reshape(tensor, &[1]);
    }
    if start == end {
        return Ok(tensor.clone());
    }
    if start > end {
        return runtime("flatten() has invalid args: start_dim cannot come after end_dim");
    }
    let shape = tensor.shape();
    let joined = numel(shape.get(start..=end).unwrap_or_default());
    let mut new: Vec<i64> = shape.iter().take(start).copied().collect();
    new.push(joined);
    new.extend(shape.iter().skip(end + 1));
    reshape(tensor, &new)
}

fn unflatten(tensor: &Tensor, dim: i64, sizes: &[i64]) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())?;
    let shape = tensor.shape();
    let mut new: Vec<i64> = shape.iter().take(at).copied().collect();
    new.extend(infer(sizes, tensor.size(at as i64))?);
    new.extend(shape.iter().skip(at + 1));
    view(tensor, &new)
}

fn movedim(tensor: &Tensor, from: &[i64], to: &[i64]) -> Result<Tensor> {
    let count = tensor.dim();
    let from: Vec<usize> = from.iter().map(|dim| wrap(*dim, count)).collect::<Result<_>>()?;
    let to: Vec<usize> = to.iter().map(|dim| wrap(*dim, count)).collect::<Result<_>>()?;
    let mut order: Vec<Option<usize>> = vec![None; count];
    for (from, to) in from.iter().zip(&to) {
        if let Some(slot) = order.get_mut(*to) {
            *slot = Some(*from);
        }
    }
    let mut left = (0..count).filter(|dim| !from.contains(dim));
    let order: Vec<i64> =
        order.into_iter().map(|slot| slot.or_else(|| left.next()).unwrap_or(0) as i64).collect();
    permute(tensor, &order)
}

/// Changes the geometry of a tensor in place, as `unsqueeze_` and its like do.
fn in_place(tensor: &Tensor, view: &Tensor) -> Value {
    tensor.set_geometry(&view.shape(), &view.strides(), view.offset());
    if let Some(node) = view.grad_fn() {
        tensor.set_history(&node, view.output_number());
    }
    tensor.into()
}

pub(crate) const TABLE: &[Entry] = &[
    op!("view(Tensor self, ScalarType dtype)", |tensor: &Tensor, dtype: Dtype| {
        if dtype.size() != tensor.dtype().size() {
            return crate::error::not_implemented("view as a type of another size");
        }
        Ok(Tensor::over(tensor.storage(), &tensor.shape(), &tensor.strides(), tensor.offset(), dtype))
    }),
    op!("view(Tensor self, int[] size)", view).composed(&[nodes::ViewBackward0]),
    op!("view_as(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| view(tensor, &other.shape())),
    op!("reshape(Tensor self, int[] shape)", reshape).composed(&[nodes::UnsafeViewBackward0]),
    op!("reshape_as(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        reshape(tensor, &other.shape())
    }),
    op!("permute(Tensor self, int[] dims)", permute).composed(&[nodes::PermuteBackward0]),
    op!("transpose(Tensor self, int dim0, int dim1)", transpose).composed(&[nodes::TransposeBackward0]),
    op!("swapaxes(Tensor self, int axis0, int axis1)", transpose),
    op!("swapdims(Tensor self, int dim0, int dim1)", transpose),
    op!("t(Tensor self)", t).composed(&[nodes::TBackward0]),
    op!("expand(Tensor self, int[] size)", expand).composed(&[nodes::ExpandBackward0]),
    op!("broadcast_to(Tensor self, int[] size)", expand),
    op!("expand_as(Tensor self, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        expand(tensor, &other.shape())
    }),
    op!("unsqueeze(Tensor self, int dim)", unsqueeze).composed(&[nodes::UnsqueezeBackward0]),
    op!("unsqueeze_(Tensor self, int dim)", |tensor: &Tensor, dim: i64| {
        Ok(in_place(tensor, &unsqueeze(tensor, dim)?))
    }),
    op!("squeeze(Tensor self, int[]? dim=None)", squeeze).composed(&[
        nodes::SqueezeBackward0,
        nodes::SqueezeBackward1,
        nodes::SqueezeBackward2,
    ]),
    op!("squeeze_(Tensor self, int[]? dim=None)", |tensor: &Tensor, dim: Option<&[i64]>| {
        Ok(in_place(tensor, &squeeze(tensor, dim)?))
    }),
    op!("transpose_(Tensor self, int dim0, int dim1)", |tensor: &Tensor, dim0: i64, dim1: i64| {
        Ok(in_place(tensor, &transpose(tensor, dim0, dim1)?))
    }),
    op!("t_(Tensor self)", |tensor: &Tensor| Ok(in_place(tensor, &t(tensor)?))),
    op!("select(Tensor self, int dim, int index)", select).composed(&[nodes::SelectBackward0]),
    op!("narrow(Tensor self, int dim, int start, int length)", narrow).composed(&[nodes::SliceBackward0]),
    op!("split(Tensor self, Any split_size_or_sections, int dim=0)", split_by)
        .composed(&[nodes::SplitBackward0]),
    op!("split_with_sizes(Tensor self, int[] split_sizes, int dim=0)", split_with_sizes),
    op!("chunk(Tensor self, int chunks, int dim=0)", chunk),
    op!("unbind(Tensor self, int dim=0)", unbind),
    op!("flatten(Tensor self, int start_dim=0, int end_dim=-1)", flatten),
    op!("ravel(Tensor self)", |tensor: &Tensor| reshape(&copy::contiguous(tensor)?, &[-1])),
    op!("unflatten(Tensor self, int dim, int[] sizes)", unflatten),
    op!("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1)", diagonal),
    op!("unfold(Tensor self, int dimension, int size, int step)", unfold),
    op!("movedim(Tensor self, int[] source, int[] destination)", movedim),
    op!("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None)", as_strided),
];
