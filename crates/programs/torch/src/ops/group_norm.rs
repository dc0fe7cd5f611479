//! Group norms, and the form of their backward function that can be differentiated again.

use crate::autocast::Cast;
use crate::autograd::{GradMode, Save, nodes, record};
use crate::error::runtime;
use crate::{MemoryFormat, Result, Scalar, Tensor};

use super::copy::contiguous;
use super::creation::{empty, empty_like, empty_like_as, wrapped};
use super::norm::batch::scratch;
use super::pointwise::{add, add_in_place, clamp, div, mul, scale, sub};
use super::reduce::{mean, sum};
use super::unary::{self, neg};
use super::views::{expand, first, reshape, unsqueeze, view};

/// `group_norm`.
pub(super) fn group_norm(
    input: &Tensor,
    groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let cast = Cast::full(input.device());
    let bias = &cast.apply_optional(bias)?;
    let weight = &cast.apply_optional(weight)?;
    let input = &cast.apply(input)?;
    let (batch, channels) = (input.size(0), input.size(1));
    if groups <= 0 || channels % groups != 0 {
        return runtime(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
             num_groups={groups}",
            input.shape()
        ));
    }
    let area: i64 = input.shape().iter().skip(2).product();
    let input = &contiguous(input)?;
    let output = empty_like_as(input, input.dtype(), MemoryFormat::Contiguous)?;
    let mean = empty(&[batch, groups], input.dtype(), input.device())?;
    let rstd = empty(&[batch, groups], input.dtype(), input.device())?;
    if area != 1 && (weight.is_some() || bias.is_some()) {
        let a = wide_scratch(input, batch * channels)?;
        let b = wide_scratch(input, batch * channels)?;
        drop(b);
        drop(a);
    }
    let saved = [Save::Input(Some(input)), Save::Input(weight.as_ref()), Save::Output(1), Save::Output(2)];
    let mut tensors = vec![input];
    tensors.extend(weight.as_ref());
    tensors.extend(bias.as_ref());
    let (has_weight, has_bias) = (weight.is_some(), bias.is_some());
    let sizes = [batch, groups, channels / groups, area];
    record(
        nodes::NativeGroupNormBackward0,
        &tensors,
        &[&output, &mean, &rstd],
        &saved,
        move |ctx, grads| {
            let own = ctx.saved(0)?;
            let weight = ctx.saved_optional(1)?;
            let wanted = [
                ctx.wants(0),
                has_weight && ctx.wants(1),
                has_bias && ctx.wants(1 + usize::from(has_weight)),
            ];
            let of_inputs = |grad_input, grad_weight, grad_bias| {
                let mut results = vec![grad_input];
                results.extend(has_weight.then_some(grad_weight));
                results.extend(has_bias.then_some(grad_bias));
                results
            };
            if GradMode::is_enabled() || grads.iter().skip(1).any(Option::is_some) {
                let statistics = [ctx.saved(2)?, ctx.saved(3)?];
                let parts = Parts { input: &own, statistics: &statistics, weight: weight.as_ref(), sizes };
                let [grad_input, grad_weight, grad_bias] = parts.backward(grads, wanted)?;
                return Ok(of_inputs(grad_input, grad_weight, grad_bias));
            }
            let _grad = contiguous(first(grads)?)?;
            let grad_input = ctx.gradient(0, || empty_like(&own))?;
            let grad_weight = weight.as_ref().filter(|_| ctx.wants(1)).map(empty_like).transpose()?;
            let grad_bias = if has_bias && ctx.wants(1 + usize::from(has_weight)) {
                Some(match &weight {
                    Some(weight) => empty_like(weight)?,
                    None => empty(&[channels], own.dtype(), own.device())?,
                })
            } else {
                None
            };
            let ds = wide_scratch(&own, batch * channels)?;
            let db = wide_scratch(&own, batch * channels)?;
            if grad_input.is_some() {
                let c2 = wide_scratch(&own, batch * groups)?;
                let c3 = wide_scratch(&own, batch * groups)?;
                let c1 = if area > 1 && weight.is_some() {
                    Some(wide_scratch(&own, batch * channels)?)
                } else {
                    None
                };
                drop(c3);
                drop(c2);
                drop(c1);
            }
            drop(db);
            drop(ds);
            Ok(of_inputs(grad_input, grad_weight, grad_bias))
        },
    )?;
    drop(mean);
    drop(rstd);
    Ok(output)
}

/// Sums of the backward kernels, in `float64` where the input is.
fn wide_scratch(input: &Tensor, elements: i64) -> Result<std::rc::Rc<crate::Storage>> {
    scratch(input, elements, input.dtype().accumulate())
}

/// What `infinitely_differentiable_native_group_norm_backward` reads. `sizes`: images, groups, channels of a
/// group, pixels.
struct Parts<'a> {
    input: &'a Tensor,
    statistics: &'a [Tensor; 2],
    weight: Option<&'a Tensor>,
    sizes: [i64; 4],
}

