//! Values of reductions on the host, where each order of the additions gives the same bits.

use crate::{Device, Dtype, Scalar, Tensor};

use super::super::host_values::cast;

/// The elements that each element of the result is made of, in their order; `None` where one is not known.
fn groups(tensor: &Tensor, mask: &[bool]) -> Option<Vec<Vec<Scalar>>> {
    if tensor.device() != Device::Cpu {
        return None;
    }
    let values = tensor.values()?;
    let shape = tensor.shape();
    let kept: i64 = shape.iter().zip(mask).filter(|(_, reduced)| !**reduced).map(|(size, _)| *size).product();
    let mut groups = vec![Vec::new(); usize::try_from(kept).ok()?];
    for (index, value) in values.into_iter().enumerate() {
        if matches!(value, Scalar::Unknown(_)) {
            return None;
        }
        let (mut rest, mut place, mut width) = (index as i64, 0, 1);
        for (size, reduced) in shape.iter().zip(mask).rev() {
            if !reduced {
                place += rest % size * width;
                width *= size;
            }
            rest /= size;
        }
        groups.get_mut(usize::try_from(place).ok()?)?.push(value);
    }
    Some(groups)
}

/// Sets the values of a reduction to what `reduce` makes of each group.
fn set(output: &Tensor, tensor: &Tensor, mask: &[bool], reduce: impl Fn(&[Scalar]) -> Option<Scalar>) {
    let reduced = groups(tensor, mask).and_then(|groups| {
        groups.iter().map(|group| Some(cast(reduce(group)?, output.dtype()))).collect::<Option<Vec<_>>>()
    });
    output.set_values(reduced.as_deref());
}

/// The sum of numbers; `None` where the order of the additions could decide a bit.
fn exact_sum(group: &[Scalar], dtype: Dtype) -> Option<Scalar> {
    if group.iter().all(|value| !matches!(value, Scalar::Float(_))) && dtype.is_integral() {
        return group
            .iter()
            .try_fold(0_i64, |sum, value| Some(sum.wrapping_add(value.to_i64()?)))
            .map(Scalar::Int);
    }
    let exact = if dtype == Dtype::F64 { 53 } else { 24 };
    let numbers: Vec<f64> = group.iter().map(|value| value.to_f64()).collect::<Option<_>>()?;
    // All are multiples of one unit, and the sum of their sizes has no more bits than the type.
    let unit = numbers.iter().filter(|value| **value != 0.0).map(|value| lowest_bit(*value)).min();
    let size: f64 = numbers.iter().map(|value| value.abs()).sum();
    let fits = size.is_finite() && unit.is_none_or(|unit| size < 2_f64.powi(unit.saturating_add(exact)));
    fits.then(|| Scalar::Float(numbers.iter().sum()))
}

/// The exponent of the lowest bit that is set.
fn lowest_bit(value: f64) -> i32 {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) | (1 << 52);
    exponent - 1075 + fraction.trailing_zeros() as i32
}

pub(super) fn set_sum(output: &Tensor, tensor: &Tensor, mask: &[bool]) {
    set(output, tensor, mask, |group| exact_sum(group, output.dtype()));
}

pub(super) fn set_mean(output: &Tensor, tensor: &Tensor, mask: &[bool]) {
    set(output, tensor, mask, |group| {
        let sum = exact_sum(group, output.dtype())?.to_f64()?;
        Some(Scalar::Float(sum / group.len() as f64))
    });
}

/// `all` and `any`.
pub(super) fn set_logic(output: &Tensor, tensor: &Tensor, mask: &[bool], needs_all: bool) {
    set(output, tensor, mask, |group| {
        let is_true = |value: &Scalar| value.to_f64() != Some(0.0);
        Some(Scalar::Bool(if needs_all { group.iter().all(is_true) } else { group.iter().any(is_true) }))
    });
}

/// Where the largest or smallest element is, the first of equal ones, or the first that is not a number.
fn place_of(group: &[Scalar], is_max: bool) -> Option<usize> {
    let mut best = 0;
    for (place, value) in group.iter().enumerate() {
        let (value, held) = (value.to_f64()?, group.get(best)?.to_f64()?);
        if held.is_nan() {
            break;
        }
        if value.is_nan() || if is_max { value > held } else { value < held } {
            best = place;
        }
    }
    (!group.is_empty()).then_some(best)
}

pub(super) fn set_extremum(output: &Tensor, tensor: &Tensor, mask: &[bool], is_max: bool) {
    set(output, tensor, mask, |group| group.get(place_of(group, is_max)?).copied());
}

pub(super) fn set_place(output: &Tensor, tensor: &Tensor, mask: &[bool], is_max: bool) {
    set(output, tensor, mask, |group| i64::try_from(place_of(group, is_max)?).ok().map(Scalar::Int));
}
