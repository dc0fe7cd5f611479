//! Attention as products of matrices and a softmax, for calls that no kernel takes.

use crate::autograd::{GradModeGuard, nodes};
use crate::{Dtype, Result, Scalar, Tensor};

use super::super::copy::to_dtype;
use super::super::creation::{empty, full};
use super::super::matmul::matmul;
use super::super::pointwise::{add_in_place, scale};
use super::super::views::transpose;
use super::super::{dropout::dropout as drop_out, softmax};
use super::{Operands, float_mask};

/// `_scaled_dot_product_attention_math`, for calls that no kernel takes: rows with gaps, other than four
/// dimensions, fewer heads of keys than of queries in `float32`.
pub(super) fn by_products(operands: Operands<'_>) -> Result<Tensor> {
    let Operands { q, k, v, mask, dropout, is_causal } = operands;
    let from = q.dtype();
    let to_full = |tensor: &Tensor| {
        if from.is_reduced_float() { to_dtype(tensor, Dtype::F32) } else { Ok(tensor.clone()) }
    };
    let (full_q, full_k, full_v) = (to_full(q)?, to_full(k)?, to_full(v)?);
    let factor = (q.size(-1).max(1) as f64).powf(-0.25);
    // ATen declares the mask before the scaled queries, so the mask is freed after them, also where a
    // checkpoint ends this function early.
    let causal;
    let query = scale(&full_q, factor)?;
    causal = if is_causal {
        let shape = [q.size(-2), k.size(-2)];
        let all = full(&shape, Scalar::Bool(true), Dtype::Bool, q.device())?;
        let lower = crate::call("tril", &[(&all).into()], &[])?.tensor()?;
        drop(all);
        Some(float_mask(&lower, query.dtype())?)
    } else {
        None
    };
    let key = repeated_heads(&full_k, &full_q)?;
    let value = repeated_heads(&full_v, &full_q)?;
    let mut weights = {
        let scaled = scale(&transpose(&key, -2, -1)?, factor)?;
        matmul(&query, &scaled)?
    };
    if let Some(mask) = mask.or(causal.as_ref()) {
        add_in_place(&weights, mask)?;
    }
    weights = safe_softmax(&weights)?;
    if dropout > 0.0 {
        weights = drop_out(&weights, dropout, true)?;
    }
    // The weights are a result too, and are thrown away by the caller.
    let kept = to_dtype(&weights, from)?;
    let output = {
        let product = matmul(&weights, &value)?;
        to_dtype(&product, from)?
    };
    drop(weights);
    drop(value);
    drop(key);
    drop(query);
    drop(causal);
    drop((full_v, full_k, full_q));
    drop(kept);
    Ok(output)
}

/// `pre_process_group_query_attention_input`: each head of keys and values serves several heads of queries.
pub(super) fn repeated_heads(tensor: &Tensor, query: &Tensor) -> Result<Tensor> {
    if tensor.dim() < 3 || tensor.size(-3) == query.size(-3) {
        return Ok(tensor.clone());
    }
    let times = query.size(-3) / tensor.size(-3).max(1);
    crate::call("repeat_interleave", &[tensor.into(), times.into(), (-3).into()], &[])?.tensor()
}

/// `_safe_softmax`: a row that the mask excludes wholly becomes zeros.
fn safe_softmax(input: &Tensor) -> Result<Tensor> {
    let no_grad = GradModeGuard::new(false);
    let output = softmax::softmax(input, -1, None, false)?;
    let masked = empty(&input.shape(), Dtype::Bool, input.device())?;
    let mut rows = input.shape().to_vec();
    if let Some(last) = rows.last_mut() {
        *last = 1;
    }
    let masked_rows = empty(&rows, Dtype::Bool, input.device())?;
    let zero = empty(&[], input.dtype(), input.device())?;
    drop(zero);
    drop(masked_rows);
    drop(masked);
    drop(no_grad);
    softmax::record_softmax(nodes::SafeSoftmaxBackward0, input, &output, -1)?;
    Ok(output)
}
