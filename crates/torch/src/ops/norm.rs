//! Normalizations.

mod rms;

use crate::arguments::{Rest, Unread};
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, again, nodes, record, record_after, save_early};
use crate::error::runtime;
use crate::memory::Category;
use crate::registry::{Entry, op};
use crate::{Dtype, MemoryFormat, Result, Storage, Tensor, Value};

use super::copy::contiguous;
use super::creation::{empty, empty_like, empty_like_as};
use super::norm_double::{self, Again, Doubled};
use super::views::{first, reshape, view};
use rms::rms_norm;

fn rows_and_width(input: &Tensor, normalized: &[i64]) -> Result<(i64, i64)> {
    let shape = input.shape();
    let leading = shape.len().checked_sub(normalized.len());
    let fits = leading.is_some_and(|leading| shape.get(leading..) == Some(normalized));
    if !fits {
        let tail: Vec<String> = normalized.iter().map(ToString::to_string).collect();
        return runtime(format!(
            "Given normalized_shape={normalized:?}, expected input with shape [*, {}], but got input of size{shape:?}",
            tail.join(", ")
        ));
    }
    let rows = shape.iter().take(leading.unwrap_or(0)).product();
    Ok((rows, normalized.iter().product()))
}

fn statistics_shape(input: &Tensor, normalized: &[i64]) -> Vec<i64> {
    let leading = input.dim().saturating_sub(normalized.len());
    input.shape().iter().enumerate().map(|(dim, size)| if dim < leading { *size } else { 1 }).collect()
}

/// `layer_norm`.
pub(crate) fn layer_norm(
    input: &Tensor,
    normalized: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let cast = Cast::full(input.device());
    let bias = &cast.apply_optional(bias)?;
    let weight = &cast.apply_optional(weight)?;
    let input = &cast.apply(input)?;
    let (rows, width) = rows_and_width(input, normalized)?;
    let sizes = [rows, width];
    let inputs = [Some(input), weight.as_ref(), bias.as_ref()];
    let slots: Vec<usize> = (0..3).filter(|slot| inputs.get(*slot).is_some_and(Option::is_some)).collect();
    let tensors: Vec<&Tensor> = inputs.into_iter().flatten().collect();
    let early = save_early(
        &tensors,
        &[Save::Input(bias.as_ref()), Save::Input(Some(input)), Save::Input(weight.as_ref())],
    )?;
    let below = GradModeGuard::new(false);
    let read = contiguous(input)?;
    let output = empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?;
    let statistics = statistics_shape(input, normalized);
    let mean = empty(&statistics, input.dtype().accumulate(), input.device())?;
    let rstd = empty(&statistics, input.dtype().accumulate(), input.device())?;
    drop(read);
    drop(below);
    let saved = [
        Save::Input(bias.as_ref()),
        Save::Input(Some(input)),
        Save::Input(weight.as_ref()),
        Save::Input(Some(&mean)),
        Save::Input(Some(&rstd)),
    ];
    record_after(early, nodes::NativeLayerNormBackward0, &tensors, &[&output], &saved, move |ctx, grads| {
        let own = ctx.saved(1)?;
        let weight = ctx.saved_optional(2)?;
        let grad = first(grads)?;
        let below = GradModeGuard::new(false);
        let read = contiguous(&own)?;
        let mut results = Vec::new();
        for (position, slot) in slots.iter().enumerate() {
            results.push(match slot {
                _ if !ctx.wants(position) => None,
                0 => Some(empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?),
                _ => weight.as_ref().or(ctx.saved_optional(0)?.as_ref()).map(empty_like).transpose()?,
            });
        }
        drop(contiguous(grad)?);
        drop(read);
        drop(below);
        let statistics = [ctx.saved(3)?, ctx.saved(4)?];
        record_double(
            nodes::NativeLayerNormBackwardBackward0,
            [grad, &own],
            weight.as_ref(),
            &statistics,
            &results,
            &slots,
            move |own, weight, again, grad, statistics| {
                norm_double::layer_norm(own, weight, again, grad, statistics, sizes)
            },
        )?;
        Ok(results)
    })?;
    // The tuple that the kernel returned dies first to last.
    drop(mean);
    drop(rstd);
    Ok(output)
}

/// Notes that `results`, the gradients of an input, a weight and a bias by `slots`, came from a kernel with a formula of its own.
fn record_double(
    node: &'static str,
    read: [&Tensor; 2],
    weight: Option<&Tensor>,
    statistics: &[Tensor; 2],
    results: &[Option<Tensor>],
    slots: &[usize],
    formula: impl Fn(&Tensor, Option<&Tensor>, &Again<'_>, &Tensor, [&Tensor; 2]) -> Result<Doubled> + 'static,
) -> Result<()> {
    let [grad, own] = read;
    let mut inputs = vec![grad, own];
    inputs.extend(weight);
    let pairs = results.iter().zip(slots);
    let (outputs, slots): (Vec<&Tensor>, Vec<usize>) =
        pairs.filter_map(|(result, slot)| result.as_ref().map(|result| (result, *slot))).unzip();
    let [mean, invstd] = statistics;
    let saved = [
        Save::Input(Some(grad)),
        Save::Input(Some(own)),
        Save::Input(Some(mean)),
        Save::Input(Some(invstd)),
        Save::Input(weight),
    ];
    record(node, &inputs, &outputs, &saved, move |ctx, grads| {
        let (grad, own, weight) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved_optional(4)?);
        let (mean, invstd) = (ctx.saved(2)?, ctx.saved(3)?);
        let of = |slot: usize| {
            let position = slots.iter().position(|other| *other == slot);
            position.and_then(|position| grads.get(position)).and_then(Option::as_ref)
        };
        let again = Again { input: of(0), weight: of(1), bias: of(2) };
        let Doubled { grad, input, weight } =
            formula(&own, weight.as_ref(), &again, &grad, [&mean, &invstd])?;
        Ok(vec![grad, input, weight])
    })
}

