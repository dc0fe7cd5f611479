//! Reductions, with the memory that their kernels take beside the result (`Reduce.cuh`).

mod calls;
mod extremum;
mod known;
mod moments;
mod scratch;

use crate::autocast::{Cast, full_dtype};
use crate::autograd::{Save, nodes, record};
use crate::error::runtime;
use crate::iterator::Reduction;
use crate::memory::Category;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, Result, Scalar, Storage, Tensor, Value, contiguous_strides, session};

use super::copy::to_dtype;
use super::creation::{empty, wrapped};
use super::pointwise::{self, add_in_place, div, eq, mul, sub};
use super::unary;
use super::views::{self, expand, first, unsqueeze, wrap};
use calls::{count_nonzero, logic, max_call, mean_call, nansum_call, norm_call, sum_call};
use extremum::{aminmax, arg_extremum};
pub(crate) use extremum::{evenly_distribute, extremum_all, extremum_dims, record_selection};
use moments::{moments, variance};
pub(crate) use scratch::ReductionKernel;
use scratch::scratch;

/// Whether each dimension is reduced; all dimensions are where none are named.
pub(crate) fn mask_of(dims: Option<&[i64]>, count: usize) -> Result<Vec<bool>> {
    let Some(dims) = dims.filter(|dims| !dims.is_empty()) else { return Ok(vec![true; count]) };
    let mut mask = vec![false; count];
    for dim in dims {
        if let Some(slot) = mask.get_mut(wrap(*dim, count)?) {
            if *slot {
                return runtime(format!("dim {dim} appears multiple times in the list of dims"));
            }
            *slot = true;
        }
    }
    Ok(mask)
}

fn reduced_shape(tensor: &Tensor, mask: &[bool], keeps: bool) -> Vec<i64> {
    let shape = tensor.shape();
    let dims = shape.iter().zip(mask);
    dims.filter(|(_, reduced)| keeps || !**reduced)
        .map(|(size, reduced)| if *reduced { 1 } else { *size })
        .collect()
}

/// A new result without gaps.
pub(crate) fn reduced_empty(tensor: &Tensor, mask: &[bool], keeps: bool, dtype: Dtype) -> Result<Tensor> {
    empty(&reduced_shape(tensor, mask, keeps), dtype, tensor.device())
}

/// `gpu_reduce_kernel`: allocates and frees the kernel's buffer and semaphores.
pub(crate) fn run(tensor: &Tensor, mask: &[bool], kernel: ReductionKernel) -> Result<()> {
    let Device::Cuda(_) = tensor.device() else { return Ok(()) };
    if tensor.numel() == 0 {
        return Ok(());
    }
    let kept = reduced_shape(tensor, mask, true);
    let strides: Vec<i64> = contiguous_strides(&kept)
        .into_iter()
        .zip(mask)
        .map(|(stride, reduced)| if *reduced { 0 } else { stride })
        .collect();
    run_piece(tensor, mask, &strides, kernel)
}

/// The kernel for a part of a tensor: parts of more than 2 GiB are halved (`with_32bit_indexing`).
fn run_piece(tensor: &Tensor, mask: &[bool], strides: &[i64], kernel: ReductionKernel) -> Result<()> {
    /// More than any GPU has: as many pieces as there would be take no time.
    const MAX_BYTES: u64 = 1 << 40;
    if tensor.numel() > i64::from(i32::MAX) || tensor.nbytes() > i32::MAX as u64 + 1 {
        let (mut shape, of) = (tensor.shape().to_vec(), tensor.strides());
        let extents = shape.iter().zip(of.iter()).map(|(size, stride)| (size - 1).saturating_mul(*stride));
        let widest = extents.enumerate().rev().max_by_key(|(_, extent)| *extent);
        let is_known = matches!(tensor.dtype(), Dtype::F32 | Dtype::F64) && tensor.nbytes() <= MAX_BYTES;
        if let Some((dim, _)) = widest.filter(|(_, extent)| is_known && *extent > 0) {
            let all = tensor.shape().get(dim).copied().unwrap_or(1);
            for part in [all / 2, all - all / 2] {
                if let Some(size) = shape.get_mut(dim) {
                    *size = part;
                }
                run_piece(&tensor.alias(&shape, &of, tensor.offset()), mask, strides, kernel)?;
            }
            return Ok(());
        }
        session().note_estimate(session().operator(), "a reduction of more than 2 GiB is split");
    }
    let reduction = Reduction::new(tensor, mask, strides);
    if let Some((buffer, semaphores)) = scratch(&reduction, kernel, tensor.dtype()) {
        let buffer = Storage::new(tensor.device(), buffer, Category::Workspace)?;
        let semaphores = Storage::new(tensor.device(), semaphores, Category::Workspace)?;
        drop(semaphores);
        drop(buffer);
    }
    Ok(())
}

