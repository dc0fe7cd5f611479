//! Batch norms, and instance norms, which are made of them.

use std::rc::Rc;

use blockyard_gpus::layers;

use crate::arguments::Rest;
use crate::autograd::{Context, GradModeGuard, Gradients, Save, double_backward, nodes, record};
use crate::error::runtime;
use crate::memory::Category;
use crate::{Dtype, MemoryFormat, Result, Storage, Tensor, Value};

use super::super::copy::{contiguous, contiguous_in};
use super::super::creation::{empty, empty_like, empty_like_as};
use super::super::norm_double;
use super::super::reduce;
use super::super::sort::temporary;
use super::super::views::{first, reshape, view};
use super::record_double;

/// Memory of a kernel, for elements of a type.
pub(crate) fn scratch(input: &Tensor, elements: i64, dtype: Dtype) -> Result<Rc<Storage>> {
    Storage::new(input.device(), elements.max(0) as u64 * dtype.size(), Category::Temporary)
}

/// `flexible_launch_configs` for a reduction over all but the channels: the blocks along the channels, and
/// along the rest.
fn channels_last_grid(reduction: i64, stride: i64) -> (i64, i64) {
    let power = |number: i64| if number < 1 { 1 } else { 1_i64 << (63 - number.leading_zeros()) };
    let mut x = power(stride).min(32);
    let y = power((reduction + 15) / 16).min(512 / x);
    if x * y != 512 {
        x = power(stride).min(512 / y);
    }
    let grid_x = (stride + x - 1) / x;
    let grid_y = ((reduction + y * 16 - 1) / (y * 16)).min(128);
    (grid_x, if grid_y < 8 { 1 } else { grid_y })
}

/// Allocates and frees the memory in which the kernels for `channels_last` add up, where several blocks share
/// a channel.
fn staging(input: &Tensor, factor: i64) -> Result<()> {
    let channels = input.size(1);
    let (grid_x, grid_y) = channels_last_grid(input.numel() / channels.max(1), channels);
    if grid_y > 1 {
        let data = scratch(input, factor * channels * grid_y, input.dtype().accumulate())?;
        let semaphores = scratch(input, grid_x, Dtype::I32)?;
        drop(semaphores);
        drop(data);
    }
    Ok(())
}

/// What cuDNN takes for a batch norm in `channels_last`, by the recorded sizes.
fn channels_last_workspace(input: &Tensor, is_backward: bool) -> u64 {
    let channels = input.size(1).max(1);
    let rows = (input.numel() / channels).max(0) as u64;
    let norm = layers::BatchNorm { channels: channels as u64, rows, is_half: input.dtype() != Dtype::F32 };
    if is_backward { norm.backward() } else { norm.forward() }
}

/// `batch_norm_use_channels_last_kernels`.
fn lies_channels_last(tensor: &Tensor) -> bool {
    tensor.is_contiguous_in(MemoryFormat::ChannelsLast)
        || tensor.is_contiguous_in(MemoryFormat::ChannelsLast3d)
        || (tensor.is_contiguous() && tensor.strides().get(1) == Some(&1))
}

/// Which of ATen's kernels read a tensor (`batch_norm_choose_impl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelLayout {
    Contiguous,
    ChannelsLast,
    /// Any other order: an iterator's.
    General,
}

impl KernelLayout {
    fn of(tensor: &Tensor) -> Self {
        if !has_small_indices(tensor) {
            Self::General
        } else if tensor.is_contiguous() {
            if tensor.strides().get(1) == Some(&1) { Self::ChannelsLast } else { Self::Contiguous }
        } else if tensor.is_contiguous_in(MemoryFormat::ChannelsLast) {
            Self::ChannelsLast
        } else {
            Self::General
        }
    }

    /// The layout of two tensors that one kernel reads.
    fn of_both(first: &Tensor, second: &Tensor) -> Self {
        let layout = Self::of(first);
        if layout == Self::of(second) { layout } else { Self::General }
    }
}

