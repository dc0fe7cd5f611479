//! Pooling, and padding with a number.

mod pixels;
mod unpool;

use crate::arguments::{Rest, Unread, arguments};
use crate::autograd::{GradModeGuard, Save, double_backward, nodes, record, record_after, save_early};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Tensor, Value, contiguous_strides};

use super::copy::{contiguous_in, empty_strided};
use super::kernels::record_linear;
use super::reduce;
use super::views::{first, unsqueeze};
use pixels::{channel_shuffle, pixel_shuffle, pixel_unshuffle};
use unpool::{max_pool_double_backward, max_unpool};

/// A new tensor in the input's order of elements.
pub(super) fn in_order_of(input: &Tensor, shape: &[i64], dtype: Dtype) -> Result<Tensor> {
    let strides = match input.suggested_format() {
        MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => crate::channels_last_strides(shape),
        _ => contiguous_strides(shape),
    };
    empty_strided(shape, &strides, dtype, input.device())
}

fn value_or_last(list: &[i64], index: usize) -> i64 {
    list.get(index).or(list.last()).copied().unwrap_or(1)
}

/// `pooling_output_shape`.
fn output_size(input: i64, kernel: i64, padding: i64, stride: i64, dilation: i64, ceils: bool) -> i64 {
    let covered = dilation.saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
    let reach = input.saturating_add(padding.saturating_mul(2)).saturating_sub(covered);
    if !ceils {
        return reach.div_euclid(stride).saturating_add(1);
    }
    let last = reach.saturating_add(stride.saturating_sub(1)).div_euclid(stride);
    let begins_in_padding = last.saturating_mul(stride) >= input.saturating_add(padding);
    if begins_in_padding { last } else { last.saturating_add(1) }
}

arguments! {
    /// A pooling's window. Without a stride the windows lie side by side.
    #[derive(Clone, Copy)]
    struct Window<'a> {
        kernel: &'a [i64],
        stride: &'a [i64],
        padding: &'a [i64],
        dilation: &'a [i64],
        ceils: bool,
    }
}

arguments! {
    /// The window of a mean.
    #[derive(Clone, Copy)]
    struct MeanWindow<'a> {
        kernel: &'a [i64],
        stride: Option<&'a [i64]>,
        padding: &'a [i64],
        ceils: bool,
    }
}

impl Window<'_> {
    fn shape(&self, input: &Tensor, dims: usize) -> Result<Vec<i64>> {
        let mut shape = input.shape().to_vec();
        let Some(leading) = shape.len().checked_sub(dims) else {
            return runtime(format!("pooling expects at least {dims} dimensions"));
        };
        for (index, size) in shape.iter_mut().skip(leading).enumerate() {
            let kernel = value_or_last(self.kernel, index);
            let stride = if self.stride.is_empty() { kernel } else { value_or_last(self.stride, index) };
            let dilation = value_or_last(self.dilation, index);
            let least = [("kernel size", kernel), ("stride", stride), ("dilation", dilation)];
            if let Some((name, found)) = least.into_iter().find(|(_, number)| *number < 1) {
                return runtime(format!("{name} should be greater than zero, but got {found}"));
            }
            let old = *size;
            *size =
                output_size(old, kernel, value_or_last(self.padding, index), stride, dilation, self.ceils);
        }
        if shape.iter().skip(leading).any(|size| *size < 1) {
            // One image, without the batch.
            let text = |sizes: &[i64]| {
                let sizes = sizes.iter().skip(leading.saturating_sub(1)).map(i64::to_string);
                sizes.collect::<Vec<_>>().join("x")
            };
            return runtime(format!(
                "Given input size: ({}). Calculated output size: ({}). Output size is too small",
                text(&input.shape()),
                text(&shape)
            ));
        }
        Ok(shape)
    }
}

