//! Values of ranges of addresses.

use rangemap::RangeMap;

/// Values that hold for ranges of addresses. Ranges of one value that touch are one.
#[derive(Clone, Debug)]
pub struct Extents<T> {
    ranges: RangeMap<u64, T>,
}

impl<T: Copy + Eq> Default for Extents<T> {
    fn default() -> Self {
        Self { ranges: RangeMap::new() }
    }
}

impl<T: Copy + Eq> Extents<T> {
    /// Sets the value of all addresses from `start` to `end`.
    pub fn set(&mut self, start: u64, end: u64, value: T) {
        // The map takes no empty range.
        if start < end {
            self.ranges.insert(start..end, value);
        }
    }

    /// Removes the values of all addresses from `start` to `end`; the parts outside of them stay.
    pub fn clear(&mut self, start: u64, end: u64) {
        if start < end {
            self.ranges.remove(start..end);
        }
    }

    /// The values from `start` to `end`, in order, without a gap: `None` where no value is set.
    pub fn pieces(&self, start: u64, end: u64) -> Vec<(u64, u64, Option<T>)> {
        let mut pieces = Vec::new();
        let mut at = start;
        for (range, value) in self.ranges.overlapping(start..end) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if at < from {
                pieces.push((at, from, None));
            }
            pieces.push((from, to, Some(*value)));
            at = to;
        }
        if at < end {
            pieces.push((at, end, None));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_later_stands_in_the_middle_of_what_was_there() {
        let mut extents = Extents::default();
        extents.set(10, 50, 'a');
        extents.set(20, 30, 'b');
        assert_eq!(
            extents.pieces(0, 60),
            [(0, 10, None), (10, 20, Some('a')), (20, 30, Some('b')), (30, 50, Some('a')), (50, 60, None)]
        );
        assert_eq!(extents.pieces(25, 35), [(25, 30, Some('b')), (30, 35, Some('a'))]);
        extents.clear(15, 45);
        assert_eq!(extents.pieces(10, 50), [(10, 15, Some('a')), (15, 45, None), (45, 50, Some('a'))]);
    }
}