/// `canUse32BitIndexMath`.
fn has_small_indices(tensor: &Tensor) -> bool {
    tensor.numel() <= i64::from(i32::MAX)
}

/// The dimensions after the channels as one, which copies a tensor whose gaps allow no such view.
fn rows(tensor: &Tensor) -> Result<Tensor> {
    reshape(tensor, &[tensor.size(0), tensor.size(1), -1])
}

/// The tensors of a batch norm; running statistics only where they are kept.
struct BatchNorm<'a> {
    input: &'a Tensor,
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    running: Option<(&'a Tensor, &'a Tensor)>,
    is_training: bool,
}

impl BatchNorm<'_> {
    /// Whether cuDNN computes the norm (`_select_batch_norm_backend`): cuDNN takes some types alone.
    fn is_cudnn(&self) -> bool {
        let Some(weight) = self.weight else { return false };
        let wants = if self.input.dtype() == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
        self.input.device().is_cuda()
            && self.bias.is_some()
            // Recorded: ATen's own kernels evaluate bfloat16.
            && (self.is_training || self.input.dtype() != Dtype::BF16)
            && weight.dtype() == wants
            && self.running.map_or(self.is_training, |(mean, _)| mean.dtype() == wants)
            && self.input.dim() >= 3
            && self.input.numel() <= i64::from(i32::MAX)
    }

    fn check(&self) -> Result<()> {
        let input = self.input;
        if input.dim() < 2 {
            return runtime(format!("batch_norm expects at least 2 dimensions, got {}", input.dim()));
        }
        let channels = input.size(1);
        match self.weight {
            Some(weight) if weight.numel() != channels => {
                runtime(format!("weight should contain {channels} elements not {}", weight.numel()))
            }
            _ => Ok(()),
        }
    }

    /// `batch_norm_cuda_out`: the memory that the kernels take beside the result and the statistics.
    fn native(&self) -> Result<()> {
        let input = self.input;
        let layout = KernelLayout::of(input);
        if self.is_training {
            match layout {
                KernelLayout::Contiguous => {}
                KernelLayout::ChannelsLast => staging(input, 4)?,
                KernelLayout::General => mean_and_variance(input)?,
            }
        }
        if layout == KernelLayout::General {
            // An iterator needs a tensor in the place of a missing weight or bias.
            let full = input.dtype().accumulate();
            let number = |of: Option<&Tensor>| of.is_none().then(|| scratch(input, 1, full)).transpose();
            let weight = number(self.weight)?;
            let bias = number(self.bias)?;
            drop(bias);
            drop(weight);
        }
        Ok(())
    }

    /// The result, and the statistics, which the caller drops or saves.
    pub(super) fn run(&self) -> Result<(Tensor, [Tensor; 2])> {
        self.check()?;
        let input = self.input;
        let kernels = Kernels::of(self);
        // cuDNN's result lies in one of the usual orders, also where a single channel has another stride.
        let output = if self.is_cudnn() {
            empty_like_as(input, input.dtype(), input.suggested_format())?
        } else {
            empty_like(input)?
        };
        let statistics = if kernels.keeps_statistics { input.size(1) } else { 0 };
        let full = input.dtype().accumulate();
        let mean = empty(&[statistics], full, input.device())?;
        let invstd = empty(&[statistics], full, input.device())?;
        if kernels.takes_workspace {
            drop(temporary(input.device(), channels_last_workspace(input, false))?);
        } else if !self.is_cudnn() && input.device().is_cuda() {
            self.native()?;
        }
        let saved = [
            Save::Input(Some(input)),
            Save::Input(self.running.map(|(mean, _)| mean)),
            Save::Input(self.running.map(|(_, var)| var)),
            Save::Input(self.weight),
            Save::Input(Some(&mean)),
            Save::Input(Some(&invstd)),
        ];
        let mut tensors = vec![input];
        tensors.extend(self.weight);
        tensors.extend(self.bias);
        let name =
            if kernels.is_cudnn { nodes::CudnnBatchNormBackward0 } else { nodes::NativeBatchNormBackward0 };
        let backward = Backward {
            kernels,
            has_weight: self.weight.is_some(),
            has_bias: self.bias.is_some(),
            is_training: self.is_training,
        };
        record(name, &tensors, &[&output], &saved, move |ctx, grads| backward.run(ctx, first(grads)?))?;
        Ok((output, [mean, invstd]))
    }
}