/// `max_pool2d_with_indices` and its like: values and indices.
fn max_pool(input: &Tensor, window: &Window<'_>, dims: usize) -> Result<(Tensor, Tensor)> {
    if dims == 1 {
        // max_pool1d_with_indices is the two-dimensional one of a flat image.
        let flat = unsqueeze(input, -2)?;
        let shape = window.shape(input, 1)?;
        let mut flat_shape = shape.clone();
        flat_shape.insert(shape.len() - 1, 1);
        let (output, indices) = max_pool_of(&flat, &flat_shape, true, 2)?;
        return Ok((
            super::views::squeeze(&output, Some(&[-2]))?,
            super::views::squeeze(&indices, Some(&[-2]))?,
        ));
    }
    let shape = window.shape(input, dims)?;
    max_pool_of(input, &shape, true, dims)
}

/// `is_windowed`: the kernel of windows reads elements without gaps, that of `adaptive_max_pool2d` any
/// strides.
fn max_pool_of(input: &Tensor, shape: &[i64], is_windowed: bool, dims: usize) -> Result<(Tensor, Tensor)> {
    let output = in_order_of(input, shape, input.dtype())?;
    let indices = in_order_of(input, shape, Dtype::I64)?;
    let no_grad = GradModeGuard::new(false);
    if is_windowed {
        drop(contiguous_in(input, input.suggested_format())?);
    } else if dims == 2 {
        // The kernel knows the plain order alone; results in another order are copied.
        let plain_output = plain_like(&output)?;
        let plain_indices = plain_like(&indices)?;
        drop(contiguous_in(input, MemoryFormat::Contiguous)?);
        drop(plain_indices);
        drop(plain_output);
    }
    drop(no_grad);
    let saved = [Save::Input(Some(input)), Save::Input(Some(&indices))];
    let [node, double_backward_node] = match (is_windowed, dims) {
        (true, 3) => [nodes::MaxPool3DWithIndicesBackward0, nodes::MaxPool3DWithIndicesBackwardBackward0],
        (true, _) => [nodes::MaxPool2DWithIndicesBackward0, nodes::MaxPool2DWithIndicesBackwardBackward0],
        (false, 3) => [nodes::AdaptiveMaxPool3DBackward0, nodes::AdaptiveMaxPool3DBackwardBackward0],
        (false, _) => [nodes::AdaptiveMaxPool2DBackward0, nodes::AdaptiveMaxPool2DBackwardBackward0],
    };
    record(node, &[input], &[&output, &indices], &saved, move |ctx, grads| {
        let (input, indices) = (ctx.saved(0)?, ctx.saved(1)?);
        let grad = first(grads)?;
        let no_grad = GradModeGuard::new(false);
        let result = in_order(&input)?;
        if !is_windowed && dims == 2 {
            let grad = contiguous_in(grad, MemoryFormat::Contiguous)?;
            let indices = contiguous_in(&indices, MemoryFormat::Contiguous)?;
            drop(plain_like(&result)?);
            drop(indices);
            drop(grad);
        }
        let is_input_read = is_windowed && dims == 2;
        let format = input.suggested_format();
        let read = if is_input_read { contiguous_in(&input, format)? } else { input.clone() };
        if is_windowed || dims != 2 {
            drop(contiguous_in(grad, format)?);
        }
        drop(read);
        drop(no_grad);
        record_linear(
            double_backward_node,
            grad,
            Some(&input),
            &[&indices],
            &result,
            move |grad_grad, saved| match saved {
                [indices] => max_pool_double_backward(grad_grad, indices, dims),
                _ => Ok(grad_grad.clone()),
            },
        )?;
        Ok(vec![Some(result)])
    })?;
    Ok((output, indices))
}

/// Memory of the plain order for a tensor of another order.
fn plain_like(like: &Tensor) -> Result<Option<Tensor>> {
    if like.is_contiguous() {
        return Ok(None);
    }
    let shape = like.shape();
    empty_strided(&shape, &contiguous_strides(&shape), like.dtype(), like.device()).map(Some)
}

fn in_order(input: &Tensor) -> Result<Tensor> {
    in_order_of(input, &input.shape(), input.dtype())
}

