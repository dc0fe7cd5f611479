//! Tensors of random numbers: known where they are small and on the host.

use crate::arguments::Unread;
use crate::generator::Draw;
use crate::{Device, Dtype, Result, Scalar, Tensor, Value};

use super::super::exact;
use super::{Keywords, LikeKeywords, Options, fill_, finish, made, made_like};

/// A new tensor of random numbers: known where it is small and on the host.
pub(super) fn drawn(shape: &[i64], options: &Options, draw: Draw) -> Result<Value> {
    let made = made(shape, options, None)?;
    if let Value::Tensor(tensor) = &made {
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

pub(super) fn drawn_like(like: &Tensor, keywords: LikeKeywords, draw: Draw) -> Result<Value> {
    let made = made_like(like, keywords, None)?;
    if let Value::Tensor(tensor) = &made {
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

/// The host's generator moves on by what the tensor takes, and the tensor gets its values if they are kept.
pub(crate) fn fill_drawn(tensor: &Tensor, draw: Draw, keeps: bool) {
    if tensor.device() != Device::Cpu {
        return;
    }
    let dtype = tensor.dtype();
    // Types of 16 bits round the numbers of the kernel.
    let keeps = keeps && !dtype.is_reduced_float();
    let values = crate::session().generators.draw(draw, tensor.numel(), dtype, keeps);
    let values: Option<Vec<Scalar>> =
        values.map(|values| values.into_iter().map(|value| exact::cast(value, dtype)).collect());
    tensor.set_values(values.as_deref());
}

/// An operator in place that draws: weights' values are not kept.
pub(super) fn draw_(tensor: &Tensor, draw: Draw) -> Result<()> {
    fill_(tensor, None)?;
    fill_drawn(tensor, draw, tensor.dtype() == Dtype::I64);
    Ok(())
}

/// `bernoulli_`, `exponential_`, ...: how many numbers PyTorch draws for these was not looked up.
pub(super) fn forget_(tensor: &Tensor, _p: Unread) -> Result<()> {
    fill_(tensor, None)?;
    if tensor.device() == Device::Cpu {
        crate::session().generators.forget();
    }
    Ok(())
}

/// `random_`: integers between bounds, or of the whole range.
pub(super) fn random_(tensor: &Tensor, from: Option<i64>, to: Option<i64>) -> Result<()> {
    match (from, to) {
        (Some(low), Some(high)) => draw_(tensor, integers(low, high)),
        (Some(high), None) => draw_(tensor, integers(0, high)),
        _ if tensor.dtype() == Dtype::I64 => draw_(tensor, Draw::Any),
        _ => forget_(tensor, Unread),
    }
}

pub(super) const fn integers(low: i64, high: i64) -> Draw {
    Draw::Integer { low, high }
}

/// `randperm` on a GPU sorts random keys; small ones do it in one kernel.
pub(super) fn randperm(count: i64, keywords: Keywords) -> Result<Value> {
    let options = keywords.or(Dtype::I64);
    if !options.device.is_cuda() {
        let made = made(&[count], &options, None)?;
        if let Value::Tensor(tensor) = &made {
            tensor.set_values(crate::session().generators.permutation(count).as_deref());
        }
        return Ok(made);
    }
    finish(super::super::sort::randperm(count, options.dtype, options.device)?, &options)
}

pub(super) const NORMAL: Draw = Draw::Normal { mean: 0.0, std: 1.0 };
