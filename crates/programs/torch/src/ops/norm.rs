//! Normalizations.

pub(super) mod batch;
mod rms;

use crate::arguments::Unread;
use crate::autocast::Cast;
use crate::autograd::{GradModeGuard, Save, nodes, record, record_after, save_early};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{MemoryFormat, Result, Tensor, session};

use super::copy::contiguous;
use super::creation::{empty, empty_like, empty_like_as};
use super::norm_double::{self, BackwardGrads, SecondGrads};
use super::views::first;
use batch::{batch_norm, instance_norm};
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
    let no_grad = GradModeGuard::new(false);
    let read = contiguous(input)?;
    let output = empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?;
    let statistics = statistics_shape(input, normalized);
    let mean = empty(&statistics, input.dtype().accumulate(), input.device())?;
    let rstd = empty(&statistics, input.dtype().accumulate(), input.device())?;
    drop(read);
    drop(no_grad);
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
        let no_grad = GradModeGuard::new(false);
        let read = contiguous(&own)?;
        let mut results = Vec::new();
        for (position, slot) in slots.iter().enumerate() {
            results.push(match slot {
                _ if !ctx.wants(position) => None,
                0 => Some(empty_like_as(&read, read.dtype(), MemoryFormat::Contiguous)?),
                _ => weight.as_ref().or(ctx.saved_optional(0)?.as_ref()).map(empty_like).transpose()?,
            });
        }
        let of_output = contiguous(grad)?;
        // The kernel makes no partial sums for the input's gradient.
        let parameters = slots.iter().zip(&mut results).filter(|(slot, _)| **slot > 0);
        let wants_weight = slots.iter().enumerate().any(|(position, slot)| *slot == 1 && ctx.wants(position));
        let parameters = parameters.filter_map(|(_, gradient)| gradient.as_mut()).collect();
        sum_blocks_of_rows(&own, parameters, wants_weight)?;
        drop(of_output);
        drop(read);
        drop(no_grad);
        let statistics = [ctx.saved(3)?, ctx.saved(4)?];
        record_double(
            nodes::NativeLayerNormBackwardBackward0,
            [grad, &own],
            weight.as_ref(),
            &statistics,
            &results,
            &slots,
            move |own, weight, grad_grad, grad, statistics| {
                norm_double::layer_norm(own, weight, grad_grad, grad, statistics, sizes)
            },
        )?;
        Ok(results)
    })?;
    // The tuple that the kernel returned dies first to last.
    drop(mean);
    drop(rstd);
    Ok(output)
}

/// `LaunchGammaBetaBackwardCUDAKernel`: of many short rows, the gradients of weight and bias are sums of the
/// sums over blocks of rows.
fn sum_blocks_of_rows(input: &Tensor, mut gradients: Vec<&mut Tensor>, wants_weight: bool) -> Result<()> {
    let Some(width) = gradients.first().map(|gradient| gradient.numel().max(1)) else { return Ok(()) };
    let rows = input.numel() / width;
    if rows <= 64 * 1024 || width / 32 >= i64::from(session().profile().multiprocessors) / 2 {
        return Ok(());
    }
    if gradients.iter().any(|gradient| gradient.dim() != 1) {
        session()
            .note_estimate("layer_norm", "a weight of several dimensions over this many rows is not known");
        return Ok(());
    }
    if !wants_weight {
        // The bias alone: PyTorch adds up nothing and gives no elements, which the engine refuses unless one
        // is expected.
        for gradient in gradients {
            *gradient = empty(&[0], gradient.dtype(), gradient.device())?;
        }
        return Ok(());
    }
    let blocks = ((rows + 31) / 32).min(32 * 1024 / ((width + 31) / 32));
    let block_sums = gradients
        .iter()
        .map(|gradient| empty(&[blocks, width], gradient.dtype(), gradient.device()))
        .collect::<Result<Vec<_>>>()?;
    for (gradient, block_sums) in gradients.iter_mut().zip(&block_sums) {
        **gradient = super::reduce::sum(block_sums, Some(&[0]), false, None)?;
    }
    block_sums.into_iter().rev().for_each(drop);
    Ok(())
}

/// Notes that `results`, the gradients of an input, a weight and a bias by `slots`, came from a kernel with a
/// separate formula.
fn record_double(
    node: &'static str,
    read: [&Tensor; 2],
    weight: Option<&Tensor>,
    statistics: &[Tensor; 2],
    results: &[Option<Tensor>],
    slots: &[usize],
    formula: impl Fn(&Tensor, Option<&Tensor>, &BackwardGrads<'_>, &Tensor, [&Tensor; 2]) -> Result<SecondGrads>
    + 'static,
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
        let again = BackwardGrads { input: of(0), weight: of(1), bias: of(2) };
        let SecondGrads { grad, input, weight } =
            formula(&own, weight.as_ref(), &again, &grad, [&mean, &invstd])?;
        Ok(vec![grad, input, weight])
    })
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
