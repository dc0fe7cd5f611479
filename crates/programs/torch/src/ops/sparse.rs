//! Operators of sparse tensors (COO), as far as gradients of embeddings and the optimizers of these use them.

mod memory;

use crate::autograd::GradModeGuard;
use crate::error::{not_implemented, runtime};
use crate::registry::{Entry, in_place, op};
use crate::sparse::SparseParts;
use crate::{Dtype, MemoryFormat, Result, Scalar, Tensor, Value, iterator};

use super::copy::{self, contiguous, to_dtype};
use super::creation::{empty, ones, wrapped, zeros};
use super::index::index;
use super::join::cat;
use super::pointwise::{self, change_in_place, mul};
use super::{reduce, views};
use crate::arguments::Unread;
use memory::{coalesced_parts, flatten_indices};

/// Whether an argument of a call is a sparse tensor, or a list with one.
pub(crate) fn is_among(args: &[Value], keywords: &[(&str, Value)]) -> bool {
    fn is_sparse(value: &Value) -> bool {
        match value {
            Value::Tensor(tensor) => tensor.is_sparse(),
            Value::List(items) => items.iter().any(is_sparse),
            _ => false,
        }
    }
    args.iter().chain(keywords.iter().map(|(_, value)| value)).any(is_sparse)
}

/// Fails as an operator without an overload for sparse tensors.
pub(crate) fn refuse<T>(name: &str) -> Result<T> {
    not_implemented(format!("{name} of sparse tensors is not modeled: call .to_dense() first"))
}

/// An operator over lists with sparse tensors: one tensor after the other.
pub(crate) fn one_by_one(name: &str, args: &[Value], keywords: &[(&str, Value)]) -> Result<Value> {
    let count = match args.first() {
        Some(Value::List(items)) => items.len(),
        _ => 0,
    };
    let nth = |value: &Value, number: usize| match value {
        Value::List(items) if items.len() == count => items.get(number).cloned().unwrap_or(Value::None),
        other => other.clone(),
    };
    let mut results = Vec::with_capacity(count);
    for number in 0..count {
        let input: Vec<Value> = args.iter().map(|arg| nth(arg, number)).collect();
        let named: Vec<_> = keywords.iter().map(|(name, value)| (*name, nth(value, number))).collect();
        results.push(crate::call(name, &input, &named)?);
    }
    Ok(Value::List(results))
}

fn parts_of(tensor: &Tensor, operator: &str) -> Result<SparseParts> {
    match tensor.sparse_parts() {
        Some(parts) => Ok(parts),
        None => runtime(format!("{operator} expected sparse coordinate tensor layout but got Strided")),
    }
}

