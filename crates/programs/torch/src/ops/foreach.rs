//! Operators over lists of tensors, which optimizers use, and the fused optimizers.

use crate::arguments::{Rest, Unread};
use crate::autograd::without_grad;
use crate::error::runtime;
use crate::registry::{Entry, in_place, op};
use crate::{Device, Dtype, Result, Scalar, Tensor, Value};

use super::copy;
use super::creation::{empty, empty_like, wrapped, zeros};
use super::pointwise::change_in_place;
use super::reduce;

/// New tensors of the results' types, one after the other, before the kernel runs.
fn fresh(tensors: &[Tensor], dtype: Option<Dtype>) -> Result<Value> {
    let made: Vec<Tensor> = tensors
        .iter()
        .map(|tensor| match dtype {
            Some(dtype) if tensor.dtype().is_integral() => {
                super::creation::empty_like_as(tensor, dtype, crate::MemoryFormat::Preserve)
            }
            _ => empty_like(tensor),
        })
        .collect::<Result<_>>()?;
    Ok(made.into())
}

fn in_place(tensors: &[Tensor]) -> Result<Value> {
    tensors.iter().try_for_each(change_in_place)?;
    for tensor in tensors {
        tensor.set_values(None);
    }
    Ok(tensors.to_vec().into())
}

/// `_foreach_add_` with a number. The step counters of optimizers are on the host, and their values stay
/// known.
fn add_known(tensors: &[Tensor], other: &Value, _alpha: Unread) -> Result<Value> {
    let number = match other {
        Value::Scalar(number) => Some(*number),
        _ => None,
    };
    for tensor in tensors {
        if let Some(number) = number.filter(|_| tensor.device() == Device::Cpu && tensor.numel() == 1) {
            super::pointwise::add_in_place(tensor, &wrapped(number))?;
        } else {
            change_in_place(tensor)?;
            tensor.set_values(None);
        }
    }
    Ok(tensors.to_vec().into())
}

/// `_foreach_norm`: partial sums of all chunks in one buffer, then a scalar for each tensor.
fn norm(tensors: &[Tensor], ord: Scalar, _: Unread) -> Result<Value> {
    const CHUNK: i64 = 65_536;
    let Some(like) = tensors.first() else { return Ok(Vec::<Tensor>::new().into()) };
    let order = ord.to_f64().unwrap_or(2.0);
    let is_fast = like.device().is_cuda()
        && tensors
            .iter()
            .all(|tensor| tensor.dtype() == like.dtype() && tensor.is_non_overlapping_and_dense());
    if !is_fast {
        let results: Vec<Tensor> = tensors
            .iter()
            .map(|tensor| reduce::vector_norm(tensor, order, None, false, None))
            .collect::<Result<_>>()?;
        return Ok(results.into());
    }
    let most = tensors.iter().map(|tensor| (tensor.numel() + CHUNK - 1) / CHUNK).max().unwrap_or(0);
    let count = tensors.len() as i64;
    let partial = zeros(&[count * most], like.dtype().accumulate(), like.device())?;
    let results: Vec<Tensor> =
        tensors.iter().map(|_| empty(&[], like.dtype(), like.device())).collect::<Result<_>>()?;
    drop(partial);
    Ok(results.into())
}

fn max(tensors: &[Tensor]) -> Result<Value> {
    let results: Vec<Tensor> =
        tensors.iter().map(|tensor| empty(&[], tensor.dtype(), tensor.device())).collect::<Result<_>>()?;
    crate::session().note_estimate("_foreach_max", "its buffer was not recorded");
    Ok(results.into())
}

fn copy_lists(to: &[Tensor], from: &[Tensor], _: Unread) -> Result<Value> {
    for (to, from) in to.iter().zip(from) {
        copy::copy_in_place(to, from)?;
    }
    Ok(Value::None)
}

fn zero(tensors: &[Tensor]) -> Result<Value> {
    for tensor in tensors {
        change_in_place(tensor)?;
        super::creation::set_all(tensor, crate::Scalar::Int(0));
    }
    Ok(Value::None)
}

