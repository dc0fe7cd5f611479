//! Padding by the elements at the borders: reflection and replication.

use crate::autograd::{GradModeGuard, Save, nodes, record_after, save_early};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{MemoryFormat, Result, Tensor};

use super::copy::contiguous;
use super::creation::{empty, empty_like_as};
use super::kernels::record_linear;
use super::views::first;

/// `reflection_pad` and `replication_pad` of one to three dimensions: one kernel that reads a contiguous
/// input.
fn padded(
    input: &Tensor,
    pad: Vec<i64>,
    dims: usize,
    reflects: bool,
    nodes: [&'static str; 2],
) -> Result<Tensor> {
    if pad.len() != 2 * dims {
        return runtime(format!("padding size is expected to be {}, but got: {}", 2 * dims, pad.len()));
    }
    let mut shape = input.shape().to_vec();
    let count = shape.len();
    if count != dims + 1 && count != dims + 2 {
        return runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, \
             but got: {:?}",
            dims + 1,
            dims + 2,
            input.shape()
        ));
    }
    for (index, pair) in pad.chunks(2).enumerate() {
        let Some(size) = shape.get_mut(count - 1 - index) else { continue };
        if reflects && pair.iter().any(|side| side >= size) {
            return runtime(format!(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({pair:?}) \
                 at dimension {} of input {:?}",
                count - 1 - index,
                input.shape()
            ));
        }
        *size = pair.iter().fold(*size, |size, side| size.saturating_add(*side));
    }
    let saved = [Save::Input(Some(input))];
    let early = save_early(&[input], &saved)?;
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let output = empty(&shape, input.dtype(), input.device())?;
        // Kernels that repeat the border read any strides.
        if reflects {
            drop(contiguous(input)?);
        }
        output
    };
    let [node, again] = nodes;
    record_after(early, node, &[input], &[&output], &saved, move |ctx, grads| {
        let (grad, own) = (first(grads)?, ctx.saved(0)?);
        let result = {
            let _no_grad = GradModeGuard::new(false);
            let result = empty_like_as(&own, own.dtype(), MemoryFormat::Contiguous)?;
            // The kernels that repeat the border of one or two dimensions read any strides here, too.
            if reflects || dims > 2 {
                drop(contiguous(grad)?);
            }
            result
        };
        let pad = pad.clone();
        record_linear(again, grad, Some(&own), &[], &result, move |grad, _| {
            padded(grad, pad.clone(), dims, reflects, nodes)
        })?;
        Ok(vec![Some(result)])
    })?;
    Ok(output)
}

macro_rules! pads {
    ($( $name:literal $dims:literal $reflects:literal $node:ident $again:ident; )*) => {
        &[$(op!(concat!($name, "(Tensor self, int[] padding)"), |input: &Tensor, pad: Vec<i64>| {
            padded(input, pad, $dims, $reflects, [nodes::$node, nodes::$again])
        })),*]
    };
}

/// The operators: how many dimensions they pad, whether they reflect, and their nodes.
pub(crate) const TABLE: &[Entry] = pads! {
    "reflection_pad1d" 1 true ReflectionPad1DBackward0 ReflectionPad1DBackwardBackward0;
    "reflection_pad2d" 2 true ReflectionPad2DBackward0 ReflectionPad2DBackwardBackward0;
    "reflection_pad3d" 3 true ReflectionPad3DBackward0 ReflectionPad3DBackwardBackward0;
    "replication_pad1d" 1 false ReplicationPad1DBackward0 ReplicationPad1DBackwardBackward0;
    "replication_pad2d" 2 false ReplicationPad2DBackward0 ReplicationPad2DBackwardBackward0;
    "replication_pad3d" 3 false ReplicationPad3DBackward0 ReplicationPad3DBackwardBackward0;
};
