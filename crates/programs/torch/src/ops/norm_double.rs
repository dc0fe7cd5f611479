//! The derivatives of the backward functions of normalizations (`layer_norm_double_backward`,
//! `batchnorm_double_backward`).
//!
//! Both are composed of operators; each statement is one of PyTorch's, in the same order. C++ evaluates the
//! right operand of a product first, the object of a method before its arguments, and temporaries live to the
//! end of the statement.

use crate::autograd::{Gradients, double_backward};
use crate::{Result, Scalar, Tensor};

use super::copy::to_dtype;
use super::creation::{ones, wrapped};
use super::pointwise::{
    add, add_in_place, div, div_in_place, mul, mul_in_place, pow_scalar, sub, sub_in_place,
};
use super::reduce::sum;
use super::unary;
use super::views::{expand, reshape, unsqueeze, view};

/// `infinitely_differentiable_native_rms_norm_backward`: from the gradients of the result and of the root's
/// reciprocal, those of the input and of the weight.
pub(super) fn rms_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    rstd: &Tensor,
    grads: [Option<&Tensor>; 2],
    inner: usize,
    wanted: [bool; 2],
) -> Result<Gradients> {
    let axis = input.dim().saturating_sub(inner) as i64;
    let dims: Vec<i64> = (axis..input.dim() as i64).collect();
    let elements: i64 = dims.iter().map(|dim| input.size(*dim)).product();
    let root = view(rstd, &rstd.shape())?;
    let root_cubed = pow_scalar(&root, Scalar::Int(3))?;
    let [grad, of_root] = grads;
    let scaled = match (grad, weight) {
        (Some(grad), Some(weight)) => Some(mul(grad, weight)?),
        (grad, _) => grad.cloned(),
    };
    let mut to_input = None;
    if wanted[0] {
        if let Some(scaled) = &scaled {
            let summed = sum(&mul(input, scaled)?, Some(&dims), true, None)?;
            let product = mul(input, &root_cubed)?;
            let share = div(&product, &count(elements))?;
            let right = mul(&share, &summed)?;
            let left = mul(&root, scaled)?;
            to_input = Some(sub(&left, &right)?);
            drop(left);
            drop(right);
            drop(share);
            drop(product);
        }
        if let Some(of_root) = of_root {
            let of_root = view(of_root, &rstd.shape())?;
            let product = mul(input, &root_cubed)?;
            let share = div(&product, &count(elements))?;
            let negative = unary::neg(&share)?;
            let own = mul(&negative, &of_root)?;
            drop(negative);
            drop(share);
            drop(product);
            to_input = Some(match to_input {
                Some(other) => add(&other, &own)?,
                None => own,
            });
        }
    }
    let mut to_weight = None;
    if let (true, Some(_), Some(grad)) = (wanted[1], weight, grad) {
        let normalized = mul(input, &root)?;
        let full = mul(grad, &normalized)?;
        let outer: Vec<i64> = (0..axis).collect();
        to_weight = Some(if outer.is_empty() { full } else { sum(&full, Some(&outer), false, None)? });
        drop(normalized);
    }
    drop(scaled);
    drop(root_cubed);
    drop(root);
    Ok(vec![to_input, to_weight])
}

/// The gradients of the three results of the backward function: of the input's, the weight's and the bias's
/// gradient.
pub(super) struct BackwardGrads<'a> {
    pub(super) input: Option<&'a Tensor>,
    pub(super) weight: Option<&'a Tensor>,
    pub(super) bias: Option<&'a Tensor>,
}

/// The gradients that come out: of the incoming gradient, the input and the weight.
#[derive(Default)]
pub(super) struct SecondGrads {
    pub(super) grad: Option<Tensor>,
    pub(super) input: Option<Tensor>,
    pub(super) weight: Option<Tensor>,
}

fn count(value: i64) -> Tensor {
    wrapped(Scalar::Int(value))
}

fn subtract(from: &Tensor, other: &Tensor) -> Result<Tensor> {
    sub_in_place(from, other, Scalar::Int(1))
}

fn into_sum(sum: Option<Tensor>, term: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => add_in_place(&sum, &term),
        None => Ok(term),
    }
}

/// What both formulas are made of: the input without its mean, and powers of the standard deviation's
/// reciprocal.
struct Parts<'a> {
    /// How many elements a mean is taken over.
    count: i64,
    centered: Tensor,
    power_1: Tensor,
    power_2: Tensor,
    power_3: Tensor,
    scaled: Tensor,
    total: &'a dyn Fn(&Tensor) -> Result<Tensor>,
}

