//! Embeddings.

mod sparse;

use crate::arguments::arguments;
use crate::autograd::{GradModeGuard, Save, nodes, record, record_after, save_early};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, Value, session};

use super::copy::{contiguous, to_dtype};
use super::creation::{empty, zeros};
use super::kernels::record_linear;
use super::sort::{radix_sort_bytes, scan_bytes, temporary};
use super::views::{self, first};

/// What the gradient of an embedding depends on.
#[derive(Clone, Copy, Debug)]
struct Rows {
    padding: i64,
    scales: bool,
    is_sparse: bool,
}

/// `embedding`.
fn embedding(weight: &Tensor, indices: &Tensor, rows: Rows) -> Result<Tensor> {
    if !matches!(indices.dtype(), Dtype::I64 | Dtype::I32) {
        return runtime(format!(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {} \
             instead (while checking arguments for embedding)",
            if indices.device().is_cuda() {
                format!("torch.cuda.{}Tensor", indices.dtype().scalar_name())
            } else {
                format!("torch.{}Tensor", indices.dtype().scalar_name())
            }
        ));
    }
    iterator::same_device(&[(weight, "self"), (indices, "index")], "_index_select")?;
    let known = indices.values().into_iter().flatten().filter_map(crate::Scalar::to_i64);
    if known.into_iter().any(|place| place < 0 || place >= weight.size(0)) {
        return Err(crate::TorchError::Index("index out of range in self".to_owned()));
    }
    let mut shape = indices.shape().to_vec();
    shape.push(weight.size(1));
    // index_select of the flat indices, which are copied where they have gaps, seen in their shape.
    let saved = [Save::Input(Some(indices))];
    let early = save_early(&[weight], &saved)?;
    let no_grad = GradModeGuard::new(false);
    let flat = if indices.dim() == 1 { indices.clone() } else { views::reshape(indices, &[-1])? };
    let output = empty(&shape, weight.dtype(), weight.device())?;
    drop(flat);
    drop(no_grad);
    let (vocabulary, width) = (weight.size(0), weight.size(1));
    record_after(early, nodes::EmbeddingBackward0, &[weight], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let indices = ctx.saved(0)?;
        if rows.is_sparse {
            return Ok(vec![Some(rows.sparse_backward(grad, &indices, vocabulary)?)]);
        }
        let no_grad = GradModeGuard::new(false);
        let result = embedding_backward(grad, &indices, vocabulary, width)?;
        drop(no_grad);
        // embedding_dense_double_backward: grad.index_select(0, indices.reshape(-1)).view(...)
        record_linear(
            nodes::EmbeddingDenseBackwardBackward0,
            grad,
            None,
            &[&indices],
            &result,
            |grad_grad, saved| {
                let [indices] = saved else { return Ok(grad_grad.clone()) };
                let rows = super::scatter::index_select(grad_grad, 0, &views::reshape(indices, &[-1])?)?;
                let mut shape = indices.shape().to_vec();
                shape.push(grad_grad.size(1));
                views::view(&rows, &shape)
            },
        )?;
        Ok(vec![Some(result)])
    })?;
    Ok(output)
}

/// `embedding_dense_backward`: many indices are sorted first.
fn embedding_backward(grad: &Tensor, indices: &Tensor, vocabulary: i64, width: i64) -> Result<Tensor> {
    const FEW: i64 = 3072;
    let count = indices.numel();
    let device = grad.device();
    let _indices = contiguous(indices)?;
    let _grad = contiguous(grad)?;
    if count <= FEW || !device.is_cuda() {
        return zeros(&[vocabulary, width], grad.dtype(), device);
    }
    let (n, index_size) = (count as u64, indices.dtype().size());
    let sorted = temporary(device, n * index_size)?;
    let original = temporary(device, n * index_size)?;
    let range = temporary(device, n * index_size)?;
    drop(temporary(device, radix_sort_bytes(n, index_size, index_size, 8 * index_size))?);
    drop(range);
    let result = backward_kernel(grad, n, index_size, [vocabulary, width], false)?;
    drop(original);
    drop(sorted);
    Ok(result)
}

