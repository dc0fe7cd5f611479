//! Connectionist temporal classification.

use crate::arguments::{arguments, integers};
use crate::autograd::{Context, GradModeGuard, Gradients, Save, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Tensor, Value, session};

use super::copy::{clone, to};
use super::creation::{empty, empty_like_as, wrapped, zeros};
use super::loss::Reduction;
use super::pointwise::{clamp, div, elementwise, elementwise_in_place, eq, mul_in_place, where_};
use super::reduce::{mean, sum_all};
use super::views::{first, permute, squeeze, unsqueeze, view};

/// Lengths of sequences, where the host knows them.
fn lengths(given: &Value) -> Result<Option<Vec<i64>>> {
    match given {
        Value::Tensor(tensor) => {
            let Some(values) = tensor.values() else { return Ok(None) };
            Ok(values.into_iter().map(Scalar::to_i64).collect())
        }
        given => integers(given).map(Some),
    }
}

/// What both passes need to know of the targets.
#[derive(Clone, Copy, Debug)]
struct Sequences {
    batch: i64,
    longest_target: i64,
    ignores_infinity: bool,
    blank: i64,
}

/// Three tensors of the GPU: the lengths of the inputs and of the targets (`at::tensor(lengths)`), and where
/// the targets of each sequence begin.
fn length_tensors(batch: i64, device: Device) -> Result<[Tensor; 3]> {
    let targets = empty(&[batch], Dtype::I64, device)?;
    let inputs = empty(&[batch], Dtype::I64, device)?;
    let offsets = empty(&[batch], Dtype::I64, device)?;
    Ok([targets, inputs, offsets])
}

/// `_ctc_loss`: the loss of each sequence.
fn forward(log_probs: &Tensor, targets: &Tensor, sequences: Sequences) -> Result<Tensor> {
    let Sequences { batch, longest_target, .. } = sequences;
    let (loss, log_alpha) = {
        let _no_grad = GradModeGuard::new(false);
        let [target_lengths, input_lengths, offsets] = length_tensors(batch, log_probs.device())?;
        let width = longest_target.saturating_mul(2).saturating_add(1);
        let log_alpha = empty(&[batch, log_probs.size(0), width], log_probs.dtype(), log_probs.device())?;
        let loss = empty(&[batch], log_probs.dtype(), log_probs.device())?;
        drop(input_lengths);
        drop(target_lengths);
        drop(offsets);
        (loss, log_alpha)
    };
    let saved = [
        Save::Input(Some(log_probs)),
        Save::Input(Some(targets)),
        Save::Output(0),
        Save::Input(Some(&log_alpha)),
    ];
    record(nodes::CtcLossBackward0, &[log_probs], &[&loss], &saved, move |ctx, grads| {
        backward(ctx, grads, sequences)
    })?;
    Ok(loss)
}

