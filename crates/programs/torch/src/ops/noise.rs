//! Operators that multiply by random numbers they draw: `rrelu` and the dropouts that keep mean and variance.

use crate::autograd::{Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{MemoryFormat, Result, Tensor, Value};

use super::copy::contiguous;
use super::creation::{empty, empty_like, empty_like_as, zeros, zeros_like};
use super::kernels::{gate_of_leaky_relu, number};
use super::pointwise::{self, add, add_in_place, change_in_place, mul, mul_in_place};
use super::views::first;

/// `rrelu_with_noise_backward`.
fn rrelu_backward(grad: &Tensor, input: &Tensor, noise: &Tensor, is_training: bool) -> Result<Tensor> {
    if !is_training {
        return gate_of_leaky_relu(grad, input);
    }
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        mul(noise, grad)?
    };
    let saved = [Save::Input(Some(noise)), Save::Input(Some(input))];
    record(nodes::RreluWithNoiseBackwardBackward0, &[grad, input], &[&output], &saved, move |ctx, grads| {
        let grad_grad = first(grads)?;
        let grad_input = ctx.gradient(1, || zeros_like(grad_grad))?;
        let to_grad =
            ctx.gradient(0, || rrelu_backward(grad_grad, &ctx.saved(1)?, &ctx.saved(0)?, is_training))?;
        Ok(vec![to_grad, grad_input])
    })?;
    Ok(output)
}

/// `rrelu`: the slopes are a tensor, which the backward function keeps, also where nothing is drawn.
fn rrelu(tensor: &Tensor, lower: f64, upper: f64, is_training: bool, in_place: bool) -> Result<Value> {
    if lower > upper {
        return runtime("Lower bound should be less than or equal to the upper bound");
    }
    let noise = empty_like_as(tensor, tensor.dtype(), MemoryFormat::Contiguous)?;
    let output = if in_place {
        change_in_place(tensor)?;
        tensor.clone()
    } else {
        empty_like_as(tensor, tensor.dtype(), MemoryFormat::Contiguous)?
    };
    if is_training {
        crate::session().generators.forget_on(tensor.device());
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let read = contiguous(tensor)?;
        let written = contiguous(&output)?;
        drop(written);
        drop(read);
    }
    let (node, kept) = if in_place {
        (nodes::RreluWithNoiseBackward1, Save::Output(0))
    } else {
        (nodes::RreluWithNoiseBackward0, Save::Input(Some(tensor)))
    };
    record(node, &[tensor], &[&output], &[Save::Input(Some(&noise)), kept], move |ctx, grads| {
        Ok(vec![Some(rrelu_backward(first(grads)?, &ctx.saved(1)?, &ctx.saved(0)?, is_training)?)])
    })?;
    drop(noise);
    Ok(output.into())
}

/// `_dropout_impl` of the dropouts that keep mean and variance, by elements or by whole channels.
fn alpha_dropout(
    input: &Tensor,
    p: f64,
    is_training: bool,
    by_channels: bool,
    in_place: bool,
) -> Result<Value> {
    if !(0.0..=1.0).contains(&p) {
        return runtime(format!("dropout probability has to be between 0 and 1, but got {p}"));
    }
    if p == 0.0 || !is_training || input.numel() == 0 {
        return Ok(input.into());
    }
    let multiply = |noise: &Tensor| if in_place { mul_in_place(input, noise) } else { mul(input, noise) };
    if p >= 1.0 {
        return Ok(multiply(&zeros(&[], input.dtype(), input.device())?)?.into());
    }
    let noise = if by_channels {
        if input.dim() < 2 {
            return runtime("Feature dropout requires at least 2 dimensions in the input");
        }
        let shape: Vec<i64> =
            input.shape().iter().enumerate().map(|(dim, size)| if dim < 2 { *size } else { 1 }).collect();
        empty(&shape, input.dtype(), input.device())?
    } else {
        empty_like(input)?
    };
    crate::session().generators.forget_on(input.device());
    // noise.add(-1).mul_(..).add_(..)
    let shift = add(&noise, &number(-1.0))?;
    pointwise::elementwise_in_place(&[&shift], shift.dtype(), None)?;
    let result = multiply(&noise)?;
    add_in_place(&result, &shift)?;
    drop(noise);
    drop(shift);
    Ok(result.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False)",
        |tensor: &Tensor, lower: f64, upper: f64, is_training: bool| {
            rrelu(tensor, lower, upper, is_training, false)
        }
    ),
    op!(
        "rrelu_(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False)",
        |tensor: &Tensor, lower: f64, upper: f64, is_training: bool| {
            rrelu(tensor, lower, upper, is_training, true)
        }
    ),
    op!("alpha_dropout(Tensor input, float p, bool train)", |input: &Tensor, p: f64, is_training: bool| {
        alpha_dropout(input, p, is_training, false, false)
    }),
    op!("alpha_dropout_(Tensor self, float p, bool train)", |input: &Tensor, p: f64, is_training: bool| {
        alpha_dropout(input, p, is_training, false, true)
    }),
    op!(
        "feature_alpha_dropout(Tensor input, float p, bool train)",
        |input: &Tensor, p: f64, is_training: bool| alpha_dropout(input, p, is_training, true, false)
    ),
    op!(
        "feature_alpha_dropout_(Tensor self, float p, bool train)",
        |input: &Tensor, p: f64, is_training: bool| alpha_dropout(input, p, is_training, true, true)
    ),
];
