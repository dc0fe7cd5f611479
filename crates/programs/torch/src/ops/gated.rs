//! Activations whose kernels read two tensors, or two halves of one: `prelu` and `glu`.

use crate::autocast::Cast;
use crate::autograd::{Save, double_backward, nodes, record};
use crate::{MemoryFormat, Result, Scalar, Tensor};

use super::creation::{empty, empty_like_as, ones, wrapped, zeros, zeros_like};
use super::join::cat;
use super::kernels::one_minus;
use super::pointwise::{add, elementwise, ge, mul, sub, where_};
use super::unary;
use super::views::{first, narrow, reshape, wrap};

/// `prelu` with its weight seen in the input's shape.
pub(super) fn prelu(tensor: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let cast = Cast::lower(tensor.device());
    // Arguments are cast from the last to the first.
    let (weight, tensor) = (&cast.apply(weight)?, &cast.apply(tensor)?);
    let weight = &if tensor.dim() > 1 {
        let mut shape = vec![1; tensor.dim()];
        if let Some(slot) = shape.get_mut(1) {
            *slot = weight.numel();
        }
        reshape(weight, &shape)?
    } else {
        weight.clone()
    };
    let output = elementwise(&[tensor, weight], tensor.dtype(), None)?;
    let saved = [Save::Input(Some(tensor)), Save::Input(Some(weight))];
    record(nodes::PreluKernelBackward0, &[tensor, weight], &[&output], &saved, |ctx, grads| {
        let (grad, input, weight) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let [grad_input, grad_weight] = prelu_backward(grad, &input, &weight)?;
        Ok(vec![Some(grad_input), Some(grad_weight)])
    })?;
    Ok(output)
}

/// `glu`: one kernel over both halves.
pub(super) fn glu(tensor: &Tensor, dim: i64) -> Result<Tensor> {
    let size = tensor.size(dim);
    if size % 2 != 0 {
        return crate::error::runtime(format!(
            "Halving dimension must be even, but dimension {dim} is size {size}"
        ));
    }
    let first_half = narrow(&tensor.detach(), dim, 0, size / 2)?;
    let shape = first_half.shape();
    let output = empty(&shape, tensor.dtype(), tensor.device())?;
    record(nodes::GluBackward0, &[tensor], &[&output], &[Save::Input(Some(tensor))], move |ctx, grads| {
        Ok(vec![Some(glu_backward(first(grads)?, &ctx.saved(0)?, dim)?)])
    })?;
    Ok(output)
}

/// `_prelu_kernel_backward`: one kernel, and both gradients are made even where one is not needed.
fn prelu_backward(grad: &Tensor, input: &Tensor, weight: &Tensor) -> Result<[Tensor; 2]> {
    let to_own = elementwise(&[input, weight, grad], grad.dtype(), None)?;
    let to_weight = elementwise(&[input, weight, grad], grad.dtype(), None)?;
    let saved = [Save::Input(Some(grad)), Save::Input(Some(input)), Save::Input(Some(weight))];
    let (inputs, outputs) = ([grad, input, weight], [&to_own, &to_weight]);
    record(nodes::PreluKernelBackwardBackward0, &inputs, &outputs, &saved, |ctx, grads| {
        let (grad, own, weight) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let again = [grads.first(), grads.get(1)].map(|again| again.and_then(Option::as_ref));
        // where(self >= 0, a, b): C++ evaluates the last argument first.
        let choose = |a: &Tensor, b: &Tensor| where_(&ge(&own, &wrapped(Scalar::Int(0)))?, a, b);
        let zero = |like: &Tensor| zeros(&[], like.dtype(), like.device());
        let to_grad = match again {
            _ if !ctx.wants(0) => None,
            [Some(to_own), Some(to_weight)] => {
                let right = mul(to_weight, &own)?;
                let left = mul(to_own, &weight)?;
                let both = add(&left, &right)?;
                Some(choose(to_own, &both)?)
            }
            [Some(to_own), None] => {
                let product = mul(to_own, &weight)?;
                Some(choose(to_own, &product)?)
            }
            [None, Some(to_weight)] => {
                let product = mul(to_weight, &own)?;
                let zero = zero(&grad)?;
                Some(choose(&zero, &product)?)
            }
            [None, None] => None,
        };
        let share = |again: Option<&Tensor>, like: &Tensor| match again {
            Some(again) => {
                let product = mul(&grad, again)?;
                let zero = zero(like)?;
                choose(&zero, &product)
            }
            None => zeros_like(&own),
        };
        let to_own = ctx.gradient(1, || share(again[1], &own))?;
        let to_weight = ctx.gradient(2, || share(again[0], &weight))?;
        Ok(vec![to_grad, to_own, to_weight])
    })?;
    Ok([to_own, to_weight])
}

