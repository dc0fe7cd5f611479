//! Order statistics: medians, the k-th value, quantiles.

use crate::arguments::Operand;
use crate::autograd::{Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Scalar, Tensor, Value, session};

use super::copy::{contiguous, to_dtype};
use super::creation::{empty, host_scalar, wrapped};
use super::pointwise::{masked_fill, mul, sub, where_};
use super::reduce;
use super::sort::sort;
use super::views::{first, reshape, select, squeeze, transpose, unsqueeze, view, wrap};

fn named(name: &str, values: &[Value]) -> Result<Tensor> {
    crate::call(name, values, &[])?.tensor()
}

/// `median()` of all elements: the middle element after sorting, or the last element if that is `nan`.
fn median_of_all(tensor: &Tensor) -> Result<Tensor> {
    let (sorted, indices) = sort(&reshape(tensor, &[-1])?, 0)?;
    drop(indices);
    let size = tensor.numel();
    // C++ evaluates the arguments last to first.
    let middle = select(&sorted, 0, (size - 1).max(0) / 2)?;
    let last = select(&sorted, 0, -1)?;
    let is_nan = named("isnan", &[(&select(&sorted, 0, -1)?).into()])?;
    let result = where_(&is_nan, &last, &middle)?;
    drop(is_nan);
    Ok(result)
}

/// `nanmedian()` of all elements: the sorted element in the middle of those that are not `nan`.
fn nanmedian_of_all(tensor: &Tensor) -> Result<Tensor> {
    let flat = reshape(tensor, &[-1])?;
    let (sorted, indices) = sort(&flat, 0)?;
    drop(indices);
    drop(flat);
    let place = {
        let is_nan = named("isnan", &[(&sorted).into()])?;
        let count = named("sum", &[(&is_nan).into()])?;
        let rest = named("rsub", &[(&count).into(), (tensor.numel() - 1).into()])?;
        let half = named("div", &[(&rest).into(), 2.into()])?;
        super::copy::to_dtype(&half, Dtype::I64)?
    };
    let result = super::creation::empty(&[], tensor.dtype(), tensor.device())?;
    drop(place);
    Ok(result)
}

