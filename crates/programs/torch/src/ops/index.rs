//! Indexing, as `x[...]` reads and writes.

use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, in_place, op};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Tensor, TorchError, Value, session};

use super::by_value::nonzero;
use super::copy::{self, to_device};
use super::creation::{empty, record_fill, zeros};
use super::pointwise::change_in_place;
use super::sort::{radix_sort_bytes, temporary};
use super::views::{self, first, select, slice, squeeze, unsqueeze};

/// A tensor after the slices, numbers and new dimensions of an index were applied, and the tensors of the
/// index that are left.
struct SlicedIndex {
    tensor: Tensor,
    indices: Vec<Option<Tensor>>,
}

/// `applySlicing`.
fn apply_slicing(tensor: &Tensor, index: &Value) -> Result<SlicedIndex> {
    let items: Vec<Value> = match index {
        Value::List(items) => items.clone(),
        other => vec![other.clone()],
    };
    let specified: usize = items
        .iter()
        .map(|item| match item {
            Value::None | Value::Ellipsis | Value::Scalar(Scalar::Bool(_)) => 0,
            Value::Tensor(mask) if mask.dtype() == Dtype::Bool => mask.dim(),
            _ => 1,
        })
        .sum();
    if specified > tensor.dim() {
        return Err(TorchError::Index(format!("too many indices for tensor of dimension {}", tensor.dim())));
    }
    let mut applied = SlicedIndex { tensor: tensor.clone(), indices: Vec::new() };
    let mut dim = 0_usize;
    for item in &items {
        let result = applied.tensor.clone();
        match item {
            Value::Scalar(Scalar::Bool(_)) => {
                return crate::error::not_implemented("indexing with True or False");
            }
            Value::Scalar(number) => {
                let Some(index) = number.to_i64() else {
                    return runtime(
                        "an index that lies on the GPU is not known here; use a number in its place",
                    );
                };
                let size = result.size(dim as i64);
                if index < -size || index >= size {
                    return Err(TorchError::Index(format!(
                        "index {index} is out of bounds for dimension {dim} with size {size}"
                    )));
                }
                applied.tensor = select(&result, dim as i64, index)?;
            }
            Value::Slice(start, stop, step) => {
                let size = result.size(dim as i64);
                let is_whole = start.unwrap_or(0) == 0 && stop.is_none_or(|stop| stop >= size) && *step == 1;
                if !is_whole {
                    applied.tensor = slice(&result, dim as i64, *start, *stop, *step)?;
                }
                dim += 1;
            }
            Value::Ellipsis => dim += tensor.dim() - specified,
            Value::None => {
                applied.tensor = unsqueeze(&result, dim as i64)?;
                dim += 1;
            }
            Value::Tensor(index) => {
                if index.dim() == 0 && index.dtype().is_integral() && index.dtype() != Dtype::Bool {
                    if let Some(Scalar::Int(number)) =
                        index.values().and_then(|values| values.first().copied())
                    {
                        applied.tensor = select(&result, dim as i64, number)?;
                        continue;
                    }
                    // The number is read from the GPU; which part it selects changes no size.
                    applied.tensor = select(&result, dim as i64, 0)?;
                    continue;
                }
                while applied.indices.len() < dim {
                    applied.indices.push(None);
                }
                applied.indices.push(Some(index.clone()));
                dim += if index.dtype() == Dtype::Bool { index.dim() } else { 1 };
            }
            other => {
                return Err(TorchError::Index(format!(
                    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got \
                     {})",
                    other.type_name()
                )));
            }
        }
    }
    Ok(applied)
}

/// `Tensor.__getitem__`.
pub(crate) fn get_item(tensor: &Tensor, item: &Value) -> Result<Tensor> {
    let applied = apply_slicing(tensor, item)?;
    if applied.indices.is_empty() {
        // The result is always another tensor than the one that was indexed.
        if applied.tensor.is_same(tensor) {
            return match item {
                Value::Slice(start, stop, step) => slice(tensor, 0, *start, *stop, *step),
                _ => views::alias(tensor),
            };
        }
        return Ok(applied.tensor);
    }
    index(&applied.tensor, &applied.indices)
}

