//! Products with vectors: `mv`, `addmv`, `dot`, `outer`.

use crate::autocast::Cast;
use crate::autograd::{Save, nodes, record_after, save_early, without_grad};
use crate::error::runtime;
use crate::session::Library;
use crate::{Result, Scalar, Tensor};

use super::super::copy::contiguous;
use super::super::creation::empty;
use super::super::pointwise::{maybe_multiply, mul};
use super::super::views::{first, reshape, t};
use super::{Target, check_dtypes, is_readable, stride, take_workspace};

/// A kernel of cuBLAS over a matrix and a vector: a vector that repeats one number is written out, and so is
/// a matrix with gaps in rows and columns.
fn gemv(a: &Tensor, b: &Tensor) -> Result<()> {
    if !a.device().is_cuda() {
        return Ok(());
    }
    let vector = if stride(b, 0) == 0 { without_grad(|| contiguous(b))? } else { b.clone() };
    let matrix = if is_readable(a) { a.clone() } else { without_grad(|| contiguous(a))? };
    take_workspace(Library::Cublas, a.device())?;
    drop(matrix);
    drop(vector);
    Ok(())
}

/// `mv`.
pub(crate) fn mv(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = Cast::lower(a.device());
    let [a, b] = &cast.apply_all([a, b])?;
    check_dtypes(a, b, "mv")?;
    if a.size(1) != b.size(0) {
        return runtime(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            a.size(0),
            a.size(0),
            a.size(1),
            b.size(0)
        ));
    }
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[a, b], &saved)?;
    let output = empty(&[a.size(0)], a.dtype(), a.device())?;
    gemv(a, b)?;
    record_after(early, nodes::MvBackward0, &[a, b], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let to_a = ctx.gradient(0, || outer(grad, &ctx.saved(1)?))?;
        let to_b = ctx.gradient(1, || mv(&t(&ctx.saved(0)?)?, grad))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}

/// `addmv`.
pub(super) fn addmv(
    into: Target,
    input: &Tensor,
    a: &Tensor,
    b: &Tensor,
    [beta, alpha]: [Scalar; 2],
) -> Result<Tensor> {
    let cast = into.cast(a.device());
    let [own, a, b] = &cast.apply_all([input, a, b])?;
    check_dtypes(a, b, "addmv")?;
    if a.dim() != 2 || b.dim() != 1 || a.size(1) != b.size(0) {
        return runtime(format!(
            "vector + matrix @ vector expected, got {}, {}, {}",
            own.dim(),
            a.dim(),
            b.dim()
        ));
    }
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[own, a, b], &saved)?;
    let output = into.output(own, &[a.size(0)], a.dtype())?;
    gemv(a, b)?;
    record_after(early, nodes::AddmvBackward0, &[own, a, b], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_a = ctx.gradient(1, || maybe_multiply(&outer(grad, &ctx.saved(1)?)?, alpha))?;
        let to_own = ctx.gradient(0, || maybe_multiply(grad, beta))?;
        let to_b = ctx.gradient(2, || maybe_multiply(&mv(&t(&ctx.saved(0)?)?, grad)?, alpha))?;
        Ok(vec![to_own, to_a, to_b])
    })?;
    Ok(output)
}

/// `vdot`: of real numbers a `dot` that saves its operands in another order.
pub(super) fn vdot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let saved = [Save::InputIf(a.requires_grad(), b), Save::InputIf(b.requires_grad(), a)];
    let early = save_early(&[a, b], &saved)?;
    let output = without_grad(|| dot(a, b))?;
    record_after(early, nodes::VdotBackward0, &[a, b], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let to_a = ctx.gradient(0, || mul(grad, &ctx.saved(0)?))?;
        let to_b = ctx.gradient(1, || mul(grad, &ctx.saved(1)?))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}

/// `outer`: `self.reshape({n, 1}) * vec2`.
pub(super) fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    mul(&reshape(a, &[a.numel(), 1])?, b)
}

/// `dot`.
pub(super) fn dot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(a, b, "dot")?;
    if a.dim() != 1 || b.dim() != 1 {
        return runtime(format!("1D tensors expected, but got {}D and {}D tensors", a.dim(), b.dim()));
    }
    if a.numel() != b.numel() {
        return runtime(format!(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but got {} \
             and {} elements respectively",
            a.numel(),
            b.numel(),
            a.numel(),
            b.numel()
        ));
    }
    let saved = [Save::InputIf(b.requires_grad(), a), Save::InputIf(a.requires_grad(), b)];
    let early = save_early(&[a, b], &saved)?;
    let output = empty(&[], a.dtype(), a.device())?;
    take_workspace(Library::Cublas, a.device())?;
    record_after(early, nodes::DotBackward0, &[a, b], &[&output], &saved, |ctx, grads| {
        let grad = first(grads)?;
        let to_a = ctx.gradient(0, || mul(grad, &ctx.saved(1)?))?;
        let to_b = ctx.gradient(1, || mul(grad, &ctx.saved(0)?))?;
        Ok(vec![to_a, to_b])
    })?;
    Ok(output)
}
