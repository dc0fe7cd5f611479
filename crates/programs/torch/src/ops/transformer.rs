//! The fused layer of a transformer's encoder, which evaluation without gradients takes.

use crate::arguments::{Unread, arguments};
use crate::autograd::GradModeGuard;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, Value, session};

use super::attention::{Operands, scaled_dot_product_attention};
use super::copy::{contiguous, to_dtype};
use super::creation::{empty, empty_like};
use super::matmul::{linear, matmul};
use super::norm::layer_norm;
use super::pointwise::add_in_place;
use super::views::{chunk, reshape, select, transpose, view};

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

/// `_native_multi_head_attention` of one tensor with itself: `nn.MultiheadAttention` in evaluation.
fn native_attention(arguments: SelfAttention<'_>) -> Result<Value> {
    let _no_grad = GradModeGuard::new(false);
    let (result, weights) = arguments.run()?;
    Ok(Value::List(vec![result.into(), weights.map_or(Value::None, Value::from)]))
}

impl SelfAttention<'_> {
    /// `native_multi_head_attention`: the result, and the weights where they are wanted.
    fn run(&self) -> Result<(Tensor, Option<Tensor>)> {
        // The kernels read rows without gaps (`check_last_dim_stride_equals_1_dense`).
        let has_rows = self.input.size(-1) == 1 || self.input.strides().last() == Some(&1);
        let is_by_kernel = has_rows && self.width / self.heads.max(1) % 8 == 0;
        if is_by_kernel && !self.needs_weights && self.mask.is_none() {
            return Ok((self.by_kernel()?, None));
        }
        self.by_products()
    }

    /// Heads of multiples of eight elements, which a kernel reads.
    fn by_kernel(&self) -> Result<Tensor> {
        let (batch, heads) = (self.input.size(0), self.heads.max(1));
        let all = linear(self.input, self.project, Some(self.project_bias))?;
        let parts = chunk(&all, 3, -1)?;
        let [q, k, v] = parts.as_slice() else { return crate::error::runtime("three projections expected") };
        let of_heads = |part: &Tensor| transpose(&view(part, &[batch, -1, heads, self.width / heads])?, 1, 2);
        let (q, k, v) = (of_heads(q)?, of_heads(k)?, of_heads(v)?);
        let operands = Operands { q: &q, k: &k, v: &v, mask: None, dropout: 0.0, is_causal: false };
        let result = scaled_dot_product_attention(operands)?;
        let past = reshape(&transpose(&result, 1, 2)?, &[batch, -1, self.width])?;
        drop(result);
        let output = linear(&past, self.out, Some(self.out_bias))?;
        drop(past);
        Ok(output)
    }

    /// Products of matrices and a softmax.
    fn by_products(&self) -> Result<(Tensor, Option<Tensor>)> {
        let (input, width) = (self.input, self.width);
        let heads = self.heads.max(1);
        let (batch, length, head) = (input.size(0), input.size(1), width / heads);
        // `qkv_projection`, whose weight has no history here.
        let all = matmul(input, &transpose(&self.project.shallow_copy(), 0, 1)?)?;
        // `_transform_bias_rescale_qkv`: queries, keys and values in one tensor, of which the context takes
        // the queries' part.
        let packed = empty(&[3, batch, heads, length, head], input.dtype(), input.device())?;
        drop(all);
        let part = |index: i64| select(&packed, 0, index);
        let (q, k, v) = (part(0)?, part(1)?, part(2)?);
        let mut products = matmul(&q, &transpose(&k, -2, -1)?)?;
        if let Some(mask) = self.mask {
            // `_masked_softmax` reads the mask as bool and writes a new tensor; without a mask the softmax
            // works in place.
            let mask = to_dtype(mask, Dtype::Bool)?;
            products = masked_softmax(&products, &mask)?;
            drop(mask);
        }
        // The context is written over the queries; the products are freed first unless the caller wants the
        // weights.
        let products = self.needs_weights.then_some(products);
        let context = contiguous(&transpose(&q, 1, 2)?)?;
        let rows = view(&context, &[batch * length, width])?;
        let result = view(&linear(&rows, self.out, Some(self.out_bias))?, &[batch, length, width])?;
        drop((rows, context));
        let weights = match products {
            Some(products) if self.averages => {
                let sum = super::reduce::sum(&products, Some(&[1]), false, None)?;
                drop(products);
                Some(sum)
            }
            products => products,
        };
        drop((v, k, q));
        drop(packed);
        Ok((result, weights))
    }
}

/// `_masked_softmax`: rows of more than 4096 bytes, and masks with gaps, are for the ordinary softmax.
fn masked_softmax(products: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let output = empty_like(products)?;
    let length = products.size(-1);
    if length <= 1024 && length * products.dtype().size() as i64 <= 4096 && mask.is_contiguous() {
        return Ok(output);
    }
    let filled = empty_like(products)?;
    let result = empty_like(&filled)?;
    drop(output);
    drop(filled);
    Ok(result)
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
        _uses_gelu: Unread,
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
        mask: Option<&'a Tensor>,
    }
}

/// `_transformer_encoder_layer_fwd`.
fn encoder_layer(layer: EncoderLayer<'_>) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let EncoderLayer { source, width, heads, norm_first, .. } = layer;
    if source.dtype() != Dtype::F32 {
        session().note_estimate("_transformer_encoder_layer_fwd", "the fused layer was recorded in float32");
    }
    let norm_1 = |x: &Tensor| layer_norm(x, &[width], Some(layer.norm_1), Some(layer.norm_1_bias));
    let norm_2 = |x: &Tensor| layer_norm(x, &[width], Some(layer.norm_2), Some(layer.norm_2_bias));
    let mut x = if norm_first { norm_1(source)? } else { source.clone() };
    let attention = SelfAttention {
        input: &x,
        width,
        heads,
        project: layer.project,
        project_bias: layer.project_bias,
        out: layer.out,
        out_bias: layer.out_bias,
        needs_weights: false,
        averages: true,
        mask: layer.mask,
    };
    let (attended, _) = attention.run()?;
    x = attended;
    add_in_place(&x, source)?;
    if !norm_first {
        x = norm_1(&x)?;
    }
    let residual = x.clone();
    if norm_first {
        x = norm_2(&x)?;
    }
    // `ffn`, whose input lives until the result exists; the activation is part of the product's kernel.
    let hidden = linear(&x, layer.linear_1, Some(layer.linear_1_bias))?;
    let forwarded = linear(&hidden, layer.linear_2, Some(layer.linear_2_bias))?;
    drop(hidden);
    x = forwarded;
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
                      Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None)";

const ATTENTION: &str = "_native_multi_head_attention(Tensor query, int embed_dim, int num_head, Tensor qkv_weight, Tensor \
                         qkv_bias, Tensor proj_weight, Tensor proj_bias, bool need_weights, bool average_attn_weights, Tensor? mask=None)";

pub(crate) const TABLE: &[Entry] = &[op!(SCHEMA, encoder_layer), op!(ATTENTION, native_attention)];
