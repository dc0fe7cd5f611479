//! `var`, `std` and their like: one kernel (`WelfordOps`) for spread and mean.

use crate::autograd::{Save, nodes, record};
use crate::error::runtime;
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::super::creation::{full, wrapped};
use super::super::pointwise::{self, div, eq, mul, scale, sub};
use super::super::views::first;
use super::{ReductionKernel, dims_of, mask_of, mean, reduced_count, reduced_empty, restore, run, spread};

/// `var`, or `std` where `roots` is true.
fn variance(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    correction: f64,
    keeps: bool,
    roots: bool,
) -> Result<Tensor> {
    if !tensor.dtype().is_differentiable() {
        return runtime(format!(
            "{}: only support floating point and complex dtypes",
            if roots { "std" } else { "var" }
        ));
    }
    let mask = mask_of(dims, tensor.dim())?;
    let output = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    run(tensor, &mask, ReductionKernel::welford(tensor.dtype()))?;
    let has_dims = dims.is_some_and(|dims| !dims.is_empty());
    let saved: &[Save<'_>] =
        if roots { &[Save::Input(Some(tensor)), Save::Output(0)] } else { &[Save::Input(Some(tensor))] };
    let name = if roots { nodes::StdBackward0 } else { nodes::VarBackward0 };
    record(name, &[tensor], &[&output], saved, move |ctx, grads| {
        let (grad, own) = (first(grads)?, ctx.saved(0)?);
        if !roots {
            return Ok(vec![Some(var_backward(grad, &own, &mask, has_dims, correction, keeps)?)]);
        }
        Ok(vec![Some(std_backward(grad, &ctx.saved(1)?, &own, &mask, has_dims, correction, keeps)?)])
    })?;
    Ok(output)
}

/// `std_backward`: `(grad / (result * 2)).masked_fill_(result == 0, 0)`, then that of the variance.
fn std_backward(
    grad: &Tensor,
    result: &Tensor,
    own: &Tensor,
    mask: &[bool],
    has_dims: bool,
    correction: f64,
    keeps: bool,
) -> Result<Tensor> {
    let grad_var = {
        let double = mul(result, &wrapped(Scalar::Int(2)))?;
        let quotient = div(grad, &double)?;
        let is_zero = fill_where_zero(&quotient, result)?;
        drop(is_zero);
        quotient
    };
    var_backward(&grad_var, own, mask, has_dims, correction, keeps)
}

/// `masked_fill_(zero == 0, 0)`; the mask lasts to the end of the caller's expression.
fn fill_where_zero(tensor: &Tensor, zero: &Tensor) -> Result<Tensor> {
    let mask = eq(zero, &wrapped(Scalar::Int(0)))?;
    pointwise::masked_fill_in_place(tensor, &mask, &wrapped(Scalar::Int(0)))?;
    Ok(mask)
}

fn var_backward(
    grad: &Tensor,
    own: &Tensor,
    mask: &[bool],
    has_dims: bool,
    correction: f64,
    keeps: bool,
) -> Result<Tensor> {
    let count = reduced_count(&own.shape(), mask) as f64;
    let factor = 2.0 / (count - correction);
    if own.dim() == 0 || !has_dims {
        if count - correction <= 0.0 {
            return var_of_one(grad, own);
        }
        let center = mean(own, None, false, None)?;
        let centered = sub(own, &center)?;
        let scaled = scale(grad, factor)?;
        return mul(&scaled, &centered);
    }
    let grad = restore(grad, mask, keeps || own.dim() <= 1)?;
    let dims = dims_of(mask);
    let center = mean(own, Some(&dims), true, None)?;
    let centered = sub(own, &center)?;
    let scaled = scale(&grad, factor)?;
    mul(&scaled, &centered)
}

/// `grad * at::where(self == self.mean(), NaN, INFINITY)`: the spread of too few elements.
fn var_of_one(grad: &Tensor, own: &Tensor) -> Result<Tensor> {
    let center = mean(own, None, false, None)?;
    let is_center = eq(own, &center)?;
    let wide = Dtype::F32;
    let chosen = {
        let nan = full(&[], Scalar::Float(f64::NAN), wide, own.device())?;
        let infinity = full(&[], Scalar::Float(f64::INFINITY), wide, own.device())?;
        pointwise::where_(&is_center, &nan, &infinity)?
    };
    mul(grad, &chosen)
}

/// `var_mean` and `std_mean`: one kernel for both results.
pub(super) fn moments(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    correction: Option<f64>,
    keeps: bool,
    roots: bool,
) -> Result<Value> {
    let correction = correction.unwrap_or(1.0);
    let mask = mask_of(dims, tensor.dim())?;
    let spread_out = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    let center = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    run(tensor, &mask, ReductionKernel::welford(tensor.dtype()))?;
    let has_dims = dims.is_some_and(|dims| !dims.is_empty());
    let saved: &[Save<'_>] =
        if roots { &[Save::Input(Some(tensor)), Save::Output(0)] } else { &[Save::Input(Some(tensor))] };
    let name = if roots { nodes::StdMeanBackward0 } else { nodes::VarMeanBackward0 };
    record(name, &[tensor], &[&spread_out, &center], saved, move |ctx, grads| {
        let own = ctx.saved(0)?;
        let to_spread = match grads.first().and_then(Option::as_ref) {
            Some(grad) if roots => {
                Some(std_backward(grad, &ctx.saved(1)?, &own, &mask, has_dims, correction, keeps)?)
            }
            Some(grad) => Some(var_backward(grad, &own, &mask, has_dims, correction, keeps)?),
            None => None,
        };
        let Some(grad) = grads.get(1).and_then(Option::as_ref) else { return Ok(vec![to_spread]) };
        let count = reduced_count(&own.shape(), &mask);
        let wide = spread(grad, &own.shape(), &mask, keeps)?;
        let to_center = div(&wide, &wrapped(Scalar::Int(count)))?;
        Ok(vec![Some(match to_spread {
            Some(to_spread) => pointwise::add(&to_spread, &to_center)?,
            None => to_center,
        })])
    })?;
    Ok((spread_out, center).into())
}

/// `var(correction)`, or `std` where `roots` is true; the correction is 1 where none is given.
pub(super) fn var_call(
    tensor: &Tensor,
    dim: Option<&[i64]>,
    correction: Option<f64>,
    keepdim: bool,
    roots: bool,
) -> Result<Value> {
    let correction = correction.unwrap_or(1.0);
    Ok(variance(tensor, dim, correction, keepdim, roots)?.into())
}

/// `var(dim, unbiased)`, the older form.
pub(super) fn var_unbiased(
    tensor: &Tensor,
    dim: Option<&[i64]>,
    unbiased: bool,
    keepdim: bool,
    roots: bool,
) -> Result<Value> {
    let correction = f64::from(u8::from(unbiased));
    Ok(variance(tensor, dim, correction, keepdim, roots)?.into())
}
