//! Gathering and scattering along a dimension.

use crate::autograd::{GradModeGuard, Save, nodes, record, record_after, save_early};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op, pairs};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy;
use super::creation::{empty, zeros};
use super::kernels::record_linear;
use super::pointwise::{self, change_in_place, maybe_multiply};
use super::views::{self, expand, first, unsqueeze, wrap};

/// `index_select`.
pub(crate) fn index_select(tensor: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    let at = wrap(dim, tensor.dim())?;
    let mut shape = tensor.shape().to_vec();
    if let Some(size) = shape.get_mut(at) {
        *size = index.numel();
    }
    let saved = [Save::Input(Some(index))];
    let early = save_early(&[tensor], &saved)?;
    let output = empty(&shape, tensor.dtype(), tensor.device())?;
    let from = tensor.shape();
    record_after(early, nodes::IndexSelectBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let index = ctx.saved(0)?;
        let full = zeros(&from, grad.dtype(), grad.device())?;
        // The rows that are added are saved for their shape.
        let saved = [&index, grad];
        record_linear(
            nodes::IndexAddBackward0,
            grad,
            None,
            &saved,
            &full,
            move |grad_grad, saved| match saved {
                [index, _] => index_select(grad_grad, dim, index),
                _ => Ok(grad_grad.clone()),
            },
        )?;
        Ok(vec![Some(full)])
    })?;
    Ok(output)
}

/// `gather`.
pub(crate) fn gather(tensor: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    wrap(dim, tensor.dim())?;
    iterator::same_device(&[(tensor, "self"), (index, "index")], "gather")?;
    if tensor.dim().max(1) != index.dim().max(1) {
        return runtime("Index tensor must have the same number of dimensions as input tensor");
    }
    check_places(tensor, dim, index)?;
    let saved = [Save::Input(Some(index)), Save::Input(Some(tensor))];
    let early = save_early(&[tensor], &saved)?;
    let output = empty(&index.shape(), tensor.dtype(), tensor.device())?;
    let from = tensor.shape();
    record_after(early, nodes::GatherBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let index = ctx.saved(0)?;
        let full = zeros(&from, grad.dtype(), grad.device())?;
        record_scattered(nodes::ScatterAddBackward0, grad, dim, &index, &full)?;
        Ok(vec![Some(full)])
    })?;
    Ok(output)
}

/// Notes that `full` was zeros into which a gradient was scattered along a dimension.
pub(crate) fn record_scattered(
    node: &'static str,
    grad: &Tensor,
    dim: i64,
    index: &Tensor,
    full: &Tensor,
) -> Result<()> {
    record_linear(node, grad, None, &[index], full, move |grad_grad, saved| match saved {
        [index] => gather(grad_grad, dim, index),
        _ => Ok(grad_grad.clone()),
    })
}

/// Places of the host whose values are known have to lie inside.
fn check_places(tensor: &Tensor, dim: i64, index: &Tensor) -> Result<()> {
    let size = tensor.size(dim);
    let mut known = index.values().into_iter().flatten().filter_map(Scalar::to_i64);
    match known.find(|place| *place < 0 || *place >= size) {
        Some(place) => runtime(format!(
            "index {place} is out of bounds for dimension {} with size {size}",
            wrap(dim, tensor.dim())?
        )),
        None => Ok(()),
    }
}

/// A copy without a history, into which an operator writes.
pub(crate) fn cloned_to_change(input: &Tensor, format: MemoryFormat) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let copy = copy::clone(input, format)?;
    copy.forget_values();
    Ok(copy)
}

/// The tensor that an operator writes into: the given tensor, or a copy of the tensor without a history.
fn changed_or_cloned(input: &Tensor, in_place: bool) -> Result<Tensor> {
    if in_place {
        change_in_place(input)?;
        return Ok(input.clone());
    }
    cloned_to_change(input, MemoryFormat::Contiguous)
}

