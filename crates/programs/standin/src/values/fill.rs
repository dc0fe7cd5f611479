//! Operators that fill a tensor with one number. They are computed here and not in Python, since they are the
//! most frequent operators whose arguments are always known.
#![expect(unsafe_code, reason = "bytes of the device are written")]

use crate::memory::Certainty;
use crate::values::layout::{IValue, ObjectLayout};
use crate::values::tensors::Tensor;

/// The most bytes of a result that is computed, so that a program's large tensors cost addresses and no
/// memory of the host.
const MAX_BYTES: u64 = 1 << 24;

/// A number as PyTorch boxes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// The number of an argument; `None` for an argument that is not a number, such as a tensor.
    pub(super) fn of(boxed: &IValue, layout: &ObjectLayout) -> Option<Self> {
        match boxed.tag {
            tag if tag == layout.integer => Some(Self::Integer(boxed.payload.cast_signed())),
            tag if tag == layout.number => Some(Self::Float(f64::from_bits(boxed.payload))),
            tag if tag == layout.boolean => Some(Self::Integer(i64::from(boxed.payload & 1 == 1))),
            _ => None,
        }
    }

    /// The number as an element of this type (PyTorch's number of the type); `None` where it does not fit
    /// without a loss.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::float_cmp,
        reason = "what is lost is looked at"
    )]
    fn element(self, dtype: i32) -> Option<u64> {
        let float = match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        };
        let whole = match self {
            Self::Integer(value) => Some(value),
            Self::Float(value) => {
                (value as i64 as f64 == value && value.abs() < 9e15).then_some(value as i64)
            }
        };
        // An integer beyond this need not be exact as an `f64`.
        if matches!(self, Self::Integer(value) if value.unsigned_abs() > 1 << 53)
            && matches!(dtype, 5..=7 | 15)
        {
            return None;
        }
        let single = (float as f32).to_bits();
        Some(match dtype {
            0 => u64::from(u8::try_from(whole?).ok()?),
            1 => u64::from(i8::try_from(whole?).ok()?.cast_unsigned()),
            2 => u64::from(i16::try_from(whole?).ok()?.cast_unsigned()),
            3 => u64::from(i32::try_from(whole?).ok()?.cast_unsigned()),
            4 => whole?.cast_unsigned(),
            5 => u64::from(half(single)?),
            6 => u64::from(single),
            7 => float.to_bits(),
            11 => u64::from(float != 0.0),
            15 if single.trailing_zeros() >= 16 && f64::from(f32::from_bits(single)) == float => {
                u64::from(single >> 16)
            }
            _ => return None,
        })
    }
}

/// An `f32` as a `float16`, both as bits; `None` where the number does not fit without a loss.
fn half(bits: u32) -> Option<u16> {
    let sign = u16::try_from(bits >> 16 & 0x8000).ok()?;
    if bits << 1 == 0 {
        return Some(sign);
    }
    let exponent = u16::try_from((bits >> 23 & 0xff).checked_sub(112)?).ok()?;
    let fits = (1..31).contains(&exponent) && bits.trailing_zeros() >= 13;
    fits.then_some(sign | exponent << 10 | u16::try_from(bits >> 13 & 0x3ff).ok()?)
}

/// A tensor without gaps, and the value that each of its elements will have.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) tensor: Tensor,
    element: u64,
}

impl Fill {
    /// `None` where elements do not lie one after another, are many, or cannot be known here.
    pub(super) fn of(tensor: Tensor, number: Number) -> Option<Self> {
        let (start, end) = tensor.extent();
        let bytes = tensor.count().checked_mul(tensor.element)?;
        if end.checked_sub(start)? != bytes || bytes == 0 || bytes > MAX_BYTES || !tensor.is_dense() {
            return None;
        }
        let element = number.element(tensor.dtype)?;
        Some(Self { tensor, element })
    }

    /// Writes the elements, which are known from now on.
    pub(super) fn write(&self) {
        let (start, end) = self.tensor.extent();
        write(start, end, self.element, self.tensor.element);
        self.tensor.mark(Certainty::Exact);
    }
}

