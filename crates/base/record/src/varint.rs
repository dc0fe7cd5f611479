//! Variable-length numbers: seven bits a byte, the lowest bits first. A difference has its sign in the lowest
//! bit.

/// Appends a number.
pub(crate) fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    bytes.push(low_bits(number));
}

/// Appends the difference from `from` to `to`, which may be negative.
pub(crate) fn push_difference(bytes: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from).cast_signed();
    push(bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

#[expect(clippy::cast_possible_truncation, reason = "the low seven bits are what is wanted")]
fn low_bits(number: u64) -> u8 {
    number as u8 & 0x7f
}

/// Reads bytes from the front. Reading ends for any bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number; `None` if the bytes end or are not a number.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of 32 bits; `None` if the bytes end or are not such a number.
    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// Reads a difference that [`push_difference`] wrote, and adds it to `from`.
    pub(crate) fn add_difference(&mut self, from: u64) -> Option<u64> {
        let folded = self.number()?;
        let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
        Some(from.wrapping_add(difference))
    }

    /// Reads a difference, and adds it to `from`; `None` if the sum does not fit in 32 bits.
    pub(crate) fn add_small_difference(&mut self, from: u32) -> Option<u32> {
        u32::try_from(self.add_difference(u64::from(from))?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            push(&mut bytes, number);
            push_difference(&mut bytes, 1000, number);
        }
        let mut reader = Reader(&bytes);
        for number in numbers {
            assert_eq!(reader.number(), Some(number));
            assert_eq!(reader.add_difference(1000), Some(number));
        }
        assert_eq!(reader.byte(), None);
    }

    #[test]
    fn small_differences_take_one_byte() {
        let mut bytes = Vec::new();
        push_difference(&mut bytes, 1000, 1063);
        push_difference(&mut bytes, 1000, 936);
        assert_eq!(bytes.len(), 2);
    }

    #[test]
    fn bytes_that_never_end_are_no_number() {
        assert_eq!(Reader(&[0x80; 20]).number(), None);
        assert_eq!(Reader(&[0x80]).number(), None);
    }
}
