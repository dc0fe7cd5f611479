//! `matmul`: the product of tensors of any number of dimensions, by way of the products of matrices.

use crate::autocast::Cast;
use crate::error::runtime;
use crate::iterator;
use crate::{Result, Tensor};

use super::super::copy::contiguous;
use super::super::views::{expand, reshape, squeeze, t, transpose, unsafe_view, unsqueeze};
use super::{bmm, dot, mm, mv};

/// `should_fold`: three dimensions times two are one product of matrices.
fn should_fold(a: &Tensor, b: &Tensor) -> Result<bool> {
    let is_a_larger = a.dim() >= b.dim();
    let (large, small) = if is_a_larger { (a.clone(), b) } else { (transpose(&b.detach(), -2, -1)?, a) };
    if !(large.dim() >= 3 && small.dim() <= 2) {
        return Ok(false);
    }
    // A view names its base, whatever the mode in which the view was made.
    if small.requires_grad() || small.base().is_some_and(|base| base.requires_grad()) {
        return Ok(true);
    }
    if a.dim() == 2 {
        return Ok(false);
    }
    if large.numel() == 0 {
        return Ok(true);
    }
    let (shape, strides) = (large.shape(), large.strides());
    let pairs = strides.iter().zip(strides.iter().skip(1).zip(shape.iter().skip(1)));
    Ok(pairs.take(large.dim() - 2).all(|(stride, (next, size))| *stride == next * size))
}

/// `matmul`.
pub(crate) fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let cast = Cast::lower(a.device());
    let [a, b] = &cast.apply_all([a, b])?;
    let (dims_a, dims_b) = (a.dim(), b.dim());
    match (dims_a, dims_b) {
        (0, _) | (_, 0) => runtime(format!(
            "both arguments to matmul need to be at least 1D, but they are {dims_a}D and {dims_b}D"
        )),
        (1, 1) => dot(a, b),
        (2, 1) => mv(a, b),
        (1, 2) => squeeze(&mm(&unsqueeze(a, 0)?, b)?, Some(&[0])),
        (2, 2) => mm(a, b),
        _ if should_fold(a, b)? => fold(a, b),
        _ => broadcast(a, b),
    }
}

fn fold(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let transposes = b.dim() > a.dim();
    let large = if transposes { transpose(b, -2, -1)? } else { a.clone() };
    let small = match (transposes, a.dim()) {
        (false, _) => b.clone(),
        (true, 2) => t(a)?,
        (true, _) => a.clone(),
    };
    let sizes = large.shape();
    let (last, rest) = match sizes.split_last() {
        Some((last, rest)) => (*last, rest.to_vec()),
        None => (1, vec![]),
    };
    let mut output_shape = rest.clone();
    let folded = reshape(&large, &[rest.iter().product(), last])?;
    if small.dim() == 2 {
        output_shape.push(small.size(1));
        let output = unsafe_view(&mm(&folded, &small)?, &output_shape)?;
        return if transposes { contiguous(&transpose(&output, -2, -1)?) } else { Ok(output) };
    }
    unsafe_view(&mv(&folded, &small)?, &output_shape)
}

fn broadcast(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let split = |tensor: &Tensor, is_left: bool| -> (Vec<i64>, i64, i64) {
        let shape = tensor.shape();
        let last = shape.last().copied().unwrap_or(1);
        match (shape.len(), is_left) {
            (1, true) => (vec![], 1, last),
            (1, false) => (vec![], last, 1),
            (count, _) => {
                let before = shape.get(count - 2).copied().unwrap_or(1);
                (shape.iter().take(count - 2).copied().collect(), before, last)
            }
        }
    };
    let ((batch_a, n, m1), (batch_b, m2, p)) = (split(a, true), split(b, false));
    if a.dim() == 3 && b.dim() == 3 && batch_a != batch_b {
        if batch_a == [1] && a.requires_grad() {
            return matmul(&squeeze(a, Some(&[0]))?, b);
        }
        if batch_b == [1] && b.requires_grad() {
            return matmul(a, &squeeze(b, Some(&[0]))?);
        }
    }
    let mut output_shape = iterator::broadcast(&[&batch_a, &batch_b])?;
    let count = crate::numel(&output_shape);
    let sized = |tail: &[i64]| -> Vec<i64> { output_shape.iter().chain(tail).copied().collect() };
    let left = reshape(&expand(a, &sized(&[n, m1]))?, &[count, n, m1])?;
    let is_vector = b.dim() == 1;
    let right = if is_vector {
        unsqueeze(&reshape(&expand(b, &sized(&[m2]))?, &[count, m2])?, 2)?
    } else {
        reshape(&expand(b, &sized(&[m2, p]))?, &[count, m2, p])?
    };
    if a.dim() > 1 {
        output_shape.push(n);
    }
    if !is_vector {
        output_shape.push(p);
    }
    if is_vector {
        unsafe_view(&squeeze(&bmm(&left, &right)?, Some(&[-1]))?, &output_shape)
    } else {
        unsafe_view(&bmm(&left, &right)?, &output_shape)
    }
}
