//! Products of several matrices, of blocks, and of three tensors.

use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Result, Tensor, Value};

use super::creation::zeros;
use super::einsum::sum_of_products;
use super::matmul::mm;
use super::pointwise::{add, add_in_place, mul};
use super::views::{first, narrow, reshape, unsafe_view, unsqueeze, view};

/// `kron`: a product of views in which the dimensions of both alternate.
fn kron(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dims = a.dim().max(b.dim());
    let padded = |tensor: &Tensor| -> Vec<i64> {
        let mut sizes = vec![1; dims - tensor.dim()];
        sizes.extend(tensor.shape().iter());
        sizes
    };
    let (sizes_a, sizes_b) = (padded(a), padded(b));
    let view_of = |tensor: &Tensor, shape: &[i64]| -> Result<Tensor> {
        // `_unsafe_view` refuses a tensor that is not a view.
        drop(view(&tensor.detach(), shape)?);
        unsafe_view(tensor, shape)
    };
    let view_a = view_of(a, &sizes_a.iter().flat_map(|size| [*size, 1]).collect::<Vec<_>>())?;
    let view_b = view_of(b, &sizes_b.iter().flat_map(|size| [1, *size]).collect::<Vec<_>>())?;
    let shape: Vec<i64> = sizes_a.iter().zip(&sizes_b).map(|(a, b)| a.saturating_mul(*b)).collect();
    unsafe_view(&mul(&view_a, &view_b)?, &shape)
}

/// `matrix_chain_order`: where to split a chain of matrices, by the least number of multiplications.
fn chain_order(matrices: &[Tensor]) -> Vec<Vec<usize>> {
    let count = matrices.len();
    let mut sizes: Vec<i64> = matrices.iter().map(|matrix| matrix.size(0)).collect();
    sizes.push(matrices.last().map_or(1, |matrix| matrix.size(1)));
    let mut costs = vec![vec![0_i64; count]; count];
    let mut splits = vec![vec![0_usize; count]; count];
    let at = |table: &[Vec<i64>], i: usize, j: usize| {
        table.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0)
    };
    let size = |index: usize| sizes.get(index).copied().unwrap_or(1);
    for length in 1..count {
        for i in 0..count - length {
            let j = i + length;
            let mut least = (i64::MAX, i);
            for k in i..j {
                let input = size(i).saturating_mul(size(k + 1)).saturating_mul(size(j + 1));
                let cost = at(&costs, i, k).saturating_add(at(&costs, k + 1, j)).saturating_add(input);
                if cost < least.0 {
                    least = (cost, k);
                }
            }
            if let (Some(cost), Some(split)) = (
                costs.get_mut(i).and_then(|row| row.get_mut(j)),
                splits.get_mut(i).and_then(|row| row.get_mut(j)),
            ) {
                (*cost, *split) = least;
            }
        }
    }
    splits
}

/// `matrix_chain_multiplication` of the matrices `i` to `j`; C++ evaluates the right factor first.
fn chain_product(matrices: &[Tensor], splits: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i >= j {
        return matrices.get(i).cloned().ok_or_else(|| {
            crate::TorchError::Runtime("multi_dot(): expected at least 2 tensors".to_owned())
        });
    }
    let split = splits.get(i).and_then(|row| row.get(j)).copied().unwrap_or(i).clamp(i, j - 1);
    let right = chain_product(matrices, splits, split + 1, j)?;
    let left = chain_product(matrices, splits, i, split)?;
    mm(&left, &right)
}

/// `linalg_multi_dot`: a chain of matrices in the cheapest order.
fn multi_dot(tensors: &[Tensor]) -> Result<Tensor> {
    let cast = Cast::lower(tensors.first().map_or(crate::Device::Cpu, Tensor::device));
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| cast.apply(tensor)).collect::<Result<_>>()?;
    let count = tensors.len();
    if count < 2 {
        return runtime(format!("multi_dot(): expected at least 2 tensors but got {count}"));
    }
    let mut matrices = Vec::with_capacity(count);
    let mut shape = Vec::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let is_first = index == 0;
        matrices.push(match tensor.dim() {
            2 => {
                if is_first {
                    shape.push(tensor.size(0));
                } else if index + 1 == count {
                    shape.push(tensor.size(1));
                }
                tensor.clone()
            }
            1 if is_first => unsqueeze(tensor, 0)?,
            1 if index + 1 == count => unsqueeze(tensor, -1)?,
            dims => {
                return runtime(format!(
                    "multi_dot(): tensor {index} must be 1D or 2D at the ends and 2D between, but got {dims}D"
                ));
            }
        });
    }
    for (index, pair) in matrices.windows(2).enumerate() {
        if let [left, right] = pair
            && left.size(-1) != right.size(0)
        {
            return runtime(format!(
                "multi_dot(): tensors {index} and {} with shapes {:?} and {:?} cannot be multiplied",
                index + 1,
                left.shape(),
                right.shape()
            ));
        }
    }
    if let [a, b] = matrices.as_slice() {
        return view(&mm(a, b)?, &shape);
    }
    if let [a, b, c] = matrices.as_slice() {
        let (rows, left, right, columns) = (a.size(0), b.size(0), c.size(0), c.size(1));
        let from_left = rows.saturating_mul(right).saturating_mul(left.saturating_add(columns));
        let from_right = left.saturating_mul(columns).saturating_mul(rows.saturating_add(right));
        return if from_left > from_right {
            view(&mm(a, &mm(b, c)?)?, &shape)
        } else {
            view(&mm(&mm(a, b)?, c)?, &shape)
        };
    }
    let splits = chain_order(&matrices);
    view(&chain_product(&matrices, &splits, 0, count - 1)?, &shape)
}

