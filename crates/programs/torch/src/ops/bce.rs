//! Binary cross entropy, of probabilities and of logits.

use crate::autocast::Cast;
use crate::autograd::{GradMode, GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::{Result, Scalar, Tensor, Value};

use super::creation::{empty_like, wrapped};
use super::kernels::one_minus;
use super::loss::{Reduction, reduced};
use super::pointwise::{
    add, add_in_place, div, div_in_place, elementwise_in_place, mul, mul_in_place, pow_scalar, scale, sub,
};
use super::unary;
use super::views::first;

/// `binary_cross_entropy`, which autocast refuses on a GPU.
pub(super) fn binary_cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Value> {
    if crate::autocast::dtype().is_some() && input.device().is_cuda() {
        return runtime(
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models use a \
             sigmoid layer right before the binary cross entropy layer.\nIn this case, combine the two layers using \
             torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss.  \
             binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast.",
        );
    }
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let loss = empty_like(input)?;
        if let Some(weight) = &weight {
            elementwise_in_place(&[&loss, weight], loss.dtype(), None)?;
        }
        if reduction == Reduction::None {
            loss
        } else {
            // `loss.resize_as_(reduced).copy_(reduced)`: the loss keeps the memory of all elements.
            let copied = reduced(loss.clone(), reduction)?;
            loss.set_geometry(&[], &[], 0);
            drop(copied);
            loss
        }
    };
    let saved = [Save::Input(Some(input)), Save::Input(Some(target)), Save::Input(weight)];
    record(nodes::BinaryCrossEntropyBackward0, &[input, target], &[&output], &saved, move |ctx, grads| {
        reduction.note();
        let (input, target) = (ctx.saved(0)?, ctx.saved(1)?);
        let weight = ctx.saved_optional(2)?;
        let grad = first(grads)?;
        let grad_input =
            ctx.gradient(0, || bce_backward(grad, &input, &target, weight.as_ref(), reduction))?;
        let to_target =
            ctx.gradient(1, || bce_target_backward(grad, &input, &target, weight.as_ref(), reduction))?;
        Ok(vec![grad_input, to_target])
    })?;
    Ok(output.into())
}

/// `binary_cross_entropy_target_backward`: `-logit(self)` times the gradient, in place after the first.
fn bce_target_backward(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    let gradient = crate::call("logit", &[input.into()], &[])?.tensor()?;
    elementwise_in_place(&[&gradient, grad], gradient.dtype(), None)?;
    if let Some(weight) = &weight {
        elementwise_in_place(&[&gradient, weight], gradient.dtype(), None)?;
    }
    if reduction == Reduction::Mean {
        let count = wrapped(Scalar::Int(target.numel()));
        elementwise_in_place(&[&gradient, &count], gradient.dtype(), None)?;
    }
    Ok(gradient)
}

/// `binary_cross_entropy_with_logits`.
pub(super) fn bce_with_logits(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Value> {
    let cast = Cast::full(input.device());
    let pos_weight = cast.apply_optional(pos_weight)?;
    let weight = cast.apply_optional(weight)?;
    let [input, target] = &cast.apply_all([input, target])?;
    if input.shape() != target.shape() {
        return Err(crate::TorchError::Value(format!(
            "Target size ({:?}) must be the same as input size ({:?})",
            target.shape(),
            input.shape()
        )));
    }
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let logarithm = crate::call("log_sigmoid", &[input.into()], &[])?.tensor()?;
        let one = wrapped(Scalar::Int(1));
        if let Some(pos_weight) = &pos_weight {
            // log_weight = (pos_weight - 1).mul(target).add_(1); log_sigmoid.mul_(log_weight); (1 - target) *
            // input - log_sigmoid
            let log_weight = {
                let less = sub(pos_weight, &one)?;
                let weight = mul(&less, target)?;
                add_in_place(&weight, &one)?;
                weight
            };
            elementwise_in_place(&[&logarithm, &log_weight], logarithm.dtype(), None)?;
        }
        let loss = sub(&one, target)?;
        elementwise_in_place(&[&loss, input], loss.dtype(), None)?;
        elementwise_in_place(&[&loss, &logarithm], loss.dtype(), None)?;
        if let Some(weight) = &weight {
            elementwise_in_place(&[&loss, weight], loss.dtype(), None)?;
        }
        let result = reduced(loss, reduction)?;
        drop(logarithm);
        result
    };
    let saved = [
        Save::Input(pos_weight.as_ref()),
        Save::Input(Some(input)),
        Save::Input(Some(target)),
        Save::Input(weight.as_ref()),
    ];
    record(
        nodes::BinaryCrossEntropyWithLogitsBackward0,
        &[input, target],
        &[&output],
        &saved,
        move |ctx, grads| {
            let grad = first(grads)?;
            reduction.note();
            let grad_input = ctx.gradient(0, || bce_with_logits_backward(ctx, grad, reduction))?;
            let to_target = ctx.gradient(1, || bce_with_logits_target_backward(ctx, grad, reduction))?;
            Ok(vec![grad_input, to_target])
        },
    )?;
    Ok(output.into())
}

/// `binary_cross_entropy_with_logits_backward`.
fn bce_with_logits_backward(
    ctx: &crate::autograd::Context<'_>,
    grad: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let input = ctx.saved(1)?;
    if GradMode::is_enabled() {
        return bce_with_logits_double_backward(ctx, grad, &input, reduction);
    }
    if let Some(pos_weight) = ctx.saved_optional(0)? {
        // t = pos_weight * target; t.add(1).sub_(target).mul_(input.sigmoid()).sub_(t)
        let t = mul(&pos_weight, &ctx.saved(2)?)?;
        let one = wrapped(Scalar::Int(1));
        let gradient = add(&t, &one)?;
        let sigmoid = crate::call("sigmoid", &[(&input).into()], &[])?.tensor()?;
        elementwise_in_place(&[&gradient, &sigmoid], gradient.dtype(), None)?;
        return Ok(gradient);
    }
    empty_like(&input)
}