/// `glu_backward`: one kernel over both halves.
fn glu_backward(grad: &Tensor, input: &Tensor, dim: i64) -> Result<Tensor> {
    let is_last = dim == -1 || dim + 1 == input.dim() as i64;
    double_backward::set_variant(if is_last { "last dimension" } else { "another dimension" });
    // `at::empty({0})`, resized.
    let output = empty_like_as(input, input.dtype(), MemoryFormat::Contiguous)?;
    let saved = [Save::Input(Some(grad)), Save::Input(Some(input))];
    record(nodes::GluBackwardBackward0, &[grad, input], &[&output], &saved, move |ctx, grads| {
        let (grad_grad, grad, input) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let to_grad = ctx.gradient(0, || glu_of_grad(grad_grad, &input, dim))?;
        let grad_input = ctx.gradient(1, || glu_double_backward(grad_grad, &grad, &input, dim))?;
        Ok(vec![to_grad, grad_input])
    })?;
    Ok(output)
}

/// `glu_double_backward_grad_output`.
fn glu_of_grad(grad_grad: &Tensor, input: &Tensor, dim: i64) -> Result<Tensor> {
    let half = input.size(dim) / 2;
    let mut shape = input.shape().to_vec();
    if let Some(size) = shape.get_mut(wrap(dim, input.dim())?) {
        *size = half;
    }
    let product = {
        let ones = ones(&shape, input.dtype(), input.device())?;
        let slope = glu_backward(&ones, input, dim)?;
        mul(grad_grad, &slope)?
    };
    let right = narrow(&product, dim, half, half)?;
    let left = narrow(&product, dim, 0, half)?;
    add(&left, &right)
}

/// `glu_double_backward`; each name is one of PyTorch's.
fn glu_double_backward(grad_grad: &Tensor, grad: &Tensor, input: &Tensor, dim: i64) -> Result<Tensor> {
    let half = input.size(dim) / 2;
    let first_half = narrow(input, dim, 0, half)?;
    let second_half = narrow(input, dim, half, half)?;
    let squashed = unary::sigmoid(&second_half)?;
    let rest = one_minus(&squashed)?;
    let slope = mul(&squashed, &rest)?;
    let again_first = narrow(grad_grad, dim, 0, half)?;
    let again_second = narrow(grad_grad, dim, half, half)?;
    let weighted = mul(&again_second, &first_half)?;
    let to_first = {
        let product = mul(&again_second, grad)?;
        mul(&product, &slope)?
    };
    let second_order = {
        let right = mul(&squashed, &slope)?;
        let left = mul(&slope, &rest)?;
        sub(&left, &right)?
    };
    let to_second = {
        let right = mul(&again_first, grad)?;
        let right = (mul(&right, &slope)?, right);
        let left = mul(&weighted, grad)?;
        let left = (mul(&left, &second_order)?, left);
        add(&left.0, &right.0)?
    };
    let parts = [to_first, to_second];
    let result = cat(&parts, dim)?;
    let [to_first, to_second] = parts;
    drop(to_second);
    drop(to_first);
    Ok(result)
}