pub(super) fn scratch(input: &Tensor, elements: i64) -> Result<std::rc::Rc<Storage>> {
    Storage::new(input.device(), 4 * elements.max(0) as u64, Category::Temporary)
}

/// What `flexible_launch_configs` gives for a reduction over all but the channels: blocks along the channels and along the rest.
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

fn staging(input: &Tensor, channels: i64, factor: i64) -> Result<()> {
    let (grid_x, grid_y) = channels_last_grid(input.numel() / channels.max(1), channels);
    if grid_y > 1 {
        let data = scratch(input, factor * channels * grid_y)?;
        let semaphores = scratch(input, grid_x)?;
        drop(semaphores);
        drop(data);
    }
    Ok(())
}

/// What cuDNN takes for a batch norm in `channels_last`, by the recorded sizes: blocks of 64 channels.
fn channels_last_workspace(input: &Tensor, is_backward: bool) -> u64 {
    let channels = input.size(1).max(1);
    let rows = (input.numel() / channels).max(0) as u64;
    let blocks = (channels as u64).div_ceil(64);
    if is_backward {
        1056 + blocks * (rows.div_ceil(96) * 512 + 4)
    } else {
        let rows = rows.div_ceil(64) * 64;
        1072 + blocks * (8 * rows + rows / 16 + 4)
    }
}

