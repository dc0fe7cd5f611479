//! The fused layer of a transformer's encoder, which evaluation without gradients takes.

use crate::arguments::{Unread, arguments};
use crate::autograd::GradModeGuard;
use crate::registry::{Entry, op};
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

arguments! {
    /// The arguments of `_native_multi_head_attention`.
    #[derive(Clone, Copy)]
    struct SelfAttention<'a> {
        input: &'a Tensor,
        width: i64,
        heads: i64,
        project: &'a Tensor,
        project_bias: &'a Tensor,
        out: &'a Tensor,
        out_bias: &'a Tensor,
        needs_weights: bool,
        averages: bool,
        mask: Option<&'a Tensor>,
    }
}

/// `native_multi_head_attention` of one tensor with itself: `nn.MultiheadAttention` in evaluation.
fn native_attention(arguments: SelfAttention<'_>) -> Result<Value> {
    let _below = GradModeGuard::new(false);
    let SelfAttention {
        input, width, heads, project, project_bias, out, out_bias, needs_weights, mask, ..
    } = arguments;
    let heads = heads.max(1);
    let head = width / heads;
    if !needs_weights && head % 8 == 0 && mask.is_none() {
        let result = attention(input, heads, [project, project_bias], [out, out_bias])?;
        return Ok(Value::List(vec![result.into(), Value::None]));
    }
    let (batch, length) = (input.size(0), input.size(1));
    let all = linear(input, project, None)?;
    // _transform_bias_rescale_qkv: queries, keys and values in one tensor, of which the context takes the queries' part.
    let packed = super::creation::empty(&[3, batch, heads, length, head], input.dtype(), input.device())?;
    drop(all);
    let part = |index: i64| select(&packed, 0, index);
    let (q, k, v) = (part(0)?, part(1)?, part(2)?);
    let mut products = super::matmul::matmul(&q, &transpose(&k, -2, -1)?)?;
    if let Some(mask) = mask {
        // `_masked_softmax` reads the mask as bool and writes a new tensor; without a mask the softmax works in place.
        let mask = to_dtype(mask, Dtype::Bool)?;
        products = empty_like(&products)?;
        drop(mask);
    }
    // The context is written over the queries; the products go first where nobody wants them.
    let products = needs_weights.then_some(products);
    let context = reshape(&transpose(&q, 1, 2)?, &[batch * length, width])?;
    let result = view(&linear(&context, out, Some(out_bias))?, &[batch, length, width])?;
    drop(context);
    let averaged = match products {
        Some(products) if arguments.averages => {
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

arguments! {
    /// The arguments of `_transformer_encoder_layer_fwd`.
    #[derive(Clone, Copy)]
    struct EncoderLayer<'a> {
        source: &'a Tensor,
        width: i64,
        heads: i64,
        project: &'a Tensor,
        project_bias: &'a Tensor,
        out: &'a Tensor,
        out_bias: &'a Tensor,
        uses_gelu: bool,
        norm_first: bool,
        _eps: Unread,
        norm_1: &'a Tensor,
        norm_1_bias: &'a Tensor,
        norm_2: &'a Tensor,
        norm_2_bias: &'a Tensor,
        linear_1: &'a Tensor,
        linear_1_bias: &'a Tensor,
        linear_2: &'a Tensor,
        linear_2_bias: &'a Tensor,
    }
}

/// `_transformer_encoder_layer_fwd`.
fn encoder_layer(layer: EncoderLayer<'_>) -> Result<Tensor> {
    let _below = GradModeGuard::new(false);
    let EncoderLayer { source, width, heads, norm_first, .. } = layer;
    if layer.uses_gelu || norm_first || source.dtype() != Dtype::F32 {
        session().mark_estimated(
            "_transformer_encoder_layer_fwd",
            "the fused layer was recorded in float32, with ReLU and the norms last",
        );
    }
    let norm_1 = |x: &Tensor| layer_norm(x, &[width], Some(layer.norm_1), Some(layer.norm_1_bias));
    let norm_2 = |x: &Tensor| layer_norm(x, &[width], Some(layer.norm_2), Some(layer.norm_2_bias));
    let mut x = if norm_first { norm_1(source)? } else { source.clone() };
    x = attention(&x, heads, [layer.project, layer.project_bias], [layer.out, layer.out_bias])?;
    add_in_place(&x, source)?;
    if !norm_first {
        x = norm_1(&x)?;
    }
    let residual = x.clone();
    if norm_first {
        x = norm_2(&x)?;
    }
    // The activation is part of the product's kernel.
    x = linear(&x, layer.linear_1, Some(layer.linear_1_bias))?;
    x = linear(&x, layer.linear_2, Some(layer.linear_2_bias))?;
    add_in_place(&x, &residual)?;
    if !norm_first {
        x = norm_2(&x)?;
    }
    drop(residual);
    Ok(x)
}

const SCHEMA: &str = "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor \
                      qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor \
                      norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, \
                      Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2)";

const ATTENTION: &str = "_native_multi_head_attention(Tensor query, int embed_dim, int num_head, Tensor qkv_weight, Tensor \
                         qkv_bias, Tensor proj_weight, Tensor proj_bias, bool need_weights, bool average_attn_weights, Tensor? mask=None)";

pub(crate) const TABLE: &[Entry] = &[op!(SCHEMA, encoder_layer), op!(ATTENTION, native_attention)];
