//! The derivative of the backward function of convolutions (`_convolution_double_backward`).

use crate::autograd::{Gradients, Save, nodes, record};
use crate::ops::copy::contiguous;
use crate::ops::pointwise::add;
use crate::ops::views::{expand, narrow, transpose, view};
use crate::{Result, Tensor};

use super::{Settings, convolution, value_of_dim};

/// The term, added to the sum so far.
fn plus(sum: Option<Tensor>, term: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => add(&sum, &term),
        None => Ok(term),
    }
}

/// Notes that `results` came from `convolution_backward`.
pub(super) fn record_double(
    grad: &Tensor,
    input: &Tensor,
    weight: &Tensor,
    results: &Gradients,
    settings: &Settings,
) -> Result<()> {
    let (indices, outputs): (Vec<usize>, Vec<&Tensor>) = results
        .iter()
        .enumerate()
        .filter_map(|(index, result)| result.as_ref().map(|result| (index, result)))
        .unzip();
    let saved = [Save::Input(Some(grad)), Save::Input(Some(input)), Save::Input(Some(weight))];
    let settings = settings.clone();
    record(
        nodes::ConvolutionBackwardBackward0,
        &[grad, input, weight],
        &outputs,
        &saved,
        move |ctx, grads| {
            let (grad, input, weight) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
            let of = |index: usize| {
                let position = indices.iter().position(|other| *other == index);
                position.and_then(|position| grads.get(position)).and_then(Option::as_ref)
            };
            double_backward([of(0), of(1), of(2)], &grad, &input, weight, &settings)
        },
    )
}

/// `_convolution_double_backward`, from the gradients of the three gradients: those of the input, the weight
/// and the bias.
fn double_backward(
    [again_input, again_weight, again_bias]: [Option<&Tensor>; 3],
    grad: &Tensor,
    input: &Tensor,
    mut weight: Tensor,
    settings: &Settings,
) -> Result<Gradients> {
    settings.note();
    let mut to_grad = None;
    if let Some(again) = again_input {
        weight = contiguous(&weight)?;
        to_grad = Some(convolution(again, &weight, None, settings.clone())?);
    }
    let again_weight = again_weight.map(contiguous).transpose()?;
    if let Some(again) = &again_weight {
        let term = convolution(input, again, None, settings.clone())?;
        to_grad = Some(plus(to_grad, term)?);
    }
    if let Some(again) = again_bias {
        let mut shape = vec![1; grad.dim()];
        if let Some(channels) = shape.get_mut(1) {
            *channels = again.numel();
        }
        let wide = expand(&view(&contiguous(again)?, &shape)?, &grad.shape())?;
        to_grad = Some(plus(to_grad, wide)?);
    }
    let to_weight =
        again_input.map(|again| double_backward_weight(again, grad, &weight, settings)).transpose()?;
    let to_input =
        again_weight.as_ref().map(|again| double_backward_input(again, grad, input, settings)).transpose()?;
    Ok(vec![to_grad, to_input, to_weight])
}

/// The weight's gradient: a convolution over the batch, one for each group.
fn double_backward_weight(
    grad_grad: &Tensor,
    grad: &Tensor,
    weight: &Tensor,
    settings: &Settings,
) -> Result<Tensor> {
    let swapped = Settings {
        stride: settings.dilation.clone(),
        dilation: settings.stride.clone(),
        groups: 1,
        is_transposed: false,
        ..settings.clone()
    };
    let (mut grad_t, again_t) = (transpose(grad, 0, 1)?, transpose(grad_grad, 0, 1)?);
    let one = |grad_grad: &Tensor, grad: &Tensor| {
        let (input, filter) = if settings.is_transposed { (grad, grad_grad) } else { (grad_grad, grad) };
        convolution(input, filter, None, swapped.clone())
    };
    let summed = if settings.groups == 1 {
        grad_t = contiguous(&grad_t)?;
        one(&again_t, &grad_t)?
    } else {
        let part = |tensor: &Tensor, group: i64| {
            let size = tensor.size(0) / settings.groups.max(1);
            narrow(tensor, 0, group * size, size)
        };
        let mut parts = Vec::new();
        for group in 0..settings.groups {
            let grad_grad = part(&again_t, group)?;
            let grad = contiguous(&part(&grad_t, group)?)?;
            parts.push(one(&grad_grad, &grad)?);
        }
        crate::ops::join::cat(&parts, 1)?
    };
    let mut result = transpose(&summed, 0, 1)?;
    for dim in 2..weight.dim() as i64 {
        if result.size(dim) > weight.size(dim) {
            result = narrow(&result, dim, 0, weight.size(dim))?;
        }
    }
    Ok(result)
}

/// The input's gradient: a convolution in the other direction with the gradient of the weight's gradient.
fn double_backward_input(
    grad_grad: &Tensor,
    grad: &Tensor,
    input: &Tensor,
    settings: &Settings,
) -> Result<Tensor> {
    let mut other = Settings { is_transposed: !settings.is_transposed, ..settings.clone() };
    if !settings.is_transposed {
        for dim in 0..input.dim().saturating_sub(2) {
            let reach =
                (value_of_dim(&grad_grad.shape(), dim + 2) - 1) * value_of_dim(&settings.dilation, dim);
            let expected = reach - 2 * value_of_dim(&settings.padding, dim)
                + value_of_dim(&settings.stride, dim) * (value_of_dim(&grad.shape(), dim + 2) - 1)
                + 1;
            let missing = value_of_dim(&input.shape(), dim + 2) - expected;
            if let Some(padding) = other.output_padding.get_mut(dim).filter(|_| missing != 0) {
                *padding = missing;
            }
        }
    }
    let mut result = convolution(&contiguous(grad)?, grad_grad, None, other)?;
    if settings.is_transposed {
        for dim in 2..input.dim() as i64 {
            if result.size(dim) > input.size(dim) {
                result = narrow(&result, dim, 0, input.size(dim))?;
            }
        }
    }
    Ok(result)
}
