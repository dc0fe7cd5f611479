//! The memory that it takes to bring the places of a sparse tensor into order.

use crate::sparse::SparseParts;
use crate::{Dtype, MemoryFormat, Result, Tensor, numel, session};

use super::super::copy::{self, contiguous};
use super::super::creation::empty;
use super::super::sort::temporary;
use super::super::views;

/// `flatten_indices`: one number for the places of all sparse dimensions.
pub(super) fn flatten_indices(indices: &Tensor, shape: &[i64], copies: bool) -> Result<Tensor> {
    let flat = views::squeeze(indices, Some(&[0]))?;
    if indices.size(0) == 1 {
        return if copies { copy::clone(&flat, MemoryFormat::Contiguous) } else { Ok(flat) };
    }
    let _ = shape;
    session().note_estimate("sparse tensors", "the places of several sparse dimensions were not recorded");
    empty(&[indices.size(1)], Dtype::I64, indices.device())
}

/// `_coalesce_sparse_cuda`: places are sorted, and the values of one place added up.
///
/// How many places differ is known where the indices are known. On a GPU they are not, and all places are
/// counted as different.
pub(super) fn coalesced_parts(parts: &SparseParts, shape: &[i64]) -> Result<SparseParts> {
    let (device, count) = (parts.values().device(), parts.count());
    if count < 2 {
        return Ok(super::cloned_parts(parts)?.coalesced(true));
    }
    let values = parts.values().clone();
    let flat = flatten_indices(parts.indices(), shape, true)?;
    let bytes = 8 * count.max(0) as u64;
    let original = temporary(device, bytes)?;
    let offsets = temporary(device, bytes)?;
    if device.is_cuda() {
        drop(temporary(device, merge_sort_bytes(count as u64))?);
        drop(temporary(device, unique_bytes(count as u64))?);
    }
    let different = places(parts, shape);
    let mut new_shape = values.shape().to_vec();
    if let Some(count) = new_shape.first_mut() {
        *count = different;
    }
    let summed = empty(&new_shape, values.dtype(), device)?;
    let _values = contiguous(&values)?;
    let indices = if parts.sparse_dim() == 1 {
        flat.alias(&[1, different], &[different, 1], 0)
    } else {
        empty(&[parts.sparse_dim(), different], Dtype::I64, device)?
    };
    drop(offsets);
    drop(original);
    Ok(SparseParts::new(indices, summed).coalesced(true))
}

/// How many places differ.
fn places(parts: &SparseParts, shape: &[i64]) -> i64 {
    let (count, rows) = (parts.count(), parts.sparse_dim() as usize);
    if let Some(known) = parts.indices().values() {
        let column = |at: usize| -> Vec<Option<i64>> {
            known.iter().skip(at).step_by(count as usize).map(|value| value.to_i64()).collect()
        };
        let columns: std::collections::BTreeSet<_> = (0..count as usize).map(column).collect();
        return columns.len() as i64;
    }
    session().note_estimate(
        session().operator(),
        "how many indices differ depends on values; all of them are taken to differ",
    );
    count.min(numel(shape.get(..rows).unwrap_or_default()))
}

const fn aligned(bytes: u64) -> u64 {
    bytes.div_ceil(256) * 256
}

/// Bytes of CUB's merge sort of numbers and places of 64 bits: copies of both, and where the tiles of 2048
/// begin.
fn merge_sort_bytes(count: u64) -> u64 {
    2 * aligned(8 * count) + aligned(4 * (count.div_ceil(2048) + 1)) + 255
}

/// Bytes of CUB's selection of the first of equal numbers, in tiles of 9856, with the count that Thrust reads
/// back.
fn unique_bytes(count: u64) -> u64 {
    aligned(16 * (count.div_ceil(9856) + 32)) + 256 + 256 + 255
}
