//! `pow`.

use crate::arguments::Operand;
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::iterator::result_type;
use crate::{Dtype, Result, Scalar, Tensor, contiguous_strides};

use super::super::creation::{empty, full, wrapped, zeros};
use super::super::out;
use super::super::views::first;
use super::binary::POW;
use super::{dtype_by, elementwise, in_type, mul, scale};

/// `pow` with a number as the exponent.
pub(crate) fn pow_scalar(tensor: &Tensor, exponent: Scalar) -> Result<Tensor> {
    let cast = Cast::full(tensor.device());
    let tensor = &cast.apply(tensor)?;
    let dtype = result_type(&[tensor, &wrapped(exponent)]);
    let output = elementwise(&[&in_type(tensor, dtype)?], dtype, None)?;
    record(nodes::PowBackward0, &[tensor], &[&output], &[Save::Input(Some(tensor))], move |ctx, grads| {
        let exponent = exponent.to_f64().unwrap_or(f64::NAN);
        Ok(vec![Some(pow_backward(first(grads)?, &ctx.saved(0)?, exponent)?)])
    })?;
    Ok(output)
}

/// `pow_backward`: `grad * (exponent * self.pow(exponent - 1))`.
pub(crate) fn pow_backward(grad: &Tensor, input: &Tensor, exponent: f64) -> Result<Tensor> {
    if exponent == 0.0 {
        // In the plain order, also for an input in another one.
        return zeros(&input.shape(), input.dtype(), input.device());
    }
    mul(grad, &scale(&pow_scalar(input, Scalar::Float(exponent - 1.0))?, exponent)?)
}

/// `pow` of two tensors.
pub(in crate::ops) fn power(base: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    POW.call(base, exponent)
}

/// `pow` as a program calls it: by a number or by a tensor, each with autocast's rule.
pub(super) fn pow(base: &Tensor, exponent: Operand<'_>) -> Result<Tensor> {
    match exponent {
        Operand::Number(exponent) => pow_scalar(base, exponent),
        Operand::Tensor(exponent) => {
            let cast = Cast::full(exponent.device());
            if base.is_wrapped_number() {
                return pow_of_number(base, &cast.apply(exponent)?);
            }
            // The last argument is cast first.
            let exponent = cast.apply(exponent)?;
            POW.call(&cast.apply(base)?, &exponent)
        }
    }
}

/// `pow` of a number: its derivative is the result times a logarithm.
pub(in crate::ops) fn pow_of_number(base: &Tensor, exponent: &Tensor) -> Result<Tensor> {
    let dtype = dtype_by(POW.rule, &[base, exponent]);
    let output = if exponent.is_contiguous() || !exponent.device().is_cuda() {
        elementwise(&[base, exponent], dtype, None)?
    } else {
        // The result's strides are not asked of the operands (`TORCH_META_FUNC2(pow, Scalar)`).
        let shape = exponent.shape();
        match out::take(&shape, &contiguous_strides(&shape), dtype)? {
            Some(out) => out,
            None => empty(&shape, dtype, exponent.device())?,
        }
    };
    if exponent.device().is_cuda() && crate::schema::known_or_unknown(base).to_f64() != Some(1.0) {
        // pow_out takes the number as a tensor of the GPU, in int64 or float64; one is not raised to a power.
        drop(super::super::sort::temporary(exponent.device(), 8)?);
    }
    let logarithm = crate::schema::known_or_unknown(base).to_f64().map_or(f64::NAN, f64::ln);
    let saved = [Save::Input(Some(exponent)), Save::Output(0)];
    record(nodes::PowBackward2, &[exponent], &[&output], &saved, move |ctx, grads| {
        if logarithm == f64::NEG_INFINITY {
            crate::session().note_estimate(nodes::PowBackward2, "a base of 0 was not recorded");
        }
        let product = scale(&ctx.saved(1)?, logarithm)?;
        Ok(vec![Some(mul(first(grads)?, &product)?)])
    })?;
    Ok(output)
}

/// `ldexp`: one kernel for whole exponents, else `self * 2 ** other`. The type decides whether the 2 is a
/// number or a tensor of the GPU.
pub(in crate::ops) fn ldexp(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let output = {
        let _no_grad = GradModeGuard::new(false);
        if input.dtype().is_floating() && other.dtype().is_integral() {
            elementwise(&[input, other], input.dtype(), None)?
        } else {
            let is_number = input.dtype().is_integral() || input.dtype() == Dtype::F32;
            let two = || full(&[], Scalar::Int(2), input.dtype(), input.device());
            let number = wrapped(Scalar::Float(2.0));
            let power = if is_number { pow_of_number(&number, other)? } else { power(&two()?, other)? };
            mul(input, &power)?
        }
    };
    let saved = [Save::InputIf(input.requires_grad(), other), Save::Output(0)];
    record(nodes::LdexpBackward0, &[input, other], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let to_other = ctx.gradient(1, || scale(&mul(grad, &ctx.saved(1)?)?, std::f64::consts::LN_2))?;
        let grad_input =
            ctx.gradient(0, || mul(grad, &pow_of_number(&wrapped(Scalar::Int(2)), &ctx.saved(0)?)?))?;
        Ok(vec![grad_input, to_other])
    })?;
    Ok(output)
}
