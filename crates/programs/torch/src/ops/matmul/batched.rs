//! Products of batches of matrices: `bmm`, `baddbmm`, `addbmm`.

use crate::autocast::Cast;
use crate::autograd::{Save, nodes, record_after, save_early, without_grad};
use crate::error::runtime;
use crate::session::Library;
use crate::{MemoryFormat, Result, Scalar, Tensor};

use super::super::creation::empty;
use super::super::pointwise::maybe_multiply;
use super::super::views::{expand, first, select, transpose, unsqueeze};
use super::{Target, check_dtypes, gemm, stride, take_workspace};

/// `prepare_batch_matrix_for_cublas`, for a result without gaps; `dims` are those that the kernel takes for
/// rows and columns.
fn prepare_batch(matrix: &Tensor, dims: [usize; 2], rows: i64, columns: i64) -> Result<Tensor> {
    let [fast, leading] = dims.map(|dim| stride(matrix, dim));
    let is_readable = (fast == 1 && leading >= rows.max(1)) || (leading == 1 && fast >= columns.max(1));
    let is_stride_nonzero = fast != 0 && leading != 0;
    if is_readable || (matrix.is_contiguous() && is_stride_nonzero) {
        Ok(matrix.clone())
    } else {
        without_grad(|| super::super::copy::clone(matrix, MemoryFormat::Contiguous))
    }
}

/// The copies and the workspace of cuBLAS's product of two batches (`bmm_out_cuda_impl`).
pub(super) fn batched(a: &Tensor, b: &Tensor, output: &Tensor) -> Result<()> {
    if output.numel() == 0 || a.numel() == 0 || !a.device().is_cuda() {
        return Ok(());
    }
    let inner = a.size(2);
    let layout = ResultLayout::of(output);
    // cuBLAS writes by columns; a result that lies by rows is written transposed, so the operands change
    // places.
    let copied = (layout == ResultLayout::Other)
        .then(|| {
            without_grad(|| super::super::copy::clone(&transpose(output, 1, 2)?, MemoryFormat::Contiguous))
        })
        .transpose()?;
    let (first, second, dims) = if layout == ResultLayout::Rows { (b, a, [2, 1]) } else { (a, b, [1, 2]) };
    let [rows, columns] = dims.map(|dim| output.size(dim as i64));
    let first = prepare_batch(first, dims, rows, inner)?;
    let second = prepare_batch(second, dims, inner, columns)?;
    take_workspace(Library::Cublas, a.device())?;
    drop(second);
    drop(first);
    drop(copied);
    Ok(())
}

/// How the elements of a result lie (`bmm_out_cuda_impl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultLayout {
    Columns,
    Rows,
    /// The kernel writes another tensor, which is copied.
    Other,
}

impl ResultLayout {
    fn of(output: &Tensor) -> Self {
        let [down, right] = [1, 2].map(|dim| stride(output, dim));
        let (rows, columns) = (output.size(1), output.size(2));
        if down == 1 && (columns == 1 || right >= rows.max(1)) {
            Self::Columns
        } else if right == 1 && (rows == 1 || down >= columns.max(1)) {
            Self::Rows
        } else {
            Self::Other
        }
    }
}

/// `bmm`.
pub(crate) fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = Cast::lower(a.device());
    let [a, b] = &cast.apply_all([a, b])?;
    check_dtypes(a, b, "bmm")?;
    if a.dim() != 3 || b.dim() != 3 {
        return runtime("batch1 must be a 3D tensor");
    }
    if a.size(0) != b.size(0) || a.size(2) != b.size(1) {
        return runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            a.size(0),
            a.size(2),
            b.size(0),
            b.size(1)
        ));
    }
    let saved = [Save::InputIf(a.requires_grad(), b), Save::InputIf(b.requires_grad(), a)];
    let early = save_early(&[a, b], &saved)?;
    let output = empty(&[a.size(0), a.size(1), b.size(2)], a.dtype(), a.device())?;
    batched(a, b, &output)?;
    record_after(early, nodes::BmmBackward0, &[a, b], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let to_b = ctx.gradient(1, || bmm(&transpose(&ctx.saved(1)?, 1, 2)?, grad))?;
        let to_a = ctx.gradient(0, || bmm(grad, &transpose(&ctx.saved(0)?, 1, 2)?))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}

/// `baddbmm`.
pub(super) fn baddbmm(
    into: Target,
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    [beta, alpha]: [Scalar; 2],
) -> Result<Tensor> {
    let cast = into.cast(a.device());
    let [own, a, b] = &cast.apply_all([input, a, b])?;
    check_dtypes(a, b, "baddbmm")?;
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[own, a, b], &saved)?;
    let output = into.output(own, &[a.size(0), a.size(1), b.size(2)], a.dtype())?;
    batched(a, b, &output)?;
    record_after(early, nodes::BaddbmmBackward0, &[own, a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_a =
            ctx.gradient(1, || maybe_multiply(&bmm(grad, &transpose(&ctx.saved(1)?, 1, 2)?)?, alpha))?;
        let to_b =
            ctx.gradient(2, || maybe_multiply(&bmm(&transpose(&ctx.saved(0)?, 1, 2)?, grad)?, alpha))?;
        let to_own = ctx.gradient(0, || maybe_multiply(grad, beta))?;
        Ok(vec![to_own, to_a, to_b])
    })?;
    Ok(output)
}

/// `addbmm`: one product of matrices after the other into the same result.
pub(super) fn addbmm(
    into: Target,
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    [beta, alpha]: [Scalar; 2],
) -> Result<Tensor> {
    let cast = into.cast(a.device());
    let [own, a, b] = &cast.apply_all([input, a, b])?;
    check_dtypes(a, b, "baddbmm")?;
    if a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1) {
        return runtime("batch1 and batch2 must be batches of matrices that can be multiplied");
    }
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[own, a, b], &saved)?;
    let output = into.output(own, &[a.size(1), b.size(2)], a.dtype())?;
    for batch in 0..a.size(0) {
        without_grad(|| gemm(&select(a, 0, batch)?, &select(b, 0, batch)?, Library::Cublas))?;
    }
    record_after(early, nodes::AddbmmBackward0, &[own, a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let repeated = |batches: i64| expand(&unsqueeze(grad, 0)?, &[batches, grad.size(0), grad.size(1)]);
        let to_a = ctx.gradient(1, || {
            let b = ctx.saved(1)?;
            maybe_multiply(&bmm(&repeated(b.size(0))?, &transpose(&b, 1, 2)?)?, alpha)
        })?;
        let to_b = ctx.gradient(2, || {
            let a = ctx.saved(0)?;
            maybe_multiply(&bmm(&transpose(&a, 1, 2)?, &repeated(a.size(0))?)?, alpha)
        })?;
        let to_own = ctx.gradient(0, || maybe_multiply(grad, beta))?;
        Ok(vec![to_own, to_a, to_b])
    })?;
    Ok(output)
}