/// `var_mean` of all but the channels.
fn mean_and_variance(input: &Tensor) -> Result<()> {
    if input.strides().contains(&0) {
        crate::session().note_estimate("batch_norm", "the statistics of repeated elements were not recorded");
    }
    let mask: Vec<bool> = (0..input.dim()).map(|dim| dim != 1).collect();
    // A reduction with two results reads half precision as it is, and other narrow types as a wider copy
    // (`make_reduction`).
    let wide = (input.dtype() == Dtype::BF16)
        .then(|| empty_like_as(input, input.dtype().accumulate(), MemoryFormat::Preserve))
        .transpose()?;
    let read = wide.as_ref().unwrap_or(input);
    reduce::run(read, &mask, reduce::ReductionKernel::welford(read.dtype()))?;
    Ok(())
}

/// Which kernels a batch norm runs, forward and backward.
#[derive(Clone, Copy)]
struct Kernels {
    /// Whether cuDNN's kernels of training run.
    is_cudnn: bool,
    /// Whether cuDNN's kernels for `channels_last` run, which take a workspace.
    takes_workspace: bool,
    /// Whether the statistics are kept. cuDNN's evaluation keeps none: the backward pass, which is ATen's
    /// own, computes them again.
    keeps_statistics: bool,
}

impl Kernels {
    fn of(norm: &BatchNorm<'_>) -> Self {
        let input = norm.input;
        let are_cudnn = norm.is_cudnn() && norm.is_training;
        Self {
            is_cudnn: are_cudnn,
            takes_workspace: are_cudnn
                && lies_channels_last(input)
                && input.suggested_format() != MemoryFormat::Contiguous,
            keeps_statistics: input.device().is_cuda() && (norm.is_training || !norm.is_cudnn()),
        }
    }
}

/// The backward function of a batch norm.
#[derive(Clone, Copy)]
struct Backward {
    kernels: Kernels,
    has_weight: bool,
    has_bias: bool,
    is_training: bool,
}

impl Backward {
    fn run(self, ctx: &Context<'_>, grad: &Tensor) -> Result<Gradients> {
        let input = ctx.saved(0)?;
        let weight = ctx.saved_optional(3)?;
        double_backward::set_variant(if self.is_training { "training" } else { "evaluation" });
        let no_grad = GradModeGuard::new(false);
        let statistics = [ctx.saved(4)?, ctx.saved(5)?];
        let results = if self.kernels.is_cudnn {
            self.cudnn(grad, &input, weight.as_ref())?
        } else {
            self.native(ctx, grad, &input, weight.as_ref())?
        };
        drop(no_grad);
        self.record_double(ctx, [grad, &input], weight.as_ref(), &statistics, &results)?;
        Ok(results)
    }

    /// Whether the gradients of the weight and of the bias are wanted.
    fn wanted(self, ctx: &Context<'_>) -> (bool, bool) {
        (self.has_weight && ctx.wants(1), self.has_bias && ctx.wants(2))
    }

    /// The gradients of the input, the weight and the bias, without those of a missing weight and bias.
    fn results(
        self,
        grad_input: Option<Tensor>,
        grad_weight: Option<Tensor>,
        grad_bias: Option<Tensor>,
    ) -> Gradients {
        let mut results = vec![grad_input];
        results.extend(self.has_weight.then_some(grad_weight));
        results.extend(self.has_bias.then_some(grad_bias));
        results
    }