/// `_ctc_loss_backward`: large problems are composed of operators.
fn backward(ctx: &Context<'_>, grads: &[Option<Tensor>], sequences: Sequences) -> Result<Gradients> {
    let (flow, log_probs, loss, log_alpha) = (first(grads)?, ctx.saved(0)?, ctx.saved(2)?, ctx.saved(3)?);
    let _no_grad = GradModeGuard::new(false);
    let Sequences { batch, longest_target, ignores_infinity, blank } = sequences;
    let [target_lengths, input_lengths, offsets] = length_tensors(batch, log_probs.device())?;
    let log_beta = empty_like_as(&log_alpha, log_alpha.dtype(), MemoryFormat::Contiguous)?;
    let mut grad = empty_like_as(&log_probs, log_probs.dtype(), MemoryFormat::Contiguous)?;
    let (time, labels) = (log_probs.size(0), log_probs.size(2));
    let is_large =
        time.saturating_mul(2) + batch.saturating_mul(24) / 10 + labels.saturating_mul(2) / 10 > 450;
    if is_large {
        let column = [1, batch, 1];
        let blanks = |tensor: &Tensor| {
            let strides = tensor.strides();
            let at = |dim: usize| strides.get(dim).copied().unwrap_or(1);
            tensor.alias(&[batch, time, longest_target + 1], &[at(0), at(1), at(2) * 2], tensor.offset())
        };
        {
            let sum = elementwise(&[&blanks(&log_alpha), &blanks(&log_beta)], log_alpha.dtype(), None)?;
            let logarithm =
                crate::call("logsumexp", &[(&sum).into(), 2.into(), true.into()], &[])?.tensor()?;
            let turned = permute(&logarithm, &[1, 0, 2])?;
            elementwise_in_place(&[&turned, &view(&loss, &column)?], turned.dtype(), None)?;
            elementwise_in_place(
                &[&turned, &super::views::narrow(&log_probs, 2, blank, 1)?],
                turned.dtype(),
                None,
            )?;
            drop(turned);
            drop(logarithm);
            drop(sum);
        }
        mul_in_place(&grad, &view(flow, &column)?)?;
        if ignores_infinity {
            let zero = zeros(&[], grad.dtype(), grad.device())?;
            let is_infinite = eq(&view(&loss, &column)?, &wrapped(Scalar::Float(f64::INFINITY)))?;
            let kept = where_(&is_infinite, &zero, &grad)?;
            grad = kept;
            drop(is_infinite);
            drop(zero);
        }
    }
    drop(log_beta);
    drop(input_lengths);
    drop(target_lengths);
    drop(offsets);
    Ok(vec![Some(grad)])
}

/// `_cudnn_ctc_loss`: cuDNN computes the gradient with the loss.
fn cudnn(log_probs: &Tensor, ignores_infinity: bool) -> Result<Tensor> {
    session().note_estimate("ctc_loss", "cuDNN's workspace for this loss was not recorded");
    let (costs, raw) = {
        let _no_grad = GradModeGuard::new(false);
        let raw = empty_like_as(log_probs, log_probs.dtype(), MemoryFormat::Contiguous)?;
        let workspace = super::sort::temporary(log_probs.device(), log_probs.nbytes())?;
        let costs = empty(&[log_probs.size(1)], log_probs.dtype(), log_probs.device())?;
        drop(workspace);
        (costs, raw)
    };
    let saved = [Save::Output(0), Save::Input(Some(&raw))];
    record(nodes::CudnnCtcLossBackward0, &[log_probs], &[&costs], &saved, move |ctx, grads| {
        let (costs, raw) = (ctx.saved(0)?, ctx.saved(1)?);
        let spread = |tensor: &Tensor| unsqueeze(&unsqueeze(tensor, 0)?, 2);
        let product = super::pointwise::mul(&raw, &spread(first(grads)?)?)?;
        if !ignores_infinity {
            return Ok(vec![Some(product)]);
        }
        let zero = zeros(&[], raw.dtype(), raw.device())?;
        let is_zero = eq(&spread(&costs)?, &wrapped(Scalar::Int(0)))?;
        Ok(vec![Some(where_(&is_zero, &zero, &product)?)])
    })?;
    Ok(costs)
}

arguments! {
    /// The arguments of `ctc_loss`.
    #[derive(Clone, Copy)]
    struct Problem<'a> {
        given: &'a Tensor,
        targets: &'a Tensor,
        input_lengths: &'a Value,
        target_lengths: &'a Value,
        blank: i64,
        reduction: Reduction,
        ignores_infinity: bool,
        has_cudnn: bool,
    }
}

