//! Sizes and strides of a view.

use crate::error::runtime;
use crate::{Result, TorchError, numel};

/// Sizes in which a single -1 is replaced so that the sizes multiply to `count` (`infer_size`).
pub(super) fn infer(shape: &[i64], count: i64) -> Result<Vec<i64>> {
    let known = numel(&shape.iter().copied().filter(|size| *size >= 0).collect::<Vec<_>>());
    let unknown = shape.iter().filter(|size| **size == -1).count();
    let invalid = || TorchError::Runtime(format!("shape '{shape:?}' is invalid for input of size {count}"));
    if unknown > 1 {
        return runtime("only one dimension can be inferred");
    }
    if shape.iter().any(|size| *size < -1) {
        return runtime(format!("invalid shape dimension {}", shape.iter().copied().min().unwrap_or(0)));
    }
    if unknown == 0 {
        return if known == count { Ok(shape.to_vec()) } else { Err(invalid()) };
    }
    if known == 0 || count % known != 0 {
        return Err(invalid());
    }
    Ok(shape.iter().map(|size| if *size == -1 { count / known } else { *size }).collect())
}

/// `computeStride`: strides of the new shape over the same memory; `None` where the shape needs a copy.
pub(super) fn strides_for(old_shape: &[i64], old_strides: &[i64], shape: &[i64]) -> Option<Vec<i64>> {
    if numel(old_shape) == 0 {
        return Some(if old_shape == shape {
            old_strides.to_vec()
        } else {
            crate::contiguous_strides(shape)
        });
    }
    if old_shape.is_empty() {
        return Some(vec![1; shape.len()]);
    }
    let mut strides = vec![0; shape.len()];
    let mut view_dim = shape.len();
    let mut chunk_base = *old_strides.last()?;
    let (mut tensor_numel, mut view_numel) = (1_i64, 1_i64);
    for dim in (0..old_shape.len()).rev() {
        tensor_numel = tensor_numel.saturating_mul(*old_shape.get(dim)?);
        let is_chunk_end = match dim.checked_sub(1) {
            None => true,
            Some(before) => {
                *old_shape.get(before)? != 1
                    && *old_strides.get(before)? != tensor_numel.saturating_mul(chunk_base)
            }
        };
        if is_chunk_end {
            while view_dim > 0 && (view_numel < tensor_numel || shape.get(view_dim - 1) == Some(&1)) {
                view_dim -= 1;
                *strides.get_mut(view_dim)? = view_numel.saturating_mul(chunk_base);
                view_numel = view_numel.saturating_mul(*shape.get(view_dim)?);
            }
            if view_numel != tensor_numel {
                return None;
            }
            if let Some(before) = dim.checked_sub(1) {
                chunk_base = *old_strides.get(before)?;
                tensor_numel = 1;
                view_numel = 1;
            }
        }
    }
    (view_dim == 0).then_some(strides)
}