/// `sum_out` into a new result, without a node.
fn sum_below(tensor: &Tensor, mask: &[bool], keeps: bool, dtype: Option<Dtype>) -> Result<Tensor> {
    let to = dtype.unwrap_or(if tensor.dtype().is_integral() { Dtype::I64 } else { tensor.dtype() });
    let output = reduced_empty(tensor, mask, keeps, to)?;
    sum_into(&output, tensor, mask)?;
    Ok(output)
}

/// `sum_out` into a result that exists.
pub(crate) fn sum_into(output: &Tensor, tensor: &Tensor, mask: &[bool]) -> Result<()> {
    let _no_grad = crate::autograd::GradModeGuard::new(false);
    let to = output.dtype();
    // A GPU reads half-precision numbers as they are where it adds up in `float32`.
    let reads_as_is = tensor.dtype() == to
        || (tensor.dtype().is_reduced_float() && to == Dtype::F32 && tensor.device().is_cuda());
    let input = if reads_as_is { tensor.clone() } else { to_dtype(tensor, to)? };
    known::set_sum(output, tensor, mask);
    run(&input, mask, ReductionKernel::of(to.accumulate().size()))
}

/// `sum` over the given dimensions.
pub(crate) fn sum(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
) -> Result<Tensor> {
    let mask = mask_of(dims, tensor.dim())?;
    let output = sum_below(tensor, &mask, keeps, dtype)?;
    let from = tensor.shape();
    let name = if dims.is_none() && !keeps { nodes::SumBackward0 } else { nodes::SumBackward1 };
    let names_dims = dims.is_some_and(|dims| !dims.is_empty());
    record(name, &[tensor], &[&output], &[], move |_, grads| {
        Ok(vec![Some(expand(&restore_named(first(grads)?, &mask, keeps, names_dims)?, &from)?)])
    })?;
    Ok(output)
}

/// [`sum`] as autocast runs it: into `float32` where no type is named.
pub(crate) fn sum_cast(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
) -> Result<Tensor> {
    sum(tensor, dims, keeps, full_dtype(tensor, dtype))
}

/// `sum` of all elements.
pub(crate) fn sum_all(tensor: &Tensor) -> Result<Tensor> {
    sum(tensor, None, false, None)
}

/// `sum_backward`: the gradient seen in the input's shape.
pub(crate) fn spread(grad: &Tensor, shape: &[i64], mask: &[bool], keeps: bool) -> Result<Tensor> {
    expand(&restore(grad, mask, keeps)?, shape)
}

/// `unsqueeze_multiple`: reduced dimensions come back with size 1.
pub(crate) fn restore(grad: &Tensor, mask: &[bool], keeps: bool) -> Result<Tensor> {
    restore_named(grad, mask, keeps, false)
}

/// `unsqueeze_multiple`: dimensions that a program names are restored even where no other is left.
fn restore_named(grad: &Tensor, mask: &[bool], keeps: bool, names_dims: bool) -> Result<Tensor> {
    let mut grad = grad.clone();
    if !keeps && (names_dims || mask.iter().any(|reduced| !reduced)) {
        for (dim, _) in mask.iter().enumerate().filter(|(_, reduced)| **reduced) {
            grad = unsqueeze(&grad, dim as i64)?;
        }
    }
    Ok(grad)
}

/// `sum_to`: adds up the dimensions that broadcasting repeated.
pub(crate) fn sum_to(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    if shape.is_empty() {
        return sum(tensor, None, false, None);
    }
    let sizes = tensor.shape();
    let leading = sizes.len().saturating_sub(shape.len());
    let mut dims: Vec<i64> = (0..leading as i64).collect();
    for (dim, size) in sizes.iter().enumerate().skip(leading) {
        if shape.get(dim - leading) == Some(&1) && *size != 1 {
            dims.push(dim as i64);
        }
    }
    let summed = if dims.is_empty() { tensor.clone() } else { sum(tensor, Some(&dims), true, None)? };
    if leading > 0 { views::view(&summed, shape) } else { Ok(summed) }
}