/// `embedding_backward_cuda_kernel`: the rows of sorted indices are added up in parts.
///
/// Without bags, many indices of few rows are added up straight into the rows, in `float32` where the result
/// is of a reduced type.
fn backward_kernel(
    grad: &Tensor,
    n: u64,
    index_size: u64,
    [vocabulary, width]: [i64; 2],
    has_bags: bool,
) -> Result<Tensor> {
    let device = grad.device();
    let result = zeros(&[vocabulary, width], grad.dtype(), device)?;
    let segment_offsets = temporary(device, n * index_size)?;
    let segments = temporary(device, 8)?;
    let unique = temporary(device, n * index_size)?;
    // The states of the tiles that the kernel looks back at.
    let states = (n.div_ceil(4480) + 32) * 16;
    drop(temporary(device, states.next_multiple_of(256) + 256 + 255)?);
    drop(unique);
    if index_size != 8 {
        session().note_estimate(
            "embedding",
            "the gradient of indices of 32 bits is sorted in tiles that were not recorded",
        );
    }
    let most = n.min(vocabulary.max(0) as u64);
    let partials = temporary(device, most * index_size)?;
    let partial_offsets = temporary(device, most * index_size)?;
    drop(temporary(device, scan_bytes(most, Dtype::I64))?);
    let partial_count = temporary(device, 8)?;
    let most_partials = n / 10 + most;
    let partial_segments = temporary(device, most_partials * index_size)?;
    let row = width.max(0) as u64 * grad.dtype().accumulate().size();
    // The blocks of the second kernel, which adds up the parts of each row.
    let warped = (width.max(0) as u64).next_multiple_of(32);
    let blocks = (most * warped).div_ceil(warped.clamp(1, 1024));
    let few = 4 * u64::from(session().profile().multiprocessors);
    if !has_bags && blocks < few && most_partials > 4 * blocks {
        let part_of_segment = temporary(device, most_partials * index_size)?;
        if grad.dtype().is_reduced_float() {
            drop(temporary(device, most * row)?);
        }
        drop(part_of_segment);
    } else {
        drop(temporary(device, most_partials * row)?);
    }
    drop(partial_segments);
    drop(partial_count);
    drop(partial_offsets);
    drop(partials);
    drop(segments);
    drop(segment_offsets);
    Ok(result)
}

/// Indices and offsets in their common type (`promoteIndicesAndOffsets`).
fn promoted(indices: &Tensor, offsets: &Tensor) -> Result<(Tensor, Tensor)> {
    let is_wide = indices.dtype() == Dtype::I64 || offsets.dtype() == Dtype::I64;
    let dtype = if is_wide { Dtype::I64 } else { Dtype::I32 };
    Ok((to_dtype(indices, dtype)?, to_dtype(offsets, dtype)?))
}

/// How the rows of a bag are joined, in ATen's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BagMode {
    Sum,
    Mean,
    Max,
}

arguments! {
    /// How rows become bags.
    #[derive(Clone, Copy)]
    struct Bags<'a> {
        scales: bool,
        mode: i64,
        is_sparse: bool,
        weights: Option<&'a Tensor>,
        has_last: bool,
        padding: Option<i64>,
    }
}