/// `binary_cross_entropy_with_logits_target_backward`: what follows the first product is written in place.
fn bce_with_logits_target_backward(
    ctx: &crate::autograd::Context<'_>,
    grad: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let input = ctx.saved(1)?;
    let negative = super::unary::neg(&input)?;
    let result = if let Some(pos_weight) = ctx.saved_optional(0)? {
        // log_sigmoid(-self).sub_(log_sigmoid(self).mul_(pos_weight)).mul_(grad)
        let log_sigmoid = |tensor: &Tensor| crate::call("log_sigmoid", &[tensor.into()], &[])?.tensor();
        let minuend = log_sigmoid(&negative)?;
        let subtrahend = log_sigmoid(&input)?;
        elementwise_in_place(&[&subtrahend, &pos_weight], subtrahend.dtype(), None)?;
        elementwise_in_place(&[&minuend, &subtrahend], minuend.dtype(), None)?;
        elementwise_in_place(&[&minuend, grad], minuend.dtype(), None)?;
        minuend
    } else {
        mul(&negative, grad)?
    };
    if let Some(weight) = ctx.saved_optional(3)? {
        elementwise_in_place(&[&result, &weight], result.dtype(), None)?;
    }
    if reduction == Reduction::Mean {
        let count = wrapped(Scalar::Int(input.numel()));
        elementwise_in_place(&[&result, &count], result.dtype(), None)?;
    }
    Ok(result)
}

/// `binary_cross_entropy_with_logits_backward` where it is differentiated again: nothing is changed in place
/// but by the mean.
fn bce_with_logits_double_backward(
    ctx: &crate::autograd::Context<'_>,
    grad: &Tensor,
    input: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let target = ctx.saved(2)?;
    let mut result = if let Some(pos_weight) = ctx.saved_optional(0)? {
        // t.add(1).sub(target).mul(input.sigmoid()).sub(t)
        let t = mul(&pos_weight, &target)?;
        let more = add(&t, &wrapped(Scalar::Int(1)))?;
        let less = sub(&more, &target)?;
        let squashed = unary::sigmoid(input)?;
        let product = mul(&less, &squashed)?;
        sub(&product, &t)?
    } else {
        let squashed = unary::sigmoid(input)?;
        sub(&squashed, &target)?
    };
    result = mul(&result, grad)?;
    if let Some(weight) = ctx.saved_optional(3)? {
        result = mul(&result, &weight)?;
    }
    if reduction == Reduction::Mean {
        div_in_place(&result, &wrapped(Scalar::Int(input.numel())))?;
    }
    Ok(result)
}

/// `binary_cross_entropy_backward`: one kernel, with separate formulas for the second derivative.
fn bce_backward(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    let output = empty_like(input)?;
    let saved =
        [Save::Input(Some(grad)), Save::Input(Some(input)), Save::Input(Some(target)), Save::Input(weight)];
    let node = nodes::BinaryCrossEntropyBackwardBackward0;
    record(node, &[grad, input], &[&output], &saved, move |ctx, grads| {
        let (grad_grad, grad, input, target) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let weight = ctx.saved_optional(3)?;
        reduction.note();
        let finish = |result: Tensor| -> Result<Tensor> {
            if let Some(weight) = &weight {
                mul_in_place(&result, weight)?;
            }
            if reduction == Reduction::Mean {
                return div(&result, &wrapped(Scalar::Int(input.numel())));
            }
            Ok(result)
        };
        let to_grad = ctx.gradient(0, || finish(bce_of_grad(grad_grad, &input, &target)?))?;
        let grad_input =
            ctx.gradient(1, || bce_double_backward(grad_grad, &grad, &input, &target, &finish))?;
        Ok(vec![to_grad, grad_input])
    })?;
    Ok(output)
}

/// `(input - target) / ((input + eps) * (1 - input + eps))`, times the gradient.
fn bce_of_grad(grad_grad: &Tensor, input: &Tensor, target: &Tensor) -> Result<Tensor> {
    let eps = wrapped(Scalar::Float(1e-12));
    let result = {
        let rest = one_minus(input)?;
        let rest = (add(&rest, &eps)?, rest);
        let more = add(input, &eps)?;
        let product = mul(&more, &rest.0)?;
        let difference = sub(input, target)?;
        div(&difference, &product)?
    };
    mul_in_place(&result, grad_grad)
}

/// `(input * input - 2 * input * target + target) / ((input + eps)^2 * (1 - input + eps)^2)`, times both
/// gradients.
fn bce_double_backward(
    grad_grad: &Tensor,
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    finish: &dyn Fn(Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let eps = wrapped(Scalar::Float(1e-12));
    let more = add(input, &eps)?;
    let rest = {
        let rest = one_minus(input)?;
        add(&rest, &eps)?
    };
    let result = {
        let right = pow_scalar(&rest, Scalar::Int(2))?;
        let left = pow_scalar(&more, Scalar::Int(2))?;
        let below = mul(&left, &right)?;
        let doubled = scale(input, 2.0)?;
        let product = mul(&doubled, target)?;
        let squared = mul(input, input)?;
        let difference = sub(&squared, &product)?;
        let above = add(&difference, target)?;
        div(&above, &below)?
    };
    {
        let product = mul(grad_grad, grad)?;
        mul_in_place(&result, &product)?;
    }
    let result = finish(result)?;
    drop(rest);
    drop(more);
    Ok(result)
}
