//! Indexing, gathering, scattering and embeddings.

use crate::autograd::{GradModeGuard, Save, record};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op};
use crate::schema::Args;
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Tensor, TorchError, Value, session};

use super::copy::{self, contiguous, to_device};
use super::creation::{empty, empty_like, zeros};
use super::pointwise::{change_in_place, maybe_multiply};
use super::sort::{radix_sort_bytes, scan_bytes, temporary};
use super::views::{self, expand, first, select, slice, squeeze, unsqueeze, wrap};

/// What is left of an index after slices, numbers and new dimensions were applied.
struct Applied {
    tensor: Tensor,
    indices: Vec<Option<Tensor>>,
}

/// `applySlicing`.
fn apply_slicing(tensor: &Tensor, index: &Value) -> Result<Applied> {
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
    let mut applied = Applied { tensor: tensor.clone(), indices: Vec::new() };
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
        match index.dtype() {
            Dtype::Bool | Dtype::U8 => {
                // expandTensors: a mask becomes one index for each of its dimensions.
                let places = nonzero(index)?;
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
    index_values(tensor, &expanded, &output);
    drop(expanded);
    // A mask is saved as it is; its places are found again in the backward pass.
    let saved: Vec<Save<'_>> = indices.iter().flatten().map(|index| Save::Input(Some(index))).collect();
    let from = tensor.shape();
    let places: Vec<bool> = indices.iter().map(Option::is_some).collect();
    record("IndexBackward0", &[tensor], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let full = zeros(&from, grad.dtype(), grad.device())?;
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
        Ok(vec![Some(full)])
    })?;
    Ok(output)
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

/// `index_put_with_sort_kernel`: what adding into repeated places takes.
fn accumulate_memory(tensor: &Tensor, indices: &[Option<Tensor>], value: &Tensor) -> Result<()> {
    if !tensor.device().is_cuda() {
        return Ok(());
    }
    let indices = checked(tensor, indices)?;
    let is_in_front = indices.iter().rev().skip_while(|index| index.is_none()).all(Option::is_some);
    if !is_in_front {
        session()
            .mark_estimated("index", "gradients of indices that are not the first ones were not recorded");
    }
    let _below = GradModeGuard::new(false);
    let device = tensor.device();
    let linear = linear_index(&indices)?;
    let value = copy::contiguous(value)?;
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
    drop(value);
    drop(linear);
    Ok(())
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
        crate::call("masked_fill_", &[tensor.into(), mask.into(), value.into()], &[])?;
        return Ok(());
    }
    let applied = apply_slicing(tensor, item)?;
    if applied.indices.is_empty() {
        let mut value = value.clone();
        while value.dim() > applied.tensor.dim() && value.size(0) == 1 {
            value = squeeze(&value, Some(&[0]))?;
        }
        if tensor.requires_grad() || value.requires_grad() {
            return set_part(tensor, &applied.tensor, &value);
        }
        return copy::copy_in_place(&applied.tensor, &value);
    }
    index_put(&applied.tensor, &applied.indices, value, false)
}

/// A part of a tensor with history is written: `CopySlices`.
fn set_part(tensor: &Tensor, part: &Tensor, value: &Tensor) -> Result<()> {
    tensor.check_in_place()?;
    {
        let _below = GradModeGuard::new(false);
        copy::copy_in_place(part, value)?;
    }
    let (shape, strides, offset) = (part.shape(), part.strides(), part.offset());
    let from = tensor.offset();
    let (dtype, device, value_shape) = (value.dtype(), value.device(), value.shape());
    record("CopySlices", &[tensor, value], &[tensor], &[], move |ctx, grads| {
        let grad = first(grads)?;
        // A copy of the gradient without the part that was written.
        let result = super::creation::empty_like(grad)?;
        copy::copy_below(&result, grad, false)?;
        let slice = result.alias(&shape, &strides, result.offset() + offset - from);
        let cloned = copy::clone(&slice, MemoryFormat::Preserve)?;
        let to_value = if ctx.wants(1) {
            let summed = if *value_shape == *cloned.shape() {
                cloned.clone()
            } else {
                super::reduce::sum_to(&cloned, &value_shape)?
            };
            Some(copy::to(&summed, Some(dtype), Some(device), false, false, MemoryFormat::Preserve)?)
        } else {
            None
        };
        drop(cloned);
        Ok(vec![Some(result), to_value])
    })
}

/// `index_put_`.
fn index_put(tensor: &Tensor, indices: &[Option<Tensor>], value: &Tensor, accumulates: bool) -> Result<()> {
    let indices = checked(tensor, indices)?;
    change_in_place(tensor)?;
    tensor.set_values(None);
    let value = if value.device() == tensor.device() || value.dim() == 0 {
        value.clone()
    } else {
        to_device(value, tensor.device(), false)?
    };
    if accumulates {
        accumulate_memory(tensor, &indices, &value)?;
    }
    let saved: Vec<Save<'_>> = indices.iter().flatten().map(|index| Save::Input(Some(index))).collect();
    let shape = value.shape();
    record("IndexPutBackward0", &[tensor, &value], &[tensor], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let own = if ctx.wants(0) {
            if accumulates { Some(grad.clone()) } else { Some(copy::clone(grad, MemoryFormat::Preserve)?) }
        } else {
            None
        };
        let to_value = if ctx.wants(1) {
            session().mark_estimated("index_put_", "the gradient of the values was not recorded");
            Some(zeros(&shape, grad.dtype(), grad.device())?)
        } else {
            None
        };
        Ok(vec![own, to_value])
    })
}

