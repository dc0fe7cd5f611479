//! Operators whose results have a size that depends on values.

use crate::autograd::{GradModeGuard, Save, nodes, record};
use crate::iterator;
use crate::registry::{Entry, op};
use crate::{Device, Dtype, Result, Scalar, Tensor, Value, session};

use super::copy;
use super::creation::empty;
use super::index::index;
use super::sort::{radix_sort_bytes, temporary};
use super::views::{self, expand, first};

/// `nonzero`: the size depends on values. Where they are not known, half of the elements are assumed to be
/// nonzero, and the result is marked as an estimate.
pub(crate) fn nonzero(tensor: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    let known = |values: Vec<Scalar>| values.into_iter().map(Scalar::to_f64).collect::<Option<Vec<f64>>>();
    if let Some(values) = tensor.values().and_then(known) {
        return places_of_nonzero(tensor, &values);
    }
    session().note_estimate(
        session().operator(),
        "how many elements a mask selects depends on values; half of them is taken",
    );
    select_nonzero(tensor, tensor.numel() / 2)
}

/// The places of the values of a tensor of the host that are not zero, a row for each, in the order of
/// elements.
fn places_of_nonzero(tensor: &Tensor, values: &[f64]) -> Result<Tensor> {
    let shape = tensor.shape();
    let (mut places, mut found) = (Vec::new(), 0);
    for (index, _) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
        let mut rest = index as i64;
        let mut place: Vec<Scalar> = Vec::with_capacity(shape.len());
        for size in shape.iter().rev() {
            place.push(Scalar::Int(rest % size));
            rest /= size;
        }
        places.extend(place.into_iter().rev());
        found += 1;
    }
    let result = empty(&[found, shape.len() as i64], Dtype::I64, Device::Cpu)?;
    result.set_values(Some(&places));
    Ok(result)
}

/// The memory of CUB's two kernels that find the nonzero elements, and a result for `found` of them.
fn select_nonzero(tensor: &Tensor, found: i64) -> Result<Tensor> {
    let (device, count) = (tensor.device(), tensor.numel());
    let total = temporary(device, 4)?;
    // Up to some 5,000 elements one block adds up alone; the two sizes were recorded for 760 and for 6,400
    // elements.
    drop(temporary(device, if count <= 5_120 { 1 } else { 21_503 })?);
    let result = empty(&[found, tensor.dim() as i64], Dtype::I64, device)?;
    // The two sizes were recorded for up to 60,000 elements, and from 210,000 elements on.
    drop(temporary(device, if count <= 32 * 5_120 { 1_023 } else { 1_279 })?);
    drop(total);
    Ok(result)
}

/// `nonzero` of a mask in which no element is set.
pub(crate) fn nonzero_of_zeros(mask: &Tensor) -> Result<Tensor> {
    let _no_grad = GradModeGuard::new(false);
    select_nonzero(mask, 0)
}

/// `unique` of all elements: the result keeps memory for all elements, however many differ.
fn unique(tensor: &Tensor) -> Result<Tensor> {
    session().note_estimate("unique", "how many elements differ depends on values; all of them are taken");
    let device = tensor.device();
    let _no_grad = GradModeGuard::new(false);
    let flat = views::reshape(&copy::contiguous(tensor)?, &[-1])?;
    if !device.is_cuda() {
        return empty(&flat.shape(), tensor.dtype(), device);
    }
    let count = flat.numel().max(0) as u64;
    let sorted = temporary(device, count * tensor.dtype().size())?;
    drop(temporary(device, radix_sort_bytes(count, tensor.dtype().size(), 0, 8 * tensor.dtype().size()))?);
    let output = empty(&flat.shape(), tensor.dtype(), device)?;
    let length = temporary(device, 8)?;
    // Recorded for up to 4,000 elements.
    drop(temporary(device, 1_023)?);
    drop(length);
    drop(sorted);
    Ok(output)
}

/// `bincount`: the largest element decides the size, which is not known on a GPU.
fn bincount(tensor: &Tensor, weights: Option<&Tensor>, least: i64) -> Result<Value> {
    let device = tensor.device();
    let dtype = match weights {
        Some(weights) if weights.dtype() == Dtype::F32 => Dtype::F32,
        Some(_) => Dtype::F64,
        None => Dtype::I64,
    };
    let largest =
        tensor.values().map(|values| values.iter().filter_map(|value| value.to_i64()).max().unwrap_or(-1));
    if tensor.dim() != 1
        || !tensor.dtype().is_integral()
        || tensor
            .values()
            .is_some_and(|values| values.iter().filter_map(|value| value.to_i64()).any(|value| value < 0))
    {
        return crate::error::runtime("bincount only supports 1-d non-negative integral inputs.");
    }
    if device.is_cuda() {
        // The smallest and the largest are read.
        drop(temporary(device, tensor.dtype().size())?);
        drop(temporary(device, tensor.dtype().size())?);
    }
    let bins = if let Some(largest) = largest {
        largest.saturating_add(1).max(least)
    } else {
        session().note_estimate(
            "bincount",
            "the size depends on the largest value; minlength is taken, or the number of elements",
        );
        if least > 0 { least } else { tensor.numel() }
    };
    let output = empty(&[bins], dtype, device)?;
    if let (Some(values), None) = (tensor.values(), weights) {
        let mut counts = vec![0_i64; bins.max(0) as usize];
        for place in values.iter().filter_map(|value| value.to_i64()) {
            if let Some(count) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        output.set_values(Some(&counts.into_iter().map(Scalar::Int).collect::<Vec<_>>()));
    }
    Ok(output.into())
}

/// `masked_select`.
fn masked_select(tensor: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let shape = iterator::broadcast(&[&tensor.shape(), &mask.shape()])?;
    let output = {
        let _no_grad = GradModeGuard::new(false);
        index(&expand(tensor, &shape)?, &[Some(expand(mask, &shape)?)])?
    };
    let saved = [Save::Input(Some(mask)), Save::Input(Some(tensor))];
    record(nodes::MaskedSelectBackward0, &[tensor], &[&output], &saved, move |ctx, grads| {
        let (mask, input) = (ctx.saved(0)?, ctx.saved(1)?);
        // zeros_like(input.expand(...)).masked_scatter(mask, grad)
        let full = super::creation::zeros_like(&expand(&input, &shape)?)?;
        let scattered = [(&full).into(), (&mask).into(), first(grads)?.into()];
        Ok(vec![Some(crate::call("masked_scatter_", &scattered, &[])?.tensor()?)])
    })?;
    Ok(output)
}

pub(crate) const TABLE: &[Entry] = &[
    op!("nonzero(Tensor self)", nonzero),
    op!("masked_select(Tensor self, Tensor mask)", masked_select),
    op!("unique(Tensor self)", unique),
    op!("bincount(Tensor self, Tensor? weights=None, int minlength=0)", bincount),
];
