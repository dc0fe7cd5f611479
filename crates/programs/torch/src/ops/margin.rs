//! Losses that ATen composes of other operators, and those with margins.

use crate::arguments::{Unread, arguments};
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::contiguous;
use super::creation::{empty, empty_like, wrapped, zeros_like};
use super::loss::{Reduction, reduced};
use super::pointwise::{
    add, add_in_place, div, div_in_place, elementwise, elementwise_in_place, mul, mul_in_place, sub, where_,
};
use super::reduce::{self, sum};
use super::unary;
use super::views::first;

/// `EPSILON` of ATen's `Loss.cpp`.
const EPSILON: f64 = 1e-12;

fn number(value: f64) -> Tensor {
    wrapped(Scalar::Float(value))
}

fn int(value: i64) -> Tensor {
    wrapped(Scalar::Int(value))
}

fn clamp_at_zero(tensor: &Tensor) -> Result<()> {
    crate::call("clamp_min_", &[tensor.into(), 0.into()], &[]).map(drop)
}

fn distance(a: &Tensor, b: &Tensor, p: f64, eps: f64) -> Result<Tensor> {
    crate::call("pairwise_distance", &[a.into(), b.into(), p.into(), eps.into()], &[])?.tensor()
}

arguments! {
    /// The parameters of `triplet_margin_loss`.
    #[derive(Clone, Copy)]
    struct Triplet {
        margin: f64,
        p: f64,
        eps: f64,
        swaps: bool,
    }
}

fn triplet_margin(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    triplet: Triplet,
    reduction: Reduction,
) -> Result<Value> {
    let cast = crate::autocast::Cast::full(anchor.device());
    let [anchor, positive, negative] = &cast.apply_all([anchor, positive, negative])?;
    let Triplet { margin, p, eps, swaps } = triplet;
    let to_positive = distance(anchor, positive, p, eps)?;
    let mut to_negative = distance(anchor, negative, p, eps)?;
    if swaps {
        let swapped = distance(positive, negative, p, eps)?;
        to_negative = crate::call("minimum", &[(&to_negative).into(), (&swapped).into()], &[])?.tensor()?;
    }
    let output = {
        let shifted = add(&to_positive, &number(margin))?;
        let difference = sub(&shifted, &to_negative)?;
        crate::call("clamp_min", &[(&difference).into(), 0.into()], &[])?.tensor()?
    };
    Ok(reduced(output, reduction)?.into())
}

