//! `AccumulateGrad`: how a leaf gets its gradient.

use super::GradMode;
use crate::ops::{copy, pointwise, sparse};
use crate::{Result, Scalar, Tensor};

/// Adds a gradient to the leaf's: the leaf takes the gradient over, copies it, or adds it in place, as
/// PyTorch decides.
pub(super) fn accumulate(variable: &Tensor, grad: Tensor) -> Result<()> {
    let has_post_hooks = !variable.autograd().borrow().post_hooks.is_empty();
    match variable.grad() {
        None if grad.is_sparse() => {
            let can_take = !GradMode::is_enabled() && grad.is_stealable(1 + usize::from(has_post_hooks));
            variable.set_grad(Some(sparse::taken_or_cloned(&grad, can_take)?));
        }
        Some(before) if before.is_sparse() || grad.is_sparse() => add_sparse(variable, &before, &grad)?,
        None => {
            let expected = 1 + usize::from(has_post_hooks);
            if !GradMode::is_enabled() && grad.is_stealable(expected) && obeys_layout(&grad, variable) {
                variable.set_grad(Some(grad.shallow_copy()));
            } else {
                variable.set_grad(Some(clone_obeying_layout(&grad, variable)?));
            }
        }
        Some(before) if !GradMode::is_enabled() => {
            pointwise::add_in_place(&before, &grad)?;
        }
        Some(before) => {
            let sum = pointwise::add(&before, &grad)?;
            variable.set_grad(Some(sum));
        }
    }
    drop(grad);
    let hooks = variable.autograd().borrow().post_hooks.clone();
    for hook in hooks {
        hook.call(Some(variable))?;
    }
    Ok(())
}

/// Adds up two gradients of which one or both are sparse. A sum with a dense gradient is dense, so the sum
/// replaces a sparse gradient of the leaf.
fn add_sparse(variable: &Tensor, before: &Tensor, grad: &Tensor) -> Result<()> {
    let one = Scalar::Int(1);
    if before.is_sparse() && !grad.is_sparse() {
        variable.set_grad(Some(sparse::add(grad, before, one)?));
    } else if GradMode::is_enabled() {
        variable.set_grad(Some(sparse::add(before, grad, one)?));
    } else {
        sparse::add_in_place(before, grad, one)?;
    }
    Ok(())
}

/// `obeys_layout_contract`: the gradient of a dense leaf must have the leaf's strides, that of any other leaf
/// no gaps.
fn obeys_layout(grad: &Tensor, variable: &Tensor) -> bool {
    if variable.is_non_overlapping_and_dense() {
        let (sizes, mine, theirs) = (grad.shape(), variable.strides(), grad.strides());
        // A dimension of size 1 may lie anywhere, but may not be repeated.
        let fits = |(size, (mine, theirs)): (&i64, (&i64, &i64))| {
            if *size == 1 { *theirs != 0 } else { mine == theirs }
        };
        variable.shape() == sizes && sizes.iter().zip(mine.iter().zip(theirs.iter())).all(fits)
    } else {
        grad.is_contiguous()
    }
}

fn clone_obeying_layout(grad: &Tensor, variable: &Tensor) -> Result<Tensor> {
    if variable.is_non_overlapping_and_dense() {
        // Zeros without memory are written by way of one zero.
        let is_zero = grad.numel() > 0 && grad.storage().bytes() == 0;
        let _zero = if is_zero && !variable.is_contiguous() {
            Some(copy::empty_strided(&[], &[], grad.dtype(), grad.device())?)
        } else {
            None
        };
        let new = copy::empty_strided(&variable.shape(), &variable.strides(), grad.dtype(), grad.device())?;
        copy::copy_in_place(&new, grad)?;
        Ok(new)
    } else {
        copy::clone(grad, crate::MemoryFormat::Contiguous)
    }
}