fn nanmedian(tensor: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Value> {
    if let Some(dim) = dim {
        return selection(tensor, dim, keepdim, nodes::NanmedianBackward1);
    }
    let result = nanmedian_of_all(&tensor.detach())?;
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(nodes::NanmedianBackward0, &[tensor], &[&result], &saved, |ctx, grads| {
        Ok(vec![Some(reduce::evenly_distribute(first(grads)?, &ctx.saved(0)?, &ctx.saved(1)?)?)])
    })?;
    Ok(result.into())
}

fn median(tensor: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Value> {
    let Some(dim) = dim else {
        if tensor.requires_grad() || tensor.dim() != 1 {
            session().note_estimate("median", "only one dimension without a gradient was recorded");
        }
        let result = median_of_all(&tensor.detach())?;
        let saved = [Save::Input(Some(tensor)), Save::Output(0)];
        record(nodes::MedianBackward0, &[tensor], &[&result], &saved, |ctx, grads| {
            Ok(vec![Some(reduce::evenly_distribute(first(grads)?, &ctx.saved(0)?, &ctx.saved(1)?)?)])
        })?;
        return Ok(result.into());
    };
    selection(tensor, dim, keepdim, nodes::MedianBackward1)
}

/// The value of rank k along a dimension, and its index: one kernel that reads a contiguous input.
fn selection(tensor: &Tensor, dim: i64, keeps: bool, node: &'static str) -> Result<Value> {
    let at = wrap(dim, tensor.dim())? as i64;
    let mask = if tensor.dim() == 0 { vec![] } else { reduce::mask_of(Some(&[at]), tensor.dim())? };
    let read = contiguous(&tensor.detach())?;
    let values = reduce::reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    let indices = reduce::reduced_empty(tensor, &mask, keeps, Dtype::I64)?;
    drop(read);
    reduce::record_selection(node, tensor, &values, &indices, at, keeps)?;
    Ok((values, indices).into())
}

/// `mode`: values and indices, then an input in which the dimension is the innermost.
fn mode(tensor: &Tensor, dim: i64, keeps: bool) -> Result<Value> {
    let at = wrap(dim, tensor.dim())? as i64;
    let mask = if tensor.dim() == 0 { vec![] } else { reduce::mask_of(Some(&[at]), tensor.dim())? };
    let values = reduce::reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
    let indices = reduce::reduced_empty(tensor, &mask, keeps, Dtype::I64)?;
    if tensor.dim() > 0 && tensor.size(at) > 1 {
        let turned = transpose(&tensor.detach(), at, -1)?;
        let read = contiguous(&turned)?;
        if tensor.size(at) > 2048 {
            session().note_estimate("mode", "the mode of more than 2,048 elements was not recorded");
        }
        drop(read);
    }
    reduce::record_selection(nodes::ModeBackward0, tensor, &values, &indices, at, keeps)?;
    Ok((values, indices).into())
}

fn kthvalue(tensor: &Tensor, k: i64, dim: i64, keepdim: bool) -> Result<Value> {
    let size = if tensor.dim() == 0 { 1 } else { tensor.size(wrap(dim, tensor.dim())? as i64) };
    if !(1..=size).contains(&k) {
        return runtime(format!("kthvalue(): selected number k out of range for dimension {dim}"));
    }
    selection(tensor, dim, keepdim, nodes::KthvalueBackward0)
}

/// `quantile_compute`, without its exchange of `nan`.
fn quantile(tensor: &Tensor, q: Operand<'_>, dim: Option<i64>, keepdim: bool, mode: &str) -> Result<Value> {
    let q = match q {
        Operand::Tensor(q) => q.clone(),
        Operand::Number(q) => {
            if let Some(q) = q.to_f64().filter(|q| !(0.0..=1.0).contains(q)) {
                return runtime(format!("quantile() q must be in the range [0, 1] but got {q}"));
            }
            if tensor.device().is_cuda() {
                empty(&[], tensor.dtype(), tensor.device())?
            } else {
                host_scalar(q, tensor.dtype())
            }
        }
    };
    check_quantile(tensor, &q)?;
    let dim = dim.map(|dim| wrap(dim, tensor.dim())).transpose()?;
    let is_interpolated = matches!(mode, "linear" | "midpoint");
    if !is_interpolated && !matches!(mode, "lower" | "higher" | "nearest") {
        return runtime(format!(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {mode}"
        ));
    }
    if dim.is_some() || q.dim() > 0 || tensor.requires_grad() || !is_interpolated {
        session().note_estimate("quantile", "only one number of all elements was recorded");
    }
    let sorted = sorted_rows(tensor, dim, keepdim)?;
    let last = sorted.size(-1) - 1;
    if last >= 1 << 24 {
        return runtime("quantile() input tensor is too large");
    }
    let ranks = {
        let scaled = mul(&q, &wrapped(Scalar::Int(last)))?;
        let is_nan = named("isnan", &[(&sorted).into()])?;
        let has_nan = named("any", &[(&is_nan).into(), (-1).into(), true.into()])?;
        drop(is_nan);
        let ranks = masked_fill(&scaled, &has_nan, &wrapped(Scalar::Int(last)))?;
        drop(scaled);
        drop(has_nan);
        ranks
    };
    let below = to_dtype(&ranks, Dtype::I64)?;
    let values = named("gather", &[(&sorted).into(), (-1).into(), (&below).into()])?;
    if is_interpolated {
        let weights =
            if mode == "midpoint" { super::creation::empty_like(&ranks)? } else { sub(&ranks, &below)? };
        let above = to_dtype(&ranks, Dtype::I64)?;
        let upper = named("gather", &[(&sorted).into(), (-1).into(), (&above).into()])?;
        named("lerp_", &[(&values).into(), (&upper).into(), (&weights).into()])?;
        drop(upper);
        drop(above);
        drop(weights);
    }
    drop(below);
    drop(ranks);
    drop(sorted);
    let is_one = q.dim() == 0;
    drop(q);
    let result = if is_one {
        squeeze(&values, Some(&[-1]))?
    } else {
        squeeze(&transpose(&unsqueeze(&values, 0)?, 0, -1)?, Some(&[-1]))?
    };
    Ok(result.into())
}

fn check_quantile(tensor: &Tensor, q: &Tensor) -> Result<()> {
    if tensor.numel() == 0 {
        return runtime("quantile() input tensor must be non-empty");
    }
    if q.dim() > 1 {
        return runtime("quantile() q must be a scalar or 1D tensor");
    }
    if !matches!(tensor.dtype(), Dtype::F32 | Dtype::F64) {
        return runtime("quantile() input tensor must be either float or double dtype");
    }
    if tensor.dtype() != q.dtype() {
        return runtime("quantile() q tensor must be same dtype as the input tensor");
    }
    if tensor.device() != q.device() {
        return runtime("quantile() q tensor must be on the same device as the input tensor");
    }
    Ok(())
}

/// The input sorted along the reduced dimension, or all of them, which becomes the last dimension.
fn sorted_rows(tensor: &Tensor, dim: Option<usize>, keeps: bool) -> Result<Tensor> {
    let take = |tensor: &Tensor| -> Result<Tensor> {
        let (values, indices) = sort(tensor, -1)?;
        drop(indices);
        Ok(values)
    };
    let sorted = match dim {
        None => take(&reshape(tensor, &[-1])?)?,
        Some(at) if at + 1 == tensor.dim() => take(tensor)?,
        Some(at) => take(&transpose(&unsqueeze(tensor, -1)?, at as i64, -1)?)?,
    };
    // The shape of the result, and in the place of its last dimension all that is sorted.
    let mut shape: Vec<i64> = match (dim, keeps) {
        (None, true) => vec![1; tensor.dim()],
        (None, false) => vec![],
        (Some(at), keeps) => {
            let sizes = tensor.shape();
            let sizes = sizes.iter().enumerate();
            sizes
                .filter(|(dim, _)| keeps || *dim != at)
                .map(|(dim, size)| if dim == at { 1 } else { *size })
                .collect()
        }
    };
    shape.push(sorted.size(-1));
    view(&sorted, &shape)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("median(Tensor self, int? dim=None, bool keepdim=False)", median),
    op!("nanmedian(Tensor self, int? dim=None, bool keepdim=False)", nanmedian),
    op!("mode(Tensor self, int dim=-1, bool keepdim=False)", mode),
    op!("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)", kthvalue),
    op!(
        "quantile(Tensor self, Operand q, int? dim=None, bool keepdim=False, *, str interpolation=linear)",
        quantile,
    ),
];
