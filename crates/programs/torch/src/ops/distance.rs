//! Distances between rows.

use crate::arguments::Unread;
use crate::autocast::Cast;
use crate::autograd::{Context, GradModeGuard, Gradients, Save, nodes, record};
use crate::error::runtime;
use crate::iterator::broadcast;
use crate::registry::{Entry, op};
use crate::{MemoryFormat, Result, Scalar, Tensor, Value};

use super::copy::contiguous;
use super::creation::{self, empty, ones_like, wrapped, zeros};
use super::join::cat;
use super::matmul::matmul;
use super::pointwise::{add, change_in_place, div, eq, mul, pow_scalar, scale, sub};
use super::reduce::{self, sum};
use super::views::{expand, first, transpose, unsqueeze, view};

/// The most rows whose distances are computed without a matrix product, if the caller chooses neither way.
const MAX_ROWS_WITHOUT_PRODUCT: i64 = 25;

/// `_euclidean_dist`: the distances of all pairs of rows, by one matrix product.
fn euclidean(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let result = {
        let _no_grad = GradModeGuard::new(false);
        let squares = |rows: &Tensor| sum(&pow_scalar(rows, Scalar::Int(2))?, Some(&[-1]), true, None);
        let a_norm = squares(a)?;
        let a_ones = ones_like(&a_norm)?;
        let b_norm = squares(b)?;
        let b_ones = ones_like(&b_norm)?;
        // The list of `cat` dies from its end.
        let mut parts = vec![scale(a, -2.0)?, a_norm, a_ones];
        let left = cat(&parts, -1)?;
        while parts.pop().is_some() {}
        let mut parts = vec![b.clone(), b_ones, b_norm];
        let right = cat(&parts, -1)?;
        while parts.pop().is_some() {}
        let result = matmul(&left, &transpose(&right, -2, -1)?)?;
        change_in_place(&result)?;
        drop(right);
        drop(left);
        result
    };
    let saved = [Save::Input(Some(a)), Save::Input(Some(b)), Save::Output(0)];
    record(nodes::EuclideanDistBackward0, &[a, b], &[&result], &saved, euclidean_backward)?;
    Ok(result)
}

/// `_euclidean_dist_backward`: both gradients are always made.
fn euclidean_backward(ctx: &Context<'_>, grads: &[Option<Tensor>]) -> Result<Gradients> {
    let (a, b, result) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
    let ratio = div(first(grads)?, &result)?;
    let is_zero = eq(&result, &wrapped(Scalar::Int(0)))?;
    let ratio = crate::call("masked_fill_", &[ratio.into(), (&is_zero).into(), 0.into()], &[])?.tensor()?;
    drop(is_zero);
    // Operands are evaluated from the right, and temporaries live until both gradients exist.
    let product = matmul(&ratio, &b)?;
    let rows = sum(&ratio, Some(&[-1]), true, None)?;
    let scaled = mul(&a, &rows)?;
    let to_a = sub(&scaled, &product)?;
    let product_b = matmul(&transpose(&ratio, -2, -1)?, &a)?;
    let columns = sum(&ratio, Some(&[-2]), false, None)?;
    let scaled_b = mul(&b, &unsqueeze(&columns, -1)?)?;
    let to_b = sub(&scaled_b, &product_b)?;
    Ok(vec![Some(to_a), Some(to_b)])
}

/// The batch of both, as one shape in front of the rows.
fn batch_of(a: &Tensor, b: &Tensor) -> Result<Vec<i64>> {
    let shapes = [a.shape(), b.shape()];
    let [a, b] = &shapes;
    broadcast(&[batch_part(a), batch_part(b)])
}

fn batch_part(shape: &[i64]) -> &[i64] {
    shape.get(..shape.len().saturating_sub(2)).unwrap_or_default()
}

fn joined(batch: &[i64], rows: i64, columns: i64) -> Vec<i64> {
    batch.iter().copied().chain([rows, columns]).collect()
}

fn cdist(a: &Tensor, b: &Tensor, p: f64, compute_mode: &Value) -> Result<Value> {
    if !a.dtype().is_floating() || !b.dtype().is_floating() {
        return runtime(format!(
            "cdist only supports floating-point dtypes, X1 got: {}",
            a.dtype().scalar_name()
        ));
    }
    for (tensor, name) in [(a, "X1"), (b, "X2")] {
        if tensor.dim() < 2 {
            return runtime(format!(
                "cdist only supports at least 2D tensors, {name} got: {}D",
                tensor.dim()
            ));
        }
    }
    if a.size(-1) != b.size(-1) {
        return runtime(format!(
            "X1 and X2 must have the same number of columns. X1: {} X2: {}",
            a.size(-1),
            b.size(-1)
        ));
    }
    let mode = match compute_mode {
        Value::Str(mode) if &**mode == "use_mm_for_euclid_dist" => 1,
        Value::Str(mode) if &**mode == "donot_use_mm_for_euclid_dist" => 2,
        _ => 0,
    };
    let cast = Cast::full(a.device());
    let (b, a) = (cast.apply(b)?, cast.apply(a)?);
    let (rows_a, rows_b) = (a.size(-2), b.size(-2));
    let is_long = rows_a > MAX_ROWS_WITHOUT_PRODUCT || rows_b > MAX_ROWS_WITHOUT_PRODUCT;
    let is_euclidean = (p - 2.0).abs() < f64::EPSILON && (mode == 1 || (mode == 0 && is_long));
    if a.numel() > 0 && b.numel() > 0 && is_euclidean {
        return Ok(by_product(&a, &b)?.into());
    }
    Ok(by_kernel(&a, &b, p)?.into())
}