/// `_amp_foreach_non_finite_check_and_unscale_`.
fn unscale(tensors: &[Tensor], found_inf: &Tensor, _: Unread) -> Result<Value> {
    for tensor in tensors {
        change_in_place(tensor)?;
    }
    change_in_place(found_inf)?;
    Ok(Value::None)
}

/// One kernel over several lists, all changed in place.
fn fused(lists: &[&[Tensor]]) {
    lists.iter().flat_map(|list| list.iter()).for_each(Tensor::bump_version);
}

fn fused_adam(
    parameters: &[Tensor],
    grads: &[Tensor],
    averages: &[Tensor],
    squares: &[Tensor],
    greatest_squares: &[Tensor],
    steps: &[Tensor],
    _: Rest<9>,
) {
    fused(&[parameters, grads, averages, squares, greatest_squares, steps]);
}

fn fused_sgd(parameters: &[Tensor], grads: &[Tensor], momenta: &[Tensor], _: Rest<9>) {
    fused(&[parameters, grads, momenta]);
}

fn check(tensors: &[Tensor]) -> Result<()> {
    if tensors.is_empty() {
        return runtime("Tensor list must have at least one tensor.");
    }
    Ok(())
}

macro_rules! foreach {
    ($($name:literal $count:literal $more:literal,)*) => {
        &[$(
            op!(concat!("_foreach_", $name, "(Tensor[] self", $more, ")"), |tensors: &[Tensor], _: Rest<$count>| {
                check(tensors)?;
                without_grad(|| fresh(tensors, None))
            }),
            op!(concat!("_foreach_", $name, "_(Tensor[] self", $more, ")"), |tensors: &[Tensor], _: Rest<$count>| {
                check(tensors)?;
                in_place(tensors)
            }),
        )*]
    };
}

/// The operators whose result is a new list of tensors like the first list's, each with its variant in place.
pub(crate) const LISTS: &[Entry] = foreach! {
    "sub" 2 ", Any other, *, Scalar alpha=1",
    "mul" 1 ", Any other",
    "div" 1 ", Any other",
    "pow" 1 ", Any exponent",
    "clamp_min" 1 ", Any other",
    "clamp_max" 1 ", Any other",
    "maximum" 1 ", Any other",
    "minimum" 1 ", Any other",
    "addcmul" 3 ", Tensor[] tensor1, Tensor[] tensor2, Any value=1",
    "addcdiv" 3 ", Tensor[] tensor1, Tensor[] tensor2, Any value=1",
    "lerp" 2 ", Tensor[] tensors1, Any weight",
    "sqrt" 0 "",
    "rsqrt" 0 "",
    "neg" 0 "",
    "abs" 0 "",
    "exp" 0 "",
    "reciprocal" 0 "",
    "sign" 0 "",
};

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "_foreach_add(Tensor[] self, Any other, *, Scalar alpha=1)",
        |tensors: &[Tensor], _: Unread, _: Unread| without_grad(|| fresh(tensors, None))
    ),
    op!("_foreach_add_(Tensor[] self, Any other, *, Scalar alpha=1)", add_known),
    op!("_foreach_pow(Scalar self, Tensor[] exponent)", |_: Unread, exponents: &[Tensor]| {
        without_grad(|| fresh(exponents, None))
    }),
    op!("_foreach_norm(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)", norm),
    op!("_foreach_max(Tensor[] self)", max),
    op!("_foreach_copy_(Tensor[] self, Tensor[] src, bool non_blocking=False)", copy_lists),
    op!("_foreach_zero_(Tensor[] self)", zero),
    op!(
        "_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor inv_scale)",
        unscale,
    ),
    in_place!(
        "_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, float scale_growth_factor, float \
         scale_backoff_factor, int growth_interval)",
        |_tensor: &Tensor, _: Rest<5>| Ok(())
    ),
    op!(
        "_fused_adam_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, \
         Tensor[] state_steps, *, Any lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool \
         maximize, Any grad_scale=None, Any found_inf=None)",
        fused_adam,
    ),
    op!(
        "_fused_adamw_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, \
         Tensor[] state_steps, *, Any lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool \
         maximize, Any grad_scale=None, Any found_inf=None)",
        fused_adam,
    ),
    op!(
        "_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, \
         Any lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Any grad_scale=None, Any \
         found_inf=None)",
        fused_sgd,
    ),
];
