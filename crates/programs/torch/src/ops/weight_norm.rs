//! Weight normalization.

use crate::autograd::{GradMode, GradModeGuard, Save, nodes, record};
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor};

use super::copy::{contiguous, empty_strided, to_dtype};
use super::creation::empty_like_as;
use super::pointwise::{div, mul, sub};
use super::reduce::{sum, vector_norm};
use super::views::{first, transpose, view};

/// A shape of ones but for one dimension.
fn broadcast_shape(tensor: &Tensor, dim: usize) -> Vec<i64> {
    let shape = tensor.shape();
    shape.iter().enumerate().map(|(at, size)| if at == dim { *size } else { 1 }).collect()
}

/// `norm_except_dim`.
fn norm_except_dim(v: &Tensor, power: f64, dim: i64) -> Result<Tensor> {
    let last = v.dim().saturating_sub(1);
    if dim == -1 {
        return vector_norm(v, power, None, false, None);
    }
    if dim == 0 {
        let rows = view(&contiguous(v)?, &[v.size(0), -1])?;
        return view(&vector_norm(&rows, power, Some(&[1]), false, None)?, &broadcast_shape(v, 0));
    }
    if dim == last as i64 {
        let columns = view(&contiguous(v)?, &[-1, v.size(-1)])?;
        return view(&vector_norm(&columns, power, Some(&[0]), false, None)?, &broadcast_shape(v, last));
    }
    transpose(&norm_except_dim(&transpose(v, 0, dim)?, power, 0)?, 0, dim)
}

/// `_weight_norm_differentiable_backward`.
fn composed_backward(flow: &Tensor, v: &Tensor, g: &Tensor, norms: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    let norms = to_dtype(norms, g.dtype())?;
    let per_dim = {
        let product = mul(flow, v)?;
        let at = if dim == 0 { 0 } else { v.dim().saturating_sub(1) };
        let flat: [i64; 2] = if dim == 0 { [v.size(0), -1] } else { [-1, v.size(-1)] };
        let summed = sum(&view(&product, &flat)?, Some(&[i64::from(dim == 0)]), false, None)?;
        view(&summed, &broadcast_shape(v, at))?
    };
    let to_v = {
        let squared = mul(&norms, &norms)?;
        let ratio = div(&per_dim, &squared)?;
        let shift = mul(v, &ratio)?;
        let rest = sub(flow, &shift)?;
        let scale = div(g, &norms)?;
        mul(&scale, &rest)?
    };
    let to_g = div(&per_dim, &norms)?;
    Ok([to_v, to_g])
}

/// `_weight_norm`: one kernel for the first and the last dimension, composed of operators for others.
fn weight_norm(v: &Tensor, g: &Tensor, dim: i64) -> Result<Tensor> {
    let (v, g) = (contiguous(v)?, contiguous(g)?);
    if !(dim == 0 || dim == v.dim() as i64 - 1) {
        let norm = norm_except_dim(&v, 2.0, dim)?;
        let ratio = div(&g, &norm)?;
        return mul(&v, &ratio);
    }
    let (w, norms) = {
        let _no_grad = GradModeGuard::new(false);
        let w = empty_like_as(&v, v.dtype(), MemoryFormat::Contiguous)?;
        let dtype = if g.dtype().is_reduced_float() { Dtype::F32 } else { g.dtype() };
        (w, empty_strided(&g.shape(), &g.strides(), dtype, g.device())?)
    };
    // No gradient flows through the norms.
    let saved = [Save::Input(Some(&g)), Save::Input(Some(&v)), Save::Input(Some(&norms))];
    record(nodes::WeightNormInterfaceBackward0, &[&v, &g], &[&w], &saved, move |ctx, grads| {
        let (g, v, norms) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let flow = contiguous(first(grads)?)?;
        if GradMode::is_enabled() {
            let [to_v, to_g] = composed_backward(&flow, &v, &g, &norms, dim)?;
            return Ok(vec![Some(to_v), Some(to_g)]);
        }
        let to_v = empty_like_as(&v, v.dtype(), MemoryFormat::Contiguous)?;
        let to_g = empty_like_as(&g, g.dtype(), MemoryFormat::Contiguous)?;
        Ok(vec![Some(to_v), Some(to_g)])
    })?;
    Ok(w)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("_weight_norm(Tensor v, Tensor g, int dim=0)", weight_norm),
    op!("norm_except_dim(Tensor v, int pow=2, int dim=0)", |v: &Tensor, pow: i64, dim: i64| {
        norm_except_dim(v, pow as f64, dim)
    }),
];