/// `add`, of which one or both are sparse.
pub(crate) fn add(input: &Tensor, other: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let dtype = iterator::result_type(&[input, other]);
    match (input.sparse_parts(), other.sparse_parts()) {
        (Some(own_parts), Some(other_parts)) => {
            check_shapes(input, other, "")?;
            let sum = added_parts(&own_parts, &other_parts, alpha, dtype, input)?;
            Tensor::sparse(&sum, &input.shape())
        }
        (None, Some(parts)) => {
            check_shapes(input, other, DENSE)?;
            let before = to_dtype(input, dtype)?;
            let values = to_dtype(parts.values(), dtype)?;
            let sum = empty(&input.shape(), dtype, input.device())?;
            copy::copy_in_place(&sum, &before)?;
            add_to_dense(&sum, &parts, &values, alpha)?;
            Ok(sum)
        }
        _ => runtime("add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    }
}

const DENSE: &str = " (FYI: dense-sparse addition does not currently support broadcasting)";

fn check_shapes(input: &Tensor, other: &Tensor, more: &str) -> Result<()> {
    let (mine, theirs) = (input.shape(), other.shape());
    if mine == theirs {
        return Ok(());
    }
    if more.is_empty() {
        return runtime(format!(
            "add: expected 'self' and 'other' to have same size, but {mine:?} != {theirs:?}"
        ));
    }
    runtime(format!(
        "add: expected 'self' and 'other' to have same size, but self has size {mine:?} while other has size \
         {theirs:?}{more}"
    ))
}

/// `add_`, of which one or both are sparse.
pub(crate) fn add_in_place(input: &Tensor, other: &Tensor, alpha: Scalar) -> Result<()> {
    input.check_in_place()?;
    let _no_grad = GradModeGuard::new(false);
    let dtype = iterator::result_type(&[input, other]);
    match (input.sparse_parts(), other.sparse_parts()) {
        (Some(own_parts), Some(other_parts)) => {
            check_shapes(input, other, "")?;
            if other_parts.count() > 0 {
                let sum = added_parts(&own_parts, &other_parts, alpha, input.dtype(), input)?;
                input.set_sparse_parts(Some(sum));
            }
        }
        (None, Some(parts)) => {
            check_shapes(input, other, DENSE)?;
            if parts.count() > 0 {
                let wide = to_dtype(input, dtype)?;
                let values = to_dtype(parts.values(), dtype)?;
                add_to_dense(&wide, &parts, &values, alpha)?;
            }
        }
        _ => return runtime("add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    }
    input.bump_version();
    Ok(())
}

/// `add_out_sparse_cuda`: the values and indices of both are joined, and coalesced only if they are more than
/// the tensor has elements.
fn added_parts(
    input: &SparseParts,
    other: &SparseParts,
    alpha: Scalar,
    dtype: Dtype,
    like: &Tensor,
) -> Result<SparseParts> {
    if other.count() == 0 {
        return cloned_parts(input);
    }
    if input.count() == 0 {
        return multiplied_parts(other, &wrapped(alpha));
    }
    let before = to_dtype(input.values(), dtype)?;
    let mut more = to_dtype(other.values(), dtype)?;
    if alpha.to_f64() != Some(1.0) {
        more = mul(&more, &wrapped(alpha))?;
    }
    let indices = cat(&[input.indices().clone(), other.indices().clone()], 1)?;
    let values = cat(&[before, more], 0)?;
    let sum = SparseParts::new(indices, values);
    if sum.count() > like.numel() { coalesced_parts(&sum, &like.shape()) } else { Ok(sum) }
}

/// `add_out_dense_sparse_cuda`, after both were brought to one type.
fn add_to_dense(dense: &Tensor, parts: &SparseParts, values: &Tensor, alpha: Scalar) -> Result<()> {
    if values.numel() == 0 {
        return Ok(());
    }
    if parts.is_coalesced() {
        if parts.dense_dim() > 0 {
            drop(contiguous(values)?);
        }
        dense.set_values(None);
        return Ok(());
    }
    let shape = dense.shape();
    let flat = flatten_indices(parts.indices(), &shape, false)?;
    let (rows, columns) = shape.split_at(parts.sparse_dim() as usize);
    let (rows, columns) = (crate::numel(rows), crate::numel(columns));
    let seen = views::view(dense, &[rows, columns])?;
    let values = views::reshape(values, &[parts.count(), columns])?;
    let args = [(&seen).into(), 0.into(), (&flat).into(), (&values).into()];
    crate::call("index_add_", &args, &[("alpha", alpha.into())])?;
    Ok(())
}

/// `clone_sparse`: copies of both, the values first.
fn cloned_parts(parts: &SparseParts) -> Result<SparseParts> {
    let values = copy::clone(parts.values(), MemoryFormat::Preserve)?;
    let indices = copy::clone(parts.indices(), MemoryFormat::Preserve)?;
    Ok(SparseParts::new(indices, values).coalesced(parts.is_coalesced()))
}

/// A sparse tensor times a number.
fn multiplied_parts(parts: &SparseParts, factor: &Tensor) -> Result<SparseParts> {
    let indices = copy::clone(parts.indices(), MemoryFormat::Preserve)?;
    let values = mul(parts.values(), factor)?;
    Ok(SparseParts::new(indices, values).coalesced(parts.is_coalesced()))
}

/// `clone`.
pub(crate) fn clone(tensor: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let parts = cloned_parts(&parts_of(tensor, "clone")?)?;
    Tensor::sparse(&parts, &tensor.shape()).inspect(|copy| copy.set_sparse_parts(Some(parts)))
}

/// The gradient that a leaf gets: the given gradient's parts, where the leaf can take them over, or copies of
/// the parts.
pub(crate) fn taken_or_cloned(grad: &Tensor, can_take: bool) -> Result<Tensor> {
    let parts = parts_of(grad, "the gradient")?;
    if can_take && parts.indices().is_contiguous() && parts.values().is_contiguous() {
        let parts = SparseParts::new(parts.indices().clone(), parts.values().clone());
        return Tensor::sparse(&parts, &grad.shape());
    }
    clone(grad)
}

fn check_factor(factor: &Tensor, operator: &str) -> Result<()> {
    if factor.dim() > 0 || factor.is_sparse() {
        return not_implemented(format!("{operator} of sparse tensors is modeled for numbers alone"));
    }
    Ok(())
}

fn multiply(input: &Tensor, factor: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let (input, factor) = if input.is_sparse() { (input, factor) } else { (factor, input) };
    check_factor(factor, "the product")?;
    Tensor::sparse(&multiplied_parts(&parts_of(input, "mul")?, factor)?, &input.shape())
}

fn multiply_in_place(input: &Tensor, factor: &Tensor) -> Result<()> {
    let _no_grad = GradModeGuard::new(false);
    check_factor(factor, "the product")?;
    let before = parts_of(input, "mul_")?;
    input.set_sparse_parts(Some(multiplied_parts(&before, factor)?));
    input.bump_version();
    Ok(())
}

fn divide(input: &Tensor, divisor: &Tensor, _rounding: Unread) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    check_factor(divisor, "the quotient")?;
    let parts = parts_of(input, "div")?;
    let indices = copy::clone(parts.indices(), MemoryFormat::Preserve)?;
    let values = pointwise::div(parts.values(), divisor)?;
    let parts = SparseParts::new(indices, values).coalesced(parts.is_coalesced());
    Tensor::sparse(&parts, &input.shape())
}

fn divide_in_place(input: &Tensor, divisor: &Tensor, _rounding: Unread) -> Result<()> {
    let _no_grad = GradModeGuard::new(false);
    check_factor(divisor, "the quotient")?;
    pointwise::div_in_place(parts_of(input, "div_")?.values(), divisor)?;
    input.bump_version();
    Ok(())
}

fn negate(input: &Tensor) -> Result<Tensor> {
    let copy = clone(input)?;
    change_in_place(parts_of(&copy, "neg")?.values())?;
    Ok(copy)
}

/// `coalesce`.
fn coalesce(tensor: &Tensor) -> Result<Tensor> {
    let parts = parts_of(tensor, "coalesce")?;
    if parts.is_coalesced() {
        return Ok(tensor.clone());
    }
    let _no_grad = GradModeGuard::new(false);
    Tensor::sparse(&coalesced_parts(&parts, &tensor.shape())?, &tensor.shape())
}

/// `zero_`: the sparse tensor has no values any more.
fn zero(tensor: &Tensor) -> Result<()> {
    let parts = parts_of(tensor, "zero_")?;
    let mut shape = parts.values().shape().to_vec();
    if let Some(count) = shape.first_mut() {
        *count = 0;
    }
    let indices = empty(&[parts.sparse_dim(), 0], Dtype::I64, tensor.device())?;
    let values = empty(&shape, tensor.dtype(), tensor.device())?;
    drop(parts);
    tensor.set_sparse_parts(Some(SparseParts::new(indices, values)));
    tensor.bump_version();
    Ok(())
}

/// `to_dense`.
fn to_dense(tensor: &Tensor) -> Result<Tensor> {
    let dense = zeros(&tensor.shape(), tensor.dtype(), tensor.device())?;
    add_in_place(&dense, tensor, Scalar::Int(1))?;
    Ok(dense)
}

/// `sparse_mask` of a dense tensor: the places of the mask are read, and multiplied by ones.
fn sparse_mask(tensor: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let parts = parts_of(mask, "sparse_mask")?;
    if tensor.is_sparse() || tensor.shape() != mask.shape() {
        return refuse("sparse_mask");
    }
    if parts.count() == 0 {
        return clone(mask);
    }
    let one = ones(&[1], mask.dtype(), mask.device())?;
    let ones = views::expand(&views::view(&one, &vec![1; parts.values().dim()])?, &parts.values().shape())?;
    let mut places = Vec::new();
    for dim in 0..parts.sparse_dim() {
        places.push(Some(views::select(parts.indices(), 0, dim)?));
    }
    let found = index(tensor, &places)?;
    let indices = copy::clone(parts.indices(), MemoryFormat::Preserve)?;
    let values = mul(&found, &ones)?;
    let result = SparseParts::new(indices, values).coalesced(parts.is_coalesced());
    Tensor::sparse(&result, &mask.shape())
}

/// `sparse_coo_tensor` of a given size.
fn sparse_coo_tensor(indices: &Tensor, values: &Tensor, size: &[i64], is_coalesced: bool) -> Result<Tensor> {
    let values = if values.dim() == 0 { views::expand(values, &[1])? } else { values.clone() };
    let parts = SparseParts::new(indices.detach(), values.detach());
    let (sparse, dense) = (parts.sparse_dim(), parts.dense_dim());
    if sparse + dense != size.len() as i64 {
        return runtime(format!(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {sparse}, dense_dim = \
             {dense}",
            size.len()
        ));
    }
    if indices.dim() != 2 {
        return runtime(format!("indices must be sparse_dim x nnz, but got: {:?}", indices.shape()));
    }
    if indices.size(1) != parts.count() {
        return runtime(format!(
            "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}",
            indices.size(1),
            parts.count()
        ));
    }
    let is_coalesced = is_coalesced || parts.is_coalesced();
    Tensor::sparse(&parts.coalesced(is_coalesced), size)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("add(Tensor self, Tensor other, *, Scalar alpha=1)", add).takes_sparse(),
    in_place!("add_(Tensor self, Tensor other, *, Scalar alpha=1)", add_in_place).takes_sparse(),
    op!("mul(Operand self, Operand other)", multiply).takes_sparse(),
    in_place!("mul_(Tensor self, Operand other)", multiply_in_place).takes_sparse(),
    op!("div(Tensor self, Operand other, *, str? rounding_mode=None)", divide).takes_sparse(),
    in_place!("div_(Tensor self, Operand other, *, str? rounding_mode=None)", divide_in_place).takes_sparse(),
    op!("neg(Tensor self)", negate).takes_sparse(),
    op!("clone(Tensor self, *, MemoryFormat? memory_format=None)", |tensor: &Tensor, _: Unread| clone(
        tensor
    ))
    .takes_sparse(),
    in_place!("zero_(Tensor self)", zero).takes_sparse(),
    op!("sum(Tensor self)", |tensor: &Tensor| reduce::sum_all(parts_of(tensor, "sum")?.values()))
        .takes_sparse(),
    op!("coalesce(Tensor self)", coalesce).takes_sparse(),
    op!("sparse_mask(Tensor self, Tensor mask)", sparse_mask).takes_sparse(),
    op!("_to_dense(Tensor self)", to_dense).takes_sparse(),
    op!(
        "_sparse_coo_tensor(Tensor indices, Tensor values, int[] size, bool is_coalesced=False)",
        sparse_coo_tensor,
    ),
];
