//! Convolutions: cuDNN's, whose workspaces are recorded, and PyTorch's own depthwise kernels.

mod calls;
mod double;
mod workspace;

use crate::autograd::{GradModeGuard, Gradients, Save, double_backward, nodes, record_after, save_early};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, MemoryFormat, Result, Tensor, contiguous_strides, session};

use super::copy::{contiguous_in, empty_strided};
use super::pointwise::{change_in_place, elementwise_in_place};
use super::reduce;
use super::views::{first, squeeze, unsqueeze, view};
use calls::{Call, TransposedCall, conv, conv_transpose};

/// Everything about a convolution but its tensors.
#[derive(Clone, Debug)]
struct Settings {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    output_padding: Vec<i64>,
    groups: i64,
    is_transposed: bool,
}

impl Settings {
    /// Notes what the second derivative of a convolution branches on.
    fn note(&self) {
        double_backward::set_variant(match (self.is_transposed, self.groups > 1) {
            (false, false) => "one group",
            (false, true) => "groups",
            (true, false) => "transposed",
            (true, true) => "transposed groups",
        });
        let is_one = |list: &[i64]| list.iter().all(|size| *size == 1);
        if !is_one(&self.stride) || !is_one(&self.dilation) {
            double_backward::set_variant("strides");
        }
    }
}

/// What a kernel computes, with the number of the operation in the tables of workspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward = 0,
    /// The gradient of the input.
    Input = 1,
    /// The gradient of the weight.
    Weight = 2,
}

/// Whose kernels run a convolution (`ConvBackend`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Cudnn,
    /// PyTorch's kernels for convolutions with one filter for each channel.
    Depthwise,
    /// The host's, whose memory is not counted.
    Host,
}

fn spread(values: &[i64], count: usize) -> Vec<i64> {
    (0..count).map(|index| values.get(index).or(values.last()).copied().unwrap_or(0)).collect()
}

fn value_of_dim(list: &[i64], index: usize) -> i64 {
    list.get(index).copied().unwrap_or(1)
}

/// A convolution of two or three dimensions.
#[derive(Clone, Debug)]
struct Convolution {
    settings: Settings,
    dims: usize,
    format: MemoryFormat,
    backend: Backend,
    input: Vec<i64>,
    weight: Vec<i64>,
    output: Vec<i64>,
    dtype: Dtype,
    device: Device,
}

impl Settings {
    /// `ConvParams::check_shape_forward`, the part without shapes.
    fn check(&self) -> Result<()> {
        let below = |numbers: &[i64], least: i64| numbers.iter().any(|number| *number < least);
        if self.groups < 1 {
            return runtime("non-positive groups is not supported");
        }
        if below(&self.padding, 0) {
            return runtime("negative padding is not supported");
        }
        if below(&self.output_padding, 0) {
            return runtime("negative output_padding is not supported");
        }
        if below(&self.stride, 1) {
            return runtime("non-positive stride is not supported");
        }
        if below(&self.dilation, 1) {
            return runtime("dilation should be greater than zero");
        }
        Ok(())
    }
}

