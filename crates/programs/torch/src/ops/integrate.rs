//! Integrals and differences along a dimension, which ATen composes of operators.

use crate::autograd::nodes;
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, Value};

use super::copy::copy_in_place;
use super::creation::{zeros, zeros_like};
use super::join::cat;
use super::kernels::number;
use super::pointwise::{add, div, mul, scale, sub};
use super::reduce::sum;
use super::views::{narrow, select, slice, view, wrap};

/// All but the last, and all but the first, along a dimension.
fn neighbors(tensor: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
    Ok((slice(tensor, dim, Some(0), Some(-1), 1)?, slice(tensor, dim, Some(1), None, 1)?))
}

fn refuse_bool(name: &str, tensors: &[&Tensor]) -> Result<()> {
    if tensors.iter().any(|tensor| tensor.dtype() == Dtype::Bool) {
        return runtime(format!("{name}: received a bool input, but bool is not supported"));
    }
    Ok(())
}

/// The distances between the places `x`, whose one dimension is the integrated one of `y`.
fn distances(name: &str, y: &Tensor, x: &Tensor, dim: usize) -> Result<Tensor> {
    let viewed = if x.dim() == 1 {
        if x.size(0) != y.size(dim as i64) {
            return runtime(format!("{name}: There must be one `x` value for each sample point"));
        }
        let mut sizes = vec![1; y.dim()];
        if let Some(size) = sizes.get_mut(dim) {
            *size = x.size(0);
        }
        view(x, &sizes)?
    } else if x.dim() < y.dim() {
        let mut sizes = vec![1; y.dim() - x.dim()];
        sizes.extend(x.shape().iter());
        view(x, &sizes)?
    } else {
        x.clone()
    };
    let (left, right) = neighbors(&viewed, dim as i64)?;
    sub(&right, &left)
}

/// `((left + right) * dx).sum(dim) / 2.`
fn trapezoid_of(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let at = wrap(dim, y.dim())?;
    if y.size(at as i64) == 0 {
        return nothing(y, at);
    }
    refuse_bool("trapezoid", &[y, x])?;
    let dx = distances("trapezoid", y, x, at)?;
    let (left, right) = neighbors(y, at as i64)?;
    let result = div(&sum(&mul(&add(&left, &right)?, &dx)?, Some(&[at as i64]), false, None)?, &number(2.0))?;
    drop(dx);
    Ok(result)
}

/// `(y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * (0.5)) * dx`
fn trapezoid_by(y: &Tensor, dx: f64, dim: i64) -> Result<Tensor> {
    let at = wrap(dim, y.dim())?;
    if y.size(at as i64) == 0 {
        return nothing(y, at);
    }
    refuse_bool("trapezoid", &[y])?;
    let dim = at as i64;
    let ends = &add(&select(y, dim, 0)?, &select(y, dim, -1)?)?;
    let ends = &scale(ends, 0.5)?;
    let all = &sum(y, Some(&[dim]), false, None)?;
    let inner = &sub(all, ends)?;
    scale(inner, dx)
}

/// The integral over no places: zeros without the integrated dimension.
fn nothing(y: &Tensor, at: usize) -> Result<Tensor> {
    let mut sizes = y.shape().to_vec();
    sizes.remove(at);
    zeros(&sizes, y.dtype(), y.device())
}

fn cumulative_of(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    let at = wrap(dim, y.dim())?;
    refuse_bool("cumulative_trapezoid", &[y, x])?;
    let dx = distances("cumulative_trapezoid", y, x, at)?;
    let (left, right) = neighbors(y, at as i64)?;
    let result = div(&super::sort::cumsum(&mul(&add(&left, &right)?, &dx)?, at as i64)?, &number(2.0))?;
    drop(dx);
    Ok(result)
}

fn cumulative_by(y: &Tensor, dx: f64, dim: i64) -> Result<Tensor> {
    refuse_bool("cumulative_trapezoid", &[y])?;
    let (left, right) = neighbors(y, dim)?;
    super::sort::cumsum(&scale(&add(&left, &right)?, dx / 2.0)?, dim)
}

/// `diff` of order `order` along a dimension.
fn differences(tensor: &Tensor, order: i64, dim: i64) -> Result<Tensor> {
    if order == 0 {
        let result = zeros_like(tensor)?;
        copy_in_place(&result, tensor)?;
        return Ok(result);
    }
    let mut result = tensor.clone();
    let size = tensor.size(dim);
    for step in 1..=order.min(size) {
        let length = size - step;
        // C++ evaluates the right operand first.
        let lower = narrow(&result, dim, 0, length)?;
        let upper = narrow(&result, dim, 1, length)?;
        result = if tensor.dtype() == Dtype::Bool {
            crate::call("logical_xor", &[upper.into(), lower.into()], &[])?.tensor()?
        } else {
            sub(&upper, &lower)?
        };
    }
    Ok(result)
}

fn diff(
    tensor: &Tensor,
    order: i64,
    dim: i64,
    prepended: Option<&Tensor>,
    appended: Option<&Tensor>,
) -> Result<Value> {
    if tensor.dim() == 0 {
        return runtime("diff expects input to be at least one-dimensional");
    }
    if order < 0 {
        return runtime(format!("order must be non-negative but got {order}"));
    }
    wrap(dim, tensor.dim())?;
    if (prepended.is_none() && appended.is_none()) || order == 0 {
        return Ok(differences(tensor, order, dim)?.into());
    }
    let parts: Vec<Tensor> = prepended.into_iter().chain([tensor]).chain(appended).cloned().collect();
    let joined = cat(&parts, dim)?;
    Ok(differences(&joined, order, dim)?.into())
}