fn avg_pool(input: &Tensor, mean: MeanWindow<'_>, dims: usize) -> Result<Tensor> {
    let MeanWindow { kernel, stride, padding, ceils } = mean;
    if dims == 1 {
        // `avg_pool1d` is the two-dimensional one of a flat image.
        let wide = |list: &[i64], other: i64| vec![other, value_or_last(list, 0)];
        let stride = stride.filter(|stride| !stride.is_empty()).unwrap_or(kernel);
        let (kernel, stride, padding) = (wide(kernel, 1), wide(stride, 1), wide(padding, 0));
        let mean = MeanWindow { kernel: &kernel, stride: Some(&stride), padding: &padding, ceils };
        let output = avg_pool(&unsqueeze(input, -2)?, mean, 2)?;
        return super::views::squeeze(&output, Some(&[-2]));
    }
    let window = Window { kernel, stride: stride.unwrap_or_default(), padding, dilation: &[1], ceils };
    let shape = window.shape(input, dims)?;
    let node = if dims == 3 { nodes::AvgPool3DBackward0 } else { nodes::AvgPool2DBackward0 };
    kernel_of(input, &shape, node)
}

/// The name of the node of the derivative of a kernel's backward function, by the name of the kernel's node.
fn double_backward_node(node: &str) -> &'static str {
    match node {
        nodes::AvgPool3DBackward0 => nodes::AvgPool3DBackwardBackward0,
        nodes::AdaptiveAvgPool2DBackward0 => nodes::AdaptiveAvgPool2DBackwardBackward0,
        nodes::AdaptiveAvgPool3DBackward0 => nodes::AdaptiveAvgPool3DBackwardBackward0,
        _ => nodes::AvgPool2DBackwardBackward0,
    }
}

/// A kernel whose gradient is one kernel of the input's shape.
fn kernel_of(input: &Tensor, shape: &[i64], node: &'static str) -> Result<Tensor> {
    let saved = [Save::Input(Some(input))];
    let saved_early = save_early(&[input], &saved)?;
    let no_grad = GradModeGuard::new(false);
    // The adaptive kernel's input is prepared before the result exists.
    let is_early = node == nodes::AdaptiveAvgPool2DBackward0;
    let early = if is_early { Some(contiguous_in(input, input.suggested_format())?) } else { None };
    let output = in_order_of(input, shape, input.dtype())?;
    if !is_early {
        drop(contiguous_in(input, input.suggested_format())?);
    }
    drop(early);
    drop(no_grad);
    let (from, format) = (input.shape(), input.suggested_format());
    let to: Vec<i64> = shape.to_vec();
    record_after(saved_early, node, &[input], &[&output], &saved, move |ctx, grads| {
        let grad = first(grads)?;
        double_backward::set_variant(node);
        let own = ctx.saved(0)?;
        let strides = match format {
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => crate::channels_last_strides(&from),
            _ => contiguous_strides(&from),
        };
        let result = empty_strided(&from, &strides, grad.dtype(), grad.device())?;
        // The kernel reads a gradient without gaps.
        let no_grad = GradModeGuard::new(false);
        let reads_input = node == nodes::AvgPool2DBackward0;
        let read = reads_input.then(|| contiguous_in(&own, format)).transpose()?;
        let reads_any_strides =
            node == nodes::AdaptiveAvgPool2DBackward0 && format != MemoryFormat::Contiguous;
        if !reads_any_strides {
            drop(contiguous_in(grad, format)?);
        }
        drop(read);
        drop(no_grad);
        let to = to.clone();
        record_linear(double_backward_node(node), grad, Some(&own), &[], &result, move |grad, _| {
            double_backward::set_variant(node);
            kernel_of(grad, &to, node)
        })?;
        Ok(vec![Some(result)])
    })?;
    Ok(output)
}

