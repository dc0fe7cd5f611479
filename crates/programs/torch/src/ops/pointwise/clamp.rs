//! `clamp`.

use crate::arguments::Operand;
use crate::autograd::{EarlyInputs, Save, nodes, record, record_after, save_early};
use crate::iterator::result_type;
use crate::{Dtype, Result, Scalar, Tensor, TorchError};

use super::super::creation::{self, wrapped};
use super::super::host_values;
use super::super::views::first;
use super::{elementwise, elementwise_in_place, ge, in_type, kept_for_gradient, le, where_};

/// `clamp` with numbers, or `None`, as bounds.
pub(crate) fn clamp(tensor: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    let bounds: Vec<Tensor> = [low, high].into_iter().flatten().map(wrapped).collect();
    let mut inputs = vec![tensor];
    inputs.extend(&bounds);
    let dtype = result_type(&inputs);
    let early = save_early(&[tensor], &[Save::Input(Some(tensor))])?;
    let output = elementwise(&[&in_type(tensor, dtype)?], dtype, None)?;
    record_clamp(early, tensor, &output, tensor, low, high)?;
    Ok(output)
}

/// `clamp` with numbers or tensors as bounds.
pub(super) fn clamp_operands(
    tensor: &Tensor,
    low: Option<Operand<'_>>,
    high: Option<Operand<'_>>,
) -> Result<Tensor> {
    let number = |bound: Option<Operand<'_>>| match bound {
        None => Ok(None),
        Some(Operand::Number(number)) => Ok(Some(number)),
        Some(Operand::Tensor(_)) => Err(()),
    };
    if let (Ok(low), Ok(high)) = (number(low), number(high)) {
        return clamp(tensor, low, high);
    }
    let bound = |bound: Option<Operand<'_>>| {
        match bound {
        None => Ok(None),
        Some(Operand::Tensor(bound)) if bound.requires_grad() => Err(TorchError::NotImplemented(
            "torch.clamp with a bound that requires a gradient is not modeled here: use torch.maximum and torch.minimum"
                .to_owned(),
        )),
        Some(Operand::Tensor(bound)) => Ok(Some(bound.clone())),
        Some(Operand::Number(number)) => Ok(Some(wrapped(number))),
    }
    };
    let (low, high) = (bound(low)?, bound(high)?);
    let function: host_values::Function = match (&low, &high) {
        (Some(_), None) => host_values::maximum,
        (None, _) => host_values::minimum,
        _ => |values| match values {
            [value, low, high] => host_values::minimum(&[host_values::maximum(&[*value, *low])?, *high]),
            _ => None,
        },
    };
    let inputs: Vec<&Tensor> = [Some(tensor), low.as_ref(), high.as_ref()].into_iter().flatten().collect();
    let output = elementwise(&inputs, result_type(&inputs), Some(function))?;
    let saved = inputs.iter().map(|input| Save::Input(Some(input))).collect::<Vec<_>>();
    let (has_low, has_high) = (low.is_some(), high.is_some());
    record(nodes::ClampBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, input) = (first(grads)?, ctx.saved(0)?);
        crate::autograd::double_backward::set_variant("tensors as bounds");
        let zero = creation::zeros(&[], grad.dtype(), grad.device())?;
        let below = |place| le(&input, &ctx.saved(place)?);
        let within = match (has_low, has_high) {
            (false, _) => below(1)?,
            (true, false) => ge(&input, &ctx.saved(1)?)?,
            (true, true) => {
                let within = ge(&input, &ctx.saved(1)?)?;
                logical_and_in_place(&within, &below(2)?)?
            }
        };
        // The gradient of a tensor that was broadcast is added up.
        Ok(vec![Some(super::super::reduce::sum_to(&where_(&within, grad, &zero)?, &input.shape())?)])
    })?;
    Ok(output)
}

fn record_clamp(
    early: EarlyInputs,
    tensor: &Tensor,
    output: &Tensor,
    saved: &Tensor,
    low: Option<Scalar>,
    high: Option<Scalar>,
) -> Result<()> {
    record_after(
        early,
        nodes::ClampBackward1,
        &[tensor],
        &[output],
        &[Save::Input(Some(saved))],
        move |ctx, grads| {
            let (grad, input) = (first(grads)?, ctx.saved(0)?);
            Ok(vec![Some(clamp_backward(grad, &input, low, high)?)])
        },
    )
}

/// `clamp_backward`: `where(self within bounds, grad, 0)`.
fn clamp_backward(
    grad: &Tensor,
    input: &Tensor,
    low: Option<Scalar>,
    high: Option<Scalar>,
) -> Result<Tensor> {
    crate::autograd::double_backward::set_variant(match (low, high) {
        (Some(_), Some(_)) => "both bounds",
        (Some(_), None) => "lower bound",
        (None, Some(_)) => "upper bound",
        (None, None) => "no bound",
    });
    let zero = creation::zeros(&[], grad.dtype(), grad.device())?;
    match (low, high) {
        (Some(low), Some(high)) => {
            // (self >= low).logical_and_(self <= high): both masks live to the end of the expression.
            let below = le(input, &wrapped(high))?;
            let within = ge(input, &wrapped(low))?;
            logical_and_in_place(&within, &below)?;
            where_(&within, grad, &zero)
        }
        (Some(low), None) => where_(&ge(input, &wrapped(low))?, grad, &zero),
        (None, Some(high)) => where_(&le(input, &wrapped(high))?, grad, &zero),
        (None, None) => Ok(grad.clone()),
    }
}

fn logical_and_in_place(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    elementwise_in_place(&[a, b], Dtype::Bool, Some(host_values::logical_and))?;
    Ok(a.clone())
}

/// `clamp_` between numbers.
pub(super) fn clamp_in_place(tensor: &Tensor, low: Option<Scalar>, high: Option<Scalar>) -> Result<Tensor> {
    let original = kept_for_gradient(tensor)?;
    elementwise_in_place(&[tensor], tensor.dtype(), None)?;
    record_clamp(EarlyInputs::default(), tensor, tensor, original.as_ref().unwrap_or(tensor), low, high)?;
    Ok(tensor.clone())
}
