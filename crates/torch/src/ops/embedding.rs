//! Embeddings.

use crate::autograd::{GradModeGuard, Save, record};
use crate::error::runtime;
use crate::iterator;
use crate::registry::{Entry, op};
use crate::{Dtype, Result, Tensor, session};

use super::copy::contiguous;
use super::creation::{empty, zeros};
use super::kernels::record_linear;
use super::sort::{radix_sort_bytes, scan_bytes, temporary};
use super::views::{self, first};

/// `embedding`.
fn embedding(weight: &Tensor, indices: &Tensor, padding: i64) -> Result<Tensor> {
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
    iterator::common_device(&[weight, indices])?;
    let mut shape = indices.shape().to_vec();
    shape.push(weight.size(1));
    // index_select of the flat indices, which are copied where they have gaps, seen in their shape.
    let below = GradModeGuard::new(false);
    let flat = if indices.dim() == 1 { indices.clone() } else { views::reshape(indices, &[-1])? };
    let output = empty(&shape, weight.dtype(), weight.device())?;
    drop(flat);
    drop(below);
    let (vocabulary, width) = (weight.size(0), weight.size(1));
    let _ = padding;
    record("EmbeddingBackward0", &[weight], &[&output], &[Save::Input(Some(indices))], move |ctx, grads| {
        let grad = first(grads)?;
        let indices = ctx.saved(0)?;
        let below = GradModeGuard::new(false);
        let result = embedding_backward(grad, &indices, vocabulary, width)?;
        drop(below);
        // embedding_dense_double_backward: grad.index_select(0, indices.reshape(-1)).view(...)
        record_linear(
            "EmbeddingDenseBackwardBackward0",
            grad,
            None,
            &[&indices],
            &result,
            |again, saved| {
                let [indices] = saved else { return Ok(again.clone()) };
                let rows = super::scatter::index_select(again, 0, &views::reshape(indices, &[-1])?)?;
                let mut shape = indices.shape().to_vec();
                shape.push(again.size(1));
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
    let result = zeros(&[vocabulary, width], grad.dtype(), device)?;
    let segment_offsets = temporary(device, n * index_size)?;
    let segments = temporary(device, 8)?;
    let unique = temporary(device, n * index_size)?;
    drop(temporary(device, 1279)?);
    drop(unique);
    let most = n.min(vocabulary.max(0) as u64);
    let partials = temporary(device, most * index_size)?;
    let partial_offsets = temporary(device, most * index_size)?;
    drop(temporary(device, scan_bytes(most, Dtype::I64))?);
    let partial_count = temporary(device, 8)?;
    let most_partials = n / 10 + most;
    let partial_segments = temporary(device, most_partials * index_size)?;
    if (101..1000).contains(&most) || grad.dtype() != Dtype::F32 || index_size != 8 || n > 16384 {
        session().mark_estimated("embedding", "the gradient of this many indices and rows was not recorded");
    }
    let sums = most_partials * if most <= 100 { 8 } else { width.max(0) as u64 * 4 };
    let per_segment = temporary(device, sums)?;
    drop(per_segment);
    drop(partial_segments);
    drop(partial_count);
    drop(partial_offsets);
    drop(partials);
    drop(segments);
    drop(segment_offsets);
    drop(original);
    drop(sorted);
    Ok(result)
}

pub(crate) const TABLE: &[Entry] = &[op(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
    |a| Ok(embedding(&a.t(0)?, &a.t(1)?, a.int(2)?)?.into()),
)];