/// `adaptive_avg_pool`: a mean where the result has one element for each channel.
fn adaptive_avg_pool(input: &Tensor, size: &[i64], dims: usize) -> Result<Value> {
    if dims == 1 {
        let output = adaptive_avg_pool(&unsqueeze(input, -2)?, &[1, value_or_last(size, 0)], 2)?.tensor()?;
        return Ok(super::views::squeeze(&output, Some(&[-2]))?.into());
    }
    let size: Vec<i64> = (0..dims).map(|index| value_or_last(size, index)).collect();
    if size.iter().all(|size| *size == 1) && input.dim() >= dims {
        let reduced: Vec<i64> = (1..=dims as i64).map(|dim| -dim).collect();
        let output = reduce::mean(input, Some(&reduced), true, None)?;
        if input.suggested_format() != MemoryFormat::Contiguous {
            let shape = output.shape();
            let strides = crate::channels_last_strides(&shape);
            output.set_geometry(&shape, &strides, output.offset());
            let from = shape.clone();
            record(nodes::AsStridedBackward0, &[&output.clone()], &[&output], &[], move |_, grads| {
                let grad = first(grads)?;
                Ok(vec![Some(empty_strided(&from, &contiguous_strides(&from), grad.dtype(), grad.device())?)])
            })?;
        }
        return Ok(output.into());
    }
    let mut shape = input.shape().to_vec();
    let leading = shape.len().saturating_sub(dims);
    for (slot, size) in shape.iter_mut().skip(leading).zip(size) {
        *slot = size;
    }
    let node = if dims == 3 { nodes::AdaptiveAvgPool3DBackward0 } else { nodes::AdaptiveAvgPool2DBackward0 };
    Ok(kernel_of(input, &shape, node)?.into())
}

fn adaptive_max_pool(input: &Tensor, size: &[i64], dims: usize) -> Result<Value> {
    let mut shape = input.shape().to_vec();
    let leading = shape.len().saturating_sub(dims);
    for (index, slot) in shape.iter_mut().skip(leading).enumerate() {
        *slot = value_or_last(size, index);
    }
    Ok(max_pool_of(input, &shape, false, dims)?.into())
}

/// `constant_pad_nd`: zeros, and a copy into the middle.
pub(crate) fn constant_pad(tensor: &Tensor, pad: &[i64]) -> Result<Tensor> {
    let mut shape = tensor.shape().to_vec();
    let count = shape.len();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > count {
        return runtime(format!(
            "Length of pad must be even and at most twice the number of dimensions, but got {} for {count}",
            pad.len()
        ));
    }
    for (index, pair) in pad.chunks(2).enumerate() {
        if let Some(size) = shape.get_mut(count - 1 - index) {
            *size = pair.iter().fold(*size, |size, side| size.saturating_add(*side));
            if *size < 0 {
                return runtime("the padding makes a dimension negative");
            }
        }
    }
    let output = if pad.iter().all(|size| *size <= 0) {
        let _no_grad = GradModeGuard::new(false);
        crop(tensor, pad)?
    } else {
        in_order_of(tensor, &shape, tensor.dtype())?
    };
    let back: Vec<i64> = pad.iter().map(|size| size.saturating_neg()).collect();
    record(nodes::ConstantPadNdBackward0, &[tensor], &[&output], &[], move |_, grads| {
        Ok(vec![Some(constant_pad(first(grads)?, &back)?)])
    })?;
    Ok(output)
}

/// The inner part of a gradient, as a copy.
fn crop(grad: &Tensor, back: &[i64]) -> Result<Tensor> {
    let mut inner = grad.clone();
    let count = grad.dim() as i64;
    for (index, pair) in back.chunks(2).enumerate() {
        let dim = count - 1 - index as i64;
        let (before, after) = (value_or_last(pair, 0), value_or_last(pair, 1));
        inner = super::views::narrow(&inner, dim, -before, inner.size(dim) + before + after)?;
    }
    super::copy::clone(&inner, MemoryFormat::Preserve)
}

const MAX2: &str = "max_pool2d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool \
                    ceil_mode=False)";

const MAX2_INDICES: &str = "max_pool2d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, \
                            int[] dilation=1, bool ceil_mode=False)";

const MAX1: &str = "max_pool1d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool \
                    ceil_mode=False)";