/// `index_select`.
fn index_select(tensor: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())?;
    let mut shape = tensor.shape().to_vec();
    if let Some(size) = shape.get_mut(at) {
        *size = index.numel();
    }
    let output = empty(&shape, tensor.dtype(), tensor.device())?;
    let from = tensor.shape();
    record("IndexSelectBackward0", &[tensor], &[&output], &[Save::Input(Some(index))], move |ctx, grads| {
        let grad = first(grads)?;
        let _index = ctx.saved(0)?;
        Ok(vec![Some(zeros(&from, grad.dtype(), grad.device())?)])
    })?;
    Ok(output)
}

/// `gather`.
fn gather(tensor: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    wrap(dim, tensor.dim())?;
    let output = empty(&index.shape(), tensor.dtype(), tensor.device())?;
    let saved = [Save::Input(Some(index)), Save::Input(Some(tensor))];
    let from = tensor.shape();
    record("GatherBackward0", &[tensor], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let _index = ctx.saved(0)?;
        Ok(vec![Some(zeros(&from, grad.dtype(), grad.device())?)])
    })?;
    Ok(output)
}

/// `scatter` and `scatter_add`, as a new tensor or in place.
fn scatter(args: &Args, adds: bool, in_place: bool) -> Result<Value> {
    let (own, dim, index, source) = (args.t(0)?, args.int(1)?, args.t(2)?, args.operand(3)?);
    let output = if in_place {
        change_in_place(&own)?;
        own.set_values(None);
        own.clone()
    } else {
        let _below = GradModeGuard::new(false);
        copy::clone(&own, MemoryFormat::Preserve)?
    };
    let saved = [Save::Input(Some(&index))];
    let is_number = source.is_wrapped_number();
    let inputs: Vec<&Tensor> = if is_number { vec![&own] } else { vec![&own, &source] };
    record("ScatterAddBackward0", &inputs, &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let index = ctx.saved(0)?;
        let to_own = match (ctx.wants(0), adds) {
            (false, _) => None,
            (true, true) => Some(grad.clone()),
            (true, false) => Some(copy::clone(grad, MemoryFormat::Preserve)?),
        };
        let to_source = if ctx.wants(1) { Some(gather(grad, dim, &index)?) } else { None };
        Ok(vec![to_own, to_source])
    })?;
    Ok(output.into())
}

/// `index_add`, as a new tensor or in place.
fn index_add(args: &Args, in_place: bool) -> Result<Value> {
    let (own, dim, index, source, alpha) =
        (args.t(0)?, args.int(1)?, args.t(2)?, args.t(3)?, args.scalar(4)?);
    let output = if in_place {
        change_in_place(&own)?;
        own.clone()
    } else {
        let _below = GradModeGuard::new(false);
        copy::clone(&own, MemoryFormat::Preserve)?
    };
    let saved = [Save::Input(Some(&index)), Save::Input(Some(&source))];
    record("IndexAddBackward0", &[&own, &source], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let index = ctx.saved(0)?;
        let source = ctx.saved(1)?;
        let to_source = if ctx.wants(1) {
            let chosen = expand(&index_select(grad, dim, &index)?, &source.shape())?;
            Some(maybe_multiply(&chosen, alpha)?)
        } else {
            None
        };
        let to_own = ctx.wants(0).then(|| grad.clone());
        Ok(vec![to_own, to_source])
    })?;
    Ok(output.into())
}