/// `cdist_impl` with a matrix product.
fn by_product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let batch = batch_of(a, b)?;
    let count = crate::numel(&batch);
    let spread = |rows: &Tensor| -> Result<Tensor> {
        let (height, width) = (rows.size(-2), rows.size(-1));
        view(&contiguous(&expand(rows, &joined(&batch, height, width))?)?, &[count, height, width])
    };
    let (spread_a, spread_b) = (spread(a)?, spread(b)?);
    let distances = if count == 1 { euclidean(a, b)? } else { euclidean(&spread_a, &spread_b)? };
    let result = view(&distances, &joined(&batch, a.size(-2), b.size(-2)))?;
    drop(distances);
    drop(spread_b);
    drop(spread_a);
    Ok(result)
}

/// `_cdist_forward` with a separate kernel.
fn by_kernel(a: &Tensor, b: &Tensor, p: f64) -> Result<Tensor> {
    let batch = batch_of(a, b)?;
    let output_shape = joined(&batch, a.size(-2), b.size(-2));
    let result = {
        let _no_grad = GradModeGuard::new(false);
        let spread = |rows: &Tensor| -> Result<Tensor> {
            contiguous(&expand(rows, &joined(&batch, rows.size(-2), rows.size(-1)))?)
        };
        let (spread_a, spread_b) = (spread(a)?, spread(b)?);
        let result = empty(&output_shape, a.dtype(), a.device())?;
        drop(spread_b);
        drop(spread_a);
        result
    };
    let saved = [Save::Input(Some(a)), Save::Input(Some(b)), Save::Output(0)];
    record(nodes::CdistBackward0, &[a, b], &[&result], &saved, move |ctx, grads| {
        let (a, b, result) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let grad = first(grads)?;
        let to_a = ctx.gradient(0, || kernel_backward(&contiguous(grad)?, &a, &b, p))?;
        let to_b = if ctx.wants(1) {
            let turned_result = contiguous(&transpose(&result, -2, -1)?)?;
            let turned_grad = contiguous(&transpose(grad, -2, -1)?)?;
            let to_b = kernel_backward(&turned_grad, &b, &a, p)?;
            drop(turned_grad);
            drop(turned_result);
            Some(to_b)
        } else {
            None
        };
        Ok(vec![to_a, to_b])
    })?;
    Ok(result)
}

/// `_cdist_backward`: the kernel writes one gradient for each pair of rows; the gradients are then added up.
fn kernel_backward(grad: &Tensor, a: &Tensor, b: &Tensor, p: f64) -> Result<Tensor> {
    let batch = batch_of(a, b)?;
    let spread = |rows: &Tensor| -> Result<Tensor> {
        contiguous(&expand(rows, &joined(&batch, rows.size(-2), rows.size(-1)))?)
    };
    let a = spread(a)?;
    let b = spread(b)?;
    let count = crate::numel(&batch);
    let (rows, columns) = (a.size(-2), a.size(-1));
    let result = empty(&[count, rows, columns], a.dtype(), a.device())?;
    if p != 0.0 && grad.numel() > 0 {
        let pairs = empty(&[count, b.size(-2), rows, columns], a.dtype(), a.device())?;
        let mask: Vec<bool> = (0..4).map(|dim| dim == 1).collect();
        reduce::sum_into(&result, &pairs, &mask)?;
        drop(pairs);
    }
    let result = result.alias(&a.shape(), &crate::contiguous_strides(&a.shape()), 0);
    drop(b);
    drop(a);
    Ok(result)
}

/// `pdist`: the distances of all pairs of rows of one matrix.
fn pdist(tensor: &Tensor, _: Unread) -> Result<Value> {
    if tensor.dim() != 2 {
        return runtime(format!("pdist only supports 2D tensors, got: {}D", tensor.dim()));
    }
    let rows = tensor.size(0);
    let read = contiguous(tensor)?;
    let pairs = rows.max(1) * (rows.max(1) - 1) / 2;
    let output = empty(&[pairs], tensor.dtype(), tensor.device())?;
    drop(read);
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(nodes::PdistBackward0, &[tensor], &[&output], &saved, |ctx, _| {
        let input = ctx.saved(0)?;
        crate::session().note_estimate(nodes::PdistBackward0, "the gradient was not recorded");
        let result = creation::empty_like_as(&input, input.dtype(), MemoryFormat::Contiguous)?;
        let rows = input.size(0);
        let partial = zeros(&[rows - 1, rows, input.size(1)], input.dtype(), input.device())?;
        reduce::sum_into(&result, &partial, &[true, false, false])?;
        drop(partial);
        Ok(vec![Some(result)])
    })?;
    Ok(output.into())
}

/// `pairwise_distance`: `norm(x1 - x2 + eps, p, innermost, keepdim)`.
fn pairwise(a: &Tensor, b: &Tensor, p: f64, eps: f64, keepdim: bool) -> Result<Value> {
    let innermost = a.dim().max(b.dim()) as i64 - 1;
    let difference = sub(a, b)?;
    let shifted = add(&difference, &wrapped(Scalar::Float(eps)))?;
    // `at::norm`, whose gradient reads the input in the type of the result.
    let result = reduce::norm_of_wide(&shifted, p, Some(&[innermost]), keepdim)?;
    drop(shifted);
    drop(difference);
    Ok(result.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("cdist(Tensor x1, Tensor x2, float p=2, Any compute_mode=None)", cdist),
    op!("pdist(Tensor self, float p=2)", pdist),
    op!("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-6, bool keepdim=False)", pairwise),
];