impl Parts<'_> {
    /// The gradients of input, weight and bias from those of the result, the mean and the reciprocal
    /// deviation. C++ evaluates the right operand first; temporaries live to the end of a statement, and what
    /// has a name to the end of its block.
    fn backward(&self, grads: &[Option<Tensor>], wanted: [bool; 3]) -> Result<[Option<Tensor>; 3]> {
        let [n, g, d, pixels] = self.sizes;
        let of = |index: usize| grads.get(index).and_then(Option::as_ref);
        let own = reshape(self.input, &[n, g, d, pixels])?;
        let [average, rstd] = self.statistics;
        let average = reshape(average, &[n, g, 1, 1])?;
        let rstd = reshape(rstd, &[n, g, 1, 1])?;
        let wide = of(0).map(|grad| reshape(grad, &[n, g, d, pixels])).transpose()?;
        let sums = match &wide {
            Some(wide) => {
                let ds = {
                    let product = mul(wide, &own)?;
                    unsqueeze(&sum(&product, Some(&[3]), false, None)?, -1)?
                };
                Some((ds, unsqueeze(&sum(wide, Some(&[3]), false, None)?, -1)?))
            }
            None => None,
        };
        let to_own = if wanted[0] {
            let again = [of(1), of(2)];
            self.to_own(&own, [&average, &rstd], wide.as_ref().zip(sums.as_ref()), again)?
        } else {
            None
        };
        let shape = self.weight.map_or_else(|| [g * d].into(), Tensor::shape);
        let to_weight = match &sums {
            Some((ds, db)) if wanted[1] => {
                let product = mul(db, &average)?;
                let difference = sub(ds, &product)?;
                let scaled = mul(&difference, &rstd)?;
                let total = sum(&scaled, Some(&[0]), false, None)?;
                Some(reshape(&total, &shape)?)
            }
            _ => None,
        };
        let to_bias = match &sums {
            Some((_, db)) if wanted[2] => Some(reshape(&sum(db, Some(&[0]), false, None)?, &shape)?),
            _ => None,
        };
        if let Some((ds, db)) = sums {
            drop(db);
            drop(ds);
        }
        Ok([to_own, to_weight, to_bias])
    }

    fn to_own(
        &self,
        input: &Tensor,
        [average, rstd]: [&Tensor; 2],
        grad: Option<(&Tensor, &(Tensor, Tensor))>,
        [to_mean, to_rstd]: [Option<&Tensor>; 2],
    ) -> Result<Option<Tensor>> {
        let [n, g, d, pixels] = self.sizes;
        let gamma = self.weight.map(|weight| reshape(weight, &[1, g, d, 1])).transpose()?;
        let _variance = {
            let squared = mul(rstd, rstd)?;
            unary::reciprocal_in_place(&squared)?;
            let less = sub(&squared, &wrapped(Scalar::Float(1e-5)))?;
            clamp(&less, Some(Scalar::Int(0)), None)?
        };
        let cube = {
            let squared = mul(rstd, rstd)?;
            mul(&squared, rstd)?
        };
        let to_variance = match to_rstd {
            Some(to_rstd) => {
                let right = view(to_rstd, &[n, g, 1, 1])?;
                let left = scale(&cube, -0.5)?;
                Some(mul(&left, &right)?)
            }
            None => None,
        };
        let of_statistics = |to_variance: &Tensor, to_mean: &Tensor| {
            moments_backward(to_variance, &view(to_mean, &[n, g, 1, 1])?, input, d * pixels)
        };
        let pair = to_variance.as_ref().zip(to_mean);
        let Some((wide, (ds, db))) = grad else {
            return match pair {
                Some((to_variance, to_mean)) => {
                    Ok(Some(reshape(&of_statistics(to_variance, to_mean)?, &self.input.shape())?))
                }
                None => Ok(None),
            };
        };
        let a = match &gamma {
            Some(gamma) => mul(rstd, gamma)?,
            None => rstd.clone(),
        };
        let summed = |part: &Tensor| -> Result<Tensor> {
            match &gamma {
                Some(gamma) => {
                    let product = mul(part, gamma)?;
                    unsqueeze(&sum(&product, Some(&[2]), false, None)?, -2)
                }
                None => unsqueeze(&sum(part, Some(&[2]), false, None)?, -2),
            }
        };
        let (mut b, mut c) = (summed(ds)?, summed(db)?);
        let share = 1.0 / (d * pixels) as f64;
        {
            let product = mul(&c, average)?;
            let difference = sub(&product, &b)?;
            let cubed = mul(&difference, &cube)?;
            b = scale(&cubed, share)?;
        }
        {
            let right = mul(&c, rstd)?;
            let right = (scale(&right, share)?, right);
            let negative = neg(&b)?;
            let left = mul(&negative, average)?;
            c = sub(&left, &right.0)?;
            drop(left);
            drop(negative);
        }
        let result = {
            let right = mul(&b, input)?;
            let left = mul(&a, wide)?;
            let both = add(&left, &right)?;
            add(&both, &c)?
        };
        if let Some((to_variance, to_mean)) = pair {
            add_in_place(&result, &of_statistics(to_variance, to_mean)?)?;
        }
        let result = reshape(&result, &self.input.shape())?;
        drop(c);
        drop(b);
        drop(a);
        Ok(Some(result))
    }
}

/// `var_mean_backward` over the channels of a group and the pixels, `count` elements, without a correction.
fn moments_backward(to_variance: &Tensor, to_mean: &Tensor, input: &Tensor, count: i64) -> Result<Tensor> {
    let spread = {
        let average = mean(input, Some(&[2, 3]), true, None)?;
        let centered = sub(input, &average)?;
        let scaled = scale(to_variance, 2.0 / count as f64)?;
        mul(&scaled, &centered)?
    };
    let even = div(&expand(to_mean, &input.shape())?, &wrapped(Scalar::Int(count)))?;
    add(&spread, &even)
}
