//! `scaled_dot_product_attention`: which kernel runs, and what it takes.

mod choice;
mod products;

use crate::arguments::{Unread, arguments};
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Gradients, Save, nodes, record};
use crate::error::{not_implemented, runtime};
use crate::iterator;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, Value, session};

use super::copy::{contiguous, empty_strided, to_dtype};
use super::creation::{empty, empty_like, zeros};
use super::pointwise::{mul, where_};
use super::reduce;
use super::sort::temporary;
use super::views::{first, transpose};
use choice::{AttentionKernel, NO_KERNEL, Sizes, choose};
use products::{by_products, repeated_heads};

/// From this many keys on cuDNN may share the work of one query among blocks, which takes a workspace.
const MANY_KEYS: i64 = 1000;

/// What attention is computed of.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    pub(crate) q: &'a Tensor,
    pub(crate) k: &'a Tensor,
    pub(crate) v: &'a Tensor,
    pub(crate) mask: Option<&'a Tensor>,
    pub(crate) dropout: f64,
    pub(crate) is_causal: bool,
}

/// A new tensor whose elements have the query's order in memory.
fn laid_out_like(query: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let strides = query.strides();
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|dim| std::cmp::Reverse(strides.get(*dim).copied().unwrap_or(0)));
    let mut new = vec![1; shape.len()];
    let mut next = 1;
    for dim in order.into_iter().rev() {
        if let (Some(slot), Some(size)) = (new.get_mut(dim), shape.get(dim)) {
            *slot = next;
            next *= size.max(&1);
        }
    }
    empty_strided(shape, &new, query.dtype(), query.device())
}

/// `convert_boolean_attn_mask`: 0 where attention is allowed, minus infinity elsewhere.
fn float_mask(mask: &Tensor, dtype: Dtype) -> Result<Tensor> {
    if mask.dtype() != Dtype::Bool {
        return Ok(mask.clone());
    }
    let _no_grad = GradModeGuard::new(false);
    let minus = empty(&[], dtype, mask.device())?;
    let zero = zeros(&[], dtype, mask.device())?;
    let result = where_(mask, &zero, &minus)?;
    drop(zero);
    drop(minus);
    Ok(result)
}

/// `pad_bias`: the mask with rows that begin at multiples of 16 bytes, as the memory-efficient kernel needs
/// them.
fn padded(mask: &Tensor) -> Result<Tensor> {
    let keys = mask.size(-1);
    if keys % 8 == 0 {
        return Ok(mask.clone());
    }
    let mut shape = mask.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = (keys + 7) / 8 * 8;
    }
    let _no_grad = GradModeGuard::new(false);
    empty(&shape, mask.dtype(), mask.device())
}

/// A call of attention with tensors of four dimensions: batch, heads, rows, width.
struct Call<'a> {
    q: &'a Tensor,
    k: &'a Tensor,
    v: &'a Tensor,
    sizes: Sizes,
    dropout: f64,
}

