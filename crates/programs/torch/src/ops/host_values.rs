//! Values of small tensors of the host.

use crate::{Dtype, Scalar, Tensor};

/// A function of one element of each input; `None` where the result is not known.
pub(crate) type Function = fn(&[Scalar]) -> Option<Scalar>;

/// Brings a value to a type, as storing it would.
pub(crate) fn cast(value: Scalar, dtype: Dtype) -> Scalar {
    match (value, dtype) {
        (Scalar::Unknown(_), dtype) => Scalar::Unknown(dtype),
        (value, Dtype::Bool) => {
            value.to_f64().map_or(Scalar::Unknown(dtype), |value| Scalar::Bool(value != 0.0))
        }
        (value, dtype) if dtype.is_integral() => {
            let value = value.to_i64().unwrap_or(0);
            Scalar::Int(match dtype {
                Dtype::U8 => value & 0xff,
                Dtype::I8 => i64::from(value as i8),
                Dtype::I16 => i64::from(value as i16),
                Dtype::I32 => i64::from(value as i32),
                _ => value,
            })
        }
        (value, Dtype::F64) => value.to_f64().map_or(value, Scalar::Float),
        (value, Dtype::F32) => value.to_f64().map_or(value, |value| Scalar::Float(f64::from(value as f32))),
        (_, dtype) => Scalar::Unknown(dtype),
    }
}

/// Sets the values of an elementwise result where all inputs' are known.
pub(crate) fn apply(function: Option<Function>, inputs: &[&Tensor], output: &Tensor) {
    if output.device() != crate::Device::Cpu {
        return;
    }
    output.set_values(compute(function, inputs, output).as_deref());
}

fn compute(function: Option<Function>, inputs: &[&Tensor], output: &Tensor) -> Option<Vec<Scalar>> {
    const MAX: i64 = 4096;
    let function = function?;
    if output.numel() > MAX {
        return None;
    }
    let shape = output.shape();
    let mut columns = Vec::with_capacity(inputs.len());
    for input in inputs {
        columns.push(super::views::expand_quietly(input, &shape)?.values()?);
    }
    let count = usize::try_from(output.numel()).ok()?;
    let mut values = Vec::with_capacity(count);
    for index in 0..count {
        let row: Vec<Scalar> = columns.iter().filter_map(|column| column.get(index).copied()).collect();
        let is_known = row.iter().all(|value| !matches!(value, Scalar::Unknown(_)));
        values.push(if is_known {
            cast(function(&row)?, output.dtype())
        } else {
            Scalar::Unknown(output.dtype())
        });
    }
    Some(values)
}

/// The elements of two inputs; `None` for another number of inputs.
fn two(values: &[Scalar]) -> Option<(Scalar, Scalar)> {
    match values {
        [a, b] => Some((*a, *b)),
        _ => None,
    }
}

/// Computes with floats where one of the two elements is a float, and with integers otherwise.
fn arithmetic(
    values: &[Scalar],
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Option<Scalar> {
    match two(values)? {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
            let (a, b) = two(values)?;
            Some(Scalar::Float(floats(a.to_f64()?, b.to_f64()?)))
        }
        (a, b) => integers(a.to_i64()?, b.to_i64()?).map(Scalar::Int),
    }
}

pub(crate) fn add(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.wrapping_add(b)), |a, b| a + b)
}

pub(crate) fn sub(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.wrapping_sub(b)), |a, b| a - b)
}

pub(crate) fn mul(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.wrapping_mul(b)), |a, b| a * b)
}

pub(crate) fn div(values: &[Scalar]) -> Option<Scalar> {
    let (a, b) = two(values)?;
    Some(Scalar::Float(a.to_f64()? / b.to_f64()?))
}

pub(crate) fn floor_div(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(
        values,
        |a, b| a.checked_div_euclid(b).map(|q| if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q }),
        |a, b| (a / b).floor(),
    )
}

pub(crate) fn remainder(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(
        values,
        |a, b| a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        |a, b| a - b * (a / b).floor(),
    )
}

pub(crate) fn minimum(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.min(b)), f64::min)
}

pub(crate) fn maximum(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.max(b)), f64::max)
}

macro_rules! comparisons {
    ($($name:ident $operator:tt;)*) => {$(
        pub(crate) fn $name(values: &[Scalar]) -> Option<Scalar> {
            match two(values)? {
                (Scalar::Int(a), Scalar::Int(b)) => Some(Scalar::Bool(a $operator b)),
                (a, b) => Some(Scalar::Bool(a.to_f64()? $operator b.to_f64()?)),
            }
        }
    )*};
}

mod compare {
    use super::{Scalar, two};
    comparisons! {
        eq ==;
        ne !=;
        lt <;
        le <=;
        gt >;
        ge >=;
    }
}
pub(crate) use compare::{eq, ge, gt, le, lt, ne};

pub(crate) fn logical_and(values: &[Scalar]) -> Option<Scalar> {
    let (a, b) = two(values)?;
    Some(Scalar::Bool(a.to_f64()? != 0.0 && b.to_f64()? != 0.0))
}

pub(crate) fn logical_or(values: &[Scalar]) -> Option<Scalar> {
    let (a, b) = two(values)?;
    Some(Scalar::Bool(a.to_f64()? != 0.0 || b.to_f64()? != 0.0))
}

/// The first input's element, for a copy.
pub(crate) fn same(values: &[Scalar]) -> Option<Scalar> {
    values.first().copied()
}

pub(crate) fn neg(values: &[Scalar]) -> Option<Scalar> {
    match values.first()? {
        Scalar::Float(value) => Some(Scalar::Float(-value)),
        other => Some(Scalar::Int(other.to_i64()?.wrapping_neg())),
    }
}

pub(crate) fn abs(values: &[Scalar]) -> Option<Scalar> {
    match values.first()? {
        Scalar::Float(value) => Some(Scalar::Float(value.abs())),
        other => Some(Scalar::Int(other.to_i64()?.wrapping_abs())),
    }
}

/// `where`: the element of the second input where the first input's is not 0, or the third input's.
pub(crate) fn select(values: &[Scalar]) -> Option<Scalar> {
    match values {
        [condition, a, b] => Some(if condition.to_f64()? == 0.0 { *b } else { *a }),
        _ => None,
    }
}
