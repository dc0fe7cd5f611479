//! Tensors made of several others, and repetitions.

use crate::autograd::{nodes, record};
use crate::dtype::ResultType;
use crate::error::runtime;
use crate::iterator::{self, common_device};
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor};

use super::copy::{self, to_dtype};
use super::creation::{empty, zeros};
use super::reduce;
use super::views::{self, first, narrow, select, unsqueeze, wrap};

/// `cat`.
pub(crate) fn cat(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let is_skipped = |tensor: &Tensor| *tensor.shape() == [0];
    let Some(like) = tensors.iter().find(|tensor| !is_skipped(tensor)).or(tensors.first()) else {
        return runtime("torch.cat(): expected a non-empty list of Tensors");
    };
    if like.dim() == 0 {
        return runtime("zero-dimensional tensor (at position 0) cannot be concatenated");
    }
    let at = wrap(dim, like.dim())?;
    let mut shape = like.shape().to_vec();
    let mut total = 0;
    for (number, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| !is_skipped(tensor)) {
        let input = tensor.shape();
        let fits = input.len() == shape.len()
            && input.iter().zip(&shape).enumerate().all(|(index, (a, b))| index == at || a == b);
        if !fits {
            let other = input.iter().zip(&shape).enumerate().find(|(index, (a, b))| *index != at && a != b);
            let (expected, got) = other.map_or((0, 0), |(_, (a, b))| (*b, *a));
            return runtime(format!(
                "Sizes of tensors must match except in dimension {at}. Expected size {expected} but got size {got} for \
                 tensor number {number} in the list."
            ));
        }
        total += tensor.size(at as i64);
    }
    if let Some(size) = shape.get_mut(at) {
        *size = total;
    }
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    let named: Vec<(&Tensor, &str)> = inputs.iter().map(|input| (*input, "tensors")).collect();
    iterator::same_device(&named, "cat")?;
    let device = common_device(&inputs)?;
    let dtype = inputs
        .iter()
        .fold(ResultType::default(), |sum, tensor| sum.add(tensor.dtype(), tensor.dim() == 0, false))
        .get();
    let is_channels_last =
        tensors.iter().all(|tensor| tensor.suggested_format() == MemoryFormat::ChannelsLast);
    let output = if is_channels_last && shape.len() == 4 {
        copy::empty_strided(&shape, &crate::channels_last_strides(&shape), dtype, device)?
    } else {
        empty(&shape, dtype, device)?
    };
    fill_values(tensors, &output, at);
    let parts: Vec<(i64, Dtype, bool)> =
        tensors.iter().map(|tensor| (tensor.size(at as i64), tensor.dtype(), is_skipped(tensor))).collect();
    record(nodes::CatBackward0, &inputs, &[&output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let mut start = 0;
        let mut results = Vec::with_capacity(parts.len());
        for (number, (size, dtype, is_skipped)) in parts.iter().enumerate() {
            if *is_skipped {
                results.push(Some(zeros(&[0], *dtype, grad.device())?));
                continue;
            }
            let part = ctx.gradient(number, || to_dtype(&narrow(grad, at as i64, start, *size)?, *dtype))?;
            start += size;
            results.push(part);
        }
        Ok(results)
    })?;
    Ok(output)
}

fn fill_values(tensors: &[Tensor], output: &Tensor, at: usize) {
    let values: Option<Vec<Vec<crate::Scalar>>> = tensors.iter().map(Tensor::values).collect();
    let shape = output.shape();
    let rows: i64 = shape.iter().take(at).product();
    // The part of each row, one tensor after the other.
    let joined = values.map(|values| {
        let part = |row: i64, values: &[crate::Scalar]| {
            let width = values.len() / rows.max(1) as usize;
            values.iter().skip(row as usize * width).take(width).copied().collect::<Vec<_>>()
        };
        (0..rows).flat_map(|row| values.iter().flat_map(move |values| part(row, values))).collect::<Vec<_>>()
    });
    let cast = joined.map(|values| {
        values.into_iter().map(|value| super::host_values::cast(value, output.dtype())).collect::<Vec<_>>()
    });
    output.set_values(cast.as_deref());
}

/// `stack`.
pub(crate) fn stack(tensors: &[Tensor], dim: i64) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    if crate::autocast::dtype().is_some()
        && inputs.iter().any(|input| Some(input.dtype()) != inputs.first().map(|like| like.dtype()))
    {
        crate::session().note_estimate("stack", "tensors of several types under autocast were not recorded");
    }
    let Some(like) = tensors.first() else {
        return runtime("stack expects a non-empty TensorList");
    };
    let at = wrap(dim, like.dim() + 1)?;
    for (number, tensor) in tensors.iter().enumerate() {
        if tensor.shape() != like.shape() {
            return runtime(format!(
                "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {number}",
                like.shape(),
                tensor.shape()
            ));
        }
    }
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let parts = tensors.iter().map(|tensor| unsqueeze(tensor, at as i64)).collect::<Result<Vec<_>>>()?;
        cat(&parts, at as i64)?
    };
    record(nodes::StackBackward0, &inputs, &[&output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let count = grad.size(at as i64);
        (0..count)
            .map(
                |index| {
                    if ctx.wants(index as usize) {
                        select(grad, at as i64, index).map(Some)
                    } else {
                        Ok(None)
                    }
                },
            )
            .collect()
    })?;
    Ok(output)
}