impl Call<'_> {
    fn inputs(&self) -> [&Tensor; 3] {
        [self.q, self.k, self.v]
    }

    fn needs_gradient(&self) -> bool {
        crate::autograd::needs_history(&self.inputs())
    }

    fn output_shape(&self) -> [i64; 4] {
        [self.sizes.batch, self.sizes.heads, self.sizes.queries, self.sizes.value_width]
    }

    fn statistics(&self, queries: i64) -> Result<Tensor> {
        empty(&[self.sizes.batch, self.sizes.heads, queries, 1], Dtype::F32, self.q.device())
    }

    /// `_scaled_dot_product_cudnn_attention`.
    fn cudnn(&self, mask: Option<Tensor>) -> Result<Tensor> {
        let device = self.q.device();
        let needs = self.needs_gradient();
        let seed = empty(&[], Dtype::I64, device)?;
        let offset = empty(&[], Dtype::I64, device)?;
        let output = laid_out_like(self.q, &self.output_shape())?;
        let statistics = if needs { Some(self.statistics(self.sizes.queries)?) } else { None };
        if self.sizes.queries > 1 {
            drop(temporary(device, 256)?);
        } else if self.sizes.keys >= MANY_KEYS && self.sizes.width <= 32 {
            session().note_estimate(
                "scaled_dot_product_attention",
                "one query against this many short keys has a workspace that cuDNN chooses",
            );
        }
        let saved = [
            Save::Input(mask.as_ref()),
            Save::Input(Some(self.k)),
            Save::Input(Some(self.q)),
            Save::Input(Some(self.v)),
            Save::Input(statistics.as_ref()),
            Save::Output(0),
            Save::Input(Some(&offset)),
            Save::Input(Some(&seed)),
        ];
        let sizes = self.sizes;
        record(
            nodes::ScaledDotProductCudnnAttentionBackward0,
            &self.inputs(),
            &[&output],
            &saved,
            move |ctx, grads| {
                let grad = first(grads)?;
                let (q, k, v) = (ctx.saved(2)?, ctx.saved(1)?, ctx.saved(3)?);
                let gradients = [empty_like(&q)?, empty_like(&k)?, empty_like(&v)?];
                // cuDNN reads rows without gaps; another gradient is copied into the result's layout.
                let no_grad = GradModeGuard::new(false);
                let is_readable = grad.strides().last() == Some(&1);
                let read =
                    if is_readable { grad.clone() } else { laid_out_like(&ctx.saved(5)?, &grad.shape())? };
                drop(no_grad);
                let rows = sizes.all_heads() * sizes.queries.max(0) as u64;
                let mut workspace = rows * sizes.width.max(0) as u64 * 4 + rows * 4 + 256;
                if k.size(1) != q.size(1) || v.size(1) != q.size(1) {
                    // The keys' and values' gradients for each head of the queries, before they are added up.
                    let columns = (sizes.width + sizes.value_width).max(0) as u64;
                    workspace += sizes.all_heads() * sizes.keys.max(0) as u64 * columns * q.dtype().size();
                    session().note_estimate(
                        "scaled_dot_product_attention",
                        "the gradient with fewer heads of keys than of queries was recorded for one shape",
                    );
                }
                drop(temporary(q.device(), workspace)?);
                drop(read);
                Ok(wanted(ctx.wanted, gradients))
            },
        )?;
        drop(statistics);
        drop(seed);
        drop(offset);
        drop(mask);
        Ok(output)
    }

    /// `_scaled_dot_product_flash_attention`.
    fn flash(&self) -> Result<Tensor> {
        let device = self.q.device();
        if self.sizes.keys > 1 && self.sizes.queries > 1 && self.dropout > 0.0 {
            session().note_estimate(
                "scaled_dot_product_attention",
                "flash attention was recorded for one query only",
            );
        }
        let queries = self.sizes.queries;
        // The result has the queries' order in memory.
        let no_grad = GradModeGuard::new(false);
        let flat = empty_like(&transpose(self.q, 1, 2)?)?;
        let output = transpose(&flat, 1, 2)?;
        drop(flat);
        drop(no_grad);
        let logarithms = self.statistics(queries)?;
        let (mut state, mut unused) = (None, None);
        if session().release().has_flash_state_on_device() {
            state = Some(empty(&[2], Dtype::I64, device)?);
            unused = Some(empty(&[], Dtype::I64, device)?);
            if self.dropout > 0.0 {
                state = Some(empty(&[2], Dtype::I64, device)?);
            }
        }
        let output = unrelated(&output);
        let saved = [
            Save::Input(Some(self.k)),
            Save::Input(Some(self.q)),
            Save::Input(Some(self.v)),
            Save::Input(Some(&logarithms)),
            Save::Output(0),
            Save::Input(state.as_ref()),
            Save::Input(unused.as_ref()),
        ];
        let sizes = self.sizes;
        record(
            nodes::ScaledDotProductFlashAttentionBackward0,
            &self.inputs(),
            &[&output],
            &saved,
            move |ctx, grads| {
                let (q, k, v, output) = (ctx.saved(1)?, ctx.saved(0)?, ctx.saved(2)?, ctx.saved(4)?);
                let no_grad = GradModeGuard::new(false);
                let read_grad = contiguous(&transpose(first(grads)?, 1, 2)?)?;
                let read_output = contiguous(&transpose(&output, 1, 2)?)?;
                drop(no_grad);
                let gradients = [empty_like(&q)?, empty_like(&k)?, empty_like(&v)?];
                let rows = sizes.all_heads() * (sizes.queries.max(0) as u64).div_ceil(128) * 128;
                let sums = temporary(q.device(), rows * 4)?;
                let width = (sizes.width.max(0) as u64).div_ceil(32) * 32;
                drop(temporary(q.device(), rows * width * 4)?);
                drop(sums);
                drop(read_output);
                drop(read_grad);
                Ok(wanted(ctx.wanted, gradients))
            },
        )?;
        drop(logarithms);
        drop(state);
        drop(unused);
        Ok(output)
    }

    /// `_scaled_dot_product_efficient_attention`.
    fn efficient(&self, mask: Option<Tensor>) -> Result<Tensor> {
        let device = self.q.device();
        let needs = self.needs_gradient();
        let is_seeded = self.dropout == 0.0 && session().release().seeds_attention_on_device();
        let number = || if is_seeded { empty(&[], Dtype::I64, device).map(Some) } else { Ok(None) };
        let (seed, offset) = (number()?, number()?);
        let [batch, heads, queries, width] = self.output_shape();
        let output =
            unrelated(&transpose(&empty(&[batch, queries, heads, width], self.q.dtype(), device)?, 1, 2)?);
        let logarithms = if needs { Some(self.statistics((queries + 31) / 32 * 32)?) } else { None };
        if self.q.dtype().is_reduced_float() && width > 128 {
            drop(temporary(device, crate::numel(&self.output_shape()).max(0) as u64 * 4)?);
        }
        let saved = [
            Save::Input(mask.as_ref()),
            Save::Input(Some(self.k)),
            Save::Input(Some(self.q)),
            Save::Input(Some(self.v)),
            Save::Input(logarithms.as_ref()),
            Save::Output(0),
            Save::Input(offset.as_ref()),
            Save::Input(seed.as_ref()),
        ];
        let sizes = self.sizes;
        record(
            nodes::ScaledDotProductEfficientAttentionBackward0,
            &self.inputs(),
            &[&output],
            &saved,
            move |ctx, grads| {
                let grad = first(grads)?;
                let (q, k, v, output) = (ctx.saved(2)?, ctx.saved(1)?, ctx.saved(3)?, ctx.saved(5)?);
                let _no_grad = GradModeGuard::new(false);
                let read = contiguous(&transpose(grad, 1, 2)?)?;
                let gradient = |like: &Tensor| -> Result<Tensor> {
                    let shape = transpose(&like.detach(), 1, 2)?.shape();
                    Ok(unrelated(&transpose(&empty(&shape, like.dtype(), like.device())?, 1, 2)?))
                };
                let gradients = [gradient(&q)?, gradient(&k)?, gradient(&v)?];
                let delta = if q.dtype().is_reduced_float() {
                    empty(&[sizes.batch, sizes.heads, sizes.queries], Dtype::F32, q.device())?
                } else {
                    let product = mul(&read, &transpose(&output, 1, 2)?)?;
                    let summed = reduce::sum(&product, Some(&[-1]), false, None)?;
                    let result = contiguous(&transpose(&summed, 1, 2)?)?;
                    drop(summed);
                    drop(product);
                    result
                };
                let workspace = temporary(q.device(), efficient_workspace(sizes, q.dtype()))?;
                drop(delta);
                drop(workspace);
                drop(read);
                Ok(wanted(ctx.wanted, gradients))
            },
        )?;
        drop(logarithms);
        drop(seed);
        drop(offset);
        drop(mask);
        Ok(output)
    }
}

