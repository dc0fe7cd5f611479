//! Dropout and other draws of random numbers from a tensor.

use crate::autograd::{GradMode, GradModeGuard, Save, nodes, record};
use crate::iterator;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::copy::to_dtype;
use super::creation::{empty, empty_like, empty_like_as, wrapped};
use super::pointwise::{self, mul, scale};
use super::reduce::{self, sum};
use super::unary;
use super::views::first;

/// `dropout`: one kernel that also writes a mask, allocated before the result.
pub(crate) fn dropout(input: &Tensor, p: f64, is_training: bool) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(crate::TorchError::Value(format!(
            "dropout probability has to be between 0 and 1, but got {p}"
        )));
    }
    if !is_training || p == 0.0 || input.numel() == 0 {
        return Ok(input.clone());
    }
    if p >= 1.0 {
        return mul(input, &empty(&[], input.dtype(), input.device())?);
    }
    crate::session().generators.forget_on(input.device());
    let mask = {
        let shape = input.shape();
        let strides = iterator::output_strides(&[input], &shape);
        super::copy::empty_strided(&shape, &strides, Dtype::Bool, input.device())?
    };
    let output = empty_like(input)?;
    record(
        nodes::NativeDropoutBackward0,
        &[input],
        &[&output],
        &[Save::Input(Some(&mask))],
        |ctx, grads| {
            let mask = ctx.saved(0)?;
            let grad = first(grads)?;
            if GradMode::is_enabled() {
                // grad * (mask.type_as(grad) * scale)
                let kept = to_dtype(&mask, grad.dtype())?;
                let factor = scale(&kept, 1.0)?;
                return Ok(vec![Some(mul(grad, &factor)?)]);
            }
            // The kernel writes without gaps, in the order that the gradient suggests.
            Ok(vec![Some(empty_like_as(grad, grad.dtype(), grad.suggested_format())?)])
        },
    )?;
    drop(mask);
    Ok(output)
}

/// `feature_dropout`: whole channels, by a small noise tensor.
fn feature_dropout(input: &Tensor, p: f64, is_training: bool) -> Result<Tensor> {
    if !is_training || p == 0.0 || input.numel() == 0 {
        return Ok(input.clone());
    }
    let mut shape = vec![1; input.dim()];
    for (slot, size) in shape.iter_mut().zip(input.shape().iter().take(2)) {
        *slot = *size;
    }
    crate::session().generators.forget_on(input.device());
    let noise = empty(&shape, input.dtype(), input.device())?;
    mul(input, &noise)
}

fn bernoulli(input: &Tensor) -> Result<Value> {
    crate::session().generators.forget_on(input.device());
    let output = empty_like(input)?;
    // The probabilities are read in double precision for such a result, in single precision for any other.
    let no_grad = GradModeGuard::new(false);
    drop(to_dtype(input, if input.dtype() == Dtype::F64 { Dtype::F64 } else { Dtype::F32 })?);
    drop(no_grad);
    record(nodes::BernoulliBackward0, &[input], &[&output], &[], |_, grads| {
        Ok(vec![Some(super::creation::zeros_like(first(grads)?)?)])
    })?;
    Ok(output.into())
}

/// `multinomial` of one sample: checks, then exponential noise and an argmax; of several without replacement
/// a top-k.
fn multinomial(input: &Tensor, samples: i64, replacement: bool) -> Result<Value> {
    crate::session().generators.forget_on(input.device());
    let _no_grad = GradModeGuard::new(false);
    if samples > 1 && replacement {
        return multinomial_with_replacement(input, samples);
    }
    let rows: Vec<i64> = input.shape().iter().take(input.dim().saturating_sub(1)).copied().collect();
    let mut shape = rows.clone();
    shape.push(samples);
    // Valid weights: finite, not negative, and none of the sums zero.
    let result = empty(&shape, Dtype::I64, input.device())?;
    let one = wrapped(Scalar::Int(1));
    {
        let all = vec![true; input.dim()];
        let highest = empty(&[], input.dtype(), input.device())?;
        reduce::run(input, &all, reduce::ReductionKernel::of(input.dtype().size()))?;
        let is_finite = pointwise::lt(&highest, &wrapped(Scalar::Float(f64::INFINITY)))?;
        let lowest = empty(&[], input.dtype(), input.device())?;
        reduce::run(input, &all, reduce::ReductionKernel::of(input.dtype().size()))?;
        let is_positive = pointwise::ge(&lowest, &one)?;
        let is_valid = pointwise::logical_and(&is_positive, &is_finite)?;
        drop(is_positive);
        drop(lowest);
        drop(is_finite);
        drop(highest);
        let sums = sum(input, Some(&[-1]), false, None)?;
        let is_zero = pointwise::eq(&sums, &one)?;
        let any = empty(&[], Dtype::Bool, input.device())?;
        reduce::run(&is_zero, &vec![true; is_zero.dim()], reduce::ReductionKernel::of(1))?;
        drop(is_zero);
        drop(sums);
        drop(unary::logical_not(&any)?);
        drop_after(input, any, is_valid, samples, &result)?;
    }
    Ok(result.into())
}

/// Several samples with replacement: a copy of the weights, their shares, and running sums of these.
fn multinomial_with_replacement(input: &Tensor, samples: i64) -> Result<Value> {
    let mut shape: Vec<i64> = input.shape().iter().take(input.dim().saturating_sub(1)).copied().collect();
    shape.push(samples);
    let result = empty(&shape, Dtype::I64, input.device())?;
    let [weights, shares] = [
        empty(&input.shape(), input.dtype(), input.device())?,
        empty(&input.shape(), input.dtype(), input.device())?,
    ];
    let sums = super::sort::cumsum(&shares, -1)?;
    drop(sums);
    drop(shares);
    drop(weights);
    Ok(result.into())
}

fn drop_after(input: &Tensor, is_not: Tensor, is_valid: Tensor, samples: i64, result: &Tensor) -> Result<()> {
    let noise = empty_like(input)?;
    if samples == 1 {
        reduce::run(input, &last_only(input), reduce::ReductionKernel::of(16))?;
    } else {
        // topk_out into the result, for which the values are thrown away.
        let values = super::sort::topk_values(&noise, samples)?;
        drop(values);
    }
    let _ = result;
    drop(noise);
    drop(is_not);
    drop(is_valid);
    Ok(())
}

fn last_only(tensor: &Tensor) -> Vec<bool> {
    (0..tensor.dim()).map(|dim| dim + 1 == tensor.dim()).collect()
}

pub(crate) const TABLE: &[Entry] = &[
    op!("dropout(Tensor input, float p, bool train)", dropout),
    op!("feature_dropout(Tensor input, float p, bool train)", feature_dropout),
    op!("bernoulli(Tensor self)", bernoulli),
    op!("multinomial(Tensor self, int num_samples, bool replacement=False)", multinomial),
];