/// `batch_norm_use_channels_last_kernels`.
fn lies_channels_last(tensor: &Tensor) -> bool {
    tensor.is_contiguous_in(MemoryFormat::ChannelsLast)
        || tensor.is_contiguous_in(MemoryFormat::ChannelsLast3d)
        || (tensor.is_contiguous() && tensor.strides().get(1) == Some(&1))
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
    /// Whether cuDNN does it (`_select_batch_norm_backend`): types must be those that it takes.
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

    fn run(&self) -> Result<Tensor> {
        let input = self.input;
        if input.dim() < 2 {
            return runtime(format!("batch_norm expects at least 2 dimensions, got {}", input.dim()));
        }
        let channels = input.size(1);
        if self.weight.is_some_and(|weight| weight.numel() != channels) {
            return runtime(format!(
                "weight should contain {channels} elements not {}",
                self.weight.map_or(0, Tensor::numel)
            ));
        }
        let is_evaluated_by_cudnn = self.is_cudnn() && !self.is_training;
        let is_cudnn = self.is_cudnn() && self.is_training;
        let is_channels_last = lies_channels_last(input);
        let full = input.dtype().accumulate();
        let output = empty_like(input)?;
        // cuDNN's evaluation keeps none: the backward pass, which is ATen's own, computes them again.
        let keeps_statistics = !is_evaluated_by_cudnn && input.device().is_cuda();
        let (mean, invstd) = if keeps_statistics {
            (empty(&[channels], full, input.device())?, empty(&[channels], full, input.device())?)
        } else {
            (empty(&[0], full, input.device())?, empty(&[0], full, input.device())?)
        };
        let is_last_like = input.suggested_format() != MemoryFormat::Contiguous && is_channels_last;
        if is_cudnn && is_last_like {
            drop(super::sort::temporary(input.device(), channels_last_workspace(input, false))?);
        } else if self.is_training && is_channels_last && !is_cudnn {
            staging(input, channels, 4)?;
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
        let (has_weight, has_bias) = (self.weight.is_some(), self.bias.is_some());
        let is_training = self.is_training;
        let name = if is_cudnn { nodes::CudnnBatchNormBackward0 } else { nodes::NativeBatchNormBackward0 };
        record(name, &tensors, &[&output], &saved, move |ctx, grads| {
            let own = ctx.saved(0)?;
            let weight = ctx.saved_optional(3)?;
            let grad = first(grads)?;
            again::variant(if is_training { "training" } else { "evaluation" });
            let below = GradModeGuard::new(false);
            let gamma = |wanted: bool| -> Result<Option<Tensor>> {
                if wanted { weight.as_ref().map(empty_like).transpose() } else { Ok(None) }
            };
            let (wants_weight, wants_bias) = (has_weight && ctx.wants(1), has_bias && ctx.wants(2));
            let mut results = Vec::new();
            let statistics = [ctx.saved(4)?, ctx.saved(5)?];
            let twice = |results: &[Option<Tensor>]| {
                let slots = [Some(0), has_weight.then_some(1), has_bias.then_some(2)];
                let slots: Vec<usize> = slots.into_iter().flatten().collect();
                let node = if is_cudnn {
                    nodes::CudnnBatchNormBackwardBackward0
                } else {
                    nodes::NativeBatchNormBackwardBackward0
                };
                let read = [grad, &own];
                if is_training {
                    let formula = norm_double::batch_norm;
                    return record_double(node, read, weight.as_ref(), &statistics, results, &slots, formula);
                }
                let (Some(mean), Some(var)) = (ctx.saved_optional(1)?, ctx.saved_optional(2)?) else {
                    return Ok(());
                };
                let formula = norm_double::evaluated_batch_norm;
                record_double(node, read, weight.as_ref(), &[mean, var], results, &slots, formula)
            };
            if is_cudnn || !is_channels_last {
                let _grad = if is_cudnn { Some(contiguous_like(grad, &own)?) } else { None };
                // One kernel does all, unless the weight's and the bias's gradients are not wanted or are alone.
                let reduces = is_training || wants_weight || wants_bias;
                // cuDNN writes all gradients, wanted or not.
                let writes_own = ctx.wants(0) || is_cudnn;
                let is_fused = reduces && writes_own;
                let invstd = if is_fused || keeps_statistics {
                    None
                } else {
                    Some(empty(&[channels], full, own.device())?)
                };
                let to_own = if writes_own { Some(empty_like(&own)?) } else { None };
                results.push(to_own);
                if has_weight {
                    results.push(gamma(wants_weight || is_cudnn)?);
                }
                if has_bias {
                    results.push(gamma(wants_bias || is_cudnn)?);
                }
                if is_cudnn && is_last_like {
                    drop(super::sort::temporary(own.device(), channels_last_workspace(&own, true))?);
                }
                drop(invstd);
                drop(below);
                twice(&results)?;
                return Ok(results);
            }
            // Kernels for channels_last: the reduction first, then the elements.
            let invstd = if keeps_statistics { None } else { Some(empty(&[channels], full, own.device())?) };
            let sum_dy = empty(&[channels], full, own.device())?;
            let sum_dy_xmu = empty(&[channels], full, own.device())?;
            // Both are there even where they are not wanted.
            let to_weight = gamma(true)?;
            let to_bias = gamma(true)?;
            // The kernels for channels_last want a gradient without gaps, too.
            if lies_channels_last(grad) {
                staging(&own, channels, 2)?;
            }
            // In evaluation mode the gradient is written without gaps in the plain order.
            let format = if is_training { MemoryFormat::Preserve } else { MemoryFormat::Contiguous };
            let to_own = if ctx.wants(0) { Some(empty_like_as(&own, own.dtype(), format)?) } else { None };
            drop(sum_dy_xmu);
            drop(sum_dy);
            drop(invstd);
            results.push(to_own);
            if has_weight {
                results.push(to_weight);
            }
            if has_bias {
                results.push(to_bias);
            }
            drop(below);
            twice(&results)?;
            Ok(results)
        })?;
        drop(mean);
        drop(invstd);
        Ok(output)
    }
}

fn contiguous_like(grad: &Tensor, like: &Tensor) -> Result<Tensor> {
    super::copy::contiguous_in(grad, like.suggested_format())
}

fn batch_norm(
    input: &Tensor,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    mean: Option<&Tensor>,
    variance: Option<&Tensor>,
    is_training: bool,
    _: Rest<3>,
) -> Result<Value> {
    let mut norm = BatchNorm { input, weight, bias, running: mean.zip(variance), is_training };
    // `_batch_norm_impl_index`: cuDNN reads an input without gaps, and that is what is saved.
    let read;
    if norm.is_cudnn() {
        read = contiguous_like(input, input)?;
        norm.input = &read;
    }
    Ok(norm.run()?.into())
}

/// `instance_norm`: a batch norm over each image's channels.
fn instance_norm(
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
    let output = norm.run()?;
    Ok(reshape(&output, &input.shape())?.into())
}

const BATCH: &str = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, \
                     bool training, float momentum=0.1, float eps=1e-05, bool cudnn_enabled=True)";

const INSTANCE: &str = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? \
                        running_var, bool use_input_stats, float momentum=0.1, float eps=1e-05, bool cudnn_enabled=True)";

pub(crate) const TABLE: &[Entry] = &[
    op!(
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)",
        |input: &Tensor,
         normalized_shape: &[i64],
         weight: Option<&Tensor>,
         bias: Option<&Tensor>,
         _: Unread| layer_norm(input, normalized_shape, weight, bias)
    ),
    op!(
        "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
        |input: &Tensor, normalized_shape: &[i64], weight: Option<&Tensor>, _: Unread| {
            rms_norm(input, normalized_shape, weight)
        }
    ),
    op!(
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)",
        |input: &Tensor, num_groups: i64, weight: Option<&Tensor>, bias: Option<&Tensor>, _: Unread| {
            super::group_norm::group_norm(input, num_groups, weight, bias)
        }
    ),
    op!(BATCH, batch_norm),
    op!(INSTANCE, instance_norm),
];
