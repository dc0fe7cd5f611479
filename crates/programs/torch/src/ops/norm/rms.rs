//! `rms_norm`.

use crate::autograd::{GradMode, GradModeGuard, Save, nodes, record};
use crate::{MemoryFormat, Result, Scalar, Tensor, session};

use super::super::copy::{contiguous, to_dtype};
use super::super::creation::{empty, empty_like, empty_like_as, wrapped};
use super::super::pointwise::{add_in_place, mul, pow_scalar};
use super::super::views::first;
use super::super::{reduce, unary};
use super::{rows_and_width, statistics_shape, sum_blocks_of_rows};

/// `rms_norm` where the weight is of another type: made of operators.
fn rms_norm_of_operators(input: &Tensor, normalized: &[i64], weight: Option<&Tensor>) -> Result<Tensor> {
    // Sizes and most of the order are as recorded; of some temporaries the lifetime is not.
    session().note_estimate("rms_norm", "a weight of another type than the input");
    let dims: Vec<i64> = (1..=normalized.len() as i64).map(|dim| input.dim() as i64 - dim).collect();
    let wide = to_dtype(input, input.dtype().accumulate())?;
    let scale = {
        let squared = pow_scalar(&wide, Scalar::Int(2))?;
        let mean = reduce::mean(&squared, Some(&dims), true, None)?;
        add_in_place(&mean, &wrapped(Scalar::Float(1e-6)))?;
        unary::rsqrt(&mean)?
    };
    let result = {
        let scaled = mul(&wide, &scale)?;
        match weight {
            Some(weight) => mul(&scaled, weight)?,
            None => scaled,
        }
    };
    drop(wide);
    let narrow = to_dtype(&result, input.dtype())?;
    drop(result);
    Ok(narrow)
}

/// `rms_norm`: `_fused_rms_norm`.
pub(super) fn rms_norm(input: &Tensor, normalized: &[i64], weight: Option<&Tensor>) -> Result<Tensor> {
    rows_and_width(input, normalized)?;
    if weight.is_some_and(|weight| weight.dtype() != input.dtype()) {
        return rms_norm_of_operators(input, normalized, weight);
    }
    let no_grad = GradModeGuard::new(false);
    let read = contiguous(input)?;
    let output = empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?;
    let rstd = empty(&statistics_shape(input, normalized), input.dtype().accumulate(), input.device())?;
    drop(read);
    drop(no_grad);
    let saved = [Save::Input(Some(input)), Save::Input(weight), Save::Output(1)];
    let mut tensors = vec![input];
    tensors.extend(weight);
    let inner = normalized.len();
    record(nodes::FusedRmsNormBackward0, &tensors, &[&output, &rstd], &saved, move |ctx, grads| {
        let (own, weight, rstd) = (ctx.saved(0)?, ctx.saved_optional(1)?, ctx.saved(2)?);
        let of_rstd = grads.get(1).and_then(Option::as_ref);
        if GradMode::is_enabled() || of_rstd.is_some() {
            let of_output = grads.first().and_then(Option::as_ref);
            let wanted = [ctx.wants(0), ctx.wants(1)];
            return super::super::norm_double::rms_norm(
                &own,
                weight.as_ref(),
                &rstd,
                [of_output, of_rstd],
                inner,
                wanted,
            );
        }
        let read = contiguous(&own)?;
        let grad_input = ctx.gradient(0, || empty_like(&read))?;
        let mut grad_weight = match weight {
            Some(weight) if ctx.wants(1) => Some(empty_like(&weight)?),
            _ => None,
        };
        let of_output = contiguous(first(grads)?)?;
        sum_blocks_of_rows(&own, grad_weight.iter_mut().collect(), true)?;
        drop(of_output);
        drop(read);
        Ok(vec![grad_input, grad_weight])
    })?;
    drop(rstd);
    Ok(output)
}