const MAX1_INDICES: &str = "max_pool1d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] \
                            dilation=1, bool ceil_mode=False)";

const MAX3: &str = "max_pool3d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool \
                    ceil_mode=False)";

const MAX3_INDICES: &str = "max_pool3d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] \
                            dilation=1, bool ceil_mode=False)";

const AVG2: &str = "avg_pool2d(Tensor self, int[] kernel_size, int[]? stride=[], int[] padding=0, bool ceil_mode=False, bool \
                    count_include_pad=True, int? divisor_override=None)";

const AVG3: &str = "avg_pool3d(Tensor self, int[] kernel_size, int[]? stride=[], int[] padding=0, bool ceil_mode=False, bool \
                    count_include_pad=True, int? divisor_override=None)";

const AVG1: &str = "avg_pool1d(Tensor self, int[] kernel_size, int[]? stride=[], int[] padding=0, bool ceil_mode=False, bool \
                    count_include_pad=True)";

pub(crate) const TABLE: &[Entry] = &[
    op!(MAX2, |input: &Tensor, window: Window<'_>| Ok(max_pool(input, &window, 2)?.0)),
    op!(MAX2_INDICES, |input: &Tensor, window: Window<'_>| max_pool(input, &window, 2)),
    op!(MAX1, |input: &Tensor, window: Window<'_>| Ok(max_pool(input, &window, 1)?.0)),
    op!(AVG2, |input: &Tensor, window: MeanWindow<'_>, _: Rest<2>| avg_pool(input, window, 2)),
    op!(AVG3, |input: &Tensor, window: MeanWindow<'_>, _: Rest<2>| avg_pool(input, window, 3)),
    op!(AVG1, |input: &Tensor, window: MeanWindow<'_>, _: Rest<1>| avg_pool(input, window, 1)),
    op!("adaptive_avg_pool2d(Tensor self, int[] output_size)", |input: &Tensor, size: &[i64]| {
        adaptive_avg_pool(input, size, 2)
    }),
    op!("adaptive_avg_pool1d(Tensor self, int[] output_size)", |input: &Tensor, size: &[i64]| {
        adaptive_avg_pool(input, size, 1)
    }),
    op!("adaptive_avg_pool3d(Tensor self, int[] output_size)", |input: &Tensor, size: &[i64]| {
        adaptive_avg_pool(input, size, 3)
    }),
    op!("adaptive_max_pool2d(Tensor self, int[] output_size)", |input: &Tensor, size: &[i64]| {
        adaptive_max_pool(input, size, 2)
    }),
    op!("adaptive_max_pool3d(Tensor self, int[] output_size)", |input: &Tensor, size: &[i64]| {
        adaptive_max_pool(input, size, 3)
    }),
    op!(MAX1_INDICES, |input: &Tensor, window: Window<'_>| max_pool(input, &window, 1)),
    op!(MAX3, |input: &Tensor, window: Window<'_>| Ok(max_pool(input, &window, 3)?.0)),
    op!(MAX3_INDICES, |input: &Tensor, window: Window<'_>| max_pool(input, &window, 3)),
    op!(
        "max_unpool2d(Tensor self, Tensor indices, int[] output_size)",
        |input: &Tensor, indices: &Tensor, size: &[i64]| max_unpool(input, indices, size, 2)
    ),
    op!(
        "max_unpool3d(Tensor self, Tensor indices, int[] output_size, int[] stride, int[] padding)",
        |input: &Tensor, indices: &Tensor, size: &[i64], _: Rest<2>| { max_unpool(input, indices, size, 3) }
    ),
    op!(
        "constant_pad_nd(Tensor self, int[] pad, Scalar value=0)",
        |tensor: &Tensor, pad: &[i64], _: Unread| constant_pad(tensor, pad)
    ),
    op!("channel_shuffle(Tensor self, int groups)", channel_shuffle),
    op!("pixel_shuffle(Tensor self, int upscale_factor)", pixel_shuffle),
    op!("pixel_unshuffle(Tensor self, int downscale_factor)", pixel_unshuffle),
];