impl<'a> Parts<'a> {
    fn new(
        input: &Tensor,
        mean: &Tensor,
        power_1: Tensor,
        count: i64,
        total: &'a dyn Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Self> {
        let centered = sub(input, mean)?;
        let power_2 = pow_scalar(&power_1, Scalar::Int(2))?;
        let power_3 = pow_scalar(&power_1, Scalar::Int(3))?;
        let scaled = mul(&centered, &power_3)?;
        Ok(Self { count, centered, power_1, power_2, power_3, scaled, total })
    }

    fn total(&self, tensor: &Tensor) -> Result<Tensor> {
        (self.total)(tensor)
    }

    /// `(a * b).sum()`.
    fn total_of_product(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let product = mul(a, b)?;
        self.total(&product)
    }

    /// The gradient of the input in the first backward pass.
    fn first_backward(&self, grad: &Tensor, gamma: &Tensor) -> Result<Tensor> {
        let outer = div_in_place(&mul(gamma, &self.power_1)?, &count(self.count))?;
        let inner = {
            let wide = mul(&count(self.count), grad)?;
            let total = self.total(grad)?;
            subtract(&wide, &total)?;
            let product = mul(grad, &self.centered)?;
            let sum = self.total(&product)?;
            let left = mul(&self.centered, &self.power_2)?;
            let both = mul(&left, &sum)?;
            subtract(&wide, &both)?
        };
        mul(&outer, &inner)
    }

    /// The gradient of the incoming gradient, from those of the input's, the weight's and the bias's
    /// gradient.
    fn to_grad(
        &self,
        input: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<Tensor>,
        gamma: &Tensor,
    ) -> Result<Option<Tensor>> {
        let mut to_grad = input.map(|grad_grad| self.first_backward(grad_grad, gamma)).transpose()?;
        if let Some(grad_grad) = weight {
            let term = mul(&mul(grad_grad, &self.centered)?, &self.power_1)?;
            to_grad = Some(into_sum(to_grad, term)?);
        }
        if let Some(grad_grad) = bias {
            to_grad = Some(into_sum(to_grad, grad_grad)?);
        }
        Ok(to_grad)
    }

    /// The part of the input's gradient that comes from its own gradient; `grad` times the weight goes in.
    fn through_input(
        &self,
        grad: &Tensor,
        grad_centered: &Tensor,
        grad_sum: &Tensor,
        grad_grad: &Tensor,
        gamma: Option<&Tensor>,
    ) -> Result<Tensor> {
        let many = count(self.count);
        let again_sum = self.total(grad_grad)?;
        let again_centered = self.total_of_product(grad_grad, &self.centered)?;
        let all = {
            let all = mul(&again_sum, grad_sum)?;
            div_in_place(&all, &many)?;
            let product = mul(grad_grad, grad)?;
            let sum = self.total(&product)?;
            subtract(&all, &sum)?;
            let left = mul(&self.power_2, grad_centered)?;
            let both = mul(&left, &again_centered)?;
            mul_in_place(&both, &wrapped(Scalar::Float(3.0)))?;
            add_in_place(&all, &both)?
        };
        let term_0 = div_in_place(&mul(&self.scaled, &all)?, &many)?;
        let term = |sum: &Tensor, other_sum: &Tensor, other: &Tensor| {
            let mean = div(other_sum, &many)?;
            let right = sub(&mean, other)?;
            let left = mul(sum, &self.power_3)?;
            div_in_place(&left, &many)?;
            mul(&left, &right)
        };
        let term_1 = term(&again_centered, grad_sum, grad)?;
        let term_2 = term(grad_centered, &again_sum, grad_grad)?;
        add_in_place(&term_0, &term_1)?;
        add_in_place(&term_0, &term_2)?;
        // The terms have names: they live until the product with the weight exists.
        match gamma {
            Some(gamma) => mul(gamma, &term_0),
            None => Ok(term_0.clone()),
        }
    }
}