fn reduced_count(shape: &[i64], mask: &[bool]) -> i64 {
    shape.iter().zip(mask).filter(|(_, reduced)| **reduced).map(|(size, _)| *size).product()
}

/// `mean` over the given dimensions.
pub(crate) fn mean(
    tensor: &Tensor,
    dims: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
) -> Result<Tensor> {
    let to = dtype.unwrap_or(tensor.dtype());
    if !to.is_differentiable() {
        let what = if dtype.is_some() { "output" } else { "input" };
        return runtime(format!(
            "mean(): could not infer output dtype. {}{} dtype must be either a floating point or complex dtype. Got: {}",
            what.get(..1).unwrap_or_default().to_uppercase(),
            what.get(1..).unwrap_or_default(),
            to.scalar_name()
        ));
    }
    let mask = mask_of(dims, tensor.dim())?;
    let output = reduced_empty(tensor, &mask, keeps, to)?;
    {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let reads_as_is = tensor.dtype() == to || (tensor.dtype().is_reduced_float() && to == Dtype::F32);
        let input = if reads_as_is { tensor.clone() } else { to_dtype(tensor, to)? };
        known::set_mean(&output, tensor, &mask);
        run(&input, &mask, ReductionKernel::of(to.accumulate().size()))?;
    }
    let from = tensor.shape();
    let has_dims = dims.is_some();
    let name = if has_dims { nodes::MeanBackward1 } else { nodes::MeanBackward0 };
    record(name, &[tensor], &[&output], &[], move |_, grads| {
        let grad = first(grads)?;
        let count = wrapped(Scalar::Int(reduced_count(&from, &mask)));
        Ok(vec![Some(div(&spread(grad, &from, &mask, keeps)?, &count)?)])
    })?;
    Ok(output)
}

fn dims_of(mask: &[bool]) -> Vec<i64> {
    mask.iter().enumerate().filter(|(_, reduced)| **reduced).map(|(dim, _)| dim as i64).collect()
}

fn prod(tensor: &Tensor, dims: Option<&[i64]>, keeps: bool, dtype: Option<Dtype>) -> Result<Tensor> {
    let mask = mask_of(dims, tensor.dim())?;
    let dtype = full_dtype(tensor, dtype);
    let to = dtype.unwrap_or(if tensor.dtype().is_integral() { Dtype::I64 } else { tensor.dtype() });
    let output = reduced_empty(tensor, &mask, keeps, to)?;
    {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let reads_as_is = tensor.dtype() == to || (tensor.dtype().is_reduced_float() && to == Dtype::F32);
        let input = if reads_as_is { tensor.clone() } else { to_dtype(tensor, to)? };
        run(&input, &mask, ReductionKernel::of(to.accumulate().size()))?;
    }
    let has_dims = dims.is_some();
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    let node = if has_dims { nodes::ProdBackward1 } else { nodes::ProdBackward0 };
    record(node, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, own, result) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        session().note_estimate(node, "the path depends on where the input is zero");
        if own.dim() == 0 {
            return Ok(vec![Some(grad.clone())]);
        }
        let grad = restore(grad, &mask, keeps)?;
        let result = restore(&result, &mask, keeps)?;
        let is_zero = eq(&own, &wrapped(Scalar::Int(0)))?;
        crate::autograd::double_backward::set_variant(if has_dims { "a dimension" } else { "all" });
        let counts = if has_dims {
            let counts = sum(&is_zero, Some(&dims_of(&mask)), true, None)?;
            drop(sum_all(&counts)?);
            Some(counts)
        } else {
            drop(super::by_value::nonzero_of_zeros(&is_zero)?);
            None
        };
        let is_zero = has_dims.then_some(is_zero);
        let ratio = div(&result, &own)?;
        let grad_input = mul(&grad, &ratio)?;
        drop(ratio);
        drop(counts);
        drop(is_zero);
        Ok(vec![Some(grad_input)])
    })?;
    Ok(output)
}