/// `Params::workspace_size` of the kernels for compute capability 8.0 and above: for each head the queries'
/// gradient in `float32`, in tiles of blocks of queries and of keys, and that of keys and values where the
/// kernel's registers do not hold them.
fn efficient_workspace(sizes: Sizes, dtype: Dtype) -> u64 {
    /// Two counters of a tile, padded.
    const COUNTERS: u64 = 16;
    let positive = |size: i64| size.max(0) as u64;
    let is_half = dtype.is_reduced_float();
    let widest = positive(sizes.width.max(sizes.value_width));
    let (block, columns) = match widest {
        ..=64 => (64, 64),
        65..=128 if is_half => (128, 128),
        _ => (128, 64),
    };
    let tiles = positive(sizes.queries).div_ceil(block) * positive(sizes.width).div_ceil(columns);
    let mut bytes = tiles * (block * columns * 4 + COUNTERS);
    if is_half && widest > 128 {
        // The keys are split until there are enough blocks to keep the GPU busy.
        let heads = sizes.all_heads().max(1);
        let keys = positive(sizes.keys);
        let is_enough = heads >= 256 && keys <= 2 * columns;
        let splits = if is_enough { 1 } else { keys.div_ceil(columns).min(200 / heads).max(1) };
        let widths = [sizes.width, sizes.value_width].map(|width| positive(width).next_multiple_of(block));
        bytes += splits * columns * widths.iter().sum::<u64>() * 4;
    }
    sizes.all_heads() * bytes.next_multiple_of(16)
}

