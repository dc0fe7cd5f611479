//! Maxima and minima: of all elements, along dimensions, and their indices.

use crate::autograd::{Save, nodes, record};
use crate::error::runtime;
use crate::{Dtype, Result, Tensor, Value};

use super::super::pointwise::{self, div, eq, mul};
use super::super::views::{self, first, unsqueeze, wrap};
use super::super::{copy, creation, scatter};
use super::known::{set_extremum, set_place};
use super::{ReductionKernel, dims_of, mask_of, reduced_empty, restore, run, sum, sum_all};

fn is_max(node: &str) -> bool {
    !matches!(node, nodes::MinBackward0 | nodes::MinBackward1 | nodes::AminBackward0)
}

/// `max()` and `min()` of all elements.
pub(crate) fn extremum_all(tensor: &Tensor, node: &'static str) -> Result<Tensor> {
    if tensor.numel() == 0 {
        return runtime(
            "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
        );
    }
    let mask = vec![true; tensor.dim()];
    let output = reduced_empty(tensor, &mask, false, tensor.dtype())?;
    set_extremum(&output, tensor, &mask, is_max(node));
    {
        // The kernel reads elements without gaps, unlike that of `amax`.
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let read = copy::contiguous(tensor)?;
        run(&read, &mask, ReductionKernel::of(tensor.dtype().size()))?;
    }
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(node, &[tensor], &[&output], &saved, |ctx, grads| {
        let (input, result) = (ctx.saved(0)?, ctx.saved(1)?);
        Ok(vec![Some(evenly_distribute(first(grads)?, &input, &result)?)])
    })?;
    Ok(output)
}

/// `evenly_distribute_backward`.
pub(crate) fn evenly_distribute(grad: &Tensor, input: &Tensor, value: &Tensor) -> Result<Tensor> {
    let isnan = |tensor: &Tensor| pointwise::ne(tensor, tensor);
    let own_nan = isnan(input)?;
    let value_nan = isnan(value)?;
    pointwise::change_in_place(&own_nan)?;
    let mask = eq(input, value)?;
    let result = mul(&mask, &div(grad, &sum_all(&mask)?)?)?;
    drop(mask);
    drop(value_nan);
    drop(own_nan);
    Ok(result)
}

/// `max(dim)` and `min(dim)`: values and indices.
pub(super) fn extremum_dim(
    tensor: &Tensor,
    dim: i64,
    keeps: bool,
    node: &'static str,
) -> Result<(Tensor, Tensor)> {
    let at = wrap(dim, tensor.dim())?;
    let mask: Vec<bool> = if tensor.dim() == 0 { vec![] } else { mask_of(Some(&[at as i64]), tensor.dim())? };
    let values = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    let indices = reduced_empty(tensor, &mask, keeps, Dtype::I64)?;
    set_extremum(&values, tensor, &mask, is_max(node));
    set_place(&indices, tensor, &mask, is_max(node));
    run(tensor, &mask, ReductionKernel::of(16))?;
    record_selection(node, tensor, &values, &indices, at as i64, keeps)?;
    Ok((values, indices))
}

/// `value_selecting_reduction_backward`.
pub(crate) fn record_selection(
    node: &'static str,
    tensor: &Tensor,
    values: &Tensor,
    indices: &Tensor,
    dim: i64,
    keeps: bool,
) -> Result<()> {
    let from = tensor.shape();
    record(node, &[tensor], &[values, indices], &[Save::Input(Some(indices))], move |ctx, grads| {
        let grad = first(grads)?;
        let indices = ctx.saved(0)?;
        // grad.new_zeros(sizes).scatter_(dim, indices, grad)
        let (grad, indices) = if keeps || from.is_empty() {
            (grad.clone(), indices)
        } else {
            (unsqueeze(grad, dim)?, unsqueeze(&indices, dim)?)
        };
        let full = creation::zeros(&from, grad.dtype(), grad.device())?;
        scatter::record_scattered(nodes::ScatterBackward0, &grad, dim, &indices, &full)?;
        Ok(vec![Some(full)])
    })
}

/// `amax` and `amin`.
pub(crate) fn extremum_dims(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    keeps: bool,
    node: &'static str,
) -> Result<Tensor> {
    let mask = mask_of(dims, tensor.dim())?;
    let output = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    set_extremum(&output, tensor, &mask, is_max(node));
    run(tensor, &mask, ReductionKernel::of(tensor.dtype().size()))?;
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    // The dimension of a number that is reduced is restored: the engine sums the gradient over it.
    let gains_a_dim = tensor.dim() == 0 && !keeps && dims.is_some_and(|dims| !dims.is_empty());
    record(node, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, input, result) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let equal = eq(&restore(&result, &mask, keeps)?, &input)?;
        let grad = restore(grad, &mask, keeps)?;
        let grad_input = scale_by_count(&grad, &equal, &mask)?;
        Ok(vec![Some(if gains_a_dim { views::unsqueeze(&grad_input, 0)? } else { grad_input })])
    })?;
    Ok(output)
}

/// `scale_grad_by_count`: `(grad / mask.sum(dims, true)) * mask`.
fn scale_by_count(grad: &Tensor, chosen: &Tensor, mask: &[bool]) -> Result<Tensor> {
    let count = sum(chosen, Some(&dims_of(mask)), true, None)?;
    let share = div(grad, &count)?;
    mul(&share, chosen)
}

/// `argmax` and `argmin`.
pub(super) fn arg_extremum(tensor: &Tensor, dim: Option<i64>, keeps: bool, is_max: bool) -> Result<Value> {
    let dims = dim.map(|dim| vec![dim]);
    let mask = mask_of(dims.as_deref(), tensor.dim())?;
    let output = reduced_empty(tensor, &mask, keeps, Dtype::I64)?;
    set_place(&output, tensor, &mask, is_max);
    // Without a dimension the kernel sees the tensor flat.
    let flat = if dims.is_some() { tensor } else { &views::reshape(&tensor.detach(), &[-1])? };
    let mask = if dims.is_some() { mask } else { vec![true] };
    run(flat, &mask, ReductionKernel::of(16))?;
    Ok(output.into())
}

/// `aminmax`.
pub(super) fn aminmax(tensor: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Value> {
    let dims = dim.map(|dim| vec![dim]);
    let mask = mask_of(dims.as_deref(), tensor.dim())?;
    let low = reduced_empty(tensor, &mask, keepdim, tensor.dtype())?;
    let high = reduced_empty(tensor, &mask, keepdim, tensor.dtype())?;
    // A reduction to one number reads elements without gaps.
    let read = if dims.is_none() { super::super::copy::contiguous(tensor)? } else { tensor.clone() };
    run(&read, &mask, ReductionKernel::of(2 * tensor.dtype().size()))?;
    drop(read);
    Ok((low, high).into())
}
