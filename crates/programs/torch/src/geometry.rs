//! Sizes and strides.

/// Strides of a tensor without gaps, the last dimension fastest; saturates where no tensor can be so large.
pub fn contiguous_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    let mut next = 1_i64;
    for (stride, size) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul((*size).max(1));
    }
    strides
}

/// Strides of a tensor without gaps in the channels-last order (4 or 5 dimensions).
pub fn channels_last_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut next = 1_i64;
    // Channels (dimension 1) first, then the spatial ones from the last, then the batch.
    let order = std::iter::once(1).chain((2..shape.len()).rev()).chain(std::iter::once(0));
    for dim in order {
        if let (Some(stride), Some(size)) = (strides.get_mut(dim), shape.get(dim)) {
            *stride = next;
            next = next.saturating_mul((*size).max(1));
        }
    }
    strides
}

/// The number of elements; saturates where no tensor can have as many.
pub fn numel(shape: &[i64]) -> i64 {
    shape.iter().fold(1, |product, size| product.saturating_mul(*size))
}

/// The place of each element in its storage, in the order of the elements.
pub(crate) fn element_offsets(shape: &[i64], strides: &[i64], offset: i64) -> Vec<i64> {
    let mut offsets = vec![offset];
    for (size, stride) in shape.iter().zip(strides) {
        offsets =
            offsets.iter().flat_map(|base| (0..*size).map(move |index| base + index * stride)).collect();
    }
    offsets
}

/// Whether elements follow each other without gaps, the last dimension fastest (`is_contiguous`).
pub(crate) fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if numel(shape) == 0 {
        return true;
    }
    let mut expected = 1;
    for (size, stride) in shape.iter().zip(strides).rev() {
        if *size != 1 {
            if *stride != expected {
                return false;
            }
            expected *= size;
        }
    }
    true
}

/// Whether elements follow each other without gaps in this order of dimensions, the fastest first.
pub(crate) fn matches_order(shape: &[i64], strides: &[i64], order: &[usize]) -> bool {
    let mut expected = 1;
    for dim in order {
        let (Some(size), Some(stride)) = (shape.get(*dim), strides.get(*dim)) else { return false };
        if *size != 1 {
            if *stride != expected {
                return false;
            }
            expected *= size;
        }
    }
    true
}

/// `is_channels_last_strides_2d_s4`: ties and sizes of 1 are read as PyTorch reads them.
pub(crate) fn is_channels_last_like(shape: &[i64], strides: &[i64], order: &[usize]) -> bool {
    let mut least = 0;
    if strides.get(1) == Some(&0) {
        return false;
    }
    for dim in order {
        let (Some(size), Some(stride)) = (shape.get(*dim).copied(), strides.get(*dim).copied()) else {
            return false;
        };
        if size == 0 || stride < least {
            return false;
        }
        if *dim == 0 && strides.get(1) == Some(&least) {
            return false;
        }
        least = stride;
        if size > 1 {
            least *= size;
        }
    }
    true
}

/// Whether elements fill a stretch of memory in some order (`is_non_overlapping_and_dense`).
pub(crate) fn is_dense(shape: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i64, i64)> =
        strides.iter().copied().zip(shape.iter().copied()).filter(|(_, size)| *size != 1).collect();
    dims.sort_unstable();
    let mut expected = 1;
    for (stride, size) in dims {
        if stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}
