//! Softmax and its derivatives.

use crate::autocast;
use crate::autograd::{GradModeGuard, Save, double_backward, nodes, record};
use crate::error::not_implemented;
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor};

use super::copy::{contiguous, to_dtype};
use super::pointwise::{mul, sub};
use super::reduce::sum;
use super::unary;
use super::views::{first, wrap};

/// `softmax` and `log_softmax`.
pub(crate) fn softmax(input: &Tensor, dim: i64, dtype: Option<Dtype>, is_log: bool) -> Result<Tensor> {
    let at = wrap(dim, input.dim())?;
    let to = autocast::full_dtype(input, dtype).unwrap_or(input.dtype());
    if to.is_integral() {
        let log = if is_log { "log_" } else { "" };
        let kernel = if input.device().is_cuda() {
            format!("{log}softmax_forward_cuda")
        } else if at + 1 == input.dim().max(1) {
            format!("{log}softmax_lastdim_kernel_impl")
        } else {
            format!("{log}softmax_kernel_impl")
        };
        return not_implemented(format!("\"{kernel}\" not implemented for '{}'", to.scalar_name()));
    }
    // A GPU reads `float16` and writes `float32` in one kernel.
    let reads_half = input.dtype() == Dtype::F16 && to == Dtype::F32 && input.device().is_cuda();
    let input = &if reads_half { input.clone() } else { to_dtype(input, to)? };
    let no_grad = GradModeGuard::new(false);
    let read = if reads_half { None } else { Some(contiguous(input)?) };
    let output = empty_like_as_contiguous(input, to)?;
    let read = if reads_half { Some(contiguous(input)?) } else { read };
    drop(read);
    drop(no_grad);
    record_softmax(
        if is_log { nodes::LogSoftmaxBackward0 } else { nodes::SoftmaxBackward0 },
        input,
        &output,
        dim,
    )?;
    Ok(output)
}

/// The history of a softmax: `_softmax_backward_data`, `_log_softmax_backward_data`.
pub(crate) fn record_softmax(name: &'static str, input: &Tensor, output: &Tensor, dim: i64) -> Result<()> {
    let (from, is_log) = (input.dtype(), name == nodes::LogSoftmaxBackward0);
    record(name, &[input], &[output], &[Save::Output(0)], move |ctx, grads| {
        let result = ctx.saved(0)?;
        Ok(vec![Some(softmax_backward(first(grads)?, &result, dim, from, is_log)?)])
    })
}

fn softmax_backward(grad: &Tensor, result: &Tensor, dim: i64, dtype: Dtype, is_log: bool) -> Result<Tensor> {
    note_dim(dim, result);
    let no_grad = GradModeGuard::new(false);
    let input = empty_like_as_contiguous(result, dtype)?;
    // host_softmax_backward reads the gradient, or for softmax its product with the result.
    let product = if is_log { grad.clone() } else { mul(grad, result)? };
    let read = contiguous(&product)?;
    drop(read);
    drop(product);
    drop(no_grad);
    let saved = [Save::Input(Some(grad)), Save::Input(Some(result))];
    let node =
        if is_log { nodes::LogSoftmaxBackwardDataBackward0 } else { nodes::SoftmaxBackwardDataBackward0 };
    record(node, &[grad, result], &[&input], &saved, move |ctx, grads| {
        let (grad, result) = (ctx.saved(0)?, ctx.saved(1)?);
        let grad_grad = first(grads)?;
        note_dim(dim, &result);
        let to_grad = match (ctx.wants(0), is_log) {
            (false, _) => None,
            (true, true) => Some(log_softmax_of_grad(&to_dtype(grad_grad, result.dtype())?, &result, dim)?),
            (true, false) => {
                Some(softmax_backward(&to_dtype(grad_grad, result.dtype())?, &result, dim, dtype, false)?)
            }
        };
        let to_result = if ctx.wants(1) {
            let grad_grad = to_dtype(grad_grad, result.dtype())?;
            Some(if is_log {
                log_softmax_of_result(&grad_grad, &grad, &result, dim)?
            } else {
                softmax_double_backward(&grad_grad, &grad, &result, dim)?
            })
        } else {
            None
        };
        Ok(vec![to_grad, to_result])
    })?;
    Ok(input)
}

/// Notes which dimension a second derivative was taken along.
fn note_dim(dim: i64, result: &Tensor) {
    let is_last = dim == -1 || dim + 1 == result.dim() as i64;
    double_backward::set_variant(if is_last { "last dimension" } else { "another dimension" });
}

/// `grad - (grad * output.exp()).sum(dim, true)`.
fn log_softmax_of_grad(grad: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    let power = unary::exp(result)?;
    let product = mul(grad, &power)?;
    let total = sum(&product, Some(&[dim]), true, None)?;
    sub(grad, &total)
}

/// `-grad_output.sum(dim, true) * output.exp() * grad`.
fn log_softmax_of_result(grad_grad: &Tensor, grad: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    let power = unary::exp(result)?;
    let total = sum(grad, Some(&[dim]), true, None)?;
    let negative = unary::neg(&total)?;
    let product = mul(&negative, &power)?;
    mul(&product, grad_grad)
}

/// `grad_output * grad - (output * grad_output).sum(dim, true) * grad - grad_output * (output * grad).sum(dim, true)`.
fn softmax_double_backward(grad_grad: &Tensor, grad: &Tensor, result: &Tensor, dim: i64) -> Result<Tensor> {
    // C++ evaluates the right operand first.
    let weighted = mul(result, grad_grad)?;
    let total = sum(&weighted, Some(&[dim]), true, None)?;
    let right = mul(grad, &total)?;
    let own_weighted = mul(result, grad)?;
    let own_total = sum(&own_weighted, Some(&[dim]), true, None)?;
    let middle = mul(&own_total, grad_grad)?;
    let left = mul(grad, grad_grad)?;
    let difference = sub(&left, &middle)?;
    sub(&difference, &right)
}

fn empty_like_as_contiguous(like: &Tensor, dtype: Dtype) -> Result<Tensor> {
    super::creation::empty_like_as(like, dtype, MemoryFormat::Contiguous)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "softmax(Tensor self, int dim, ScalarType? dtype=None)",
        |tensor: &Tensor, dim: i64, dtype: Option<Dtype>| softmax(tensor, dim, dtype, false)
    ),
    op!(
        "log_softmax(Tensor self, int dim, ScalarType? dtype=None)",
        |tensor: &Tensor, dim: i64, dtype: Option<Dtype>| softmax(tensor, dim, dtype, true)
    ),
];
