//! Fake quantization: a kernel that rounds to a grid and writes a mask of the elements within the grid.

use crate::arguments::Unread;
use crate::autograd::{Save, nodes, record};
use crate::error::{not_implemented, runtime};
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor};

use super::creation::{empty_like, empty_like_as, ones};
use super::pointwise::mul;
use super::views::first;

fn check_range(quant_min: i64, quant_max: i64) -> Result<()> {
    if quant_min > quant_max {
        return runtime("`quant_min` should be less than or         equal to `quant_max`.");
    }
    Ok(())
}

/// The result, then the mask, which the backward function keeps: `fake_quantize_per_tensor_affine_cachemask`,
/// by numbers as by tensors.
fn with_mask(input: &Tensor, node: &'static str) -> Result<(Tensor, Tensor)> {
    let output = empty_like(input)?;
    let mask = empty_like_as(input, Dtype::Bool, MemoryFormat::Preserve)?;
    // The kernel exists for the types of training alone, and the two of 8 bits are not among them.
    if !input.dtype().is_floating() || input.dtype().size() == 1 {
        return not_implemented(format!(
            "\"fake_quantize_tensor_cachemask_kernel_types\" not implemented for '{}'",
            input.dtype().scalar_name()
        ));
    }
    record(node, &[input], &[&output], &[Save::Input(Some(&mask))], |ctx, grads| {
        let (grad, mask) = (first(grads)?, ctx.saved(0)?);
        Ok(vec![Some(if grad.numel() == 0 { grad.clone() } else { mul(grad, &mask)? })])
    })?;
    Ok((output, mask))
}

fn by_numbers(
    input: &Tensor,
    _scale: Unread,
    zero_point: i64,
    quant_min: i64,
    quant_max: i64,
) -> Result<Tensor> {
    check_range(quant_min, quant_max)?;
    if !(quant_min..=quant_max).contains(&zero_point) {
        return runtime("`zero_point` must be between `quant_min` and `quant_max`.");
    }
    let (output, _mask) = with_mask(input, nodes::FakeQuantizePerTensorAffineCachemaskBackward0)?;
    Ok(output)
}

/// `fake_quantize_per_tensor_affine` with tensors: the kernel reads scale and zero point, and a third number
/// that says that the kernel is to quantize.
fn by_tensors(
    input: &Tensor,
    scale: &Tensor,
    zero_point: &Tensor,
    quant_min: i64,
    quant_max: i64,
) -> Result<Tensor> {
    let is_enabled = ones(&[1], Dtype::I64, input.device())?;
    for (tensor, name) in [(scale, "scale"), (zero_point, "zero_point")] {
        if crate::autograd::needs_history(&[tensor]) {
            return runtime(format!(
                "The function '_fake_quantize_per_tensor_affine_cachemask_tensor_qparams' is not differentiable \
                 with respect to argument '{name}'. This input cannot have requires_grad True."
            ));
        }
    }
    check_range(quant_min, quant_max)?;
    for (tensor, dtype) in [(scale, Dtype::F32), (zero_point, Dtype::I32)] {
        if tensor.dtype() != dtype {
            return runtime(format!(
                "expected scalar type {} but found {}",
                dtype.scalar_name(),
                tensor.dtype().scalar_name()
            ));
        }
    }
    let (output, _mask) =
        with_mask(input, nodes::FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0)?;
    // The function that makes the number calls the one that makes the mask, whose result outlives the number.
    drop(is_enabled);
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "fake_quantize_per_tensor_affine(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max)",
        by_tensors
    )
    .composed(&[nodes::FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0]),
    op!(
        "fake_quantize_per_tensor_affine(Tensor input, float scale, int zero_point, int quant_min, int quant_max)",
        by_numbers
    )
    .composed(&[nodes::FakeQuantizePerTensorAffineCachemaskBackward0]),
];