/// Which dimensions `_trilinear` adds to each of its three tensors, and which it sums up.
#[derive(Clone, Copy, Debug)]
struct TrilinearDims {
    added: [&'static [i64]; 3],
    summed: &'static [i64],
}

impl TrilinearDims {
    /// The layout of the gradient of tensor `at`: the incoming gradient takes the tensor's place.
    fn of_gradient(mut self, at: usize) -> Self {
        if let Some(added) = self.added.get_mut(at) {
            std::mem::swap(added, &mut self.summed);
        }
        self
    }
}

/// The dimension along which `_trilinear` runs in a loop.
const UNROLLED: i64 = 1;

/// `_trilinear`: the product of three tensors in a loop along one dimension, below autograd.
fn trilinear_below(tensors: [&Tensor; 3], layout: TrilinearDims) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let count = tensors[0].dim() as i64 + layout.added[0].len() as i64;
    let [mut a, mut b, mut c] = tensors.map(Clone::clone);
    let (mut summed_first, mut summed_second, mut shape) = (vec![], vec![], vec![]);
    let mut length = 0;
    for dim in 0..count {
        let mut size = 0;
        for (tensor, added) in
            [(&mut a, layout.added[0]), (&mut b, layout.added[1]), (&mut c, layout.added[2])]
        {
            if added.contains(&dim) {
                *tensor = unsqueeze(tensor, dim)?;
            } else {
                size = tensor.size(dim);
            }
        }
        let is_summed = layout.summed.contains(&dim);
        if is_summed && dim != UNROLLED {
            if layout.added[2].contains(&dim) { summed_first.push(dim) } else { summed_second.push(dim) }
        }
        shape.push(if is_summed { 1 } else { size });
        if dim == UNROLLED {
            length = size;
        }
    }
    let output = zeros(&shape, a.dtype(), a.device())?;
    if [&a, &b, &c].iter().all(|tensor| tensor.numel() != 0) {
        crate::limits::check_parts(length)?;
        let part = |tensor: &Tensor, at: usize, step: i64| {
            let start =
                if layout.added.get(at).is_some_and(|added| added.contains(&UNROLLED)) { 0 } else { step };
            narrow(tensor, UNROLLED, start, 1)
        };
        for step in 0..length {
            let product = sum_of_products(part(&a, 0, step)?, part(&b, 1, step)?, &summed_first)?;
            let whole = sum_of_products(product.clone(), part(&c, 2, step)?, &summed_second)?;
            drop(product);
            let into = if layout.summed.contains(&UNROLLED) {
                output.clone()
            } else {
                narrow(&output, UNROLLED, step, 1)?
            };
            add_in_place(&into, &whole)?;
        }
    }
    let kept: Vec<i64> = shape
        .iter()
        .enumerate()
        .filter(|(dim, _)| !layout.summed.contains(&(*dim as i64)))
        .map(|(_, size)| *size)
        .collect();
    Ok(output.alias(&kept, &crate::contiguous_strides(&kept), 0))
}

/// `_trilinear` with its history: each gradient is the same operator.
fn trilinear(tensors: [&Tensor; 3], layout: TrilinearDims) -> Result<Tensor> {
    let output = trilinear_below(tensors, layout)?;
    let [a, b, c] = tensors;
    let needs = tensors.map(Tensor::requires_grad);
    let saved = [
        Save::InputIf(needs[1] || needs[2], a),
        Save::InputIf(needs[0] || needs[2], b),
        Save::InputIf(needs[0] || needs[1], c),
    ];
    record(nodes::TrilinearBackward0, &tensors, &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let mut found = vec![None, None, None];
        for (at, slot) in found.iter_mut().enumerate() {
            if !ctx.wants(at) {
                continue;
            }
            let part = |index: usize| if index == at { Ok(grad.clone()) } else { ctx.saved(index) };
            *slot = Some(trilinear([&part(0)?, &part(1)?, &part(2)?], layout.of_gradient(at))?);
        }
        Ok(found)
    })?;
    Ok(output)
}

/// `bilinear`.
fn bilinear(a: &Tensor, b: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Value> {
    let mut all = vec![a, b, weight];
    all.extend(bias);
    let cast = Cast::widest(&all);
    let (a, b, weight, bias) =
        (cast.apply(a)?, cast.apply(b)?, cast.apply(weight)?, cast.apply_optional(bias)?);
    if a.dim() != b.dim() {
        return runtime(format!(
            "bilinear(): input dimensions do not match: got {} and {}",
            a.dim(),
            b.dim()
        ));
    }
    for (tensor, at, name) in [(&a, 1, "input1"), (&b, 2, "input2")] {
        if weight.dim() != 3 || tensor.dim() == 0 || tensor.size(-1) != weight.size(at) {
            return runtime(format!(
                "bilinear(): {name} size does not match weight size: got {} but expected {}",
                tensor.size(-1),
                weight.size(at)
            ));
        }
    }
    let mut shape = a.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = weight.size(0);
    }
    let flat_a = reshape(&a, &[-1, a.size(-1)])?;
    let flat_b = reshape(&b, &[-1, b.size(-1)])?;
    let layout = TrilinearDims { added: [&[1, 3], &[0], &[1, 2]], summed: &[2, 3] };
    let output = reshape(&trilinear([&flat_a, &weight, &flat_b], layout)?, &shape)?;
    let Some(bias) = bias else { return Ok(output.into()) };
    let result = add(&output, &bias)?;
    drop(output);
    Ok(result.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("kron(Tensor self, Tensor other)", kron),
    op!("linalg_multi_dot(Tensor[] tensors)", multi_dot),
    op!("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)", bilinear),
];