/// `index_fill_`, `index_copy_`: no history is modeled beyond the gradient of `self`.
fn take_along(args: &Args) -> Result<Value> {
    let (tensor, index, dim) = (args.t(0)?, args.t(1)?, args.int(2)?);
    let at = wrap(dim, tensor.dim())?;
    // The index is repeated along the other dimensions, as a copy.
    let mut shape = tensor.shape().to_vec();
    if let Some(size) = shape.get_mut(at) {
        *size = index.size(dim);
    }
    let wide = contiguous(&expand(&index, &iterator::broadcast(&[&shape, &index.shape()])?)?)?;
    Ok(gather(&tensor, dim, &wide)?.into())
}

/// `repeat_interleave` with one number.
fn repeat_interleave(args: &Args) -> Result<Value> {
    let (tensor, repeats) = (args.t(0)?, args.int(1)?);
    let (tensor, dim) = match args.int_opt(2)? {
        Some(dim) => (tensor, dim),
        None => (views::flatten(&tensor, 0, -1)?, 0),
    };
    let at = wrap(dim, tensor.dim())? as i64;
    let wide = unsqueeze(&tensor, at + 1)?;
    let mut shape = wide.shape().to_vec();
    if let Some(size) = shape.get_mut(at as usize + 1) {
        *size = repeats;
    }
    let copied = copy::clone(&expand(&wide, &shape)?, MemoryFormat::Contiguous)?;
    Ok(views::flatten(&copied, at, at + 1)?.into())
}

/// `one_hot`.
fn one_hot(args: &Args) -> Result<Value> {
    let (tensor, classes) = (args.t(0)?, args.int(1)?);
    if tensor.dtype() != Dtype::I64 {
        return runtime(format!(
            "one_hot is only applicable to index tensor of type LongTensor, got {}",
            tensor.dtype()
        ));
    }
    let classes = match (classes, tensor.values()) {
        (-1, Some(values)) => values.iter().filter_map(|value| value.to_i64()).max().unwrap_or(-1) + 1,
        (-1, None) => return runtime("one_hot needs num_classes here, since the largest index is not known"),
        (classes, _) => classes,
    };
    let mut shape = tensor.shape().to_vec();
    shape.push(classes);
    Ok(zeros(&shape, Dtype::I64, tensor.device())?.into())
}

/// `tril` and `triu`.
fn triangle(tensor: &Tensor) -> Result<Tensor> {
    let output = empty_like(tensor)?;
    record("TriuBackward0", &[tensor], &[&output], &[], move |_, grads| {
        Ok(vec![Some(triangle(first(grads)?)?)])
    })?;
    Ok(output)
}

/// `embedding`.
fn embedding(weight: &Tensor, indices: &Tensor, padding: i64) -> Result<Tensor> {
    if !matches!(indices.dtype(), Dtype::I64 | Dtype::I32) {
        return runtime(format!(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {} \
             instead (while checking arguments for embedding)",
            if indices.device().is_cuda() {
                format!("torch.cuda.{}Tensor", indices.dtype().scalar_name())
            } else {
                format!("torch.{}Tensor", indices.dtype().scalar_name())
            }
        ));
    }
    iterator::common_device(&[weight, indices])?;
    let mut shape = indices.shape().to_vec();
    shape.push(weight.size(1));
    // index_select of the flat indices, which are copied where they have gaps, seen in their shape.
    let below = GradModeGuard::new(false);
    let flat = if indices.dim() == 1 { indices.clone() } else { views::reshape(indices, &[-1])? };
    let output = empty(&shape, weight.dtype(), weight.device())?;
    drop(flat);
    drop(below);
    let (vocabulary, width) = (weight.size(0), weight.size(1));
    let _ = padding;
    record("EmbeddingBackward0", &[weight], &[&output], &[Save::Input(Some(indices))], move |ctx, grads| {
        let grad = first(grads)?;
        let indices = ctx.saved(0)?;
        Ok(vec![Some(embedding_backward(grad, &indices, vocabulary, width)?)])
    })?;
    Ok(output)
}