/// Whether cuDNN computes this loss (`_use_cudnn_ctc_loss`).
fn is_for_cudnn(problem: &Problem<'_>, log_probs: &Tensor) -> Result<bool> {
    let targets = problem.targets;
    let is_small = |value: &Value| match value {
        Value::Tensor(tensor) => tensor.dtype() == Dtype::I32,
        _ => false,
    };
    let tensors = is_small(problem.input_lengths) && is_small(problem.target_lengths);
    if !log_probs.device().is_cuda()
        || !problem.has_cudnn
        || problem.blank != 0
        || targets.dim() != 1
        || log_probs.dtype() != Dtype::F32
        || targets.dtype() != Dtype::I32
        || log_probs.dim() != 3
    {
        return Ok(false);
    }
    let (inputs, lengths) = (lengths(problem.input_lengths)?, lengths(problem.target_lengths)?);
    let (inputs, lengths) = (inputs.unwrap_or_default(), lengths.unwrap_or_default());
    let fits = inputs.iter().zip(&lengths).all(|(input, target)| *target < 256 && target <= input);
    let is_whole = inputs.iter().all(|input| *input == log_probs.size(0));
    Ok(fits && (tensors || (is_whole && targets.device() == Device::Cpu)))
}

/// `ctc_loss`.
fn ctc_loss(problem: Problem<'_>) -> Result<Tensor> {
    let Problem { given, targets, blank, reduction, ignores_infinity, .. } = problem;
    let is_batched = given.dim() == 3;
    let given = crate::autocast::Cast::full(given.device()).apply(given)?;
    let log_probs = if is_batched { given } else { unsqueeze(&given, 1)? };
    let batch = log_probs.size(1);
    let (input_lengths, target_lengths) = (lengths(problem.input_lengths)?, lengths(problem.target_lengths)?);
    let counts = [("input_lengths", &input_lengths), ("target_lengths", &target_lengths)];
    if let Some((name, _)) =
        counts.iter().find(|(_, found)| found.as_ref().is_some_and(|found| found.len() as i64 != batch))
    {
        return runtime(format!("{name} must be of size batch_size"));
    }
    if blank < 0 || blank >= log_probs.size(2) {
        return runtime("blank must be in label range");
    }
    let longest_target = target_lengths.as_ref().map_or_else(
        || {
            session().note_estimate(
                "ctc_loss",
                "the longest target is not known; the size of the targets is taken",
            );
            targets.size(-1)
        },
        |lengths| lengths.iter().copied().max().unwrap_or(0),
    );
    let mut result = if is_for_cudnn(&problem, &log_probs)? {
        cudnn(&log_probs, ignores_infinity)?
    } else {
        let moved =
            to(targets, Some(Dtype::I64), Some(log_probs.device()), false, false, MemoryFormat::Preserve)?;
        let sequences = Sequences { batch, longest_target, ignores_infinity, blank };
        let mut result = forward(&log_probs, &moved, sequences)?;
        drop(moved);
        if ignores_infinity {
            let zero = zeros(&[], result.dtype(), result.device())?;
            let is_infinite = eq(&result, &wrapped(Scalar::Float(f64::INFINITY)))?;
            result = where_(&is_infinite, &zero, &result)?;
            drop(is_infinite);
            drop(zero);
        }
        result
    };
    match reduction {
        Reduction::Mean => {
            let lengths = {
                let made = match problem.target_lengths {
                    Value::Tensor(tensor) if is_for_cudnn(&problem, &log_probs)? => {
                        clone(tensor, MemoryFormat::Preserve)?
                    }
                    _ => empty(&[batch], result.dtype(), result.device())?,
                };
                clamp(&made, Some(Scalar::Int(1)), None)?
            };
            let ratio = div(&result, &lengths)?;
            let loss = mean(&ratio, None, false, None)?;
            drop(ratio);
            drop(lengths);
            Ok(loss)
        }
        Reduction::Sum => sum_all(&result),
        Reduction::None => {
            if !is_batched {
                result = squeeze(&result, Some(&[0]))?;
            }
            Ok(result)
        }
    }
}

pub(crate) const TABLE: &[Entry] = &[op!(
    "ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, int reduction=1, bool \
     zero_infinity=False, bool cudnn_enabled=True)",
    ctc_loss,
)];