/// `linalg_vector_norm`.
pub(crate) fn vector_norm(
    tensor: &Tensor,
    order: f64,
    dims: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
) -> Result<Tensor> {
    if !tensor.dtype().is_differentiable() {
        return runtime(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            tensor.dtype().scalar_name()
        ));
    }
    record_norm(tensor, order, dims, keeps, dtype, false)
}

/// `at::norm` with a type: the gradient's statements read the input in the gradient's type.
pub(crate) fn norm_of_wide(tensor: &Tensor, order: f64, dims: Option<&[i64]>, keeps: bool) -> Result<Tensor> {
    record_norm(tensor, order, dims, keeps, None, true)
}

fn record_norm(
    tensor: &Tensor,
    order: f64,
    dims: Option<&[i64]>,
    keeps: bool,
    dtype: Option<Dtype>,
    reads_wide: bool,
) -> Result<Tensor> {
    let mask = mask_of(dims, tensor.dim())?;
    let to = full_dtype(tensor, dtype).unwrap_or(tensor.dtype());
    let output = reduced_empty(tensor, &mask, keeps, to)?;
    run(tensor, &mask, ReductionKernel::of(tensor.dtype().accumulate().size()))?;
    let sizes = tensor.shape();
    let has_one = mask.iter().zip(sizes.iter()).all(|(reduced, size)| !reduced || *size == 1);
    // A number is reduced where no dimension is named.
    if has_one && to != tensor.dtype() && (mask.contains(&true) || dims.is_none()) {
        // The norm of one element is its absolute value, in the type of the result.
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        drop(to_dtype(tensor, to)?);
    }
    let names_dims = dims.is_some_and(|dims| !dims.is_empty());
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(nodes::LinalgVectorNormBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, input, norm) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let grad = restore_named(grad, &mask, keeps, names_dims)?;
        let norm = restore_named(&norm, &mask, keeps, names_dims)?;
        if order == 0.0 {
            // How many elements are not zero has no derivative.
            return Ok(vec![None]);
        }
        let input = if reads_wide { to_dtype(&input, grad.dtype())? } else { input };
        Ok(vec![Some(super::vector_norm::backward(&grad, &input, &norm, order, &dims_of(&mask))?)])
    })?;
    Ok(output)
}