/// `embedding_dense_backward`: many indices are sorted first.
fn embedding_backward(grad: &Tensor, indices: &Tensor, vocabulary: i64, width: i64) -> Result<Tensor> {
    const FEW: i64 = 3072;
    let count = indices.numel();
    let device = grad.device();
    let _indices = contiguous(indices)?;
    let _grad = contiguous(grad)?;
    if count <= FEW || !device.is_cuda() {
        return zeros(&[vocabulary, width], grad.dtype(), device);
    }
    let (n, index_size) = (count as u64, indices.dtype().size());
    let sorted = temporary(device, n * index_size)?;
    let original = temporary(device, n * index_size)?;
    let range = temporary(device, n * index_size)?;
    drop(temporary(device, radix_sort_bytes(n, index_size, index_size, 8 * index_size))?);
    drop(range);
    let result = zeros(&[vocabulary, width], grad.dtype(), device)?;
    let segment_offsets = temporary(device, n * index_size)?;
    let segments = temporary(device, 8)?;
    let unique = temporary(device, n * index_size)?;
    drop(temporary(device, 1279)?);
    drop(unique);
    let most = n.min(vocabulary.max(0) as u64);
    let partials = temporary(device, most * index_size)?;
    let partial_offsets = temporary(device, most * index_size)?;
    drop(temporary(device, scan_bytes(most, Dtype::I64))?);
    let partial_count = temporary(device, 8)?;
    let most_partials = n / 10 + most;
    let partial_segments = temporary(device, most_partials * index_size)?;
    if (101..1000).contains(&most) || grad.dtype() != Dtype::F32 || index_size != 8 || n > 16384 {
        session().mark_estimated("embedding", "the gradient of this many indices and rows was not recorded");
    }
    let warped = (width.max(0) as u64).div_ceil(32) * 32;
    let warped = if width <= 32 { width.max(0) as u64 } else { warped };
    let sums = if most <= 100 { most_partials * 8 } else { most_partials * warped * 4 };
    let per_segment = temporary(device, sums)?;
    drop(per_segment);
    drop(partial_segments);
    drop(partial_count);
    drop(partial_offsets);
    drop(partials);
    drop(segments);
    drop(segment_offsets);
    drop(original);
    drop(sorted);
    Ok(result)
}

/// `nonzero`: the size depends on values, which are not known on a GPU; half of the elements is taken, and marked.
fn nonzero(tensor: &Tensor) -> Result<Tensor> {
    // Bytes of the two steps of CUB's, as recorded for 210,000 elements.
    const COUNT: u64 = 21_503;
    const SELECT: u64 = 1_279;
    let _below = GradModeGuard::new(false);
    session().mark_estimated(
        session().notes.operator.get(),
        "how many elements a mask selects depends on values; half of them is taken",
    );
    let device = tensor.device();
    let total = temporary(device, 4)?;
    drop(temporary(device, COUNT)?);
    let result = empty(&[tensor.numel() / 2, tensor.dim() as i64], Dtype::I64, device)?;
    drop(temporary(device, SELECT)?);
    drop(total);
    Ok(result)
}

/// `unique` of all elements: the result keeps the memory of as many as there are, however many differ.
fn unique(tensor: &Tensor) -> Result<Tensor> {
    session().mark_estimated("unique", "how many elements differ depends on values; all of them are taken");
    let device = tensor.device();
    let _below = GradModeGuard::new(false);
    let flat = views::reshape(&copy::contiguous(tensor)?, &[-1])?;
    if !device.is_cuda() {
        return empty(&flat.shape(), tensor.dtype(), device);
    }
    let count = flat.numel().max(0) as u64;
    let sorted = temporary(device, count * tensor.dtype().size())?;
    drop(temporary(device, radix_sort_bytes(count, tensor.dtype().size(), 0, 8 * tensor.dtype().size()))?);
    let output = empty(&flat.shape(), tensor.dtype(), device)?;
    let length = temporary(device, 8)?;
    // Recorded for up to 4,000 elements.
    drop(temporary(device, 1_023)?);
    drop(length);
    drop(sorted);
    Ok(output)
}