/// `layer_norm_double_backward`.
pub(super) fn layer_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    grad_grad: &BackwardGrads<'_>,
    grad: &Tensor,
    statistics: [&Tensor; 2],
    sizes: [i64; 2],
) -> Result<SecondGrads> {
    let [rows, width] = sizes;
    let shape = input.shape();
    let own = reshape(input, &[rows, width])?;
    let grad = reshape(grad, &[rows, width])?;
    let [mean, rstd] = statistics;
    let (mean, rstd) = (reshape(mean, &[rows, 1])?, reshape(rstd, &[rows, 1])?);
    let in_row = |tensor: &Tensor| reshape(tensor, &[1, width]);
    let gamma = match weight {
        Some(weight) => in_row(weight)?,
        None => ones(&[1], own.dtype(), own.device())?,
    };
    let again_weight = grad_grad.weight.filter(|_| weight.is_some()).map(in_row).transpose()?;
    let again_bias = grad_grad.bias.filter(|_| weight.is_some()).map(in_row).transpose()?;
    let again_input = grad_grad.input.map(|tensor| reshape(tensor, &[rows, width])).transpose()?;
    let total = |tensor: &Tensor| sum(tensor, Some(&[1]), true, None);
    let mean = to_dtype(&mean, own.dtype())?;
    let parts = Parts::new(&own, &mean, to_dtype(&rstd, own.dtype())?, width, &total)?;
    let mut to_input = None;
    if let Some(again) = &again_input {
        let weighted = mul(&grad, &gamma)?;
        let weighted_centered = parts.total_of_product(&weighted, &parts.centered)?;
        let weighted_sum = parts.total(&weighted)?;
        to_input = Some(parts.through_input(&weighted, &weighted_centered, &weighted_sum, again, None)?);
    }
    if let Some(again) = &again_weight {
        let term_0 = mul(&mul(&grad, again)?, &parts.power_1)?;
        let term_1 = {
            let sum = parts.total_of_product(&grad, again)?;
            div_in_place(&mul(&parts.power_1, &sum)?, &count(-width))?
        };
        let term_2 = {
            let sum = parts.total_of_product(&mul(&grad, again)?, &parts.centered)?;
            div_in_place(&mul(&parts.scaled, &sum)?, &count(-width))?
        };
        add_in_place(&term_0, &term_1)?;
        to_input = Some(into_sum(to_input, add_in_place(&term_0, &term_2)?)?);
    }
    let to_input = to_input.map(|tensor| reshape(&tensor, &shape)).transpose()?;
    let mut to_weight = None;
    if let (Some(weight), Some(again)) = (weight, &again_input) {
        let slope = {
            let one = ones(&[], own.dtype(), own.device())?;
            parts.first_backward(again, &one)?
        };
        let summed = sum(&mul(&grad, &slope)?, Some(&[0]), false, None)?;
        drop(slope);
        to_weight = Some(reshape(&summed, &weight.shape())?);
    }
    let to_grad = parts.to_grad(again_input.as_ref(), again_weight.as_ref(), again_bias, &gamma)?;
    let to_grad = to_grad.map(|tensor| reshape(&expand(&tensor, &[rows, width])?, &shape)).transpose()?;
    Ok(SecondGrads { grad: to_grad, input: to_input, weight: to_weight })
}

/// `sum_exclude_dim1`: one dimension after the other, the last ones first.
fn total_but_channels(tensor: &Tensor, keeps: bool) -> Result<Tensor> {
    let mut result = sum(tensor, Some(&[0]), keeps, None)?;
    let first = i64::from(keeps);
    let mut dim = result.dim() as i64 - 1;
    while dim > first {
        result = sum(&result, Some(&[dim]), keeps, None)?;
        dim -= 1;
    }
    Ok(result)
}

/// A tensor of channels as one of as many dimensions as the input has without its batch.
fn channels_first(tensor: &Tensor, dims: usize) -> Result<Tensor> {
    let mut result = tensor.clone();
    while result.dim() + 1 < dims {
        result = unsqueeze(&result, 1)?;
    }
    Ok(result)
}

/// A tensor of channels as one of as many dimensions as the input.
fn by_channel(tensor: &Tensor, dims: usize) -> Result<Tensor> {
    unsqueeze(&channels_first(tensor, dims)?, 0)
}

fn expanded_by_channel(tensor: &Tensor, input: &Tensor) -> Result<Tensor> {
    expand(&channels_first(tensor, input.dim())?, &input.shape())
}