/// `embedding_bag`: the bags, the bag of each index, the size of each bag, and the greatest rows.
fn embedding_bag(weight: &Tensor, indices: &Tensor, offsets: &Tensor, bags: Bags<'_>) -> Result<Value> {
    let Bags { scales, weights, has_last, .. } = bags;
    let to_rows = Rows { padding: bags.padding.unwrap_or(-1), scales, is_sparse: bags.is_sparse };
    let mode = match bags.mode {
        0 => BagMode::Sum,
        1 => BagMode::Mean,
        _ => BagMode::Max,
    };
    let (indices, offsets) = (contiguous(indices)?, contiguous(offsets)?);
    for (tensor, name) in [(&indices, "indices"), (&offsets, "offsets")] {
        if !matches!(tensor.dtype(), Dtype::I64 | Dtype::I32) {
            return runtime(format!(
                "Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, Int; but got {} \
                 instead (while checking arguments for embedding_bag)",
                tensor.dtype().scalar_name()
            ));
        }
    }
    let device = iterator::common_device(&[weight, &indices, &offsets])?;
    let no_grad = GradModeGuard::new(false);
    let (wide_indices, wide_offsets) = promoted(&indices, &offsets)?;
    let dtype = wide_indices.dtype();
    let bags = offsets.numel() - i64::from(has_last);
    if bags < 0 {
        return runtime("include_last_offset: numBags should be at least 1");
    }
    let bag_size = empty(&offsets.shape(), dtype, device)?;
    let bag_of_index = empty(&[indices.numel()], dtype, device)?;
    let shape = [bags, weight.size(1)];
    let output = empty(&shape, weight.dtype(), device)?;
    let greatest = empty(if mode == BagMode::Max { &shape } else { &[0] }, dtype, device)?;
    drop(wide_offsets);
    drop(wide_indices);
    drop(no_grad);
    let mut inputs = vec![weight];
    inputs.extend(weights);
    let scaled = weights.filter(|weights| weights.requires_grad());
    let saved = [
        Save::Input(Some(&indices)),
        Save::Input(Some(&offsets)),
        Save::Input(weights),
        Save::Input(scaled.map(|_| weight)),
        Save::Input(Some(&bag_of_index)),
        Save::Input(Some(&bag_size)),
        Save::Input(Some(&greatest)),
    ];
    let rows = weight.size(0);
    let outputs = [&output];
    record(nodes::EmbeddingBagBackward0, &inputs, &outputs, &saved, move |ctx, grads| {
        let grad = first(grads)?;
        let to_weights = ctx.gradient(1, || empty(&[ctx.saved(0)?.numel()], grad.dtype(), grad.device()))?;
        let grad_weight = if ctx.wants(0) && to_rows.is_sparse {
            let bags = sparse::Bags {
                of_index: ctx.saved(4)?,
                sizes: ctx.saved(5)?,
                weights: ctx.saved_optional(2)?,
            };
            Some(to_rows.sparse_bag_backward(grad, &ctx.saved(0)?, &bags, mode, rows)?)
        } else {
            ctx.gradient(0, || bag_backward(grad, &ctx.saved(0)?, &ctx.saved(1)?, rows, mode, scales))?
        };
        Ok(vec![grad_weight, to_weights])
    })?;
    Ok(Value::List(vec![output.into(), bag_of_index.into(), bag_size.into(), greatest.into()]))
}

/// `_embedding_bag_dense_backward`.
fn bag_backward(
    grad: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    rows: i64,
    mode: BagMode,
    scales: bool,
) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let (indices, _offsets) = promoted(indices, offsets)?;
    let grad = contiguous(grad)?;
    let (device, width) = (grad.device(), grad.size(1));
    if mode == BagMode::Max || indices.numel() == 0 || !device.is_cuda() {
        return zeros(&[rows, width], grad.dtype(), device);
    }
    let (n, index_size) = (indices.numel().max(0) as u64, indices.dtype().size());
    let sorted = temporary(device, n * index_size)?;
    let original = temporary(device, n * index_size)?;
    let range = temporary(device, n * index_size)?;
    drop(temporary(device, radix_sort_bytes(n, index_size, index_size, 8 * index_size))?);
    drop(range);
    let mut counts = None;
    if scales {
        session().note_estimate("embedding_bag", "scale_grad_by_freq was not recorded");
        counts = Some(temporary(device, n * index_size)?);
    }
    let result = backward_kernel(&grad, n, index_size, [rows, width], true)?;
    drop(counts);
    drop(original);
    drop(sorted);
    Ok(result)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
        |weight: &Tensor, indices: &Tensor, padding: i64, scales: bool, is_sparse: bool| {
            if scales && !is_sparse && weight.requires_grad() {
                session().note_estimate("embedding", "the gradient with scale_grad_by_freq was not recorded");
            }
            embedding(weight, indices, Rows { padding, scales, is_sparse })
        }
    ),
    op!(
        "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool \
         sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)",
        embedding_bag,
    ),
];
