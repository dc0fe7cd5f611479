//! `pixel_shuffle` and `pixel_unshuffle`: copies in another order.

use crate::autograd::{GradModeGuard, nodes, record};
use crate::error::runtime;
use crate::{MemoryFormat, Result, Tensor, contiguous_strides};

use super::super::copy::contiguous;
use super::super::views::{first, permute, reshape, view};

/// `pixel_shuffle`: a permuted copy, never a view.
pub(super) fn pixel_shuffle(input: &Tensor, factor: i64) -> Result<Tensor> {
    let (batch, [c, h, w]) = image_of("pixel_shuffle", input)?;
    if factor < 1 {
        return runtime(format!("pixel_shuffle expects a positive upscale_factor, but got {factor}"));
    }
    let area = factor.saturating_mul(factor);
    if c % area != 0 {
        return runtime(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
             input.size(-3)={c} is not divisible by {area}"
        ));
    }
    let split = [&batch[..], &[c / area, factor, factor, h, w]].concat();
    let whole = [&batch[..], &[c / area, h.saturating_mul(factor), w.saturating_mul(factor)]].concat();
    let output = permuted(input, &split, &[0, 3, 1, 4, 2], &whole)?;
    record(nodes::PixelShuffleBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(pixel_unshuffle(first(grads)?, factor)?)])
    })?;
    Ok(output)
}

/// `pixel_unshuffle`.
pub(super) fn pixel_unshuffle(input: &Tensor, factor: i64) -> Result<Tensor> {
    let (batch, [c, h, w]) = image_of("pixel_unshuffle", input)?;
    if factor < 1 || h % factor != 0 || w % factor != 0 {
        return runtime(format!(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but input.size(-2)={h} and \
             input.size(-1)={w} are not divisible by {factor}"
        ));
    }
    let (rows, columns) = (h / factor, w / factor);
    let split = [&batch[..], &[c, rows, factor, columns, factor]].concat();
    let channels = c.saturating_mul(factor).saturating_mul(factor);
    let whole = [&batch[..], &[channels, rows, columns]].concat();
    let output = permuted(input, &split, &[0, 2, 4, 1, 3], &whole)?;
    record(nodes::PixelUnshuffleBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(pixel_shuffle(first(grads)?, factor)?)])
    })?;
    Ok(output)
}

/// `channel_shuffle`: its derivative is the shuffle by the other factor.
pub(super) fn channel_shuffle(input: &Tensor, groups: i64) -> Result<Tensor> {
    let sizes = input.shape().to_vec();
    let Some([batch, channels]) = sizes.first_chunk::<2>().copied().filter(|_| sizes.len() > 2) else {
        return runtime(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {sizes:?}"
        ));
    };
    if groups < 1 {
        return runtime(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        ));
    }
    if channels % groups != 0 {
        return runtime(format!(
            "Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        ));
    }
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let split = view(input, &[batch, groups, channels / groups, -1])?;
        reshape(&contiguous(&permute(&split, &[0, 2, 1, 3])?)?, &sizes)?
    };
    let inverse = channels / groups;
    record(nodes::ChannelShuffleBackward0, &[input], &[&output], &[], move |_, grads| {
        Ok(vec![Some(channel_shuffle(first(grads)?, inverse)?)])
    })?;
    Ok(output)
}

/// The dimensions before an image, and channels, height and width.
fn image_of(name: &str, input: &Tensor) -> Result<(Vec<i64>, [i64; 3])> {
    match input.shape().split_last_chunk::<3>() {
        Some((batch, image)) => Ok((batch.to_vec(), *image)),
        None => runtime(format!(
            "{name} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            input.dim()
        )),
    }
}

/// A copy in which the last five dimensions have another order, seen in another shape; below autograd.
fn permuted(input: &Tensor, split: &[i64], order: &[i64], whole: &[i64]) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let before = split.len().saturating_sub(order.len()) as i64;
    let dims: Vec<i64> = (0..before).chain(order.iter().map(|dim| before + dim)).collect();
    let moved = super::super::views::permute(&super::super::views::reshape(input, split)?, &dims)?;
    let copied = super::super::copy::clone(&moved, MemoryFormat::Contiguous)?;
    Ok(copied.alias(whole, &contiguous_strides(whole), 0))
}