/// `batchnorm_double_backward` of a batch norm in evaluation, which reads the running statistics.
pub(super) fn evaluated_batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    grad_grad: &BackwardGrads<'_>,
    grad: &Tensor,
    [mean, var]: [&Tensor; 2],
) -> Result<SecondGrads> {
    double_backward::set_variant("evaluation");
    let wide = |tensor: &Tensor| expanded_by_channel(tensor, input);
    let gamma = match weight {
        Some(weight) => wide(weight)?,
        None => ones(&[], input.dtype(), input.device())?,
    };
    let again_weight = grad_grad.weight.filter(|_| weight.is_some()).map(wide).transpose()?;
    let again_bias = grad_grad.bias.filter(|_| weight.is_some()).map(wide).transpose()?;
    let centered = sub(input, &by_channel(mean, input.dim())?)?;
    let power_1 = {
        let more = add(var, &wrapped(Scalar::Float(1e-5)))?;
        by_channel(&pow_scalar(&more, Scalar::Float(-0.5))?, input.dim())?
    };
    let power_2 = pow_scalar(&power_1, Scalar::Int(2))?;
    let power_3 = pow_scalar(&power_1, Scalar::Int(3))?;
    let scaled = mul(&centered, &power_3)?;
    // Both sums are made and not used.
    let grad_centered = {
        let product = mul(grad, &centered)?;
        total_but_channels(&product, true)?
    };
    let grad_sum = total_but_channels(grad, true)?;
    let product = |a: &Tensor, b: &Tensor, c: &Tensor| -> Result<Tensor> {
        let left = mul(a, b)?;
        mul(&left, c)
    };
    let to_input = again_weight.as_ref().map(|again| product(again, &power_1, grad)).transpose()?;
    let mut to_weight = None;
    if let (Some(_), Some(again)) = (weight, grad_grad.input) {
        let left = mul(again, grad)?;
        let all = mul(&left, &power_1)?;
        to_weight = Some(total_but_channels(&all, false)?);
    }
    let mut to_grad = grad_grad.input.map(|again| product(again, &power_1, &gamma)).transpose()?;
    if let Some(again) = &again_weight {
        to_grad = Some(into_sum(to_grad, product(again, &centered, &power_1)?)?);
    }
    if let Some(again) = again_bias {
        to_grad = Some(into_sum(to_grad, again)?);
    }
    for unused in [grad_sum, grad_centered, scaled, power_3, power_2] {
        drop(unused);
    }
    Ok(SecondGrads { grad: to_grad, input: to_input, weight: to_weight })
}

/// `batchnorm_double_backward` of a batch norm in training.
pub(super) fn batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    grad_grad: &BackwardGrads<'_>,
    grad: &Tensor,
    statistics: [&Tensor; 2],
) -> Result<SecondGrads> {
    let gamma = match weight {
        Some(weight) => expanded_by_channel(weight, input)?,
        None => ones(&[], input.dtype(), input.device())?,
    };
    let wide = |tensor: &Tensor| expanded_by_channel(tensor, input);
    let again_weight = grad_grad.weight.filter(|_| weight.is_some()).map(wide).transpose()?;
    let again_bias = grad_grad.bias.filter(|_| weight.is_some()).map(wide).transpose()?;
    let many = input.numel() / input.size(1).max(1);
    let total = |tensor: &Tensor| total_but_channels(tensor, true);
    let [mean, invstd] = statistics;
    let mean = by_channel(&to_dtype(mean, input.dtype())?, input.dim())?;
    let power_1 = by_channel(&to_dtype(invstd, input.dtype())?, input.dim())?;
    let parts = Parts::new(input, &mean, power_1, many, &total)?;
    let grad_centered = parts.total_of_product(grad, &parts.centered)?;
    let grad_sum = parts.total(grad)?;
    let mut to_input = None;
    if let Some(again) = grad_grad.input {
        to_input = Some(parts.through_input(grad, &grad_centered, &grad_sum, again, Some(&gamma))?);
    }
    if let Some(again) = &again_weight {
        let term_0 = mul(grad, &parts.power_1)?;
        let term_1 = div_in_place(&mul(&parts.power_1, &grad_sum)?, &count(-many))?;
        let term_2 = {
            let sum = parts.total_of_product(grad, &parts.centered)?;
            div_in_place(&mul(&parts.scaled, &sum)?, &count(-many))?
        };
        add_in_place(&term_0, &term_1)?;
        let term = mul(again, &add_in_place(&term_0, &term_2)?)?;
        to_input = Some(into_sum(to_input, term)?);
    }
    let mut to_weight = None;
    if let (Some(_), Some(again)) = (weight, grad_grad.input) {
        let slope = {
            let one = ones(&[], input.dtype(), input.device())?;
            let first = parts.first_backward(grad, &one)?;
            mul(again, &first)?
        };
        to_weight = Some(total_but_channels(&slope, false)?);
    }
    let to_grad = parts.to_grad(grad_grad.input, again_weight.as_ref(), again_bias, &gamma)?;
    Ok(SecondGrads { grad: to_grad, input: to_input, weight: to_weight })
}