fn checked(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    if indices.len() > tensor.dim() {
        return Err(TorchError::Index(format!(
            "too many indices for tensor of dimension {} (got {})",
            tensor.dim(),
            indices.len()
        )));
    }
    let mut result = Vec::with_capacity(indices.len());
    for index in indices {
        let Some(index) = index else {
            result.push(None);
            continue;
        };
        if index.device() != tensor.device() && index.device() != Device::Cpu {
            return runtime(format!(
                "indices should be either on cpu or on the same device as the indexed tensor ({})",
                tensor.device()
            ));
        }
        match index.dtype() {
            Dtype::Bool | Dtype::U8 => {
                // expandTensors: a mask becomes one index for each of its dimensions.
                let places = to_device(&nonzero(index)?, tensor.device(), false)?;
                for dim in 0..index.dim() as i64 {
                    result.push(Some(select(&places, 1, dim)?));
                }
                continue;
            }
            Dtype::I64 | Dtype::I32 => {}
            _ => {
                return Err(TorchError::Index(
                    "tensors used as indices must be long, int, byte or bool tensors".to_owned(),
                ));
            }
        }
        result.push(Some(if index.device() == tensor.device() {
            index.clone()
        } else {
            to_device(index, tensor.device(), false)?
        }));
    }
    Ok(result)
}