impl Convolution {
    fn new(input: &Tensor, weight: &Tensor, settings: Settings) -> Result<Self> {
        let dims = input.dim().saturating_sub(2);
        let (in_shape, weight_shape) = (input.shape(), weight.shape());
        let channels = value_of_dim(&in_shape, 1);
        settings.check()?;
        let expected = if settings.is_transposed {
            value_of_dim(&weight_shape, 0)
        } else {
            value_of_dim(&weight_shape, 1).saturating_mul(settings.groups)
        };
        if channels != expected {
            return runtime(format!(
                "Given {}groups={}, weight of size {weight_shape:?}, expected input{in_shape:?} to have {expected} channels, \
                 but got {channels} channels instead",
                if settings.is_transposed { "transposed=1, " } else { "" },
                settings.groups
            ));
        }
        if input.dtype() != weight.dtype() || input.device() != weight.device() {
            let what = match (input.device().is_cuda(), weight.device().is_cuda()) {
                (false, true) => " or input should be a MKLDNN tensor and weight is a dense tensor",
                _ => "",
            };
            return runtime(format!(
                "Input type ({}) and weight type ({}) should be the same{what}",
                type_name(input),
                type_name(weight)
            ));
        }
        let mut output = vec![
            value_of_dim(&in_shape, 0),
            if settings.is_transposed {
                value_of_dim(&weight_shape, 1).saturating_mul(settings.groups)
            } else {
                value_of_dim(&weight_shape, 0)
            },
        ];
        for dim in 0..dims {
            let (size, kernel) = (value_of_dim(&in_shape, dim + 2), value_of_dim(&weight_shape, dim + 2));
            let (stride, padding, dilation) = (
                value_of_dim(&settings.stride, dim),
                value_of_dim(&settings.padding, dim),
                value_of_dim(&settings.dilation, dim),
            );
            let covered = dilation.saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
            let both_sides = padding.saturating_mul(2);
            output.push(if settings.is_transposed {
                let spread = size.saturating_sub(1).saturating_mul(stride).saturating_sub(both_sides);
                spread.saturating_add(covered).saturating_add(value_of_dim(&settings.output_padding, dim))
            } else {
                let reach = size.saturating_add(both_sides).saturating_sub(covered);
                reach.div_euclid(stride.max(1)).saturating_add(1)
            });
        }
        if output.iter().skip(2).any(|size| *size < 1) {
            let padded = in_shape.iter().skip(2).zip(&settings.padding);
            let padded = padded.map(|(size, padding)| size.saturating_add(padding.saturating_mul(2)));
            let text = |sizes: Vec<i64>| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
            return runtime(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
                 input size",
                text(padded.collect()),
                text(weight_shape.iter().skip(2).copied().collect())
            ));
        }
        let suggested = [input.suggested_format(), weight.suggested_format()];
        let format = suggested
            .into_iter()
            .find(|format| *format != MemoryFormat::Contiguous)
            .unwrap_or(MemoryFormat::Contiguous);
        let mut convolution = Self {
            settings,
            dims,
            format,
            backend: Backend::Cudnn,
            input: in_shape.to_vec(),
            weight: weight_shape.to_vec(),
            output,
            dtype: input.dtype(),
            device: input.device(),
        };
        convolution.backend = convolution.choose();
        Ok(convolution)
    }

    fn choose(&self) -> Backend {
        if !self.device.is_cuda() {
            return Backend::Host;
        }
        let is_depthwise = !self.settings.is_transposed
            && self.settings.groups > 1
            && value_of_dim(&self.input, 1) == self.settings.groups
            && value_of_dim(&self.weight, 0) % value_of_dim(&self.input, 1).max(1) == 0;
        if is_depthwise && !self.is_cudnn_depthwise() { Backend::Depthwise } else { Backend::Cudnn }
    }

    /// `use_cudnn_depthwise`: half precision, and shapes for which PyTorch found cuDNN faster.
    fn is_cudnn_depthwise(&self) -> bool {
        if self.format != MemoryFormat::Contiguous {
            return true;
        }
        let (batch, channels) = (value_of_dim(&self.input, 0), value_of_dim(&self.input, 1));
        let (height, width) = (value_of_dim(&self.input, 2), value_of_dim(&self.input, 3));
        let stride = value_of_dim(&self.settings.stride, 1);
        let fits = self.dtype == Dtype::F16
            && self.dims == 2
            && self.settings.dilation.iter().all(|dilation| *dilation == 1)
            && (value_of_dim(&self.settings.stride, 0) == stride || height == 1)
            && channels >= 32;
        if !fits {
            return false;
        }
        if height == 1 && stride == 1 {
            return true;
        }
        let filter = value_of_dim(&self.weight, 3);
        if value_of_dim(&self.weight, 2) != filter || !matches!(filter, 1 | 3 | 5) || width < 7 {
            return false;
        }
        match stride {
            1 => true,
            2 if batch == 1 => filter != 1 || width <= 28,
            2 => {
                (filter == 1 && batch <= 16 && channels >= 128 && width <= 7)
                    || (filter != 1 && (channels >= 512 || (channels >= 256 && width >= 28)))
            }
            _ => false,
        }
    }

    fn strides(&self, shape: &[i64]) -> Vec<i64> {
        match self.format {
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => crate::channels_last_strides(shape),
            _ => contiguous_strides(shape),
        }
    }

    fn empty(&self, shape: &[i64]) -> Result<Tensor> {
        empty_strided(shape, &self.strides(shape), self.dtype, self.device)
    }

    fn forward(&self, input: &Tensor, weight: &Tensor) -> Result<Tensor> {
        if self.format != MemoryFormat::Contiguous && self.output.iter().skip(1).all(|size| *size == 1) {
            session()
                .note_estimate("conv", "channels_last with one number a result was recorded in two ways");
        }
        let _no_grad = GradModeGuard::new(false);
        let read = contiguous_in(input, self.format)?;
        let output = self.empty(&self.output)?;
        if self.backend == Backend::Cudnn {
            let weight = contiguous_in(weight, self.format)?;
            self.workspace(Pass::Forward)?;
            drop(weight);
        }
        drop(read);
        Ok(output)
    }

    /// `convolution_backward` without the gradient of the bias.
    fn backward(
        &self,
        grad: &Tensor,
        input: &Tensor,
        weight: &Tensor,
        wanted: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let _no_grad = GradModeGuard::new(false);
        let mut to_input = None;
        let mut to_weight = None;
        let mut kept = None;
        let is_cudnn = self.backend == Backend::Cudnn;
        // `convolution_backward` makes the input contiguous before all else where the filter's gradient reads
        // the input.
        let input = if is_cudnn && wanted[1] { contiguous_in(input, self.format)? } else { input.clone() };
        // `grad_output.to(input.suggest_memory_format())`, once for both gradients.
        let is_moved =
            is_cudnn && !self.settings.is_transposed && grad.suggested_format() != input.suggested_format();
        let grad = if is_moved { contiguous_in(grad, input.suggested_format())? } else { grad.clone() };
        match self.backend {
            Backend::Depthwise if self.dims == 2 => {
                let grad = contiguous_in(&grad, self.format)?;
                let read = contiguous_in(&input, self.format)?;
                if wanted[1] {
                    to_weight = Some(self.empty(&self.weight)?);
                }
                if wanted[0] {
                    to_input = Some(self.empty(&self.input)?);
                }
                drop(read);
                drop(grad);
            }
            _ => {
                if wanted[0] {
                    // A transposed convolution's gradient is a convolution, which reads its input first.
                    let grad_first = if self.settings.is_transposed {
                        Some(contiguous_in(&grad, self.format)?)
                    } else {
                        None
                    };
                    let result = self.empty(&self.input)?;
                    let weight = contiguous_in(weight, self.format)?;
                    let read = match &grad_first {
                        Some(grad) => grad.clone(),
                        None => contiguous_in(&grad, self.format)?,
                    };
                    self.workspace(Pass::Input)?;
                    drop(read);
                    drop(weight);
                    kept = grad_first;
                    to_input = Some(result);
                }
                if wanted[1] {
                    let grad = match kept.take() {
                        Some(grad) => grad,
                        None => contiguous_in(&grad, self.format)?,
                    };
                    let read = contiguous_in(&input, self.format)?;
                    let result = self.empty(&self.weight)?;
                    self.workspace(Pass::Weight)?;
                    drop(read);
                    drop(grad);
                    to_weight = Some(result);
                }
            }
        }
        drop(kept);
        drop(grad);
        drop(input);
        Ok([to_input, to_weight])
    }
}

