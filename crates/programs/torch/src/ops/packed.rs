//! Packed sequences: the time steps of sequences of different lengths, one after the other without the
//! padding.

use crate::autograd::{GradModeGuard, nodes, record};
use crate::error::runtime;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, Result, Scalar, Tensor, Value};

use super::copy::{contiguous, copy_in_place};
use super::creation::{empty, full, zeros};
use super::join::cat;
use super::views::{first, narrow, select, slice, transpose, view};

/// The numbers of a tensor of the host; an error where they are not known.
fn known(name: &str, tensor: &Tensor) -> Result<Vec<i64>> {
    if tensor.dim() != 1 || tensor.device() != Device::Cpu || tensor.dtype() != Dtype::I64 {
        return runtime(format!(
            "'lengths' argument should be a 1D CPU int64 tensor, but got {}D {} {} tensor",
            tensor.dim(),
            tensor.device(),
            tensor.dtype().scalar_name()
        ));
    }
    let values: Option<Vec<i64>> =
        tensor.values().and_then(|values| values.into_iter().map(Scalar::to_i64).collect());
    values.map_or_else(
        || runtime(format!("the {name} of a packed sequence are not known here; use numbers in their place")),
        Ok,
    )
}

fn host(numbers: &[i64]) -> Result<Tensor> {
    let tensor = empty(&[numbers.len() as i64], Dtype::I64, Device::Cpu)?;
    tensor.set_values(Some(&numbers.iter().map(|number| Scalar::Int(*number)).collect::<Vec<_>>()));
    Ok(tensor)
}

/// `_pack_padded_sequence`: the packed time steps, and how many sequences take part in each.
fn pack(given: &Tensor, lengths: &Tensor, batch_first: bool) -> Result<Value> {
    let lengths = known("lengths", lengths)?;
    if given.numel() == 0 || given.dim() < 2 {
        return runtime("Cannot pack empty tensors.");
    }
    let batch = given.size(i64::from(!batch_first));
    if lengths.len() as i64 != batch {
        return runtime(format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={batch})",
            lengths.len()
        ));
    }
    if lengths.last().is_none_or(|shortest| *shortest <= 0) {
        return runtime(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
        );
    }
    if !lengths.is_sorted_by(|a, b| a >= b) {
        return runtime(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass \
             `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not \
             need ONNX exportability.",
        );
    }
    let mut batch_sizes = Vec::new();
    let output = {
        let _no_grad = GradModeGuard::new(false);
        let input = if batch_first { transpose(given, 0, 1)? } else { given.clone() };
        let mut shape = vec![-1];
        shape.extend(input.shape().iter().skip(2));
        let mut steps = Vec::new();
        let mut before = 0;
        for (index, length) in lengths.iter().rev().enumerate() {
            if *length > before {
                let taking_part = batch - index as i64;
                let block = slice(
                    &slice(&input, 0, Some(before), Some(*length), 1)?,
                    1,
                    Some(0),
                    Some(taking_part),
                    1,
                )?;
                steps.push(view(&contiguous(&block)?, &shape)?);
                batch_sizes.extend((before..*length).map(|_| taking_part));
                before = *length;
            }
        }
        let output = cat(&steps, 0)?;
        steps.into_iter().for_each(drop);
        output
    };
    let sizes = host(&batch_sizes)?;
    let from = given.shape();
    // The sizes of the batches lie on the host, so the node keeps no memory of the GPU.
    record(nodes::PackPaddedSequenceBackward0, &[given], &[&output], &[], move |_, grads| {
        let grad = first(grads)?;
        let mut shape = from.to_vec();
        if batch_first {
            shape.swap(0, 1);
        }
        let result = zeros(&shape, grad.dtype(), grad.device())?;
        let _no_grad = GradModeGuard::new(false);
        let mut start = 0;
        for (step, count) in batch_sizes.iter().enumerate() {
            let part = slice(grad, 0, Some(start), Some(start + count), 1)?;
            copy_in_place(&slice(&select(&result, 0, step as i64)?, 0, Some(0), Some(*count), 1)?, &part)?;
            start += count;
        }
        Ok(vec![Some(if batch_first { transpose(&result, 0, 1)? } else { result })])
    })?;
    Ok((output, sizes).into())
}

/// `_pad_packed_sequence`: the padded batch, and the lengths of its sequences.
fn pad(data: &Tensor, batch_sizes: &Tensor, batch_first: bool, value: Scalar, total: i64) -> Result<Value> {
    let sizes = known("sizes of the batches", batch_sizes)?;
    let steps = sizes.len() as i64;
    if total > 0 && total < steps {
        return runtime(format!(
            "Expected total_length to be at least the length of the longest sequence in input, but got \
             total_length={total} and max sequence length being {steps}"
        ));
    }
    let batch = sizes.first().copied().unwrap_or(0);
    let mut shape = vec![if total > 0 { total } else { steps }, batch];
    shape.extend(data.shape().iter().skip(1));
    let output = full(&shape, value, data.dtype(), data.device())?;
    let mut lengths = Vec::new();
    let (mut offset, mut before, mut begun) = (0, batch, 0);
    for step in 0..=steps {
        let count = usize::try_from(step).ok().and_then(|step| sizes.get(step).copied()).unwrap_or(0);
        if count != before {
            let length = before.saturating_mul(step - begun);
            let mut seen = vec![step - begun, before];
            seen.extend(data.shape().iter().skip(1));
            let block = view(&slice(data, 0, Some(offset), Some(offset + length), 1)?, &seen)?;
            let place = slice(&slice(&output, 0, Some(begun), Some(step), 1)?, 1, Some(0), Some(before), 1)?;
            copy_in_place(&place, &block)?;
            offset += length;
            begun = step;
        }
        lengths.extend((count..before).map(|_| step));
        before = count;
    }
    lengths.reverse();
    let output = if batch_first { transpose(&output, 0, 1)? } else { output };
    Ok((output, host(&lengths)?).into())
}

/// `pad_sequence`: each sequence is copied into a row of a new tensor.
fn pad_sequence(sequences: &[Tensor], batch_first: bool, value: Scalar, padding_side: &str) -> Result<Value> {
    let Some(like) = sequences.first() else { return runtime("received an empty list of sequences") };
    let is_left = match padding_side {
        "left" => true,
        "right" => false,
        _ => return runtime("Expected padding_side to be one of left or right"),
    };
    let longest = sequences.iter().map(|sequence| sequence.size(0)).max().unwrap_or(0);
    let count = sequences.len() as i64;
    let mut shape = if batch_first { vec![count, longest] } else { vec![longest, count] };
    shape.extend(like.shape().iter().skip(1));
    let output = full(&shape, value, like.dtype(), like.device())?;
    for (index, sequence) in sequences.iter().enumerate() {
        let length = sequence.size(0);
        let start = if is_left { longest - length } else { 0 };
        let place = if batch_first {
            narrow(&select(&output, 0, index as i64)?, 0, start, length)?
        } else {
            select(&narrow(&output, 0, start, length)?, 1, index as i64)?
        };
        copy_in_place(&place, sequence)?;
    }
    Ok(output.into())
}

pub(crate) const TABLE: &[Entry] = &[
    op!("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first)", pack),
    op!(
        "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length)",
        pad,
    ),
    op!(
        "_pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side=right)",
        pad_sequence,
    ),
];