/// The shape of `tensor[indices]`.
fn indexed_shape(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<i64>> {
    let shapes: Vec<_> = indices.iter().flatten().map(Tensor::shape).collect();
    let common =
        iterator::broadcast(&shapes.iter().map(|shape| &**shape).collect::<Vec<_>>()).map_err(|_| {
            TorchError::Index("shape mismatch: indexing tensors could not be broadcast together".to_owned())
        })?;
    let positions: Vec<usize> =
        indices.iter().enumerate().filter(|(_, index)| index.is_some()).map(|(dim, _)| dim).collect();
    let first = positions.first().copied().unwrap_or(0);
    let is_adjacent = positions.iter().enumerate().all(|(offset, dim)| *dim == first + offset);
    let shape = tensor.shape();
    let kept = |dim: usize| !positions.contains(&dim);
    let place = if is_adjacent { first } else { 0 };
    let mut result = Vec::new();
    for (dim, size) in shape.iter().enumerate() {
        if result.len() == place && dim >= place && !common.is_empty() && !kept(dim) && dim == first {
            result.extend(&common);
        }
        if kept(dim) {
            result.push(*size);
        }
    }
    if !is_adjacent {
        result = common
            .iter()
            .copied()
            .chain(shape.iter().enumerate().filter(|(dim, _)| kept(*dim)).map(|(_, size)| *size))
            .collect();
    }
    Ok(result)
}

/// `index`: a new tensor of the chosen parts.
pub(crate) fn index(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<Tensor> {
    let expanded = checked(tensor, indices)?;
    let output = empty(&indexed_shape(tensor, &expanded)?, tensor.dtype(), tensor.device())?;
    check_known(tensor, &expanded)?;
    index_values(tensor, &expanded, &output);
    drop(expanded);
    // A mask is saved as it is; its places are found again in the backward pass.
    let saved: Vec<Save<'_>> = indices.iter().flatten().map(|index| Save::Input(Some(index))).collect();
    let from = tensor.shape();
    let places: Vec<bool> = indices.iter().map(Option::is_some).collect();
    record(nodes::IndexBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let full = zeros(&from, grad.dtype(), grad.device())?;
        let pattern: String = places.iter().map(|is_there| if *is_there { '1' } else { '0' }).collect();
        crate::autograd::double_backward::set_variant(&pattern);
        let mut next = 0;
        let mut indices = Vec::new();
        for is_there in &places {
            indices.push(if *is_there {
                next += 1;
                ctx.saved_optional(next - 1)?
            } else {
                None
            });
        }
        accumulate_memory(&full, &indices, grad)?;
        let saves: Vec<Save<'_>> = indices.iter().flatten().map(|index| Save::Input(Some(index))).collect();
        let places = places.clone();
        record(nodes::IndexPutImplBackward0, &[grad], &[&full], &saves, move |ctx, grads| {
            let saved = (0..places.iter().filter(|place| **place).count()).map(|at| ctx.saved(at));
            let mut saved = saved.collect::<Result<Vec<_>>>()?.into_iter();
            let indices: Vec<_> =
                places.iter().map(|is_there| if *is_there { saved.next() } else { None }).collect();
            Ok(vec![Some(self::index(first(grads)?, &indices)?)])
        })?;
        Ok(vec![Some(full)])
    })?;
    Ok(output)
}

/// An index of the host whose value is known has to lie inside.
fn check_known(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<()> {
    for (dim, index) in indices.iter().enumerate() {
        let size = tensor.size(dim as i64);
        let values = index.as_ref().filter(|index| index.device() == Device::Cpu).and_then(Tensor::values);
        for place in values.into_iter().flatten().filter_map(Scalar::to_i64) {
            if place < -size || place >= size {
                return Err(TorchError::Index(format!(
                    "index {place} is out of bounds for dimension {dim} with size {size}"
                )));
            }
        }
    }
    Ok(())
}

fn index_values(tensor: &Tensor, indices: &[Option<Tensor>], output: &Tensor) {
    let [Some(index)] = indices else { return };
    let (Some(values), Some(positions)) = (tensor.values(), index.values()) else { return };
    let rows = tensor.size(0).max(1) as usize;
    let width = values.len() / rows;
    let picked: Option<Vec<Scalar>> = positions
        .iter()
        .flat_map(|position| {
            let row = position.to_i64().map(|row| if row < 0 { row + rows as i64 } else { row });
            (0..width).map(move |column| (row, column))
        })
        .map(|(row, column)| values.get(row? as usize * width + column).copied())
        .collect();
    output.set_values(picked.as_deref());
}

/// `wrapIndexOnce`: the GPU itself checks the largest and the smallest of the indices that a program gives.
fn check_bounds(tensor: &Tensor, indices: &[Option<Tensor>]) -> Result<()> {
    if !tensor.device().is_cuda() {
        return Ok(());
    }
    let _no_grad = GradModeGuard::new(false);
    for index in indices.iter().flatten().filter(|index| index.numel() > 0) {
        for name in ["max", "min"] {
            let extremum = crate::call(name, &[index.into()], &[])?.tensor()?;
            let is_inside = super::pointwise::ge(&extremum, &super::creation::wrapped(Scalar::Int(0)))?;
            drop(is_inside);
            drop(extremum);
        }
    }
    Ok(())
}

/// `index_put_with_sort_kernel`: what adding into repeated places takes.
fn accumulate_memory(tensor: &Tensor, indices: &[Option<Tensor>], value: &Tensor) -> Result<()> {
    if !tensor.device().is_cuda() {
        return Ok(());
    }
    let indices = checked(tensor, indices)?;
    let is_in_front = indices.iter().rev().skip_while(|index| index.is_none()).all(Option::is_some);
    if !is_in_front {
        session()
            .note_estimate("index", "gradients of indices that are not the first ones were not recorded");
    }
    let _no_grad = GradModeGuard::new(false);
    let device = tensor.device();
    let linear = linear_index(&indices)?;
    let value = copy::contiguous(value)?;
    // The indexed dimensions come first; what is not contiguous then is copied, and copied back at the end.
    let moved =
        if is_adjacent(&indices) { None } else { Some(empty(&tensor.shape(), tensor.dtype(), device)?) };
    let count = linear.as_ref().map_or(0, Tensor::numel).max(0) as u64;
    let bytes = count * 8;
    let indexed: i64 = indices
        .iter()
        .zip(tensor.shape().iter())
        .filter(|(index, _)| index.is_some())
        .map(|(_, size)| *size)
        .product();
    drop(indices);
    if count > 0 {
        let sorted = temporary(device, bytes)?;
        let original = temporary(device, bytes)?;
        let range = temporary(device, bytes)?;
        drop(temporary(device, radix_sort_bytes(count, 8, 8, bits(indexed - 1)))?);
        drop(range);
        drop(original);
        drop(sorted);
    }
    drop(moved);
    drop(value);
    drop(linear);
    Ok(())
}

/// `hasContiguousSubspace`: whether no whole dimension stands between two indices.
fn is_adjacent(indices: &[Option<Tensor>]) -> bool {
    let from_first = indices.iter().skip_while(|index| index.is_none());
    from_first.skip_while(|index| index.is_some()).all(Option::is_none)
}

/// `get_num_bits`: how many bits of the keys a sort compares.
fn bits(largest: i64) -> u64 {
    u64::from(largest.max(1).ilog2()) + 1
}

/// `computeLinearIndex`: where each of the indices points into the indexed dimensions, as one number.
fn linear_index(indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
    let mut linear: Option<Tensor> = None;
    for index in indices.iter().flatten() {
        let wrapped = empty(&index.shape(), Dtype::I64, index.device())?;
        let scaled = empty(&index.shape(), Dtype::I64, index.device())?;
        drop(wrapped);
        linear = Some(match linear {
            None => scaled,
            Some(sum) if iterator::broadcast(&[&sum.shape(), &scaled.shape()])? == *sum.shape() => sum,
            Some(sum) => {
                let shape = iterator::broadcast(&[&sum.shape(), &scaled.shape()])?;
                empty(&shape, Dtype::I64, index.device())?
            }
        });
    }
    Ok(linear)
}

/// `Tensor.__setitem__`.
fn set_item(tensor: &Tensor, item: &Value, value: &Tensor) -> Result<()> {
    let is_masked = match item {
        Value::Tensor(mask) => mask.dtype() == Dtype::Bool,
        _ => false,
    };
    if let (true, Value::Tensor(mask)) = (is_masked, item)
        && value.numel() == 1
    {
        return super::pointwise::set_masked(tensor, mask, value);
    }
    let applied = apply_slicing(tensor, item)?;
    if applied.indices.is_empty() {
        let mut value = value.clone();
        while value.dim() > applied.tensor.dim() && value.size(0) == 1 {
            value = squeeze(&value, Some(&[0]))?;
        }
        return write(&applied.tensor, &value);
    }
    index_put(&applied.tensor, &applied.indices, value, false)
}

/// `copy_to` of `TensorIndexing.h`: a number is filled in, other values are copied, and those with a history.
fn write(part: &Tensor, value: &Tensor) -> Result<()> {
    if value.dim() > 0 || value.requires_grad() || value.device().is_cuda() || !part.device().is_cuda() {
        return copy::copy_in_place(part, value);
    }
    super::pointwise::change_in_place(part)?;
    super::host_values::apply(Some(super::host_values::same), &[value], part);
    record_fill(part)
}

/// `index_put`: a copy, and its history as one operator.
fn index_put_new(
    tensor: &Tensor,
    indices: &[Option<Tensor>],
    value: &Tensor,
    accumulates: bool,
) -> Result<Tensor> {
    let result = {
        let _no_grad = GradModeGuard::new(false);
        let result = copy::clone(tensor, MemoryFormat::Preserve)?;
        index_put(&result, indices, value, accumulates)?;
        result
    };
    let indices = checked(tensor, indices)?;
    record_index_put(tensor, &result, &indices, value, accumulates)?;
    Ok(result)
}

/// `index_put_`.
fn index_put(tensor: &Tensor, indices: &[Option<Tensor>], value: &Tensor, accumulates: bool) -> Result<()> {
    let indices = checked(tensor, indices)?;
    change_in_place(tensor)?;
    let value = if value.device() == tensor.device() || value.dim() == 0 {
        value.clone()
    } else {
        to_device(value, tensor.device(), false)?
    };
    if accumulates {
        let input = {
            let _no_grad = GradModeGuard::new(false);
            copy::contiguous(tensor)?
        };
        check_bounds(tensor, &indices)?;
        accumulate_memory(&input, &indices, &value)?;
        drop(input);
    }
    record_index_put(tensor, tensor, &indices, &value, accumulates)
}

fn record_index_put(
    tensor: &Tensor,
    output: &Tensor,
    indices: &[Option<Tensor>],
    value: &Tensor,
    accumulates: bool,
) -> Result<()> {
    let mut saved: Vec<Save<'_>> = indices.iter().flatten().map(|index| Save::Input(Some(index))).collect();
    if !accumulates {
        saved.push(Save::Input(Some(value)));
    }
    let places: Vec<bool> = indices.iter().map(Option::is_some).collect();
    let count = indices.iter().flatten().count();
    record(nodes::IndexPutBackward0, &[tensor, value], &[output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let mut number = 0;
        let mut indices = Vec::new();
        for is_there in &places {
            indices.push(if *is_there { ctx.saved_optional(number)? } else { None });
            number += usize::from(*is_there);
        }
        let input = match (ctx.wants(0), accumulates) {
            (false, _) => None,
            (true, true) => Some(grad.clone()),
            (true, false) => {
                let zero = super::creation::zeros_like(&ctx.saved(count)?)?;
                Some(index_put_new(grad, &indices, &zero, false)?)
            }
        };
        let to_value = ctx.gradient(1, || index(grad, &indices))?;
        Ok(vec![input, to_value])
    })
}

/// `tril` and `triu`, whose results have no gaps for any input.
fn triangle(tensor: &Tensor, diagonal: i64, node: &'static str) -> Result<Tensor> {
    if tensor.dim() < 2 {
        let name = if node == nodes::TrilBackward0 { "tril" } else { "triu" };
        return runtime(format!("{name}: input tensor must have at least 2 dimensions"));
    }
    let output = super::creation::empty(&tensor.shape(), tensor.dtype(), tensor.device())?;
    output.set_values(triangle_values(tensor, diagonal, node).as_deref());
    record_triangle(tensor, &output, diagonal, node)?;
    Ok(output)
}

fn triangle_values(tensor: &Tensor, diagonal: i64, node: &'static str) -> Option<Vec<Scalar>> {
    let (rows, columns) = (tensor.size(-2).max(1), tensor.size(-1).max(1));
    let zero = super::host_values::cast(Scalar::Int(0), tensor.dtype());
    let mut values = tensor.values()?;
    for (index, value) in values.iter_mut().enumerate() {
        let (row, column) = (index as i64 / columns % rows, index as i64 % columns);
        let distance = column - row;
        if if node == nodes::TrilBackward0 { distance > diagonal } else { distance < diagonal } {
            *value = zero;
        }
    }
    Some(values)
}

fn triangle_in_place(tensor: &Tensor, diagonal: i64, node: &'static str) -> Result<Tensor> {
    let values = triangle_values(tensor, diagonal, node);
    change_in_place(tensor)?;
    if values.is_some() {
        tensor.set_values(values.as_deref());
    }
    record_triangle(tensor, tensor, diagonal, node)?;
    Ok(tensor.clone())
}

fn record_triangle(tensor: &Tensor, output: &Tensor, diagonal: i64, node: &'static str) -> Result<()> {
    record(node, &[tensor], &[output], &[], move |_, grads| {
        Ok(vec![Some(triangle(first(grads)?, diagonal, node)?)])
    })
}

pub(crate) const TABLE: &[Entry] = &[
    op!("__getitem__(Tensor self, Any index)", get_item),
    op!("__setitem__(Tensor self, Any index, Operand value)", set_item),
    in_place!(
        "index_put_(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)",
        |tensor: &Tensor, indices: Vec<Option<Tensor>>, values: &Tensor, accumulate: bool| {
            index_put(tensor, &indices, values, accumulate)
        }
    ),
    op!(
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)",
        |tensor: &Tensor, indices: Vec<Option<Tensor>>, values: &Tensor, accumulate: bool| {
            index_put_new(tensor, &indices, values, accumulate)
        }
    ),
    op!("tril(Tensor self, int diagonal=0)", |tensor: &Tensor, diagonal: i64| triangle(
        tensor,
        diagonal,
        nodes::TrilBackward0
    ))
    .composed(&[nodes::TrilBackward0]),
    op!("triu(Tensor self, int diagonal=0)", |tensor: &Tensor, diagonal: i64| triangle(
        tensor,
        diagonal,
        nodes::TriuBackward0
    ))
    .composed(&[nodes::TriuBackward0]),
    op!("tril_(Tensor self, int diagonal=0)", |tensor: &Tensor, diagonal: i64| {
        triangle_in_place(tensor, diagonal, nodes::TrilBackward0)
    }),
    op!("triu_(Tensor self, int diagonal=0)", |tensor: &Tensor, diagonal: i64| {
        triangle_in_place(tensor, diagonal, nodes::TriuBackward0)
    }),
];