    /// `cudnn_batch_norm_backward`, which writes all gradients, wanted or not.
    fn cudnn(self, grad: &Tensor, input: &Tensor, weight: Option<&Tensor>) -> Result<Gradients> {
        let _grad = contiguous_like(grad, input)?;
        let grad_input = Some(empty_like(input)?);
        let grad_weight = gamma(weight, true)?;
        let grad_bias = gamma(weight, true)?;
        if self.kernels.takes_workspace {
            drop(temporary(input.device(), channels_last_workspace(input, true))?);
        }
        Ok(self.results(grad_input, grad_weight, grad_bias))
    }

    /// `batch_norm_backward_cuda`.
    fn native(
        self,
        ctx: &Context<'_>,
        grad: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
    ) -> Result<Gradients> {
        let (wants_weight, wants_bias) = self.wanted(ctx);
        let wants_input = ctx.wants(0);
        let needs_sums = self.is_training || wants_weight || wants_bias;
        let has_small_indices = has_small_indices(input) && has_small_indices(grad);
        if needs_sums && wants_input && !lies_channels_last(input) && has_small_indices {
            return self.fused(grad, input, [wants_weight, wants_bias], weight);
        }
        let invstd = if self.kernels.keeps_statistics { None } else { Some(statistic(input)?) };
        let mut sums = Sums::default();
        if needs_sums {
            sums = Sums::of(grad, input, weight, [wants_input, wants_weight, wants_bias])?;
        }
        let grad_input = if !wants_input {
            None
        } else if self.is_training {
            Some(elements_of_training(grad, input, weight)?)
        } else {
            // In evaluation mode the gradient is written without gaps in the plain order.
            Some(empty_like_as(input, input.dtype(), MemoryFormat::Contiguous)?)
        };
        let Sums { dy_xmu, dy, grad_weight, grad_bias } = sums;
        drop(dy_xmu);
        drop(dy);
        drop(invstd);
        Ok(self.results(grad_input, grad_weight, grad_bias))
    }

    /// `batch_norm_backward_cuda_template`: one kernel for all gradients, which are written without gaps.
    fn fused(
        self,
        grad: &Tensor,
        input: &Tensor,
        wants: [bool; 2],
        weight: Option<&Tensor>,
    ) -> Result<Gradients> {
        let read_input = rows(input)?;
        let read_grad = rows(grad)?;
        let to_own = empty_like_as(input, input.dtype(), MemoryFormat::Contiguous)?;
        let grad_weight = gamma(weight, wants[0])?;
        let grad_bias = gamma(weight, wants[1])?;
        drop(read_grad);
        drop(read_input);
        Ok(self.results(Some(to_own), grad_weight, grad_bias))
    }

    fn record_double(
        self,
        ctx: &Context<'_>,
        read: [&Tensor; 2],
        weight: Option<&Tensor>,
        statistics: &[Tensor; 2],
        results: &[Option<Tensor>],
    ) -> Result<()> {
        let slots = [Some(0), self.has_weight.then_some(1), self.has_bias.then_some(2)];
        let slots: Vec<usize> = slots.into_iter().flatten().collect();
        let node = if self.kernels.is_cudnn {
            nodes::CudnnBatchNormBackwardBackward0
        } else {
            nodes::NativeBatchNormBackwardBackward0
        };
        if self.is_training {
            return record_double(node, read, weight, statistics, results, &slots, norm_double::batch_norm);
        }
        let (Some(mean), Some(var)) = (ctx.saved_optional(1)?, ctx.saved_optional(2)?) else {
            return Ok(());
        };
        let formula = norm_double::evaluated_batch_norm;
        record_double(node, read, weight, &[mean, var], results, &slots, formula)
    }
}

/// `batch_norm_elementwise_backward_train`.
fn elements_of_training(grad: &Tensor, input: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match KernelLayout::of_both(input, grad) {
        KernelLayout::Contiguous => empty_like_as(input, input.dtype(), MemoryFormat::Contiguous),
        KernelLayout::ChannelsLast => empty_like(input),
        KernelLayout::General => {
            // An iterator wants a tensor where there is no weight.
            let one = weight.is_none().then(|| scratch(input, 1, input.dtype().accumulate())).transpose()?;
            let result = empty_like_as(input, input.dtype(), input.suggested_format())?;
            drop(one);
            Ok(result)
        }
    }
}