/// `repeat`.
fn repeat(tensor: &Tensor, repeats: &[i64]) -> Result<Tensor> {
    if repeats.len() < tensor.dim() {
        return runtime(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        );
    }
    let missing = repeats.len() - tensor.dim();
    let padded: Vec<i64> = std::iter::repeat_n(1, missing).chain(tensor.shape().iter().copied()).collect();
    let target: Vec<i64> =
        padded.iter().zip(repeats).map(|(size, count)| size.saturating_mul(*count)).collect();
    let output = empty(&target, tensor.dtype(), tensor.device())?;
    let (from, repeats) = (tensor.shape(), repeats.to_vec());
    record(nodes::RepeatBackward0, &[tensor], &[&output], &[], move |_, grads| {
        // repeat_backward: leading repeats are summed first, then the tiles of each dimension.
        let mut grad = first(grads)?.clone();
        let leading = repeats.len() - from.len();
        if leading > 0 {
            grad = reduce::sum(&grad, Some(&(0..leading as i64).collect::<Vec<_>>()), false, None)?;
        }
        let (mut shape, mut dims) = (Vec::new(), Vec::new());
        for (size, count) in from.iter().zip(repeats.iter().skip(leading)) {
            if *count != 1 {
                dims.push(shape.len() as i64);
                shape.push(*count);
            }
            shape.push(*size);
        }
        if dims.is_empty() {
            return Ok(vec![Some(grad)]);
        }
        let tiles = views::reshape(&grad, &shape)?;
        Ok(vec![Some(reduce::sum(&tiles, Some(&dims), false, None)?)])
    })?;
    Ok(output)
}

fn tile(tensor: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let missing = tensor.dim().saturating_sub(dims.len());
    let repeats: Vec<i64> = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
    repeat(tensor, &repeats)
}

/// `block_diag`: zeros with the tensors, seen as matrices, along the diagonal.
fn block_diag(tensors: &[Tensor]) -> Result<Tensor> {
    let side = |tensor: &Tensor, dim: i64| match (tensor.dim(), dim) {
        (2, dim) => tensor.size(dim),
        (1, 1) => tensor.size(0),
        _ => 1,
    };
    let sizes: Vec<[i64; 2]> = tensors.iter().map(|tensor| [side(tensor, 0), side(tensor, 1)]).collect();
    let total = |dim: usize| -> i64 { sizes.iter().filter_map(|size| size.get(dim)).sum() };
    let Some(first_tensor) = tensors.first() else {
        return empty(&[1, 0], crate::session().default_dtype(), crate::Device::Cpu);
    };
    let all: Vec<&Tensor> = tensors.iter().collect();
    let dtype = crate::iterator::result_type(&all);
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let output = zeros(&[total(0), total(1)], dtype, first_tensor.device())?;
        let mut corner = [0, 0];
        for (tensor, size) in tensors.iter().zip(&sizes) {
            let place = block(&output, corner, *size)?;
            copy::copy_in_place(&place, &views::view(tensor, size)?)?;
            corner = [corner[0] + size[0], corner[1] + size[1]];
        }
        output
    };
    let shapes: Vec<crate::Shape> = tensors.iter().map(Tensor::shape).collect();
    record(nodes::BlockDiagBackward0, &all, &[&output], &[], move |ctx, grads| {
        let grad = first(grads)?;
        let mut corner = [0, 0];
        let mut results = Vec::with_capacity(sizes.len());
        for (at, (size, shape)) in sizes.iter().zip(&shapes).enumerate() {
            let part = ctx.gradient(at, || block(grad, corner, *size))?;
            results.push(match part {
                Some(part) if shape.len() < 2 => Some(views::reshape(&part, shape)?),
                part => part,
            });
            corner = [corner[0] + size[0], corner[1] + size[1]];
        }
        Ok(results)
    })?;
    Ok(output)
}

fn block(tensor: &Tensor, corner: [i64; 2], size: [i64; 2]) -> Result<Tensor> {
    narrow(&narrow(tensor, 0, corner[0], size[0])?, 1, corner[1], size[1])
}

pub(crate) const TABLE: &[Entry] = &[
    op!("cat(Tensor[] tensors, int dim=0)", cat).composed(&[nodes::CatBackward0]),
    op!("concat(Tensor[] tensors, int dim=0)", cat),
    op!("concatenate(Tensor[] tensors, int dim=0)", cat),
    op!("stack(Tensor[] tensors, int dim=0)", stack).composed(&[nodes::StackBackward0]),
    op!("_block_diag(Tensor[] tensors)", block_diag),
    op!("repeat(Tensor self, int[] repeats)", repeat),
    op!("tile(Tensor self, int[] dims)", tile),
];
