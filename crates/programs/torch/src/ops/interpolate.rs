//! Interpolation between elements: one kernel for each way and number of dimensions.

use crate::arguments::Rest;
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, double_backward, nodes, record};
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor, contiguous_strides};

use super::copy::{contiguous_in, empty_strided};
use super::kernels::record_linear;
use super::views::first;

/// How the kernels of a node read their input: which strides they take.
#[derive(Clone, Copy)]
struct InterpolationKernel {
    node: &'static str,
    /// The element that is nearest, in two dimensions.
    is_nearest_plane: bool,
    /// Whether the input has so few channels that the forward kernel, and the backward kernel of two linear
    /// dimensions, are those for the plain order.
    has_few_channels: bool,
}

impl InterpolationKernel {
    fn of(input: &Tensor, node: &'static str) -> Self {
        Self {
            node,
            is_nearest_plane: matches!(
                node,
                nodes::UpsampleNearest2DBackward0 | nodes::UpsampleNearestExact2DBackward0
            ),
            has_few_channels: input.dim() > 1 && input.size(1) < 4,
        }
    }

    /// Whether the kernel reads any strides, as kernels that weigh several elements do.
    fn reads_any_strides(self) -> bool {
        matches!(
            self.node,
            nodes::UpsampleLinear1DBackward0
                | nodes::UpsampleBilinear2DBackward0
                | nodes::UpsampleBicubic2DBackward0
                | nodes::UpsampleTrilinear3DBackward0
        )
    }

    fn read_input(self, input: &Tensor, output: &Tensor) -> Result<()> {
        if self.is_nearest_plane && !output.is_contiguous() && self.has_few_channels {
            return copy_by_plain_order(input, &output.shape(), output.dtype());
        }
        if !self.reads_any_strides() {
            drop(contiguous_in(input, input.suggested_format())?);
        }
        Ok(())
    }

    /// A gradient in the order of the gradient that comes in, bicubically always in the plain order.
    fn gradient(self, grad: &Tensor, from: &[i64]) -> Result<Tensor> {
        let format = match self.node {
            nodes::UpsampleBicubic2DBackward0 => MemoryFormat::Contiguous,
            _ => grad.suggested_format(),
        };
        let strides = match format {
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => crate::channels_last_strides(from),
            _ => contiguous_strides(from),
        };
        let result = empty_strided(from, &strides, grad.dtype(), grad.device())?;
        let _no_grad = GradModeGuard::new(false);
        let is_plane = self.is_nearest_plane || self.node == nodes::UpsampleBilinear2DBackward0;
        if is_plane && !result.is_contiguous() && self.has_few_channels {
            copy_by_plain_order(grad, from, grad.dtype())?;
        } else {
            drop(contiguous_in(grad, format)?);
        }
        Ok(result)
    }
}

/// The kernel for the plain order, whose result is copied.
fn copy_by_plain_order(read: &Tensor, shape: &[i64], dtype: Dtype) -> Result<()> {
    let plain = empty_strided(shape, &contiguous_strides(shape), dtype, read.device())?;
    drop(contiguous_in(read, MemoryFormat::Contiguous)?);
    drop(plain);
    Ok(())
}

/// The name of the node of the derivative of a kernel's backward function, by the name of the kernel's node.
fn double_backward_node(node: &str) -> &'static str {
    match node {
        nodes::UpsampleNearest1DBackward0 => nodes::UpsampleNearest1DBackwardBackward0,
        nodes::UpsampleNearest2DBackward0 => nodes::UpsampleNearest2DBackwardBackward0,
        nodes::UpsampleNearest3DBackward0 => nodes::UpsampleNearest3DBackwardBackward0,
        nodes::UpsampleNearestExact1DBackward0 => nodes::UpsampleNearestExact1DBackwardBackward0,
        nodes::UpsampleNearestExact2DBackward0 => nodes::UpsampleNearestExact2DBackwardBackward0,
        nodes::UpsampleNearestExact3DBackward0 => nodes::UpsampleNearestExact3DBackwardBackward0,
        nodes::UpsampleLinear1DBackward0 => nodes::UpsampleLinear1DBackwardBackward0,
        nodes::UpsampleBilinear2DBackward0 => nodes::UpsampleBilinear2DBackwardBackward0,
        nodes::UpsampleBicubic2DBackward0 => nodes::UpsampleBicubic2DBackwardBackward0,
        _ => nodes::UpsampleTrilinear3DBackwardBackward0,
    }
}

/// Interpolates with one kernel forward and one kernel backward, whose node is `node`.
fn interpolate(input: &Tensor, shape: &[i64], node: &'static str) -> Result<Tensor> {
    let kernel = InterpolationKernel::of(input, node);
    let no_grad = GradModeGuard::new(false);
    let output = super::pool::in_order_of(input, shape, input.dtype())?;
    kernel.read_input(input, &output)?;
    drop(no_grad);
    let (from, to) = (input.shape(), shape.to_vec());
    record(node, &[input], &[&output], &[Save::Input(None)], move |_, grads| {
        let grad = first(grads)?;
        double_backward::set_variant(node);
        let result = kernel.gradient(grad, &from)?;
        let to = to.clone();
        record_linear(double_backward_node(node), grad, None, &[], &result, move |grad, _| {
            double_backward::set_variant(node);
            interpolate(grad, &to, node)
        })?;
        Ok(vec![Some(result)])
    })?;
    Ok(output)
}

fn upsample(input: &Tensor, size: &[i64], node: &'static str) -> Result<Tensor> {
    let cast = Cast::full(input.device());
    let input = cast.apply(input)?;
    let mut shape = input.shape().to_vec();
    for (slot, size) in shape.iter_mut().skip(2).zip(size) {
        *slot = *size;
    }
    interpolate(&input, &shape, node)
}

macro_rules! upsamplers {
    ($( $name:literal $node:ident $count:literal $settings:literal; )*) => {
        &[$(op!(
            concat!($name, "(Tensor self, int[] output_size, ", $settings, ")"),
            |input: &Tensor, size: &[i64], _: Rest<$count>| upsample(input, size, nodes::$node)
        )),*]
    };
}

/// The operators, with their nodes and the settings that memory does not depend on.
pub(crate) const TABLE: &[Entry] = upsamplers! {
    "upsample_nearest1d" UpsampleNearest1DBackward0 1 "float? scales=None";
    "upsample_nearest2d" UpsampleNearest2DBackward0 2 "float? scales_h=None, float? scales_w=None";
    "upsample_nearest3d" UpsampleNearest3DBackward0 3
        "float? scales_d=None, float? scales_h=None, float? scales_w=None";
    "_upsample_nearest_exact1d" UpsampleNearestExact1DBackward0 1 "float? scales=None";
    "_upsample_nearest_exact2d" UpsampleNearestExact2DBackward0 2 "float? scales_h=None, float? scales_w=None";
    "_upsample_nearest_exact3d" UpsampleNearestExact3DBackward0 3
        "float? scales_d=None, float? scales_h=None, float? scales_w=None";
    "upsample_linear1d" UpsampleLinear1DBackward0 2 "bool align_corners, float? scales=None";
    "upsample_bilinear2d" UpsampleBilinear2DBackward0 3
        "bool align_corners, float? scales_h=None, float? scales_w=None";
    "upsample_bicubic2d" UpsampleBicubic2DBackward0 3
        "bool align_corners, float? scales_h=None, float? scales_w=None";
    "upsample_trilinear3d" UpsampleTrilinear3DBackward0 4
        "bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None";
};
