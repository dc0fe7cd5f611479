//! The fused layer of a transformer's encoder, which evaluation without gradients takes.

use crate::autograd::GradModeGuard;
use crate::registry::{Entry, op};
use crate::schema::Args;
use crate::{Dtype, Result, Tensor, Value, session};

use super::attention::scaled_dot_product_attention;
use super::copy::to_dtype;
use super::creation::empty_like;
use super::matmul::linear;
use super::norm::layer_norm;
use super::pointwise::add_in_place;
use super::views::{chunk, reshape, select, transpose, view};

/// `native_multi_head_attention` of one tensor with itself.
fn attention(input: &Tensor, heads: i64, project: [&Tensor; 2], out: [&Tensor; 2]) -> Result<Tensor> {
    let (batch, width) = (input.size(0), input.size(2));
    let all = linear(input, project[0], Some(project[1]))?;
    let split = transpose(&view(&all, &[batch, -1, heads, 3 * width / heads.max(1)])?, 1, 2)?;
    let parts = chunk(&split, 3, -1)?;
    let [q, k, v] = parts.as_slice() else { return crate::error::runtime("three projections expected") };
    let result = scaled_dot_product_attention(q, k, v, None, 0.0, false)?;
    let past = reshape(&transpose(&result, 1, 2)?, &[batch, -1, width])?;
    drop(result);
    let output = linear(&past, out[0], Some(out[1]))?;
    drop(past);
    Ok(output)
}

/// `native_multi_head_attention` of one tensor with itself: `nn.MultiheadAttention` in evaluation.
fn native_attention(args: &Args) -> Result<Value> {
    let _below = GradModeGuard::new(false);
    let (input, width, heads) = (args.t(0)?, args.int(1)?, args.int(2)?.max(1));
    let (weights, needs_weights) = ((args.t(3)?, args.t(4)?, args.t(5)?, args.t(6)?), args.bool(7)?);
    let (project, project_bias, out, out_bias) = weights;
    let head = width / heads;
    let mask = args.topt(9)?;
    if !needs_weights && head % 8 == 0 && mask.is_none() {
        let result = attention(&input, heads, [&project, &project_bias], [&out, &out_bias])?;
        return Ok(Value::List(vec![result.into(), Value::None]));
    }
    let (batch, length) = (input.size(0), input.size(1));
    let all = linear(&input, &project, None)?;
    // _transform_bias_rescale_qkv: queries, keys and values in one tensor, of which the context takes the queries' part.
    let packed = super::creation::empty(&[3, batch, heads, length, head], input.dtype(), input.device())?;
    drop(all);
    let part = |index: i64| select(&packed, 0, index);
    let (q, k, v) = (part(0)?, part(1)?, part(2)?);
    let mut products = super::matmul::matmul(&q, &transpose(&k, -2, -1)?)?;
    if let Some(mask) = &mask {
        // `_masked_softmax` reads the mask as bool and writes a new tensor; without a mask the softmax works in place.
        let mask = to_dtype(mask, Dtype::Bool)?;
        products = empty_like(&products)?;
        drop(mask);
    }
    // The context is written over the queries; the products go first where nobody wants them.
    let products = needs_weights.then_some(products);
    let context = reshape(&transpose(&q, 1, 2)?, &[batch * length, width])?;
    let result = view(&linear(&context, &out, Some(&out_bias))?, &[batch, length, width])?;
    drop(context);
    let averaged = match products {
        Some(products) if args.bool(8)? => {
            let sum = super::reduce::sum(&products, Some(&[1]), false, None)?;
            drop(products);
            sum.into()
        }
        Some(products) => products.into(),
        None => Value::None,
    };
    drop((v, k, q));
    drop(packed);
    Ok(Value::List(vec![result.into(), averaged]))
}

/// `_transformer_encoder_layer_fwd`.
fn encoder_layer(args: &Args) -> Result<Value> {
    let _below = GradModeGuard::new(false);
    let (source, width, heads) = (args.t(0)?, args.int(1)?, args.int(2)?);
    let (gelu, norm_first) = (args.bool(7)?, args.bool(8)?);
    if gelu || norm_first || source.dtype() != Dtype::F32 {
        session().mark_estimated(
            "_transformer_encoder_layer_fwd",
            "the fused layer was recorded in float32, with ReLU and the norms last",
        );
    }
    let weight = |index: usize| args.t(index);
    let norm = |x: &Tensor, at: usize| layer_norm(x, &[width], Some(&weight(at)?), Some(&weight(at + 1)?));
    let mut x = if norm_first { norm(&source, 10)? } else { source.clone() };
    x = attention(&x, heads, [&weight(3)?, &weight(4)?], [&weight(5)?, &weight(6)?])?;
    add_in_place(&x, &source)?;
    if !norm_first {
        x = norm(&x, 10)?;
    }
    let residual = x.clone();
    if norm_first {
        x = norm(&x, 12)?;
    }
    // The activation is part of the product's kernel.
    x = linear(&x, &weight(14)?, Some(&weight(15)?))?;
    x = linear(&x, &weight(16)?, Some(&weight(17)?))?;
    add_in_place(&x, &residual)?;
    if !norm_first {
        x = norm(&x, 12)?;
    }
    drop(residual);
    Ok(x.into())
}

const SCHEMA: &str = "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor \
                      qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor \
                      norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, \
                      Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2)";

const ATTENTION: &str = "_native_multi_head_attention(Tensor query, int embed_dim, int num_head, Tensor qkv_weight, Tensor \
                         qkv_bias, Tensor proj_weight, Tensor proj_bias, bool need_weights, bool average_attn_weights, Tensor? mask=None)";

pub(crate) const TABLE: &[Entry] = &[op(SCHEMA, encoder_layer), op(ATTENTION, native_attention)];