/// `bincount`: the largest element decides the size, which is not known on a GPU.
fn bincount(args: &Args) -> Result<Value> {
    let (tensor, weights, least) = (args.t(0)?, args.topt(1)?, args.int(2)?);
    let device = tensor.device();
    let dtype = match &weights {
        Some(weights) if weights.dtype() == Dtype::F32 => Dtype::F32,
        Some(_) => Dtype::F64,
        None => Dtype::I64,
    };
    let largest =
        tensor.values().map(|values| values.iter().filter_map(|value| value.to_i64()).max().unwrap_or(-1));
    if device.is_cuda() {
        // The smallest and the largest are read.
        drop(temporary(device, tensor.dtype().size())?);
        drop(temporary(device, tensor.dtype().size())?);
    }
    let bins = match largest {
        Some(largest) => (largest + 1).max(least),
        None => {
            session().mark_estimated(
                "bincount",
                "the size depends on the largest value; minlength is taken, or the number of elements",
            );
            if least > 0 { least } else { tensor.numel() }
        }
    };
    let output = empty(&[bins], dtype, device)?;
    if let (Some(values), None) = (tensor.values(), &weights) {
        let mut counts = vec![0_i64; bins.max(0) as usize];
        for place in values.iter().filter_map(|value| value.to_i64()) {
            if let Some(count) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        output.set_values(Some(&counts.into_iter().map(Scalar::Int).collect::<Vec<_>>()));
    }
    Ok(output.into())
}

fn known_nonzero(args: &Args) -> Result<Value> {
    let tensor = args.t(0)?;
    let Some(values) = tensor.values().filter(|_| tensor.dim() == 1) else {
        return Ok(nonzero(&tensor)?.into());
    };
    let places: Vec<Scalar> = values
        .iter()
        .enumerate()
        .filter(|(_, value)| value.to_f64() != Some(0.0))
        .map(|(index, _)| Scalar::Int(index as i64))
        .collect();
    let result = empty(&[places.len() as i64, 1], Dtype::I64, Device::Cpu)?;
    result.set_values(Some(&places));
    Ok(result.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op("__getitem__(Tensor self, Any index)", |a| Ok(get_item(&a.t(0)?, a.value(1)?)?.into())),
    op("__setitem__(Tensor self, Any index, Operand value)", |a| {
        set_item(&a.t(0)?, a.value(1)?, &a.operand(2)?)?;
        Ok(Value::None)
    }),
    op("index_put_(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)", |a| {
        let tensor = a.t(0)?;
        let indices: Vec<Option<Tensor>> = match a.value(1)? {
            Value::List(items) => items.iter().map(|item| item.clone().tensor().ok()).collect(),
            _ => Vec::new(),
        };
        index_put(&tensor, &indices, &a.t(2)?, a.bool(3)?)?;
        Ok(tensor.into())
    }),
    op("index_select(Tensor self, int dim, Tensor index)", |a| {
        Ok(index_select(&a.t(0)?, a.int(1)?, &a.t(2)?)?.into())
    }),
    op("gather(Tensor self, int dim, Tensor index)", |a| Ok(gather(&a.t(0)?, a.int(1)?, &a.t(2)?)?.into())),
    op("take_along_dim(Tensor self, Tensor indices, int dim)", take_along),
    op("scatter(Tensor self, int dim, Tensor index, Operand src)", |a| scatter(a, false, false)),
    op("scatter_(Tensor self, int dim, Tensor index, Operand src)", |a| scatter(a, false, true)),
    op("scatter(Tensor self, int dim, Tensor index, *, Operand value)", |a| scatter(a, false, false)),
    op("scatter_(Tensor self, int dim, Tensor index, *, Operand value)", |a| scatter(a, false, true)),
    op("scatter_add(Tensor self, int dim, Tensor index, Tensor src)", |a| scatter(a, true, false)),
    op("scatter_add_(Tensor self, int dim, Tensor index, Tensor src)", |a| scatter(a, true, true)),
    op("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", |a| {
        index_add(a, false)
    }),
    op("index_add_(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", |a| {
        index_add(a, true)
    }),
    op("repeat_interleave(Tensor self, int repeats, int? dim=None)", repeat_interleave),
    op("one_hot(Tensor self, int num_classes=-1)", one_hot),
    op("tril(Tensor self, int diagonal=0)", |a| Ok(triangle(&a.t(0)?)?.into())),
    op("triu(Tensor self, int diagonal=0)", |a| Ok(triangle(&a.t(0)?)?.into())),
    op(
        "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
        |a| Ok(embedding(&a.t(0)?, &a.t(1)?, a.int(2)?)?.into()),
    ),
    op("nonzero(Tensor self)", known_nonzero),
    op("masked_select(Tensor self, Tensor mask)", |a| {
        let (tensor, mask) = (a.t(0)?, a.t(1)?);
        let shape = iterator::broadcast(&[&tensor.shape(), &mask.shape()])?;
        Ok(index(&expand(&tensor, &shape)?, &[Some(expand(&mask, &shape)?)])?.into())
    }),
    op("unique(Tensor self)", |a| Ok(unique(&a.t(0)?)?.into())),
    op("bincount(Tensor self, Tensor? weights=None, int minlength=0)", bincount),
];
