//! `where` and `masked_fill`.

use crate::autograd::{EarlyInputs, GradMode, Save, nodes, record_after, save_early};
use crate::error::runtime;
use crate::iterator::{broadcast, result_type};
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor};

use super::super::creation::{self, wrapped};
use super::super::views::{expand_quietly, first};
use super::super::{copy, host_values, reduce};
use super::{change_in_place, elementwise, in_type};

/// `torch.where`.
pub(crate) fn where_(condition: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = result_type(&[a, b]);
    let saved = [Save::Input(Some(condition))];
    let early = save_early(&[a, b], &saved)?;
    let output = {
        let (a, b) = (&in_type(a, dtype)?, &in_type(b, dtype)?);
        elementwise(&[condition, a, b], dtype, Some(host_values::select))?
    };
    record_after(early, nodes::WhereBackward0, &[a, b], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let condition = ctx.saved(0)?;
        // The number becomes a tensor on the GPU, for each of the two.
        let zero = || creation::zeros(&[], grad.dtype(), grad.device());
        let other = ctx.gradient(1, || where_(&condition, &zero()?, grad))?;
        let input = ctx.gradient(0, || where_(&condition, grad, &zero()?))?;
        Ok(vec![input, other])
    })?;
    Ok(output)
}

/// `masked_fill`: a clone, filled in place.
pub(crate) fn masked_fill(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    if mask.dtype() != Dtype::Bool {
        return runtime(format!(
            "masked_fill only supports boolean masks, but got mask with dtype {}",
            mask.dtype()
        ));
    }
    let shape = broadcast(&[&mask.shape(), &tensor.shape()])?;
    let early = save_early(&[tensor, value], &[Save::Input(Some(mask))])?;
    let expanded = expand_quietly(tensor, &shape).unwrap_or_else(|| tensor.clone());
    let result = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        copy::clone(&expanded, MemoryFormat::Contiguous)?
    };
    host_values::apply(Some(host_values::select), &[mask, value, tensor], &result);
    record_masked_fill(early, tensor, mask, &result, value, MemoryFormat::Contiguous)?;
    Ok(result)
}

fn record_masked_fill(
    early: EarlyInputs,
    tensor: &Tensor,
    mask: &Tensor,
    output: &Tensor,
    value: &Tensor,
    order: MemoryFormat,
) -> Result<()> {
    let has_gradient = value.requires_grad();
    record_after(
        early,
        nodes::MaskedFillBackward0,
        &[tensor, value],
        &[output],
        &[Save::Input(Some(mask))],
        move |ctx, grads| {
            let grad = first(grads)?;
            let mask = ctx.saved(0)?;
            let input = if !ctx.wants(0) {
                None
            } else if order == MemoryFormat::Preserve && !GradMode::is_enabled() {
                Some(copy::clone(grad, order)?)
            } else {
                Some(masked_fill(grad, &mask, &wrapped(Scalar::Int(0)))?)
            };
            let other = if has_gradient {
                let zero = wrapped(Scalar::Int(0));
                Some(reduce::sum_all(&where_(&mask, grad, &zero)?)?)
            } else {
                None
            };
            Ok(vec![input, other])
        },
    )
}

fn fill_where(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    let values = host_values::compute(Some(host_values::select), &[mask, value, tensor], tensor);
    change_in_place(tensor)?;
    if values.is_some() {
        tensor.set_values(values.as_deref());
    }
    Ok(())
}

/// `masked_fill_`.
pub(crate) fn masked_fill_in_place(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
    fill_where(tensor, mask, value)?;
    record_masked_fill(EarlyInputs::default(), tensor, mask, tensor, value, MemoryFormat::Contiguous)?;
    Ok(tensor.clone())
}

/// `x[mask] = value`: the same kernel, but the gradient is copied in its own order, as that of an index is.
pub(crate) fn set_masked(tensor: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    fill_where(tensor, mask, value)?;
    record_masked_fill(EarlyInputs::default(), tensor, mask, tensor, value, MemoryFormat::Preserve)
}
