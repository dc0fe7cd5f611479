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
        // C++ leaves open what an integer of such a number is.
        (Scalar::Float(value), dtype)
            if dtype.is_integral() && (value.is_nan() || value.abs() >= 2_f64.powi(31)) =>
        {
            Scalar::Unknown(dtype)
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
        (value, Dtype::F16) => {
            value.to_f64().map_or(value, |value| Scalar::Float(round(value, 11, -14, 65504.0)))
        }
        (value, Dtype::BF16) => value
            .to_f64()
            .map_or(value, |value| Scalar::Float(round(value, 8, -126, 3.389_531_389_251_535_5e38))),
        (_, dtype) => Scalar::Unknown(dtype),
    }
}

/// Rounds a `float32` to a format of so many significant bits, half to even.
fn round(value: f64, bits: i32, min_exponent: i32, max: f64) -> f64 {
    let value = f64::from(value as f32);
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let biased = ((value.to_bits() >> 52) & 0x7ff) as i32;
    let unit = 2_f64.powi((biased - 1023).max(min_exponent) - (bits - 1));
    let rounded = (value / unit).round_ties_even() * unit;
    if rounded.abs() > max { f64::INFINITY.copysign(value) } else { rounded }
}

/// Sets the values of an elementwise result where all inputs' are known.
pub(crate) fn apply(function: Option<Function>, inputs: &[&Tensor], output: &Tensor) {
    if output.device() == crate::Device::Cpu {
        output.set_values(compute(function, inputs, output).as_deref());
    }
}

/// The values of an elementwise result where all inputs' are known.
pub(crate) fn compute(
    function: Option<Function>,
    inputs: &[&Tensor],
    output: &Tensor,
) -> Option<Vec<Scalar>> {
    const MAX: i64 = 4096;
    let function = function?;
    if output.numel() > MAX || output.device() != crate::Device::Cpu {
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
        |a, b| {
            // `div_floor_floating`
            if b == 0.0 {
                return a / b;
            }
            let rest = a % b;
            let quotient = (a - rest) / b - if rest != 0.0 && (b < 0.0) != (rest < 0.0) { 1.0 } else { 0.0 };
            if quotient == 0.0 {
                return 0_f64.copysign(a / b);
            }
            quotient.floor() + if quotient - quotient.floor() > 0.5 { 1.0 } else { 0.0 }
        },
    )
}

pub(crate) fn remainder(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(
        values,
        |a, b| a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        |a, b| {
            let rest = a % b;
            if rest != 0.0 && (b < 0.0) != (rest < 0.0) { rest + b } else { rest }
        },
    )
}

pub(crate) fn fmod(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, i64::checked_rem, |a, b| a % b)
}

pub(crate) fn minimum(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.min(b)), |a, b| if a.is_nan() || a < b { a } else { b })
}

pub(crate) fn maximum(values: &[Scalar]) -> Option<Scalar> {
    arithmetic(values, |a, b| Some(a.max(b)), |a, b| if a.is_nan() || a > b { a } else { b })
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

/// A function of the host that rounds as IEEE 754 says, so that each processor gives the same bits.
fn float(values: &[Scalar], function: fn(f64) -> f64) -> Option<Scalar> {
    Some(match values.first()? {
        Scalar::Float(value) => Scalar::Float(function(*value)),
        other => Scalar::Float(function(other.to_f64()?)),
    })
}

macro_rules! rounded {
    ($($name:ident $function:expr;)*) => {$(
        pub(crate) fn $name(values: &[Scalar]) -> Option<Scalar> {
            match values.first()? {
                // Of an integer these are the integer itself.
                value @ (Scalar::Int(_) | Scalar::Bool(_)) => Some(*value),
                _ => float(values, $function),
            }
        }
    )*};
}

rounded! {
    ceil f64::ceil;
    floor f64::floor;
    trunc f64::trunc;
    round_to_even f64::round_ties_even;
}

pub(crate) fn sqrt(values: &[Scalar]) -> Option<Scalar> {
    float(values, f64::sqrt)
}

pub(crate) fn reciprocal(values: &[Scalar]) -> Option<Scalar> {
    float(values, f64::recip)
}

pub(crate) fn sign(values: &[Scalar]) -> Option<Scalar> {
    match values.first()? {
        Scalar::Float(value) if value.is_nan() => None,
        Scalar::Float(value) => {
            Some(Scalar::Float(f64::from(i8::from(*value > 0.0) - i8::from(*value < 0.0))))
        }
        other => Some(Scalar::Int(other.to_i64()?.signum())),
    }
}

pub(crate) fn relu(values: &[Scalar]) -> Option<Scalar> {
    match values.first()? {
        Scalar::Float(value) => Some(Scalar::Float(if *value <= 0.0 { 0.0 } else { *value })),
        other => Some(Scalar::Int(other.to_i64()?.max(0))),
    }
}

pub(crate) fn isnan(values: &[Scalar]) -> Option<Scalar> {
    Some(Scalar::Bool(values.first()?.to_f64()?.is_nan()))
}

pub(crate) fn logical_not(values: &[Scalar]) -> Option<Scalar> {
    Some(Scalar::Bool(values.first()?.to_f64()? == 0.0))
}

pub(crate) fn bitwise_not(values: &[Scalar]) -> Option<Scalar> {
    match values.first()? {
        Scalar::Bool(value) => Some(Scalar::Bool(!value)),
        other => Some(Scalar::Int(!other.to_i64()?)),
    }
}

fn bitwise(values: &[Scalar], function: fn(i64, i64) -> i64) -> Option<Scalar> {
    match two(values)? {
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => None,
        (a, b) => Some(Scalar::Int(function(a.to_i64()?, b.to_i64()?))),
    }
}

pub(crate) fn bitwise_and(values: &[Scalar]) -> Option<Scalar> {
    bitwise(values, |a, b| a & b)
}

pub(crate) fn bitwise_or(values: &[Scalar]) -> Option<Scalar> {
    bitwise(values, |a, b| a | b)
}

pub(crate) fn bitwise_xor(values: &[Scalar]) -> Option<Scalar> {
    bitwise(values, |a, b| a ^ b)
}