/// Bytes of a page of the system.
const PAGE: u64 = 4096;

/// Writes elements of `size` bytes from `start` to `end`.
fn write(start: u64, end: u64, element: u64, size: u64) {
    let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    if element == 0 && first < last {
        // Pages that are given back are zeros when they are read, and take no memory until then.
        clear_pages(first, last);
        write_each(start, first, 0, 1);
        write_each(last, end, 0, 1);
    } else {
        write_each(start, end, element, size);
    }
}

fn clear_pages(first: u64, last: u64) {
    let Ok(length) = usize::try_from(last.saturating_sub(first)) else { return };
    // SAFETY: the pages are within a tensor on the device, whose addresses are this library's own, private
    // and without a file.
    if unsafe { libc::madvise(first as *mut _, length, libc::MADV_DONTNEED) } != 0 {
        write_each(first, last, 0, 1);
    }
}

fn write_each(start: u64, end: u64, element: u64, size: u64) {
    let Ok(count) = usize::try_from(end.saturating_sub(start) / size.max(1)) else { return };
    if count == 0 {
        return;
    }
    macro_rules! fill {
        ($type:ty) => {{
            let value = <$type>::try_from(element).unwrap_or_default();
            // SAFETY: the bytes are a tensor's on the device, which a kernel writes now; elements are aligned
            // to their size.
            unsafe { std::slice::from_raw_parts_mut(start as *mut $type, count) }.fill(value);
        }};
    }
    match size {
        1 => fill!(u8),
        2 => fill!(u16),
        4 => fill!(u32),
        8 => fill!(u64),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Fill, Number, write_each};
    use crate::values::tensors::Tensor;

    #[test]
    fn a_number_is_an_element_where_nothing_is_lost() {
        let (one, half) = (Number::Integer(1), Number::Float(0.5));
        let all = [6, 7, 5, 15, 4, 11];
        let found = |number: Number| all.map(|dtype| number.element(dtype));
        let single = 1.0_f32.to_bits().into();
        assert_eq!(
            found(one),
            [Some(single), Some(1.0_f64.to_bits()), Some(0x3c00), Some(0x3f80), Some(1), Some(1)]
        );
        assert_eq!(found(half)[2..], [Some(0x3800), Some(0x3f00), None, Some(1)]);
        // These are rounded, which is for PyTorch.
        assert_eq!((Number::Float(0.1).element(5), Number::Float(0.1).element(15)), (None, None));
        assert_eq!(Number::Float(0.1).element(6), Some(u64::from(0.1_f32.to_bits())));
        assert_eq!((Number::Integer(256).element(0), Number::Integer(-1).element(1)), (None, Some(0xff)));
        assert_eq!(Number::Float(f64::INFINITY).element(15), Some(0x7f80));
        assert_eq!(
            (Number::Float(65_536.0).element(5), Number::Float(-0.0).element(5)),
            (None, Some(0x8000))
        );
    }

    #[test]
    fn only_tensors_without_gaps_are_filled() {
        let tensor = |sizes: &[i64], strides: &[i64]| Tensor {
            data: 4096,
            dtype: 6,
            element: 4,
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
        };
        let is_filled = |tensor| Fill::of(tensor, Number::Integer(1)).is_some();
        assert!(is_filled(tensor(&[2, 3], &[3, 1])) && is_filled(tensor(&[2, 3], &[1, 2])));
        // As many bytes as elements, and still gaps between them.
        assert!(!is_filled(tensor(&[3, 3], &[2, 2])));
        assert!(!is_filled(tensor(&[2, 3], &[4, 1])) && !is_filled(tensor(&[2, 3], &[0, 1])));
        assert!(!is_filled(tensor(&[1 << 23], &[1])) && !is_filled(tensor(&[0], &[1])));
    }

    #[test]
    fn elements_are_written_one_by_one() {
        let mut bytes = [0_u32; 4];
        let start = bytes.as_mut_ptr() as u64;
        write_each(start + 4, start + 12, 7, 4);
        assert_eq!(bytes, [0, 7, 7, 0]);
    }
}