fn type_name(tensor: &Tensor) -> String {
    let place = if tensor.device().is_cuda() { "torch.cuda." } else { "torch." };
    format!("{place}{}Tensor", tensor.dtype().scalar_name())
}

/// `convolution` of one to three dimensions, which gets a node.
fn convolution(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>, settings: Settings) -> Result<Tensor> {
    let is_flat = input.dim() == 3;
    let saved = [Save::Input(Some(input)), Save::Input(Some(weight))];
    let mut inputs = vec![input, weight];
    inputs.extend(bias);
    let early = save_early(&inputs, &saved)?;
    let no_grad = GradModeGuard::new(false);
    // One dimension is two with a height of 1.
    let (read, filter) = if is_flat {
        (unsqueeze(&super::copy::contiguous(input)?, 2)?, unsqueeze(weight, 2)?)
    } else {
        (input.clone(), weight.clone())
    };
    let original = settings.clone();
    let settings = if is_flat { settings.as_two_dimensional() } else { settings };
    let core = Convolution::new(&read, &filter, settings)?;
    let output = core.forward(&read, &filter)?;
    drop(read);
    drop(filter);
    if let Some(bias) = bias {
        add_bias(&output, bias)?;
    }
    let output = if is_flat {
        let flat = squeeze(&output, Some(&[2]))?;
        flat.alias(&flat.shape(), &flat.strides(), flat.offset())
    } else {
        output
    };
    drop(no_grad);
    let has_bias = bias.is_some();
    record_after(early, nodes::ConvolutionBackward0, &inputs, &[&output], &saved, move |ctx, grads| {
        let (input, weight) = (ctx.saved(0)?, ctx.saved(1)?);
        let grad = first(grads)?;
        let no_grad = GradModeGuard::new(false);
        let wide = |tensor: &Tensor| if is_flat { unsqueeze(tensor, 2) } else { Ok(tensor.clone()) };
        let read = if is_flat { super::copy::contiguous(&input)? } else { input.clone() };
        let [to_input, grad_weight] =
            core.backward(&wide(grad)?, &wide(&read)?, &wide(&weight)?, [ctx.wants(0), ctx.wants(1)])?;
        drop(read);
        let narrow = |tensor: Option<Tensor>| -> Result<Option<Tensor>> {
            let Some(tensor) = tensor.filter(|_| is_flat) else { return Ok(None) };
            let shape: Vec<i64> = tensor
                .shape()
                .iter()
                .enumerate()
                .filter(|(dim, _)| *dim != 2)
                .map(|(_, size)| *size)
                .collect();
            let flat = view(&tensor, &shape)?;
            Ok(Some(flat.alias(&flat.shape(), &flat.strides(), flat.offset())))
        };
        let mut results: Gradients =
            if is_flat { vec![narrow(to_input)?, narrow(grad_weight)?] } else { vec![to_input, grad_weight] };
        if has_bias {
            results.push(ctx.gradient(2, || {
                let dims: Vec<i64> = (0..grad.dim() as i64).filter(|dim| *dim != 1).collect();
                reduce::sum(grad, Some(&dims), false, None)
            })?);
        }
        drop(no_grad);
        original.note();
        double::record_double(grad, &input, &weight, &results, &original)?;
        Ok(results)
    })?;
    Ok(output)
}

