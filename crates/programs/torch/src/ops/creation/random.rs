//! Tensors of random numbers: known where they are small and on the host.

use crate::arguments::Unread;
use crate::error::not_implemented;
use crate::generator::Draw;
use crate::{Device, Dtype, Result, Scalar, Tensor, Value};

use super::super::host_values;
use super::{Keywords, LikeKeywords, Options, fill_, finish, made_like, make_tensor};

/// A new tensor of random numbers: known where it is small and on the host.
pub(super) fn drawn(shape: &[i64], options: &Options, draw: Draw) -> Result<Value> {
    let made = make_tensor(shape, options, None)?;
    if let Value::Tensor(tensor) = &made {
        check(tensor, draw)?;
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

/// [`drawn`] with the shape of another tensor.
pub(super) fn drawn_like(like: &Tensor, keywords: LikeKeywords, draw: Draw) -> Result<Value> {
    let made = made_like(like, keywords, None)?;
    if let Value::Tensor(tensor) = &made {
        check(tensor, draw)?;
        fill_drawn(tensor, draw, true);
    }
    Ok(made)
}

/// No kernel draws from a continuous distribution into whole numbers. PyTorch makes the tensor first.
fn check(tensor: &Tensor, draw: Draw) -> Result<()> {
    let dtype = tensor.dtype();
    let kernel = match draw {
        Draw::Normal { .. } if tensor.device().is_cuda() => "normal_kernel_cuda",
        Draw::Normal { .. } => "normal_kernel_cpu",
        Draw::Uniform => "check_uniform_bounds",
        Draw::Integer { .. } | Draw::Any => return Ok(()),
    };
    if dtype.is_integral() {
        return not_implemented(format!("\"{kernel}\" not implemented for '{}'", dtype.scalar_name()));
    }
    Ok(())
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
        values.map(|values| values.into_iter().map(|value| host_values::cast(value, dtype)).collect());
    tensor.set_values(values.as_deref());
}

/// An operator in place that draws: weights' values are not kept.
pub(super) fn draw_(tensor: &Tensor, draw: Draw) -> Result<()> {
    check(tensor, draw)?;
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

/// Whole numbers from `low` on, below `high`.
pub(super) const fn integers(low: i64, high: i64) -> Draw {
    Draw::Integer { low, high }
}

/// `randperm` on a GPU sorts random keys; small ones do it in one kernel.
pub(super) fn randperm(count: i64, keywords: Keywords) -> Result<Value> {
    let options = keywords.or(Dtype::I64);
    if !options.device.is_cuda() {
        let made = make_tensor(&[count], &options, None)?;
        if let Value::Tensor(tensor) = &made {
            tensor.set_values(crate::session().generators.permutation(count).as_deref());
        }
        return Ok(made);
    }
    finish(super::super::sort::randperm(count, options.dtype, options.device)?, &options)
}

/// The normal distribution of `randn`.
pub(super) const NORMAL: Draw = Draw::Normal { mean: 0.0, std: 1.0 };

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use crate::{Device, Dtype, Session, SessionSettings, Value, call, install};

    /// The words are those of PyTorch 2.11.
    #[test]
    fn whole_numbers_are_not_drawn_from_a_continuous_distribution() {
        install(Rc::new(Session::new(SessionSettings::default())));
        let size = Value::from(&[2][..]);
        for (name, device, kernel) in [
            ("randn", Device::Cuda(0), "normal_kernel_cuda"),
            ("randn", Device::Cpu, "normal_kernel_cpu"),
            ("rand", Device::Cuda(0), "check_uniform_bounds"),
        ] {
            let keywords = [("dtype", Dtype::I8.into()), ("device", device.into())];
            let error = call(name, std::slice::from_ref(&size), &keywords).unwrap_err();
            assert_eq!(error.to_string(), format!("\"{kernel}\" not implemented for 'Char'"));
        }
        let keywords = [("dtype", Dtype::I8.into())];
        assert!(call("randint", &[Value::from(5_i64), size], &keywords).is_ok());
    }
}
