//! The addresses of one device: ranges that are taken and given back.
//!
//! `blockyard_device::VirtualDevice` never gives an address twice. Here host code reads and writes at the very addresses, of which a
//! process has 47 bits, so that they must be used again.

use std::collections::BTreeMap;

/// Segments start at a multiple of this, as those of `cudaMalloc` of 2 MiB and more do.
pub(crate) const ALIGNMENT: u64 = 2 << 20;

/// Ranges of addresses that are taken, and those that are free.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// First address and length.
    free: BTreeMap<u64, u64>,
    /// First address and the bytes that were asked for.
    taken: BTreeMap<u64, u64>,
    /// Whether the highest addresses are taken first. Which a driver takes is not known.
    is_falling: bool,
}

fn rounded(size: u64) -> Option<u64> {
    size.max(1).checked_next_multiple_of(ALIGNMENT)
}

impl Addresses {
    pub(crate) fn new(first: u64, length: u64, is_falling: bool) -> Self {
        Self { free: BTreeMap::from([(first, length)]), taken: BTreeMap::new(), is_falling }
    }

    /// The lowest addresses that are free, or the highest; `None` where no range is long enough.
    pub(crate) fn take(&mut self, size: u64) -> Option<u64> {
        let needed = rounded(size)?;
        let mut ranges = self.free.iter().map(|(base, length)| (*base, *length));
        let fits = |(_, length): &(u64, u64)| *length >= needed;
        let (start, length) = if self.is_falling { ranges.rfind(fits) } else { ranges.find(fits) }?;
        let rest = length.checked_sub(needed)?;
        self.free.remove(&start);
        let base = if self.is_falling { start.checked_add(rest)? } else { start };
        if rest > 0 {
            self.free.insert(if self.is_falling { start } else { start.checked_add(needed)? }, rest);
        }
        self.taken.insert(base, size);
        Some(base)
    }

    /// Gives a range back and says how long it was; `None` where no range starts at the address.
    pub(crate) fn give(&mut self, base: u64) -> Option<u64> {
        let size = self.taken.remove(&base)?;
        let mut start = base;
        let mut end = base.checked_add(rounded(size)?)?;
        if let Some(length) = self.free.remove(&end) {
            end = end.checked_add(length)?;
        }
        if let Some((before, length)) =
            self.free.range(..base).next_back().map(|(base, length)| (*base, *length))
            && before.checked_add(length) == Some(base)
        {
            start = before;
        }
        self.free.insert(start, end.checked_sub(start)?);
        Some(size)
    }

    /// The taken range that holds the address: where it starts, and its bytes.
    pub(crate) fn holding(&self, address: u64) -> Option<(u64, u64)> {
        let (base, size) = self.taken.range(..=address).next_back()?;
        (address - base < (*size).max(1)).then_some((*base, *size))
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, Addresses};

    #[test]
    fn addresses_are_used_again_and_free_ranges_merge() {
        let mut addresses = Addresses::new(ALIGNMENT, 8 * ALIGNMENT, false);
        let first = addresses.take(1).expect("room");
        let second = addresses.take(ALIGNMENT + 1).expect("room");
        let third = addresses.take(ALIGNMENT).expect("room");
        assert_eq!([first, second, third], [ALIGNMENT, 2 * ALIGNMENT, 4 * ALIGNMENT]);
        assert_eq!(addresses.holding(second + ALIGNMENT), Some((second, ALIGNMENT + 1)));
        assert_eq!(addresses.holding(second + ALIGNMENT + 1), None);
        assert_eq!(addresses.give(second), Some(ALIGNMENT + 1));
        assert_eq!(addresses.give(second), None);
        assert_eq!(addresses.give(first), Some(1));
        assert_eq!(addresses.take(3 * ALIGNMENT), Some(ALIGNMENT));
        assert_eq!(addresses.take(5 * ALIGNMENT), None);
        assert_eq!(addresses.give(third), Some(ALIGNMENT));
        assert_eq!(addresses.take(5 * ALIGNMENT), Some(4 * ALIGNMENT));
        assert_eq!(addresses.take(u64::MAX), None);
    }

    #[test]
    fn falling_addresses_start_at_the_end() {
        let mut addresses = Addresses::new(ALIGNMENT, 4 * ALIGNMENT, true);
        let first = addresses.take(1).expect("room");
        let second = addresses.take(2 * ALIGNMENT).expect("room");
        assert_eq!([first, second], [4 * ALIGNMENT, 2 * ALIGNMENT]);
        assert_eq!(addresses.give(first), Some(1));
        assert_eq!(addresses.take(1), Some(first));
        assert_eq!(addresses.take(2 * ALIGNMENT), None);
    }
}