fn wanted(wanted: &[bool], gradients: [Tensor; 3]) -> Gradients {
    gradients
        .into_iter()
        .zip(wanted.iter().copied().chain(std::iter::repeat(false)))
        .map(|(gradient, is_wanted)| is_wanted.then_some(gradient))
        .collect()
}

/// A tensor over the same memory that autograd does not treat as a view.
fn unrelated(view: &Tensor) -> Tensor {
    view.alias(&view.shape(), &view.strides(), view.offset())
}

arguments! {
    /// The arguments of `scaled_dot_product_attention`.
    #[derive(Clone, Copy)]
    struct Attention<'a> {
        q: &'a Tensor,
        k: &'a Tensor,
        v: &'a Tensor,
        mask: Option<&'a Tensor>,
        dropout: f64,
        is_causal: bool,
        _scale: Unread,
        is_grouped: bool,
    }
}

fn attention(call: Attention<'_>) -> Result<Value> {
    let Attention { q, k, v, mask, dropout, is_causal, .. } = call;
    let operands = Operands { q, k, v, mask, dropout, is_causal };
    if is_causal && mask.is_some() {
        return runtime(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
        );
    }
    if call.is_grouped {
        let heads = [q, k, v].map(|tensor| if tensor.dim() < 3 { 1 } else { tensor.size(-3) });
        let [of_q, of_k, of_v] = heads;
        if of_k < 1 || of_v < 1 || of_q % of_k != 0 || of_q % of_v != 0 {
            return runtime("Number of heads in key and value must divide the number of heads in ");
        }
        return Ok(grouped(operands)?.into());
    }
    Ok(scaled_dot_product_attention(operands)?.into())
}

/// Attention with `enable_gqa`: fewer heads of keys than of queries, which no kernel for `float32` takes.
fn grouped(operands: Operands<'_>) -> Result<Tensor> {
    let Operands { q, k, v, mask, dropout, is_causal } = operands;
    let is_same = q.dim() < 3 || (q.size(-3) == k.size(-3) && q.size(-3) == v.size(-3));
    if is_same || !q.device().is_cuda() {
        let (k, v) = (&repeated_heads(k, q)?, &repeated_heads(v, q)?);
        return scaled_dot_product_attention(Operands { k, v, ..operands });
    }
    let cast = Cast::lower(q.device());
    let mask = cast.apply_optional(mask)?;
    let [q, k, v] = &cast.apply_all([q, k, v])?;
    if q.dtype().is_reduced_float() && q.dim() == 4 && k.dim() == 4 && v.dim() == 4 {
        if mask.is_some() || dropout > 0.0 || is_causal {
            session().note_estimate(
                "scaled_dot_product_attention",
                "fewer heads of keys than of queries were recorded without a mask and dropout",
            );
        }
        return by_kernel(Operands { q, k, v, mask: mask.as_ref(), ..operands });
    }
    let mask = mask.as_ref().map(|mask| float_mask(mask, q.dtype())).transpose()?;
    by_products(Operands { q, k, v, mask: mask.as_ref(), ..operands })
}