/// `vander`: powers of a vector, by a cumulative product in place.
fn vander(x: &Tensor, columns: Option<i64>, increasing: bool) -> Result<Value> {
    if x.dim() != 1 {
        return runtime("x must be a one-dimensional tensor.");
    }
    let columns = columns.unwrap_or(x.size(0));
    if columns < 0 {
        return runtime("N must be non-negative.");
    }
    let dtype = if x.dtype().is_integral() { Dtype::I64 } else { x.dtype() };
    let result = super::creation::empty(&[x.size(0), columns], dtype, x.device())?;
    if columns > 0 {
        let ones = select(&result, 1, 0)?;
        crate::call("fill_", &[ones.into(), 1.into()], &[])?;
    }
    if columns > 1 {
        let powers = || slice(&result, 1, Some(1), None, 1);
        copy_in_place(&powers()?, &super::views::unsqueeze(x, 1)?)?;
        let products = super::sort::cumprod(&powers()?, 1)?;
        copy_in_place(&powers()?, &products)?;
    }
    if increasing {
        return Ok(result.into());
    }
    Ok(super::sort::flip(&result, &[1])?.into())
}

/// `linalg_vander`: a column of ones before the cumulative product.
fn linalg_vander(x: &Tensor, columns: Option<i64>) -> Result<Value> {
    if x.dtype().is_reduced_float() {
        return runtime(format!(
            "linalg.vander supports floating point, complex, and integer tensors, but got {}",
            x.dtype().scalar_name()
        ));
    }
    let x = &if x.dim() == 0 { super::views::unsqueeze(x, -1)? } else { x.clone() };
    let columns = columns.unwrap_or(x.size(-1));
    if columns <= 1 {
        return runtime("N must be greater than 1.");
    }
    let mut shape = x.shape().to_vec();
    shape.push(columns - 1);
    let expanded = super::views::expand(&super::views::unsqueeze(x, -1)?, &shape)?;
    let mut products = vec![super::sort::cumprod(&expanded, -1)?];
    drop(expanded);
    if let (Some(last), Some(product)) = (shape.last_mut(), products.first()) {
        *last = 1;
        let ones = super::creation::ones(&shape, product.dtype(), product.device())?;
        products.insert(0, ones);
    }
    let result = cat(&products, -1)?;
    // A list of C++ dies last to first.
    while products.pop().is_some() {}
    Ok(result.into())
}

/// `rot90`: a flip and a transposition; its gradient is turned back.
fn rot90(tensor: &Tensor, turns: i64, dims: &[i64]) -> Result<Tensor> {
    let count = tensor.dim() as i64;
    let &[a, b] = dims else {
        return runtime(format!("expected total rotation dims == 2, but got dims = {}", dims.len()));
    };
    if count < 2 {
        return runtime(format!("expected total dims >= 2, but got total dims = {count}"));
    }
    for (number, dim) in [a, b].into_iter().enumerate() {
        if dim >= count || dim < -count {
            return runtime(format!("Rotation dim{number} out of range, dim{number} = {dim}"));
        }
    }
    if a.rem_euclid(count) == b.rem_euclid(count) {
        return runtime(format!("expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}"));
    }
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let turned = |flipped: i64| -> Result<Tensor> {
            super::views::transpose(&super::sort::flip(tensor, &[flipped])?, a, b)
        };
        match turns.rem_euclid(4) {
            1 => turned(b)?,
            2 => super::sort::flip(tensor, &[a, b])?,
            3 => turned(a)?,
            _ => super::copy::clone(tensor, crate::MemoryFormat::Contiguous)?,
        }
    };
    // The result is not a view, whatever it was made of.
    let output = output.alias(&output.shape(), &output.strides(), output.offset());
    let back = 4 - turns.rem_euclid(4);
    crate::autograd::record(nodes::Rot90Backward0, &[tensor], &[&output], &[], move |_, grads| {
        Ok(vec![Some(rot90(super::views::first(grads)?, back, &[a, b])?)])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("trapezoid(Tensor y, Tensor x, *, int dim=-1)", trapezoid_of),
    op!("trapezoid(Tensor y, *, Scalar dx=1, int dim=-1)", trapezoid_by),
    op!("trapz(Tensor y, Tensor x, *, int dim=-1)", trapezoid_of),
    op!("trapz(Tensor y, *, float dx=1, int dim=-1)", trapezoid_by),
    op!("cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1)", cumulative_of),
    op!("cumulative_trapezoid(Tensor y, *, Scalar dx=1, int dim=-1)", cumulative_by),
    op!("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)", diff),
    op!("vander(Tensor x, int? N=None, bool increasing=False)", vander),
    op!("linalg_vander(Tensor x, *, int? N=None)", linalg_vander),
    op!("rot90(Tensor self, int k=1, int[]? dims=None)", |tensor: &Tensor, k: i64, dims: Option<&[i64]>| {
        rot90(tensor, k, dims.unwrap_or(&[0, 1]))
    }),
];