/// `logsumexp`.
fn logsumexp(tensor: &Tensor, dims: &[i64], keeps: bool) -> Result<Tensor> {
    let mask = mask_of(Some(dims), tensor.dim())?;
    let cast = Cast::full(tensor.device());
    let tensor = &cast.apply(tensor)?;
    let output = {
        let _no_grad = crate::autograd::GradModeGuard::new(false);
        let tensor = &if tensor.dtype().is_integral() {
            super::copy::to_dtype(tensor, Dtype::F32)?
        } else {
            tensor.clone()
        };
        let maxes = extremum_dims(tensor, Some(dims), true, "")?;
        {
            let infinity = wrapped(Scalar::Float(f64::INFINITY));
            let absolute = unary::abs(&maxes)?;
            let is_infinite = eq(&absolute, &infinity)?;
            pointwise::change_in_place(&maxes)?;
            drop(is_infinite);
            drop(absolute);
        }
        let shifted = sub(tensor, &maxes)?;
        let output = reduced_empty(tensor, &mask, keeps, tensor.dtype())?;
        sum_into(&output, &shifted, &mask)?;
        drop(shifted);
        add_in_place(&output, &views::view(&maxes, &output.shape())?)?;
        output
    };
    let saved = [Save::Input(Some(tensor)), Save::Output(0)];
    record(nodes::LogsumexpBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (grad, input, result) = (first(grads)?, ctx.saved(0)?, ctx.saved(1)?);
        let grad = restore(grad, &mask, keeps)?;
        let result = restore(&result, &mask, keeps)?;
        Ok(vec![Some(mul(&grad, &unary::exp(&sub(&input, &result)?)?)?)])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("sum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", sum_call)
        .composed(&[nodes::SumBackward0, nodes::SumBackward1]),
    op!("nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", nansum_call),
    op!("mean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", mean_call)
        .composed(&[nodes::MeanBackward0, nodes::MeanBackward1]),
    op!(
        "var_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)",
        |tensor: &Tensor, dims: Option<&[i64]>, correction: Option<f64>, keeps: bool| {
            moments(tensor, dims, correction, keeps, false)
        }
    ),
    op!(
        "std_mean(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)",
        |tensor: &Tensor, dims: Option<&[i64]>, correction: Option<f64>, keeps: bool| {
            moments(tensor, dims, correction, keeps, true)
        }
    ),
    op!(
        "max(Tensor self, Any dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: &Value, keepdim: bool| {
            max_call(tensor, dim, keepdim, [nodes::MaxBackward0, nodes::MaxBackward1], |x, y| {
                crate::call("maximum", &[x.into(), y.into()], &[])?.tensor()
            })
        }
    ),
    op!("max(Tensor self, *, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        crate::call("maximum", &[tensor.into(), other.into()], &[])
    }),
    op!(
        "min(Tensor self, Any dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: &Value, keepdim: bool| {
            max_call(tensor, dim, keepdim, [nodes::MinBackward0, nodes::MinBackward1], |x, y| {
                crate::call("minimum", &[x.into(), y.into()], &[])?.tensor()
            })
        }
    ),
    op!("min(Tensor self, *, Tensor other)", |tensor: &Tensor, other: &Tensor| {
        crate::call("minimum", &[tensor.into(), other.into()], &[])
    }),
    op!(
        "amax(Tensor self, int[] dim=[], bool keepdim=False)",
        |tensor: &Tensor, dim: &[i64], keepdim: bool| {
            extremum_dims(tensor, Some(dim), keepdim, nodes::AmaxBackward0)
        }
    ),
    op!(
        "amin(Tensor self, int[] dim=[], bool keepdim=False)",
        |tensor: &Tensor, dim: &[i64], keepdim: bool| {
            extremum_dims(tensor, Some(dim), keepdim, nodes::AminBackward0)
        }
    ),
    op!(
        "argmax(Tensor self, int? dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: Option<i64>, keepdim: bool| arg_extremum(tensor, dim, keepdim, true)
    ),
    op!(
        "argmin(Tensor self, int? dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: Option<i64>, keepdim: bool| arg_extremum(tensor, dim, keepdim, false)
    ),
    op!("aminmax(Tensor self, *, int? dim=None, bool keepdim=False)", aminmax),
    op!(
        "any(Tensor self, int[]? dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: Option<&[i64]>, keepdim: bool| logic(tensor, dim, keepdim, false)
    ),
    op!(
        "all(Tensor self, int[]? dim=None, bool keepdim=False)",
        |tensor: &Tensor, dim: Option<&[i64]>, keepdim: bool| logic(tensor, dim, keepdim, true)
    ),
    op!("prod(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", prod),
    op!(
        "norm(Tensor self, Any p=None, int[]? dim=None, bool keepdim=False, ScalarType? dtype=None)",
        norm_call,
    ),
    op!(
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)",
        |tensor: &Tensor, order: Scalar, dim: Option<&[i64]>, keepdim: bool, dtype: Option<Dtype>| {
            vector_norm(tensor, order.to_f64().unwrap_or(2.0), dim, keepdim, dtype)
        }
    ),
    op!("logsumexp(Tensor self, int[] dim, bool keepdim=False)", logsumexp),
    op!("count_nonzero(Tensor self, int[]? dim=None)", count_nonzero),
];

macro_rules! spreads {
    ($( $name:literal $roots:literal; )*) => {
        &[$(
            op!(
                concat!($name, "(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False)"),
                |own: &Tensor, dim: Option<&[i64]>, correction: Option<f64>, keeps: bool| {
                    variance(own, dim, correction, keeps, $roots)
                }
            ),
            op!(
                concat!($name, "(Tensor self, int[]? dim, bool unbiased, bool keepdim=False)"),
                |own: &Tensor, dim: Option<&[i64]>, unbiased: bool, keeps: bool| {
                    variance(own, dim, Some(f64::from(unbiased)), keeps, $roots)
                }
            ),
            op!(
                concat!($name, "(Tensor self, int[]? dim=None, *, bool unbiased, bool keepdim=False)"),
                |own: &Tensor, dim: Option<&[i64]>, unbiased: bool, keeps: bool| {
                    variance(own, dim, Some(f64::from(unbiased)), keeps, $roots)
                }
            ),
        )*]
    };
}

/// `var` and `std`, each with its overloads.
pub(crate) const SPREADS: &[Entry] = spreads! { "var" false; "std" true; };