fn add_bias(output: &Tensor, bias: &Tensor) -> Result<()> {
    let mut shape = vec![1; output.dim()];
    if let Some(channels) = shape.get_mut(1) {
        *channels = bias.numel();
    }
    elementwise_in_place(&[output, &view(bias, &shape)?], output.dtype(), None)?;
    change_in_place(output)
}

impl Settings {
    fn as_two_dimensional(&self) -> Self {
        let with = |list: &[i64], value: i64| -> Vec<i64> {
            std::iter::once(value).chain(list.iter().copied()).collect()
        };
        Self {
            stride: with(&self.stride, 1),
            padding: with(&self.padding, 0),
            dilation: with(&self.dilation, 1),
            output_padding: with(&self.output_padding, 0),
            groups: self.groups,
            is_transposed: self.is_transposed,
        }
    }
}

macro_rules! schemas {
    ($($name:literal $dims:literal;)*) => {
        &[$(
            op!(
                concat!(
                    "conv", $name, "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, Any padding=0, int[] ",
                    "dilation=1, int groups=1)"
                ),
                |call: Call<'_>| conv(call, $dims),
            ),
            op!(
                concat!(
                    "conv_transpose", $name, "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] ",
                    "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1)"
                ),
                |call: TransposedCall<'_>| conv_transpose(call, $dims),
            ),
        )*]
    };
}

pub(crate) const TABLE: &[Entry] = schemas! {
    "1d" 1;
    "2d" 2;
    "3d" 3;
};