fn cosine_embedding(
    a: &Tensor,
    b: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Result<Value> {
    let cast = crate::autocast::Cast::full(a.device());
    let [a, b, target] = &cast.apply_all([a, b, target])?;
    let dim = target.dim() as i64;
    if dim > 1 || a.dim() as i64 != dim + 1 || b.dim() != a.dim() {
        return runtime(
            "1D target tensor expects 2D input tensors, 0D target tensor expects 1D input tensors",
        );
    }
    let total = |x: &Tensor, y: &Tensor| -> Result<Tensor> {
        let product = mul(x, y)?;
        sum(&product, Some(&[dim]), false, None)
    };
    let squared = |x: &Tensor| -> Result<Tensor> {
        let product = mul(x, x)?;
        let total = sum(&product, Some(&[dim]), false, None)?;
        add(&total, &number(EPSILON))
    };
    let product = total(a, b)?;
    let input = squared(a)?;
    let other = squared(b)?;
    let denominator = crate::call("sqrt_", &[mul(&input, &other)?.into()], &[])?.tensor()?;
    let cosine = div(&product, &denominator)?;
    let zeros = zeros_like(&cosine)?;
    let positive = crate::call("rsub", &[(&cosine).into(), 1.into()], &[])?.tensor()?;
    let negative = sub(&cosine, &number(margin))?;
    clamp_at_zero(&negative)?;
    let output_positive = where_(&super::pointwise::eq(target, &int(1))?, &positive, &zeros)?;
    let output_negative = where_(&super::pointwise::eq(target, &int(-1))?, &negative, &zeros)?;
    let output = add(&output_positive, &output_negative)?;
    let result = reduced(output, reduction)?;
    Ok(result.into())
}

fn margin_ranking(
    a: &Tensor,
    b: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Result<Value> {
    let cast = crate::autocast::Cast::full(a.device());
    let [a, b, target] = &cast.apply_all([a, b, target])?;
    let output = {
        // Operands are evaluated from the right.
        let difference = sub(a, b)?;
        let negative = unary::neg(target)?;
        let product = mul(&negative, &difference)?;
        let output = add(&product, &number(margin))?;
        drop(product);
        drop(negative);
        drop(difference);
        output
    };
    clamp_at_zero(&output)?;
    Ok(reduced(output, reduction)?.into())
}

fn hinge_embedding(input: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Result<Value> {
    let cast = crate::autocast::Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let zeros = zeros_like(input)?;
    let difference = crate::call("rsub", &[input.into(), margin.into()], &[])?.tensor()?;
    clamp_at_zero(&difference)?;
    let output_margin = where_(&super::pointwise::ne(target, &int(1))?, &difference, &zeros)?;
    let output_input = where_(&super::pointwise::ne(target, &int(-1))?, input, &zeros)?;
    let output = add(&output_margin, &output_input)?;
    let result = reduced(output, reduction)?;
    Ok(result.into())
}

/// `poisson_nll_loss`.
fn poisson_nll(
    input: &Tensor,
    target: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: Reduction,
) -> Result<Value> {
    let cast = crate::autocast::Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let loss = if log_input {
        // Operands are evaluated from the right.
        let product = mul(target, input)?;
        let power = unary::exp(input)?;
        let loss = sub(&power, &product)?;
        drop(power);
        drop(product);
        loss
    } else {
        let shifted = add(input, &number(eps))?;
        let logarithm = unary::log(&shifted)?;
        let product = mul(target, &logarithm)?;
        let loss = sub(input, &product)?;
        drop(product);
        drop(logarithm);
        drop(shifted);
        loss
    };
    if full {
        crate::session().note_estimate("poisson_nll_loss", "full=True was not recorded");
        let stirling = {
            let scaled = mul(target, &number(std::f64::consts::TAU))?;
            let half = mul(&unary::log(&scaled)?, &number(0.5))?;
            let own = sub(&mul(target, &unary::log(target)?)?, target)?;
            add(&own, &half)?
        };
        let is_small = super::pointwise::le(target, &int(1))?;
        let filled = super::pointwise::masked_fill(&stirling, &is_small, &int(0))?;
        add_in_place(&loss, &filled)?;
    }
    Ok(reduced(loss, reduction)?.into())
}

/// `soft_margin_loss`: one tensor, changed in place; a reduced result keeps its memory.
fn soft_margin(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Value> {
    let cast = crate::autocast::Cast::full(input.device());
    let [input, target] = &cast.apply_all([input, target])?;
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = empty_like(input)?;
        elementwise_in_place(&[&output, target], output.dtype(), None)?;
        if reduction != Reduction::None {
            let total = reduced(output.clone(), reduction)?;
            output.set_geometry(&[], &[], 0);
            drop(total);
        }
        output
    };
    let saved = [Save::Input(Some(input)), Save::Input(Some(target))];
    record(nodes::SoftMarginLossBackward0, &[input], &[&output], &saved, move |ctx, grads| {
        let (grad, input, target) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        Ok(vec![Some(soft_margin_backward(grad, &input, &target, reduction)?)])
    })?;
    Ok(output.into())
}

/// `soft_margin_loss_backward`: `exp(-target * input)` is a separate tensor.
fn soft_margin_backward(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    reduction.note();
    let result = {
        let _no_grad = GradModeGuard::new(false);
        let z = {
            let negative = unary::neg(target)?;
            let product = mul(&negative, input)?;
            let z = unary::exp(&product)?;
            drop(product);
            drop(negative);
            z
        };
        let result = elementwise(&[target, &z], input.dtype(), None)?;
        add_in_place(&z, &int(1))?;
        div_in_place(&result, &z)?;
        mul_in_place(&result, grad)?;
        drop(z);
        result
    };
    let saved = [Save::Input(Some(grad)), Save::Input(Some(input)), Save::Input(Some(target))];
    let node = nodes::SoftMarginLossBackwardBackward0;
    record(node, &[grad, input], &[&result], &saved, move |ctx, grads| {
        let (grad_grad, grad) = (first(grads)?, ctx.saved(0)?);
        let (input, target) = (ctx.saved(1)?, ctx.saved(2)?);
        reduction.note();
        let to_grad = match (ctx.wants(0), reduction) {
            (false, _) => None,
            (true, Reduction::None) => Some(soft_margin_backward(grad_grad, &input, &target, reduction)?),
            (true, _) => {
                let slope = {
                    let ones = super::creation::ones_like(&grad)?;
                    soft_margin_backward(&ones, &input, &target, reduction)?
                };
                Some(super::reduce::sum_all(&mul(&slope, grad_grad)?)?)
            }
        };
        let to_input =
            ctx.gradient(1, || soft_margin_double(&mul(grad_grad, &grad)?, &input, &target, reduction))?;
        Ok(vec![to_grad, to_input])
    })?;
    Ok(result)
}

/// `soft_margin_loss_double_backward`: `grad * (target * target) * z / (zplus1 * zplus1)`.
fn soft_margin_double(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let z = unary::exp(&mul(input, &unary::neg(target)?)?)?;
    let more = super::pointwise::add(&z, &int(1))?;
    let result = {
        let right = mul(&more, &more)?;
        let squares = mul(target, target)?;
        let scaled = mul(grad, &squares)?;
        let product = mul(&scaled, &z)?;
        super::pointwise::div(&product, &right)?
    };
    if reduction == Reduction::Mean {
        div_in_place(&result, &int(input.numel()))?;
    }
    drop(more);
    drop(z);
    Ok(result)
}

/// `multi_margin_loss`: one kernel; several rows are added up from a separate tensor.
fn multi_margin(
    input: &Tensor,
    target: &Tensor,
    _: Unread,
    _: Unread,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Value> {
    let cast = crate::autocast::Cast::full(input.device());
    let weight = cast.apply_optional(weight)?;
    let weight = weight.as_ref();
    let input = &cast.apply(input)?;
    let rows = if input.dim() < 2 { 1 } else { input.size(0) };
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = if reduction == Reduction::None && target.dim() > 0 {
            empty(&[rows], input.dtype(), input.device())?
        } else {
            empty(&[], input.dtype(), input.device())?
        };
        let read = contiguous(input)?;
        if input.dim() > 1 && reduction != Reduction::None {
            let parts = empty(&[rows], input.dtype(), input.device())?;
            reduce::sum_into(&output, &parts, &[true])?;
            drop(parts);
        }
        drop(read);
        output
    };
    let saved = [Save::Input(Some(input)), Save::Input(Some(target)), Save::Input(weight)];
    record(nodes::MultiMarginLossBackward0, &[input], &[&output], &saved, |ctx, grads| {
        let input = ctx.saved(0)?;
        let result = super::creation::empty_like_as(&input, input.dtype(), MemoryFormat::Contiguous)?;
        let read = contiguous(&input)?;
        let read_grad = contiguous(first(grads)?)?;
        drop(read_grad);
        drop(read);
        Ok(vec![Some(result)])
    })?;
    Ok(output.into())
}

/// `multilabel_margin_loss`: one kernel, which notes what is a target; several rows are added up from a
/// separate tensor.
fn multilabel_margin(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Value> {
    if input.dim() > 2 || target.shape() != input.shape() {
        return runtime(format!(
            "inconsistent target size: {:?} for sizes: {:?}",
            target.shape(),
            input.shape()
        ));
    }
    let cast = crate::autocast::Cast::full(input.device());
    let input = &cast.apply(input)?;
    let new = |shape: &[i64]| empty(shape, input.dtype(), input.device());
    let (output, is_target) = {
        let _no_grad = GradModeGuard::new(false);
        let read = contiguous(input)?;
        let read_target = contiguous(target)?;
        let is_target = new(&target.shape())?;
        let output = match (input.dim(), reduction) {
            (2, Reduction::None) => new(&[input.size(0)])?,
            (2, _) => {
                let parts = new(&[input.size(0)])?;
                let output = new(&[])?;
                reduce::sum_into(&output, &parts, &[true])?;
                drop(parts);
                output
            }
            _ => new(&[])?,
        };
        drop(read_target);
        drop(read);
        (output, is_target)
    };
    let saved = [Save::Input(Some(input)), Save::Input(Some(target)), Save::Input(Some(&is_target))];
    record(nodes::MultilabelMarginLossBackward0, &[input], &[&output], &saved, |ctx, grads| {
        let (input, target) = (ctx.saved(0)?, ctx.saved(1)?);
        let result = super::creation::empty_like_as(&input, input.dtype(), MemoryFormat::Contiguous)?;
        let read = contiguous(&input)?;
        let read_target = contiguous(&target)?;
        let read_grad = contiguous(first(grads)?)?;
        drop(read_grad);
        drop(read_target);
        drop(read);
        Ok(vec![Some(result)])
    })?;
    drop(is_target);
    Ok(output.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, \
         bool swap=False, Any reduction=1)",
        triplet_margin,
    ),
    op!(
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, Any reduction=1)",
        cosine_embedding,
    ),
    op!(
        "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, Any reduction=1)",
        margin_ranking,
    ),
    op!(
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, Any reduction=1)",
        hinge_embedding,
    ),
    op!(
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, Any reduction)",
        poisson_nll,
    ),
    op!("soft_margin_loss(Tensor self, Tensor target, Any reduction=1)", soft_margin),
    op!(
        "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, Any reduction=1)",
        multi_margin,
    ),
    op!("multilabel_margin_loss(Tensor self, Tensor target, Any reduction=1)", multilabel_margin),
];
