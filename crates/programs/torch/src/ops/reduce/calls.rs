//! Reductions as a program calls them.

use crate::arguments::integer;
use crate::autograd::{Save, nodes, record};
use crate::{Dtype, Result, Scalar, Tensor, TorchError, Value};

use super::super::copy::to_dtype;
use super::super::creation::wrapped;
use super::super::pointwise::{self, mul};
use super::super::views::first;
use super::extremum::{extremum_all, extremum_dim};
use super::scratch::ReductionKernel;
use super::{mask_of, mean, reduced_empty, run, spread, sum, sum_below, sum_cast, vector_norm};

/// `all` and `any`, whose result is `bool`, or `uint8` for an input of this type.
pub(super) fn logic(tensor: &Tensor, dim: Option<&[i64]>, keepdim: bool, needs_all: bool) -> Result<Value> {
    let mask = mask_of(dim, tensor.dim())?;
    let dtype = if tensor.dtype() == Dtype::U8 { Dtype::U8 } else { Dtype::Bool };
    let output = reduced_empty(tensor, &mask, keepdim, dtype)?;
    super::known::set_logic(&output, tensor, &mask, needs_all);
    if tensor.numel() == 1 {
        // One element is converted and copied.
        if tensor.dtype() != Dtype::Bool {
            let _no_grad = crate::autograd::GradModeGuard::new(false);
            drop(to_dtype(tensor, Dtype::Bool)?);
        }
        return Ok(output.into());
    }
    run(tensor, &mask, ReductionKernel::of(tensor.dtype().size()))?;
    Ok(output.into())
}

/// `count_nonzero`: `(self != 0).sum()`.
pub(super) fn count_nonzero(tensor: &Tensor, dim: Option<&[i64]>) -> Result<Value> {
    if tensor.dtype() == Dtype::Bool {
        return Ok(sum(tensor, dim, false, None)?.into());
    }
    let not_zero = pointwise::ne(tensor, &wrapped(Scalar::Int(0)))?;
    Ok(sum(&not_zero, dim, false, None)?.into())
}

/// `sum`.
pub(super) fn sum_call(
    tensor: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<Dtype>,
) -> Result<Value> {
    Ok(sum_cast(tensor, dim, keepdim, dtype)?.into())
}

/// `nansum`, which autocast leaves as it is; the gradient is 0 where the input is not a number.
pub(super) fn nansum_call(
    tensor: &Tensor,
    dim: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
) -> Result<Value> {
    let mask = mask_of(dim, tensor.dim())?;
    let output = sum_below(tensor, &mask, keeps, dtype)?;
    record(
        nodes::NansumBackward0,
        &[tensor],
        &[&output],
        &[Save::Input(Some(tensor))],
        move |ctx, grads| {
            let input = ctx.saved(0)?;
            let grad = super::super::copy::to_dtype(first(grads)?, input.dtype())?;
            let grad = spread(&grad, &input.shape(), &mask, keeps)?;
            let is_nan = crate::call("isnan", &[(&input).into()], &[])?.tensor()?;
            let is_number = crate::call("logical_not", &[(&is_nan).into()], &[])?.tensor()?;
            let result = mul(&grad, &is_number)?;
            drop(is_number);
            drop(is_nan);
            Ok(vec![Some(result)])
        },
    )?;
    Ok(output.into())
}

/// `mean`.
pub(super) fn mean_call(
    tensor: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<Dtype>,
) -> Result<Value> {
    Ok(mean(tensor, dim, keepdim, dtype)?.into())
}

/// `max` and `min`: of all elements, of two tensors, or along a dimension, by the type of `dim`.
pub(super) fn max_call(
    tensor: &Tensor,
    dim: &Value,
    keeps: bool,
    nodes: [&'static str; 2],
    in_pairs: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Value> {
    match dim {
        Value::None => Ok(extremum_all(tensor, nodes[1])?.into()),
        Value::Tensor(other) => Ok(in_pairs(tensor, other)?.into()),
        Value::Scalar(_) => Ok(extremum_dim(tensor, integer(dim)?, keeps, nodes[0])?.into()),
        other => {
            Err(TorchError::Type(format!("max(): argument 'dim' must be int, not {}", other.type_name())))
        }
    }
}

/// `norm`; a `p` that is not a number counts as 2.
pub(super) fn norm_call(
    tensor: &Tensor,
    p: &Value,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<Dtype>,
) -> Result<Value> {
    let order = match p {
        Value::Scalar(order) => order.to_f64().unwrap_or(2.0),
        _ => 2.0,
    };
    Ok(vector_norm(tensor, order, dim, keepdim, dtype)?.into())
}
