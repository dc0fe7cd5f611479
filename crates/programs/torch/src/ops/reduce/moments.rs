//! `var`, `std` and their like: one kernel (`WelfordOps`) for spread and mean.

use crate::autograd::{Context, Save, nodes, record};
use crate::error::runtime;
use crate::{Dtype, Result, Scalar, Tensor, Value};

use super::super::creation::{full, wrapped};
use super::super::pointwise::{self, div, eq, mul, scale, sub};
use super::super::views::first;
use super::{ReductionKernel, dims_of, mask_of, mean, reduced_count, reduced_empty, restore, run, spread};

/// How a spread is reduced, and whether it is the variance or its root.
struct Spread {
    mask: Vec<bool>,
    has_dims: bool,
    correction: f64,
    keeps: bool,
    roots: bool,
}

impl Spread {
    /// The correction is 1 where none is given.
    fn of(
        tensor: &Tensor,
        dims: Option<&[i64]>,
        correction: Option<f64>,
        keeps: bool,
        roots: bool,
    ) -> Result<Self> {
        let mask = mask_of(dims, tensor.dim())?;
        let has_dims = dims.is_some_and(|dims| !dims.is_empty());
        Ok(Self { mask, has_dims, correction: correction.unwrap_or(1.0), keeps, roots })
    }

    /// A new tensor of the shape of the result.
    fn result(&self, tensor: &Tensor) -> Result<Tensor> {
        reduced_empty(tensor, &self.mask, self.keeps, tensor.dtype())
    }

    /// The tensor, and for a root the result.
    fn saved<'a>(&self, tensor: &'a Tensor) -> Vec<Save<'a>> {
        let root = self.roots.then_some(Save::Output(0));
        std::iter::once(Save::Input(Some(tensor))).chain(root).collect()
    }

    fn backward(&self, ctx: &Context<'_>, grad: &Tensor, input: &Tensor) -> Result<Tensor> {
        if self.roots {
            return self.std_backward(grad, &ctx.saved(1)?, input);
        }
        self.var_backward(grad, input)
    }

    /// `std_backward`: `(grad / (result * 2)).masked_fill_(result == 0, 0)`, then that of the variance.
    fn std_backward(&self, grad: &Tensor, result: &Tensor, input: &Tensor) -> Result<Tensor> {
        let grad_var = {
            let double = mul(result, &wrapped(Scalar::Int(2)))?;
            let quotient = div(grad, &double)?;
            let is_zero = fill_where_zero(&quotient, result)?;
            drop(is_zero);
            quotient
        };
        self.var_backward(&grad_var, input)
    }

    fn var_backward(&self, grad: &Tensor, input: &Tensor) -> Result<Tensor> {
        let count = reduced_count(&input.shape(), &self.mask) as f64;
        let factor = 2.0 / (count - self.correction);
        if input.dim() == 0 || !self.has_dims {
            if count - self.correction <= 0.0 {
                return var_of_one(grad, input);
            }
            let center = mean(input, None, false, None)?;
            let centered = sub(input, &center)?;
            let scaled = scale(grad, factor)?;
            return mul(&scaled, &centered);
        }
        let grad = restore(grad, &self.mask, self.keeps || input.dim() <= 1)?;
        let dims = dims_of(&self.mask);
        let center = mean(input, Some(&dims), true, None)?;
        let centered = sub(input, &center)?;
        let scaled = scale(&grad, factor)?;
        mul(&scaled, &centered)
    }
}

/// `var`, or `std` where `roots` is true; the correction is 1 where none is given.
pub(super) fn variance(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    correction: Option<f64>,
    keeps: bool,
    roots: bool,
) -> Result<Tensor> {
    if !tensor.dtype().is_differentiable() {
        return runtime(format!(
            "{}: only support floating point and complex dtypes",
            if roots { "std" } else { "var" }
        ));
    }
    let plan = Spread::of(tensor, dims, correction, keeps, roots)?;
    let output = plan.result(tensor)?;
    run(tensor, &plan.mask, ReductionKernel::welford(tensor.dtype()))?;
    let name = if roots { nodes::StdBackward0 } else { nodes::VarBackward0 };
    record(name, &[tensor], &[&output], &plan.saved(tensor), move |ctx, grads| {
        let (grad, input) = (first(grads)?, ctx.saved(0)?);
        Ok(vec![Some(plan.backward(ctx, grad, &input)?)])
    })?;
    Ok(output)
}

/// `masked_fill_(zero == 0, 0)`; the mask lasts to the end of the caller's expression.
fn fill_where_zero(tensor: &Tensor, zero: &Tensor) -> Result<Tensor> {
    let mask = eq(zero, &wrapped(Scalar::Int(0)))?;
    pointwise::masked_fill_in_place(tensor, &mask, &wrapped(Scalar::Int(0)))?;
    Ok(mask)
}

/// `grad * at::where(self == self.mean(), NaN, INFINITY)`: the spread of too few elements.
fn var_of_one(grad: &Tensor, input: &Tensor) -> Result<Tensor> {
    let center = mean(input, None, false, None)?;
    let is_center = eq(input, &center)?;
    let wide = Dtype::F32;
    let chosen = {
        let nan = full(&[], Scalar::Float(f64::NAN), wide, input.device())?;
        let infinity = full(&[], Scalar::Float(f64::INFINITY), wide, input.device())?;
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
    let plan = Spread::of(tensor, dims, correction, keeps, roots)?;
    let spread_out = plan.result(tensor)?;
    let center = plan.result(tensor)?;
    run(tensor, &plan.mask, ReductionKernel::welford(tensor.dtype()))?;
    let name = if roots { nodes::StdMeanBackward0 } else { nodes::VarMeanBackward0 };
    record(name, &[tensor], &[&spread_out, &center], &plan.saved(tensor), move |ctx, grads| {
        let input = ctx.saved(0)?;
        let grad = grads.first().and_then(Option::as_ref);
        let to_spread = grad.map(|grad| plan.backward(ctx, grad, &input)).transpose()?;
        let Some(grad) = grads.get(1).and_then(Option::as_ref) else { return Ok(vec![to_spread]) };
        let count = reduced_count(&input.shape(), &plan.mask);
        let wide = spread(grad, &input.shape(), &plan.mask, keeps)?;
        let to_center = div(&wide, &wrapped(Scalar::Int(count)))?;
        Ok(vec![Some(match to_spread {
            Some(to_spread) => pointwise::add(&to_spread, &to_center)?,
            None => to_center,
        })])
    })?;
    Ok((spread_out, center).into())
}
