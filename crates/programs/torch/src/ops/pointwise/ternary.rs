//! `addcmul`, `addcdiv` and `lerp`.

use crate::autocast::Cast;
use crate::autograd::{Save, double_backward, nodes, record, record_after, save_early};
use crate::iterator::result_type;
use crate::{Result, Scalar, Tensor, Value};

use super::super::creation::wrapped;
use super::super::views::first;
use super::super::{kernels, unary};
use super::{div, elementwise, elementwise_in_place, mul, rsub, sub};

/// `addcmul` and `addcdiv`.
pub(super) fn addc(
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    value: Scalar,
    divides: bool,
    in_place: bool,
) -> Result<Value> {
    let cast = Cast::widest(&[input, a, b]);
    let (input, a, b) = if in_place {
        (input.clone(), a.clone(), b.clone())
    } else {
        (cast.apply(input)?, cast.apply(a)?, cast.apply(b)?)
    };
    let dtype = result_type(&[&input, &a, &b]);
    let (needs_a, needs_b) = (a.requires_grad(), b.requires_grad());
    let saved = [Save::InputIf(needs_b, &a), Save::InputIf(needs_a || divides, &b)];
    let early = save_early(&[&input, &a, &b], &saved)?;
    let output = if in_place {
        elementwise_in_place(&[&input, &a, &b], dtype, None)?;
        input.clone()
    } else {
        elementwise(&[&input, &a, &b], dtype, None)?
    };
    let node = if divides { nodes::AddcdivBackward0 } else { nodes::AddcmulBackward0 };
    let is_noted = in_place && !crate::autograd::is_in_formula();
    record_after(early, node, &[&input, &a, &b], &[&output], &saved, move |ctx, grads| {
        if is_noted {
            double_backward::set_variant(double_backward::IN_PLACE);
        }
        let grad = first(grads)?;
        let grad_input = ctx.wants(0).then(|| grad.clone());
        let to_a = ctx.gradient(1, || {
            let b = ctx.saved(1)?;
            // `value / tensor2`: a filled tensor, divided in place.
            let factor = if divides { kernels::one_over(&b)? } else { mul(&b, &wrapped(value))? };
            mul(grad, &factor)
        })?;
        let to_b = if ctx.wants(2) {
            let a = ctx.saved(0)?;
            let factor = wrapped(value);
            Some(if divides {
                let b = ctx.saved(1)?;
                // C++ evaluates the right operand first.
                let square = mul(&b, &b)?;
                let scaled = mul(&a, &factor)?;
                let ratio = div(&scaled, &square)?;
                let negative = unary::neg(grad)?;
                mul(&negative, &ratio)?
            } else {
                mul(grad, &mul(&a, &factor)?)?
            })
        } else {
            None
        };
        Ok(vec![grad_input, to_a, to_b])
    })?;
    Ok(output.into())
}

/// `lerp` and `lerp_`, whose weight is a number or a tensor.
pub(super) fn lerp(input: &Tensor, end: &Tensor, weight: &Tensor, in_place: bool) -> Result<Value> {
    let is_number = weight.is_wrapped_number();
    let inputs = [input, end];
    if !is_number {
        return lerp_by_tensor(input, end, weight, in_place);
    }
    let output = if in_place {
        elementwise_in_place(&inputs, input.dtype(), None)?;
        input.clone()
    } else {
        elementwise(&inputs, result_type(&inputs), None)?
    };
    // The backward function has the number itself, and computes what is left of 1 on the host.
    let number = crate::schema::known_or_unknown(weight);
    let rest = number.to_f64().map_or(number, |number| Scalar::Float(1.0 - number));
    record(nodes::LerpBackward0, &[input, end], &[&output], &[Save::Input(None)], move |ctx, grads| {
        let grad = first(grads)?;
        let to_end = ctx.gradient(1, || mul(grad, &wrapped(number)))?;
        let grad_input = ctx.gradient(0, || mul(grad, &wrapped(rest)))?;
        Ok(vec![grad_input, to_end])
    })?;
    Ok(output.into())
}

/// `lerp` whose weight is a tensor, which has a gradient too.
fn lerp_by_tensor(input: &Tensor, end: &Tensor, weight: &Tensor, in_place: bool) -> Result<Value> {
    let inputs = [input, end, weight];
    let needs_ends = weight.requires_grad();
    let saved = [Save::InputIf(needs_ends, end), Save::InputIf(needs_ends, input), Save::Input(Some(weight))];
    let early = save_early(&inputs, &saved)?;
    let output = if in_place {
        elementwise_in_place(&inputs, input.dtype(), None)?;
        input.clone()
    } else {
        elementwise(&inputs, result_type(&inputs), None)?
    };
    record_after(early, nodes::LerpBackward1, &inputs, &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let weight = ctx.saved(2)?;
        let to_end = ctx.gradient(1, || mul(grad, &weight))?;
        let grad_input =
            ctx.gradient(0, || mul(grad, &rsub(&weight, &wrapped(Scalar::Int(1)), Scalar::Int(1))?))?;
        let grad_weight = ctx.gradient(2, || mul(grad, &sub(&ctx.saved(0)?, &ctx.saved(1)?)?))?;
        Ok(vec![grad_input, to_end, grad_weight])
    })?;
    Ok(output.into())
}