/// The sums of `batch_norm_backward_reduce_cuda`, a number for each channel.
#[derive(Default)]
struct Sums {
    dy: Option<Tensor>,
    dy_xmu: Option<Tensor>,
    grad_weight: Option<Tensor>,
    grad_bias: Option<Tensor>,
}

impl Sums {
    fn of(
        grad: &Tensor,
        input: &Tensor,
        weight: Option<&Tensor>,
        [wants_input, wants_weight, wants_bias]: [bool; 3],
    ) -> Result<Self> {
        if has_small_indices(grad) && lies_channels_last(grad) && lies_channels_last(input) {
            // These kernels write all sums, wanted or not.
            let (dy, dy_xmu) = (Some(statistic(input)?), Some(statistic(input)?));
            let (grad_weight, grad_bias) = (gamma(weight, true)?, gamma(weight, true)?);
            staging(input, 2)?;
            return Ok(Self { dy, dy_xmu, grad_weight, grad_bias });
        }
        let read_input = rows(input)?;
        let read_grad = rows(grad)?;
        let statistic = || wants_input.then(|| statistic(input)).transpose();
        let (dy, dy_xmu) = (statistic()?, statistic()?);
        let (grad_weight, grad_bias) = (gamma(weight, wants_weight)?, gamma(weight, wants_bias)?);
        drop(read_grad);
        drop(read_input);
        Ok(Self { dy, dy_xmu, grad_weight, grad_bias })
    }
}

/// A new tensor with a number for each channel.
fn statistic(input: &Tensor) -> Result<Tensor> {
    empty(&[input.size(1)], input.dtype().accumulate(), input.device())
}

/// A new tensor for the gradient of the weight or of the bias; `None` where the gradient is not wanted.
fn gamma(weight: Option<&Tensor>, is_wanted: bool) -> Result<Option<Tensor>> {
    weight.filter(|_| is_wanted).map(empty_like).transpose()
}

fn contiguous_like(grad: &Tensor, like: &Tensor) -> Result<Tensor> {
    contiguous_in(grad, like.suggested_format())
}

/// `batch_norm`.
pub(super) fn batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    mean: Option<&Tensor>,
    variance: Option<&Tensor>,
    is_training: bool,
    _: Rest<3>,
) -> Result<Value> {
    let norm = BatchNorm { input, weight, bias, running: mean.zip(variance), is_training };
    // `_batch_norm_impl_index`: cuDNN reads an input without gaps, which is saved, and dies before the tuple
    // of the results.
    let read = if norm.is_cudnn() { contiguous_like(input, input)? } else { input.clone() };
    let (output, [mean, invstd]) = BatchNorm { input: &read, ..norm }.run()?;
    drop(read);
    drop(mean);
    drop(invstd);
    Ok(output.into())
}

/// `instance_norm`: a batch norm over each image's channels.
pub(super) fn instance_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    _: Rest<6>,
) -> Result<Value> {
    let batch = input.size(0);
    let mut shape = input.shape().to_vec();
    if let [first, second, ..] = shape.as_mut_slice() {
        *second *= *first;
        *first = 1;
    }
    let repeat = |tensor: Option<&Tensor>| -> Result<Option<Tensor>> {
        tensor.map(|tensor| crate::call("repeat", &[tensor.into(), batch.into()], &[])?.tensor()).transpose()
    };
    let weight = repeat(weight)?;
    let bias = repeat(bias)?;
    let input = contiguous(input)?;
    let flat = view(&input, &shape)?;
    let norm = BatchNorm {
        input: &flat,
        weight: weight.as_ref(),
        bias: bias.as_ref(),
        running: None,
        is_training: true,
    };
    let (output, [mean, invstd]) = norm.run()?;
    drop(mean);
    drop(invstd);
    Ok(reshape(&output, &input.shape())?.into())
}
