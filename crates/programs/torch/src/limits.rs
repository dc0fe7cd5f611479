//! The largest sizes that a program of PyTorch can use: larger ones are refused.
//!
//! Operators add and multiply sizes of tensors and numbers from the program. Tensors are kept so small here
//! that sums and products of one tensor's sizes fit 64 bits; a number from the program may be anything, so it
//! is added and multiplied saturating: a size that saturates is refused as soon as a tensor gets it.

use crate::error::runtime;
use crate::{Device, Dtype, Result, TorchError, Value};

/// The bytes that a process addresses: no tensor with its own memory is larger. In PyTorch a view may have
/// more elements than this; here such a view is refused.
const ADDRESSABLE: u64 = 1 << 47;

/// The most parts of one tensor: the list of more parts would fill the memory of the machine that Blockyard
/// runs on.
const MAX_PARTS: i64 = 1 << 20;

/// The bytes of a new tensor with these strides (`at::detail::computeStorageNbytes`).
///
/// # Errors
///
/// [`TorchError::Runtime`] with PyTorch's text for sizes that are negative or overflow, and where the host
/// has no such memory.
pub(crate) fn storage_bytes(shape: &[i64], strides: &[i64], dtype: Dtype, device: Device) -> Result<u64> {
    if let Some(size) = shape.iter().find(|size| **size < 0) {
        return runtime(format!("Trying to create tensor with negative dimension {size}: {shape:?}"));
    }
    let mut elements = Some(1_i64);
    for (size, stride) in shape.iter().zip(strides) {
        let last = size.saturating_sub(1).checked_mul(*stride);
        elements = elements.zip(last).and_then(|(elements, last)| elements.checked_add(last));
    }
    if shape.contains(&0) {
        // The strides of a tensor without elements are computed too.
        let product = shape.iter().try_fold(1_i64, |product, size| product.checked_mul((*size).max(1)));
        return if product.is_some() { Ok(0) } else { runtime("Stride calculation overflowed") };
    }
    let bytes = elements.and_then(|elements| elements.checked_mul(dtype.size().cast_signed()));
    let Some(bytes) = bytes.and_then(|bytes| u64::try_from(bytes).ok()) else {
        return runtime(format!("Storage size calculation overflowed with sizes={shape:?}"));
    };
    if device == Device::Cpu && bytes > ADDRESSABLE {
        return runtime(format!(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} \
             bytes. Error code 12 (Cannot allocate memory)"
        ));
    }
    Ok(bytes)
}

/// Refuses the result of an operator that has more elements than a machine addresses.
pub(crate) fn check_result(value: &Value) -> Result<()> {
    match value {
        Value::Tensor(tensor) => {
            let shape = tensor.shape();
            let product = shape.iter().try_fold(1_i64, |product, size| product.checked_mul(*size));
            match product {
                None => runtime("numel: integer multiplication overflow"),
                Some(count) if count > ADDRESSABLE.cast_signed() => Err(TorchError::NotImplemented(format!(
                    "a tensor of {count} elements is not followed: no machine has that much memory"
                ))),
                Some(_) => Ok(()),
            }
        }
        Value::List(items) => items.iter().try_for_each(check_result),
        _ => Ok(()),
    }
}

/// Refuses to cut a tensor into more parts than a machine has memory for.
pub(crate) fn check_parts(count: i64) -> Result<()> {
    if count > MAX_PARTS {
        return Err(TorchError::NotImplemented(format!("a tensor is not cut into {count} parts here")));
    }
    Ok(())
}