/// `scatter` and `scatter_add`, as a new tensor or in place.
fn scatter(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    adds: bool,
    in_place: bool,
) -> Result<Value> {
    check_places(input, dim, index)?;
    if !source.is_wrapped_number() && source.dtype() != input.dtype() {
        return runtime("scatter(): Expected self.dtype to be equal to src.dtype");
    }
    let output = changed_or_cloned(input, in_place)?;
    let saved = [Save::Input(Some(index))];
    let is_number = source.is_wrapped_number();
    let inputs: Vec<&Tensor> = if is_number { vec![input] } else { vec![input, source] };
    let node = match (adds, is_number) {
        (true, _) => nodes::ScatterAddBackward0,
        (false, false) => nodes::ScatterBackward0,
        (false, true) => nodes::ScatterBackward1,
    };
    record(node, &inputs, &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let index = ctx.saved(0)?;
        let grad_input = match (ctx.wants(0), adds) {
            (false, _) => None,
            (true, true) => Some(grad.clone()),
            (true, false) => Some(copy::clone(grad, MemoryFormat::Contiguous)?),
        };
        let to_source = ctx.gradient(1, || gather(grad, dim, &index))?;
        Ok(vec![grad_input, to_source])
    })?;
    Ok(output.into())
}

/// `index_add`, as a new tensor or in place.
fn index_add(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    alpha: Scalar,
    in_place: bool,
) -> Result<Value> {
    // Both tensors serve the source's gradient alone.
    let saved = [index, source].map(|tensor| Save::InputIf(source.requires_grad(), tensor));
    let early = save_early(&[input, source], &saved)?;
    let output = if in_place {
        change_in_place(input)?;
        input.clone()
    } else {
        cloned_to_change(input, MemoryFormat::Preserve)?
    };
    record_after(
        early,
        nodes::IndexAddBackward0,
        &[input, source],
        &[&output],
        &saved,
        move |ctx, grads| {
            let grad = first(grads)?;
            let to_source = ctx.gradient(1, || {
                let (index, source) = (ctx.saved(0)?, ctx.saved(1)?);
                let chosen = expand(&index_select(grad, dim, &index)?, &source.shape())?;
                maybe_multiply(&chosen, alpha)
            })?;
            let grad_input = ctx.wants(0).then(|| grad.clone());
            Ok(vec![grad_input, to_source])
        },
    )?;
    Ok(output.into())
}

/// `take_along_dim`: the index is repeated along the other dimensions.
fn take_along(tensor: &Tensor, index: &Tensor, dim: i64) -> Result<Value> {
    let at = wrap(dim, tensor.dim())?;
    let mut shape = tensor.shape().to_vec();
    if let Some(size) = shape.get_mut(at) {
        *size = index.size(dim);
    }
    // Counting from the end is allowed, so that the kernel gets a copy.
    let wide = expand(index, &iterator::broadcast(&[&shape, &index.shape()])?)?;
    let wide = pointwise::elementwise(&[&wide], wide.dtype(), None)?;
    Ok(gather(tensor, dim, &wide)?.into())
}