/// `scaled_dot_product_attention`.
pub(crate) fn scaled_dot_product_attention(operands: Operands<'_>) -> Result<Tensor> {
    let Operands { q, k, v, mask, .. } = operands;
    let cast = Cast::lower(q.device());
    let mask = cast.apply_optional(mask)?;
    let [q, k, v] = &cast.apply_all([q, k, v])?;
    iterator::common_device(&[q, k, v])?;
    if q.dtype() != k.dtype() || q.dtype() != v.dtype() {
        return runtime(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: \
             {} instead.",
            q.dtype().scalar_name(),
            k.dtype().scalar_name(),
            v.dtype().scalar_name()
        ));
    }
    let is_four = q.dim() == 4 && k.dim() == 4 && v.dim() == 4;
    if q.dim() < 2 || k.dim() != q.dim() || v.dim() != q.dim() || (is_four && q.size(1) != k.size(1)) {
        return not_implemented(
            "scaled_dot_product_attention of heads or numbers of dimensions that differ: reshape to (batch, heads, length, \
             width) and repeat the keys' heads",
        );
    }
    if q.device().is_cuda() && (!is_four || q.dtype() == Dtype::F64) {
        if !session().attention_kernels().allows_math {
            return runtime(NO_KERNEL);
        }
        let mask = mask.as_ref().map(|mask| float_mask(mask, q.dtype())).transpose()?;
        return by_products(Operands { q, k, v, mask: mask.as_ref(), ..operands });
    }
    if !is_four {
        let shape = [&q.shape()[..q.dim() - 1], &[v.size(-1)]].concat();
        return empty(&shape, q.dtype(), q.device());
    }
    by_kernel(Operands { q, k, v, mask: mask.as_ref(), ..operands })
}

/// Attention over four dimensions, by the kernel that [`choose`] names, or by products where no kernel reads
/// the layout.
fn by_kernel(operands: Operands<'_>) -> Result<Tensor> {
    let Operands { q, k, v, mask, dropout, .. } = operands;
    let sizes = Sizes {
        batch: q.size(0),
        heads: q.size(1),
        queries: q.size(2),
        keys: k.size(2),
        width: q.size(3),
        value_width: v.size(3),
    };
    let call = Call { q, k, v, sizes, dropout };
    if !q.device().is_cuda() {
        return empty(&call.output_shape(), q.dtype(), q.device());
    }
    if mask.is_some_and(Tensor::requires_grad) {
        return not_implemented("scaled_dot_product_attention with a mask that requires a gradient");
    }
    let mask = mask.map(|mask| float_mask(mask, q.dtype())).transpose()?;
    let mask = match mask {
        Some(mask) if mask.dtype() != q.dtype() => Some(to_dtype(&mask, q.dtype())?),
        other => other,
    };
    let is_readable = |tensor: &Tensor| tensor.size(3) == 1 || tensor.strides().last() == Some(&1);
    if ![q, k, v].into_iter().all(is_readable) {
        return by_products(Operands { q, k, v, mask: mask.as_ref(), ..operands });
    }
    let output = match choose(sizes, q.dtype(), mask.is_some(), dropout)? {
        AttentionKernel::Cudnn => call.cudnn(mask)?,
        AttentionKernel::Flash if sizes.width % 8 != 0 || sizes.value_width % 8 != 0 => padded_flash(&call)?,
        AttentionKernel::Flash => call.flash()?,
        AttentionKernel::Efficient => {
            let mask = mask.map(|mask| padded(&mask)).transpose()?;
            call.efficient(mask)?
        }
        AttentionKernel::Math => by_products(Operands { q, k, v, mask: mask.as_ref(), ..operands })?,
    };
    Ok(output)
}

/// Flash attention with rows padded to a multiple of eight elements (`pad_last_dim`), and a slice of the
/// result.
fn padded_flash(call: &Call<'_>) -> Result<Tensor> {
    let pad = |tensor: &Tensor| -> Result<Tensor> {
        let missing = (8 - tensor.size(-1) % 8) % 8;
        if missing == 0 { Ok(tensor.clone()) } else { super::pool::constant_pad(tensor, &[0, missing]) }
    };
    let (q, k, v) = (pad(call.q)?, pad(call.k)?, pad(call.v)?);
    let sizes = Sizes { width: q.size(3), value_width: v.size(3), ..call.sizes };
    let output = Call { q: &q, k: &k, v: &v, sizes, dropout: call.dropout }.flash()?;
    super::views::narrow(&output, -1, 0, call.sizes.value_width)
}

const SCHEMA: &str = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float \
                      dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)";

pub(crate) const TABLE: &[Entry] = &[op!(SCHEMA, attention)];