/// `repeat_interleave` with one number.
fn repeat_interleave(tensor: &Tensor, repeats: i64, dim: Option<i64>) -> Result<Value> {
    let (tensor, dim) = match dim {
        Some(dim) => (tensor.clone(), dim),
        None => (views::flatten(tensor, 0, -1)?, 0),
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
fn one_hot(tensor: &Tensor, classes: i64) -> Result<Value> {
    if tensor.dtype() != Dtype::I64 {
        return runtime("one_hot is only applicable to index tensor of type LongTensor.");
    }
    let classes = match (classes, tensor.values()) {
        (-1, Some(values)) => values.iter().filter_map(|value| value.to_i64()).max().unwrap_or(-1) + 1,
        (-1, None) => return runtime("one_hot needs num_classes here, since the largest index is not known"),
        (classes, _) => classes,
    };
    let mut shape = tensor.shape().to_vec();
    shape.push(classes);
    let output = zeros(&shape, Dtype::I64, tensor.device())?;
    let mut known = tensor.values().into_iter().flatten().filter_map(Scalar::to_i64);
    if known.any(|class| class >= classes) {
        return runtime("Class values must be smaller than num_classes.");
    }
    let rows = tensor.values().map(|classes_of| {
        let columns =
            |class: Scalar| (0..classes).map(move |column| i64::from(class.to_i64() == Some(column)));
        classes_of.into_iter().flat_map(columns).map(Scalar::Int).collect::<Vec<_>>()
    });
    output.set_values(rows.as_deref());
    Ok(output.into())
}

/// `index_copy`, as a new tensor or in place.
fn index_copy(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor, in_place: bool) -> Result<Value> {
    let at = wrap(dim, input.dim())? as i64;
    if source.dim() > 0 && index.numel() != source.size(at) {
        return Err(crate::TorchError::Index(format!(
            "index_copy_(): Number of indices ({}) should be equal to source.size(dim) ({})",
            index.numel(),
            source.size(at)
        )));
    }
    let output = changed_or_cloned(input, in_place)?;
    let saved = [Save::Input(Some(index)), Save::Input(Some(source))];
    record(nodes::IndexCopyBackward0, &[input, source], &[&output], &saved, move |ctx, grads| {
        let (grad, index, source) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let grad_input = ctx.gradient(0, || copy::clone(grad, MemoryFormat::Preserve))?;
        let to_source = ctx.gradient(1, || expand(&index_select(grad, dim, &index)?, &source.shape()))?;
        Ok(vec![grad_input, to_source])
    })?;
    Ok(output.into())
}

/// `index_fill`, as a new tensor or in place: a number, or a tensor without dimensions, which is read on the
/// host.
fn index_fill(input: &Tensor, dim: i64, index: &Tensor, value: &Tensor, in_place: bool) -> Result<Value> {
    wrap(dim, input.dim())?;
    if index.dtype() != Dtype::I64 {
        return Err(crate::TorchError::Index("index_fill_(): Expected dtype int64 for index.".to_owned()));
    }
    if index.dim() > 1 {
        return Err(crate::TorchError::Index("Index has to be a vector/scalar".to_owned()));
    }
    if value.dim() > 0 {
        return runtime(format!(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.dim()
        ));
    }
    let output = if in_place {
        changed_or_cloned(input, true)?
    } else {
        cloned_to_change(input, MemoryFormat::Preserve)?
    };
    record_index_fill(input, dim, index, value, &output)?;
    Ok(output.into())
}

fn record_index_fill(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    value: &Tensor,
    output: &Tensor,
) -> Result<()> {
    let is_number = value.is_wrapped_number();
    let node = if is_number { nodes::IndexFillBackward0 } else { nodes::IndexFillBackward1 };
    let inputs: Vec<&Tensor> = if is_number { vec![input] } else { vec![input, value] };
    record(node, &inputs, &[output], &[Save::Input(Some(index))], move |ctx, grads| {
        let (grad, index) = (first(grads)?, ctx.saved(0)?);
        let grad_input = if ctx.wants(0) {
            let filled = {
                let _no_grad = GradModeGuard::new(false);
                copy::clone(grad, MemoryFormat::Preserve)?
            };
            record_index_fill(grad, dim, &index, &super::creation::wrapped(crate::Scalar::Int(0)), &filled)?;
            Some(filled)
        } else {
            None
        };
        let to_value = if ctx.wants(1) {
            // grad.index_select(dim, std::get<0>(at::_unique(index))).sum()
            let unique = crate::call("unique", &[(&index).into()], &[])?.tensor()?;
            let chosen = index_select(grad, dim, &unique)?;
            let summed = super::reduce::sum_all(&chosen)?;
            drop(chosen);
            drop(unique);
            Some(summed)
        } else {
            None
        };
        Ok(vec![grad_input, to_value])
    })
}

pub(crate) const TABLE: &[Entry] = &[
    op!("index_select(Tensor self, int dim, Tensor index)", index_select),
    op!("gather(Tensor self, int dim, Tensor index)", gather),
    op!("take_along_dim(Tensor self, Tensor indices, int dim)", take_along),
    op!("repeat_interleave(Tensor self, int repeats, int? dim=None)", repeat_interleave),
    op!("one_hot(Tensor self, int num_classes=-1)", one_hot),
];

pub(crate) const PAIRS: &[Entry] = pairs! {
    "index_fill" "Tensor self, int dim, Tensor index, Operand value"
        |own: &Tensor, dim: i64, index: &Tensor, value: &Tensor| index_fill(own, dim, index, value);
    "index_copy" "Tensor self, int dim, Tensor index, Tensor source"
        |own: &Tensor, dim: i64, index: &Tensor, source: &Tensor| index_copy(own, dim, index, source);
    "scatter" "Tensor self, int dim, Tensor index, Operand src"
        |own: &Tensor, dim: i64, index: &Tensor, source: &Tensor| scatter(own, dim, index, source, false);
    "scatter" "Tensor self, int dim, Tensor index, *, Operand value"
        |own: &Tensor, dim: i64, index: &Tensor, source: &Tensor| scatter(own, dim, index, source, false);
    "scatter_add" "Tensor self, int dim, Tensor index, Tensor src"
        |own: &Tensor, dim: i64, index: &Tensor, source: &Tensor| scatter(own, dim, index, source, true);
    "index_add" "Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1"
        |own: &Tensor, dim: i64, index: &Tensor, source: &Tensor, alpha: Scalar|
        index_add(own, dim, index, source, alpha);
};
